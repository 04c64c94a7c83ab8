"""Landlock where each slot has a user id of its own: as root, with an interpreter that other users may read.

A checkout in a private home has no such slots. Here a namespace of mounts is made in which the folders on the way to
the interpreter and to the checkout are open to all, and tests of this folder run again in it; the host sees none of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import curation
from tests.conftest import TEMPORARY
from tests.places import in_gate

CHECKOUT = Path(curation.__file__).resolve().parents[1]
FOLDER = "tests/curation/verify/sandbox"
ATTACKS = [f"{FOLDER}/test_attacks_{part}.py" for part in ("files", "kernel", "processes", "resources")]
PLUGIN = "tests.curation.verify.sandbox.opened"
LIMIT_S = 1500


def _private(place: Path) -> Path | None:
    """Return the highest folder on the way to a place that other users may not pass, or None."""
    for folder in [*reversed(place.parents), place]:
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


def _opened(places: set[Path]) -> str:
    """Return shell commands that make the way to these places open to all: what is private is covered, they are not."""
    lines = ["set -e"]
    covered = {folder: {place for place in places if _private(place) == folder} for folder in map(_private, places)}
    for folder, below in covered.items():
        if folder is None:
            continue
        held = {place: f"/mnt/{number}" for number, place in enumerate(sorted(below))}
        lines += ["mount -t tmpfs -o mode=755 none /mnt"]
        lines += [f"mkdir {hold} && mount --bind '{place}' {hold}" for place, hold in held.items()]
        lines += [f"mount -t tmpfs -o mode=755 none '{folder}'"]
        lines += [f"mkdir -p '{place}' && mount --bind {hold} '{place}'" for place, hold in held.items()]
    return "\n".join([*lines, 'exec "$@"'])


@pytest.mark.slow
@in_gate("programs/attacks-with-user")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a slot a user id of its own without namespaces")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="`unshare` (util-linux) is not installed")
def test_attacks_with_a_user_id_of_its_own(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of mounts can be made here")
    places = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), CHECKOUT}
    inner = [sys.executable, "-m", "pytest", *ATTACKS, "-v", "-k", "landlock", "-p", "no:cacheprovider", "-p", PLUGIN]
    outputs = tmp_path / "out", tmp_path / "err"
    with outputs[0].open("w") as out, outputs[1].open("w") as err:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _opened(places), "sh", *inner],
            cwd=CHECKOUT,
            env={**os.environ, "TMPDIR": TEMPORARY},  # which others may pass, unlike the folder of these tests
            stdout=out,
            stderr=err,
        )
        try:
            status: int | str = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = f"not ended after {LIMIT_S} s"  # pytest wrote to `err` where each thread stood
        finally:
            process.kill()
            process.wait()
    said, errors = (output.read_text(errors="replace") for output in outputs)
    assert status == 0, f"{status}\n{said[-6000:]}{errors[-6000:]}"
