"""Engines in processes of their own: which failed first, its last lines, and that none outlives who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from training.engines.placement import EmbeddedPlacement
from training.engines.processes import failure, first_failure, rank_command, rank_environment, run_processes


def test_a_command_runs_to_its_end_and_all_it_says_is_kept(tmp_path: Path) -> None:
    said: list[str] = []
    looks: list[int] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(7)"
    log = tmp_path / "log.txt"
    command = [sys.executable, "-u", "-c", code]
    status = run_processes(command, os.environ, log, watch=lambda: looks.append(1), say=said.append)
    assert (status, sorted(said), log.read_text().split()) == (7, ["one", "two"], ["one", "two"])
    assert looks
    told = str(failure("the training in RUN", status, log))
    assert told.startswith("the training in RUN ended with status 7: a process failed.")
    assert told.endswith("  one\n  two")


TORCHRUN = """
[default0]:step 1/9
[default1]:loading
[default1]:Traceback (most recent call last):
[default0]:[rank0] Connection closed by peer
[default1]:torch.OutOfMemoryError: tried to allocate 2 GiB
E1123 torch/distributed/elastic failed (exitcode: 1)
============================================================
flows.run.training FAILED
------------------------------------------------------------
Failures:
[1]:
  rank      : 0 (local_rank: 0)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-23_01:00:00
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 81)
"""


def test_the_process_that_failed_first_is_named_with_its_own_lines() -> None:
    lines = ["loading", "Traceback (most recent call last):", "torch.OutOfMemoryError: tried to allocate 2 GiB"]
    assert first_failure(TORCHRUN) == ("rank 1", lines)


def test_one_process_is_started_alone_and_several_by_torchrun() -> None:
    assert rank_command(EmbeddedPlacement(1), "m", ["a"]) == [sys.executable, "-m", "m", "a"]
    command = " ".join(rank_command(EmbeddedPlacement(3, ("0", "2", "4")), "m", ["a"])[1:])
    options = "--standalone --local-addr=127.0.0.1 --nproc-per-node=3 --tee=3"
    assert command == f"-m torch.distributed.run {options} -m m a"
    told = rank_environment(EmbeddedPlacement(3, ("0", "2", "4")), {"RANK": "1", "WORLD_SIZE": "2", "HOME": "/h"})
    assert told == {"HOME": "/h", "CUDA_VISIBLE_DEVICES": "0,2,4"}


@pytest.mark.slow
def test_nothing_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    inner = f"import os, time; open({str(tmp_path / 'inner')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    start = (
        "import os, pathlib, sys\n"
        "from training.engines.processes import run_processes\n"
        f"run_processes([sys.executable, '-c', {outer!r}], os.environ, pathlib.Path({str(tmp_path / 'log')!r}))\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", start])
    path = tmp_path / "inner"
    wait_until(lambda: path.exists() and path.read_text() != "")
    process = int(path.read_text())
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    wait_until(lambda: not Path(f"/proc/{process}").exists())
