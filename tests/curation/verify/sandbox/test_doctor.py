"""The doctor finds isolation missing where there is none, without harm to the host; the gate `programs/doctor` runs it.

What runs where nothing isolates runs in a mount namespace of the test's own: should the guards fail, the machine stays.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from curation.verify.sandbox import RUNGS
from curation.verify.sandbox.doctor_attempts import ATTEMPTS
from tests.places import ROOT

WITHOUT = """
from curation.records import VerifierError
from curation.verify.sandbox.doctor import diagnose, require
before = open("/proc/self/mountinfo").read()
found = diagnose("none")
bad = {entry.name for entry in found if not entry.ok}
assert {"isolation", "network: TCP", "host files: system", "processes: fork", "namespaces", "ptrace"} <= bad, bad
assert {entry.by for entry in found if entry.name == "processes: exec" and not entry.ok} == {"Python", "C++"}
try:
    require(found)
    raise AssertionError("it is refused")
except VerifierError as error:
    assert "fails on: " in str(error) and "processes: fork (C++)" in str(error), error
assert not {"limit: CPU time", "limit: memory", "limit: output"} & bad
assert "mounts" not in bad, "no program may cover a folder of the host, isolated or not"
assert open("/proc/self/mountinfo").read() == before
"""
COVERING = """
import os, sys
from curation.records import VerifierError
from curation.verify.sandbox import Limits, Sandbox
program = "import ctypes, os\\nlibc = ctypes.CDLL(None, use_errno=True)\\nfor place in {places!r}:\\n"
program += "    for flags in (0, 4096, 32):\\n        print(libc.mount(b'none', place.encode(), b'tmpfs', flags, None))"
before = open("/proc/self/mountinfo").read()
try:
    box = Sandbox(workers=1, rung=sys.argv[1])
except VerifierError as why:
    print(why)
    raise SystemExit(9)
with box:
    (ran,) = box.run_python(program.format(places=("/tmp", "/", os.environ["TMPDIR"])), [b""], Limits())
assert ran.stdout.split() == [b"-1"] * 9, ran
assert open("/proc/self/mountinfo").read() == before
"""
NO_NAMESPACE = """
from curation.verify.sandbox.inside import kernel, launcher
call = kernel.call
kernel.call = lambda name, *words: 0 if name == "unshare" else call(name, *words)
plan = launcher.Plan({"rung": "namespaces", "kind": "std", "binds": [], "hidden": [], "scratch_mb": 1, "control": 0})
try:
    launcher._own_namespaces(plan)
except OSError as error:
    assert "no mount namespace of its own" in str(error), error
else:
    raise AssertionError("it went on")
"""


def _apart(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the judge's in a mount namespace of its own, from which nothing spreads to the machine."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("namespaces for the test take root and unshare(1)")
    apart = ["unshare", "--uts", "--mount", "--propagation", "private", sys.executable, "-c", code, *words]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(apart, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_without_isolation_the_doctor_says_so_and_harms_nothing(tmp_path: Path) -> None:
    ran = _apart(WITHOUT, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rung", [RUNGS[0], *(pytest.param(rung, marks=pytest.mark.slow) for rung in RUNGS[1:])])
def test_no_program_covers_a_folder_of_the_host(rung: str, tmp_path: Path) -> None:
    ran = _apart(COVERING, tmp_path, rung)
    if ran.returncode == 9:
        pytest.skip(ran.stdout)
    assert ran.returncode == 0, ran.stderr


def test_a_slot_without_a_mount_namespace_does_not_cover_tmp(tmp_path: Path) -> None:
    ran = _apart(NO_NAMESPACE, tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_what_an_attempt_would_change_is_the_doctors_own() -> None:
    for _, _, python, cpp in ATTEMPTS:
        for act, own in ((python, "{folder}"), (cpp, "folder")):
            if re.search(r"mount\(|chmod\(|changed\(|'w'|O_CREAT|unlink|rename|truncate", act):
                assert own in act, "it would change something of the machine"
            assert not re.search(r"kill\([^()]*(\(\))?, (?!0\))", act), "a signal is asked for, and not sent"


INSIDE_GVISOR = """
from curation.records import VerifierError
from curation.verify.sandbox import Sandbox
try:
    print("chosen", Sandbox(workers=1).description)
except VerifierError as why:
    print("refused", why)
"""


def test_inside_gvisor_no_rung_is_taken_for_one_that_isolates() -> None:
    """Its kernel lacks what the rungs are made of (explanation/sandbox.md); a reason for each is given, and no box."""
    runsc = shutil.which("runsc")
    if runsc is None:
        pytest.skip("gVisor's runsc is not installed")
    command = [runsc, "--rootless", "--network=none", "do", sys.executable, "-c", INSIDE_GVISOR]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "refused" not in ran.stdout and "chosen" not in ran.stdout:
        pytest.skip(f"runsc does not start here: {ran.stderr[-300:]}")
    assert all(f"{rung}: " in ran.stdout for rung in RUNGS[:-1]), ran.stdout
    assert "chosen" not in ran.stdout
