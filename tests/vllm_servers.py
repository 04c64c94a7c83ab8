"""A real vLLM server, by default of the embedded model, which a session starts when a test first asks for it.

It is started as a training run needs it, which answers everything that a policy asks for too.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.waiting import wait_until


def skip_without_vllm() -> None:
    """Skip the test if vLLM is not installed, without importing it, which takes eight CPU seconds."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")


class VllmServer:
    """One server process in a group of its own, as quick to start as a CPU allows."""

    def __init__(self, log: Path, model: Path | None = None, dtype: str = "float32") -> None:
        from training.embedded_model import WEIGHTS

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.log, self.url = log, f"http://127.0.0.1:{self.port}/v1"
        options = f"--port {self.port} --served-model-name tiny --dtype {dtype} --max-num-seqs 16"
        options += f" --kv-cache-memory-bytes {64 * 2**20}"
        command = [sys.executable, "-m", "training.generation.serving", str(model or WEIGHTS), *options.split()]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("wb") as out:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            self.process = subprocess.Popen(command, **pipes, env=environment, start_new_session=True)

    def wait(self) -> None:
        import httpx

        def answers() -> bool:
            try:
                return httpx.get(f"{self.url}/models", timeout=60).status_code == 200
            except httpx.TransportError:
                return False

        try:
            wait_until(answers, self.process, tick_s=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.log.read_text()[-3000:]}") from error

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class VllmServers:
    """The session's server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: VllmServer | None = None

    def one(self) -> VllmServer:
        """Return the server, which no test kills."""
        skip_without_vllm()
        if self._started is None:
            self._started = VllmServer(self._folder / "server.log")
        self._started.wait()
        return self._started

    def close(self) -> None:
        if self._started is not None:
            self._started.kill()
