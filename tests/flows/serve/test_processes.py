"""The processes of a service, found by its token and ended together; GPU slots, free when their holder is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.serve.flow_runs import gpu_slot, slots_folder
from flows.serve.server import TOKEN, end_processes, processes_of
from tests.flows.conftest import ROOT
from tests.waiting import PATIENCE_S, wait_until

GRANDCHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep({PATIENCE_S})"], start_new_session=True)
"""

LEASHED = """
import os, sys
from flows.serve.server import TOKEN, end_with_parent
print("up", flush=True)
end_with_parent(os.environ[TOKEN])
"""

HOLD = f"""
import time
from flows.serve.flow_runs import gpu_slot
with gpu_slot(1, print):
    print("held", flush=True)
    time.sleep({PATIENCE_S})
"""


def test_a_process_whose_parent_is_gone_is_found_and_ended() -> None:
    environment = {**os.environ, TOKEN: "test-token-1"}
    subprocess.run([sys.executable, "-c", GRANDCHILD], env=environment, check=True)
    assert len(list(processes_of("test-token-1"))) == 1
    assert list(processes_of("test-token")) == [], "a token is matched whole"
    assert end_processes("test-token-1") == 1
    wait_until(lambda: not list(processes_of("test-token-1")))


def test_who_sees_its_parent_end_ends_the_service() -> None:
    environment = {**os.environ, TOKEN: "test-token-2"}
    subprocess.run([sys.executable, "-c", GRANDCHILD], env=environment, check=True)
    child = subprocess.Popen(
        [sys.executable, "-c", LEASHED], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        child.stdin.close()
        child.wait(PATIENCE_S)
    wait_until(lambda: not list(processes_of("test-token-2")))


def test_a_held_gpu_slot_is_waited_for_and_a_killed_holder_frees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with gpu_slot(2, print) as first, gpu_slot(2, print) as second:
        assert (first, second) == (0, 1)
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def say(text: str) -> None:
            said.append(text)
            holder.kill()

        with gpu_slot(1, say):
            assert (slots_folder() / "slot-0").is_dir()
    assert said == [f"waits for the GPUs: all 1 slots are held, by processes {holder.pid}"]
