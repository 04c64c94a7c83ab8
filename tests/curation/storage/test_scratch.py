"""Temporary folders: removed by their maker, kept while it lives, swept once it was killed."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from curation.storage.scratch import MIN_AGE_S, ScratchFolder, sweep

MAKER = """
import sys, time
from curation.storage.scratch import ScratchFolder
print(ScratchFolder("kind").path, flush=True)
time.sleep(600)
"""


def age(folder: Path) -> None:
    then = time.time() - MIN_AGE_S - 1
    os.utime(folder, (then, then))


def test_a_folder_goes_with_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    made = ScratchFolder("kind")
    assert Path(made.path).parent == tmp_path
    assert Path(made.path).stat().st_mode & 0o077 == 0
    (Path(made.path) / "file").write_text("x")
    made.remove()
    made.remove()
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_is_kept_while_its_maker_lives_and_swept_once_it_was_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, text=True, env=environment) as maker:
        try:
            assert maker.stdout is not None
            folder = Path(maker.stdout.readline().strip())
            (folder / "deep").mkdir()
            age(folder)
            assert sweep(tmp_path, "goldilocks-kind-") == []
        finally:
            maker.kill()
    assert sweep(tmp_path, "goldilocks-kind-") == [folder]
    assert not folder.exists()


def test_the_first_of_a_kind_sweeps_and_only_what_is_old_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("goldilocks-kind-old", "goldilocks-kind-young", "goldilocks-other-old", "somebody-else"):
        (tmp_path / name).mkdir()
        if not name.endswith("young"):
            age(tmp_path / name)
    (tmp_path / "goldilocks-kind-link").symlink_to(tmp_path / "somebody-else")
    ScratchFolder("kind").remove()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"goldilocks-kind-young", "goldilocks-other-old", "somebody-else", "goldilocks-kind-link"}
