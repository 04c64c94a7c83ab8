"""Run a training run's servers on this machine, and restart those that die or fall silent.

Invariants: servers end with the run, however it ends; a server keeps its address and restarts at most `MOST_STARTS`
times without becoming healthy; once none is left, `lost` is called.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from curation.config import EngineSettings
from curation.policies.client import HttpSession
from curation.policies.servers import TemporaryFailure
from curation.policies.vllm.engine import engine_environment
from curation.policies.vllm.placement import VISIBLE
from curation.records import PolicyError
from curation.storage.scratch import ScratchFolder
from training.engines import child_process

MOST_STARTS = 3

POLL_S, HEALTH_S = 0.5, 15.0
"""Seconds between two questions after the health of a server that starts, and of one that runs."""

SILENT_S = 600.0
"""Seconds without a word of its health after which a server that was healthy is killed."""

_ANSWER_S = 60.0
_ERROR = re.compile(r"\w*(Error|Exception)\b")
_ERRORS_TOLD = 2


@dataclass(slots=True)
class Replica:
    """One server: its GPUs, address and state."""

    number: int
    gpus: tuple[str, ...]
    port: int
    log: Path
    process: asyncio.subprocess.Process | None = None
    healthy: bool = False
    starts: int = 0
    """Since it was last healthy."""
    deaths: int = 0

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    def last_words(self) -> str:
        """Return its log's last errors in one line of at most 300 characters."""
        try:
            lines = [line.strip() for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        errors = [line for line in lines if _ERROR.search(line)] or lines
        return " / ".join(dict.fromkeys(errors[-_ERRORS_TOLD:]))[-300:] or "it printed nothing"


class ServerProcesses:
    """Run all servers of one model, in one event loop.

    Args:
        lost: called with the reason once no server can be restarted.
    """

    def __init__(
        self,
        model: str,
        settings: EngineSettings,
        shares: Sequence[tuple[str, ...]],
        *,
        on_cpu: bool,
        lost: Callable[[str], None],
        command: Callable[[int], Sequence[str]],
    ) -> None:
        self._model, self._settings, self._on_cpu, self._lost = model, settings, on_cpu, lost
        self._command = command
        self._folder = ScratchFolder("vllm")
        folder = Path(self._folder.path)
        ports = _free_ports(len(shares))
        self.replicas = [
            Replica(number, gpus, port, folder / f"server-{number}.log")
            for number, (gpus, port) in enumerate(zip(shares, ports, strict=True))
        ]
        self._watching: list[asyncio.Task[None]] = []
        self._http: HttpSession | None = None

    async def start(self) -> None:
        """Start all servers and return when one is healthy.

        Raises:
            PolicyError: every server has died.
        """
        self._http = HttpSession({}, _ANSWER_S, _ANSWER_S)
        self._watching = [asyncio.create_task(self._watch(replica)) for replica in self.replicas]
        while not any(replica.healthy for replica in self.replicas):
            if all(replica.deaths for replica in self.replicas):
                raise PolicyError(self._epitaph())
            await asyncio.sleep(POLL_S / 10)

    async def stop(self) -> None:
        """End all servers; a second call does nothing."""
        watching, self._watching = self._watching, []
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        session, self._http = self._http, None
        if session is not None:
            await session.close()
        self._folder.remove()

    async def _watch(self, replica: Replica) -> None:
        """Keep one server running until it is given up."""
        try:
            while replica.starts < MOST_STARTS:
                replica.starts += 1
                replica.process = await self._started(replica)
                await self._follow(replica, replica.process)
                replica.healthy = False
                replica.deaths += 1
                print(
                    f"model {self._model}: server {replica.number} has ended with status "
                    f"{replica.process.returncode} ({replica.last_words()}); it is started again.",
                    file=sys.stderr,
                )
        finally:
            await _ended(replica.process)
        if all(one.starts >= MOST_STARTS and not one.healthy for one in self.replicas):
            self._lost(self._epitaph())

    async def _follow(self, replica: Replica, process: asyncio.subprocess.Process) -> None:
        """Poll a server until it ends; end one that was healthy and fell silent."""
        ending = asyncio.ensure_future(process.wait())
        heard = time.monotonic()
        try:
            while not ending.done():
                if await self._is_healthy(replica):
                    replica.healthy, replica.starts, heard = True, 0, time.monotonic()
                elif replica.healthy and time.monotonic() - heard > SILENT_S:
                    break
                await asyncio.wait([ending], timeout=HEALTH_S if replica.healthy else POLL_S)
        finally:
            await _ended(process)
            await ending

    async def _is_healthy(self, replica: Replica) -> bool:
        assert self._http is not None
        try:
            return (await self._http.get(f"{replica.url}/health", _ANSWER_S)).status == 200
        except TemporaryFailure:
            return False

    async def _started(self, replica: Replica) -> asyncio.subprocess.Process:
        """Start a server that ends when its standard input does."""
        own = engine_environment(self._settings, self._folder.path, self._on_cpu)
        environment = {**own, **os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        if replica.gpus:
            environment[VISIBLE] = ",".join(replica.gpus)
        command = [sys.executable, child_process.__file__, *self._command(replica.port)]
        with replica.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, env=environment
            )

    def _epitaph(self) -> str:
        replica = max(self.replicas, key=lambda one: one.deaths)
        return (
            f"model {self._model}: vLLM's servers cannot be kept running; server {replica.number} died "
            f"{replica.deaths} times, last with: {replica.last_words()}."
        )


async def _ended(process: asyncio.subprocess.Process | None) -> None:
    """End a process by closing its standard input, and wait for it."""
    if process is not None and process.returncode is None:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        await process.wait()


def _free_ports(count: int) -> list[int]:
    """Return distinct free ports of this machine."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
