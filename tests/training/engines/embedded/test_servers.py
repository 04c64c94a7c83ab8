"""Server processes of a run: with substitutes for what may go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from curation.config import EngineSettings
from curation.records import PolicyError
from tests.places import ROOT
from tests.waiting import wait_gone, wait_until
from training.engines import child_process
from training.engines.embedded.servers import MAX_STARTS, Replica, ServerProcesses

STAND_IN = ROOT / "tests" / "curation" / "policies" / "stand_in.py"


def servers_of(command: Callable[[int], Sequence[str]], count: int) -> ServerProcesses:
    return ServerProcesses("m", EngineSettings(), [()] * count, on_cpu=True, command=command)


def stand_in(folder: Path) -> Callable[[int], Sequence[str]]:
    return lambda port: ["env", f"PORT={port}", sys.executable, str(STAND_IN), str(folder / str(port)), "m", "", ""]


def test_a_server_that_dies_is_started_again_under_its_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    servers = servers_of(stand_in(tmp_path), 2)
    with servers.running():
        mortal, url = servers.replicas[0], servers.replicas[0].url
        wait_until(lambda: mortal.healthy)
        kill_server(mortal)
        wait_until(lambda: mortal.deaths == 1 and mortal.healthy)
        assert mortal.url == url
    assert all(one.process is not None and one.process.returncode is not None for one in servers.replicas)
    assert "server 0 ended with status" in capfd.readouterr().err


def test_servers_that_cannot_start_end_the_run_with_their_own_words() -> None:
    failing = [sys.executable, "-c", "raise ValueError('no such architecture')"]
    cannot = r"do not start; server \d ended with: ValueError: no such architecture"
    with pytest.raises(PolicyError, match=cannot), servers_of(lambda _: failing, 2).running():
        pass


def test_a_server_that_cannot_be_started_again_is_given_up(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flag = tmp_path / "gone"
    failing = [sys.executable, "-c", "raise RuntimeError('CUDA error: the GPU has fallen off the bus')"]
    servers = servers_of(lambda port: failing if flag.exists() else stand_in(tmp_path)(port), 1)
    with servers.running():
        (replica,) = servers.replicas
        flag.touch()
        kill_server(replica)
        wait_until(lambda: replica.deaths == 1 + MAX_STARTS)
    told = capfd.readouterr().err.splitlines()
    assert "the GPU has fallen off the bus); it is not restarted again." in told[-1]


def kill_server(replica: Replica) -> None:
    """kill -9 for the server itself, below the process that watches over it."""
    assert replica.process is not None
    (server,) = psutil.Process(replica.process.pid).children()
    server.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("killed", ["the run", "the watching process"])
def test_a_server_ends_with_its_run_however_that_ends(killed: str, tmp_path: Path) -> None:
    """With all that it has started, of which one ignores SIGTERM."""
    grandchild = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    server = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}]); time.sleep(1000)"
    if killed == "the watching process":
        server = "import time; time.sleep(1000)"  # the kernel ends the server alone
    command = [sys.executable, child_process.__file__, sys.executable, "-c", server]
    run_code = f"import subprocess, time; p = subprocess.Popen({command!r}, stdin=subprocess.PIPE); time.sleep(1000)"
    run = subprocess.Popen([sys.executable, "-c", run_code])
    try:
        top = psutil.Process(run.pid)
        expected = 2 if killed == "the watching process" else 3
        wait_until(lambda: len(top.children(recursive=True)) == expected, run)
        below = top.children(recursive=True)
        victim = run.pid if killed == "the run" else top.children()[0].pid
        os.kill(victim, signal.SIGKILL)
        wait_gone(below)
    finally:
        run.kill()
        run.wait()
