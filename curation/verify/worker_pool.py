"""Runs work that may hang, crash or use much memory in worker processes; foreign code is for `sandbox`.

A failed step is TIMEOUT or BROKEN, and a new worker repeats the job without it. Steps are limited in CPU time.

Invariants: workers are fresh interpreters that die with their parent; methods are thread-safe; a step is announced
before it begins; the CPU limit is a kernel timer with the default action, which code cannot delay; RLIMIT_AS bounds
memory.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from curation.records import Outcome, VerifierError

WALL_FACTOR = 60.0
"""Max wall seconds per CPU second, for 60 processes per core."""

STARTUP_S = 600.0
"""Max wall seconds for a worker to import its target."""

MAX_SILENCE_S = 600.0
"""Max wall seconds without a step or result."""

MAX_STARTS = 3
PR_SET_PDEATHSIG = 1


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
        failed_steps: dict[str, str] = {}
        while True:
            worker = worker or self._start()
            reply = worker.run(job, failed_steps, self._closing)
            if reply.failure is None and not worker.needs_restart:
                return worker, reply
            worker.kill()
            if reply.failure is None:
                return None, reply
            self.restarts += 1
            if worker.step is None or worker.step in failed_steps:
                return None, reply
            failed_steps[worker.step] = reply.failure.value
            worker = None

    def _start(self) -> _Worker:
        reason = ""
        for _ in range(MAX_STARTS):
            try:
                worker = _Worker(self.target, self.limits)
            except OSError as error:  # no memory, process or descriptor left
                reason = str(error)
                continue
            reason = worker.await_ready(self._closing)
            if not reason:
                return worker
            worker.kill()
            if self._closing.is_set():
                break
        raise VerifierError(f"a verifier's worker for {self.target} does not start: {reason}")


@dataclass(slots=True)
class _Worker:
    """One process, for one thread, with its current ``step``."""

    target: str
    limits: WorkerLimits
    process: subprocess.Popen[bytes] = field(init=False)
    pipe: Connection = field(init=False)
    stderr: IO[bytes] = field(init=False)
    step: str | None = None
    needs_restart: bool = False

    def __post_init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.pipe, worker_end = Pipe()
        settings = {**asdict(self.limits), "parent": os.getpid(), "target": self.target, "pipe": worker_end.fileno()}
        with worker_end:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.stderr,
                pass_fds=[worker_end.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            )

    def await_ready(self, closing: threading.Event) -> str:
        """Wait for the worker; return any failure."""
        message = self._read(time.monotonic() + STARTUP_S, closing)
        if message == {"ready": True}:
            return ""
        return self._stderr_tail() or f"no ready message ({message})"

    def run(self, job: Any, failed_steps: dict[str, str], closing: threading.Event) -> JobReply:
        """Return a job's value, or the failure of ``step``."""
        self.step = None
        try:
            self.pipe.send_bytes(json.dumps({"job": job, "written_off": failed_steps}).encode())
        except ConnectionError:
            return JobReply(None, Outcome.BROKEN, "the worker has exited")
        while True:
            limit_s = MAX_SILENCE_S if self.step is None else self.limits.step_s * WALL_FACTOR
            message = self._read(time.monotonic() + limit_s, closing)
            if message is None:
                return self._end_of_run()
            if message == "late":
                return JobReply(None, Outcome.TIMEOUT, "killed: past its wall-clock guard")
            if "value" in message:
                self.needs_restart = message["restart"]
                return JobReply(message["value"], None, "")
            self.step = message["step"]

    def _end_of_run(self) -> JobReply:
        code = self.process.wait()
        if code == -signal.SIGPROF:
            return JobReply(None, Outcome.TIMEOUT, "killed: past its CPU limit")
        last = (self._stderr_tail().splitlines() or ["nothing on stderr"])[-1]
        return JobReply(None, Outcome.BROKEN, f"the worker died (status {code}: {last[:300]})")

    def _stderr_tail(self) -> str:
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - 2000))
        return self.stderr.read().decode("utf-8", "replace").strip()

    def _read(self, deadline: float, closing: threading.Event) -> Any:
        """Return the next message, None at the end, or ``"late"``."""
        try:
            while not self.pipe.poll(0.2):
                if closing.is_set():
                    self.process.kill()
                elif time.monotonic() > deadline:
                    return "late"
            return json.loads(self.pipe.recv_bytes())
        except (EOFError, ConnectionError):
            return None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()
        self.stderr.close()


class Guard:
    """Announces the risky steps of one job in a worker process.

    ``enter`` returns None if the step may run, until ``leave``, else its earlier failure.
    """

    def __init__(self, send: Callable[[Any], None], failed_steps: dict[str, str], step_s: float) -> None:
        self._send, self._failed_steps, self._step_s = send, failed_steps, step_s

    def enter(self, step: str) -> Outcome | None:
        if step in self._failed_steps:
            return Outcome(self._failed_steps[step])
        self._send({"step": step})
        signal.setitimer(signal.ITIMER_PROF, self._step_s)
        return None

    def leave(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._send({"step": None})


MAIN = "from curation.verify.worker_pool import main_worker; main_worker()"


def main_worker() -> None:
    """Set limits, import the target, run jobs."""
    settings = json.loads(sys.argv[1])
    _die_with_parent(settings["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = settings["memory_mb"] << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    module, _, function = settings["target"].partition(":")
    handler = getattr(importlib.import_module(module), function)
    pipe = Connection(settings["pipe"])

    def send(message: Any) -> None:
        pipe.send_bytes(json.dumps(message).encode())

    send({"ready": True})
    for count in range(1, settings["max_jobs"] + 1):
        try:
            request = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        value = handler(request["job"], Guard(send, request["written_off"], settings["step_s"]))
        needs_restart = count == settings["max_jobs"] or _peak_rss_kib() > settings["memory_mb"] * 1024 / 2
        send({"value": value, "restart": needs_restart})


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def _peak_rss_kib() -> int:
    """Return this program's peak KiB (VmHWM; ``ru_maxrss`` includes the parent's)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
