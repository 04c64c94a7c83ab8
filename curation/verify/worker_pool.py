"""Runs work that may hang, crash or eat memory in worker processes; foreign code belongs in `sandbox`.

A failed step is TIMEOUT or BROKEN, and a new worker repeats the job without it. CPU time decides, so an overloaded
machine changes no verdict.

Invariants: workers are fresh interpreters that die with their parent; methods are thread-safe.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from curation.records import Outcome, VerifierError

WALL_FACTOR = 60.0
"""Wall seconds granted per second of the CPU limit before the parent kills: a load of 60 processes per core."""

STARTUP_S = 600.0
"""Wall seconds a worker may take to import its target; one that ends before is seen at once."""

MAX_SILENCE_S = 600.0
"""Wall seconds a worker may work between two announced steps."""

MAX_STARTS = 3


@dataclass(frozen=True, slots=True)
class JobReply:
    """A job's value, or a failure outside of steps."""

    value: Any
    failure: Outcome | None
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """CPU seconds per step, MiB of address space, jobs per worker."""

    step_s: float = 2.0
    memory_mb: int = 2048
    max_jobs: int = 5000


class WorkerPool:
    """Processes that run ``"package.module:function"`` from (job, `Guard`) to JSON."""

    def __init__(self, target: str, workers: int, limits: WorkerLimits | None = None) -> None:
        if workers < 1:
            raise VerifierError(f"a pool needs at least 1 worker, not {workers}")
        self.target = target
        self.workers = workers
        self.limits = limits or WorkerLimits()
        self.restarts = 0
        self._jobs: queue.SimpleQueue[tuple[Any, Future[JobReply]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> WorkerPool:
        with self._lock:
            while len(self._threads) < self.workers:
                thread = threading.Thread(target=self._serve, name=f"verify-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, and cancel waiting jobs."""
        self._closing.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        while not self._jobs.empty():
            item = self._jobs.get()
            if item is not None:
                item[1].cancel()

    def submit(self, job: Any) -> Future[JobReply]:
        """Queue one job."""
        if self._closing.is_set() or not self._threads:
            raise VerifierError("the worker pool is not open; use it as a context manager")
        future: Future[JobReply] = Future()
        self._jobs.put((job, future))
        return future

    def map(self, jobs: Iterable[Any]) -> Iterator[JobReply]:
        """Yield replies in order, at most ``4 * workers`` ahead."""
        in_flight: deque[Future[JobReply]] = deque()
        try:
            for job in jobs:
                in_flight.append(self.submit(job))
                while len(in_flight) >= 4 * self.workers or (in_flight and in_flight[0].done()):
                    yield in_flight.popleft().result()
            while in_flight:
                yield in_flight.popleft().result()
        finally:
            for future in in_flight:
                future.cancel()

    def _serve(self) -> None:
        worker: _Worker | None = None
        try:
            while (item := self._jobs.get()) is not None:
                job, future = item
                if self._closing.is_set() or not future.set_running_or_notify_cancel():
                    future.cancel()
                    continue
                try:
                    worker, reply = self._run(worker, job)
                except VerifierError as error:
                    worker = None
                    future.set_exception(error)
                else:
                    future.set_result(reply)
        finally:
            if worker is not None:
                worker.kill()

    def _run(self, worker: _Worker | None, job: Any) -> tuple[_Worker | None, JobReply]:
        """Run one job, again after each failed step."""
        written_off: dict[str, str] = {}
        while True:
            worker = worker or self._start()
            event = worker.run(job, written_off, self._closing)
            if event.has_value:
                if event.needs_replacement:
                    worker.kill()
                    worker = None
                return worker, JobReply(event.value, None, "")
            worker.kill()
            worker = None
            self.restarts += 1
            if event.step is None or event.step in written_off:
                return None, JobReply(None, event.outcome, event.reason)
            written_off[event.step] = event.outcome.value

    def _start(self) -> _Worker:
        reason = ""
        for _ in range(MAX_STARTS):
            worker = _Worker(self.target, self.limits)
            reason = worker.await_ready(self._closing)
            if not reason:
                return worker
            worker.kill()
            if self._closing.is_set():
                break
        raise VerifierError(f"a verifier's worker for {self.target} does not start: {reason}")


@dataclass(frozen=True, slots=True)
class _RunEnd:
    """A run's value, or failed step."""

    has_value: bool
    value: Any = None
    needs_replacement: bool = False
    step: str | None = None
    outcome: Outcome = Outcome.BROKEN
    reason: str = ""


@dataclass(slots=True)
class _Worker:
    """One process, for one thread."""

    target: str
    limits: WorkerLimits
    process: subprocess.Popen[bytes] = field(init=False)
    stderr: IO[bytes] = field(init=False)
    buffer: bytearray = field(init=False, default_factory=bytearray)

    def __post_init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "curation.verify.worker", self.target, json.dumps(self._settings())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            bufsize=0,
        )

    def _settings(self) -> dict[str, float]:
        return {
            "parent": os.getpid(),
            "step_s": self.limits.step_s,
            "memory_mb": self.limits.memory_mb,
            "jobs": self.limits.max_jobs,
        }

    def await_ready(self, closing: threading.Event) -> str:
        """Wait for the worker; return any failure."""
        message = self._read(time.monotonic() + STARTUP_S, closing)
        if message == {"ready": True}:
            return ""
        return self._stderr_tail() or f"no sign of life ({message})"

    def run(self, job: Any, written_off: dict[str, str], closing: threading.Event) -> _RunEnd:
        step: str | None = None
        wall = self.limits.step_s * WALL_FACTOR
        try:
            self._write({"job": job, "written_off": written_off})
        except (BrokenPipeError, ConnectionError):
            return _RunEnd(False, reason="the worker was gone")
        deadline = time.monotonic() + MAX_SILENCE_S
        while True:
            message = self._read(deadline, closing)
            if message is None:
                return self._end_of_run(step)
            if message == "late":
                return _RunEnd(False, step=step, outcome=Outcome.TIMEOUT, reason="killed: past its wall-clock guard")
            if "enter" in message:
                step = message["enter"]
                deadline = time.monotonic() + wall
            elif "leave" in message:
                step = None
                deadline = time.monotonic() + MAX_SILENCE_S
            else:
                return _RunEnd(True, value=message["value"], needs_replacement=message["tired"])

    def _end_of_run(self, step: str | None) -> _RunEnd:
        code = self.process.wait()
        if code == -signal.SIGPROF:
            return _RunEnd(False, step=step, outcome=Outcome.TIMEOUT, reason="killed: past its CPU limit")
        last = (self._stderr_tail().splitlines() or ["no word"])[-1]
        return _RunEnd(
            False, step=step, outcome=Outcome.BROKEN, reason=f"the worker died (status {code}: {last[:300]})"
        )

    def _stderr_tail(self) -> str:
        """Return the end of the process's stderr."""
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - 2000))
        return self.stderr.read().decode("utf-8", "replace").strip()

    def _write(self, message: Any) -> None:
        assert self.process.stdin is not None
        data = json.dumps(message).encode() + b"\n"
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def _read(self, deadline: float, closing: threading.Event) -> Any:
        """Return the next message, None at the end, or ``"late"``."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while (end := self.buffer.find(b"\n")) < 0:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return "late"
            if not poll.poll(min(remaining_s, 0.2) * 1000):
                if closing.is_set():
                    self.process.kill()
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return None
            self.buffer += chunk
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return json.loads(line)

    def kill(self) -> None:
        """End the process and close its pipes."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.stderr):
            if stream is not None:
                stream.close()
