"""Runs programs and tests in warm slots and returns `RunResult`s.

Exhaust or close iterators, which occupy a slot. A test is retried once after a slot failure, then is `Ending.BROKEN`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from curation.records import VerifierError
from curation.verify.sandbox.inside.launcher import APART, seen_at
from curation.verify.sandbox.ladder import choose_rung
from curation.verify.sandbox.outcomes import CompileResult, Ending, Limits, RunResult
from curation.verify.sandbox.slot import (
    Slot,
    SlotError,
    broken_run,
    file_names,
    limits_message,
    memory_file,
    numpy_site_packages,
    output_file,
    read_file,
    run_result,
    worse_than_limits,
    writable,
)

LOG_BYTES = 65536
COMPILE_LIMITS = Limits(cpu_s=10.0, memory_mb=2048, output_bytes=16 << 20, file_mb=512, processes=32)
ANSWER_TIMEOUT_S = 60.0
MAX_TRIES = 2
AHEAD, AHEAD_BYTES = 16, 1 << 20
"""Max tests sent to a slot at once, and max bytes of inputs."""

Files = Mapping[str, bytes] | Sequence[Mapping[str, bytes]]
"""Read-only files by name, for all tests or each."""
Test = tuple[bytes, Mapping[str, bytes]]
"""Standard input, and files."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A program with its permissions, its ``kind`` of slot, and the ``op`` that starts it."""

    kind: str
    op: str
    program: bytes
    limits: Limits
    args: Sequence[str]
    forks: bool


class Sandbox:
    """Runs foreign programs in ``workers`` slots, by default one per CPU.

    ``rung``: by default the strongest that works; ``"none"`` (no isolation) must be named, or allowed by
    ``allow_none``. ``tools``: a read-only folder for `compile`. Raises VerifierError if no rung works.

    ``forks``: programs may start processes; ``owns``: they may change modes and times.
    """

    def __init__(
        self,
        workers: int | None = None,
        rung: str | None = None,
        allow_none: bool = False,
        tools: Path | None = None,
    ) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.tools = tools
        self.rung, self.description, first = choose_rung(rung, allow_none)
        self.forks, self.owns = bool(first.facts["forks"]), bool(first.facts["owns"])
        self._idle: dict[str, list[Slot]] = {"std": [first], "numpy": [], "tasks": [], "compile": []}
        self._busy: set[Slot] = set()
        self._lock = threading.Lock()
        self._capacity = threading.BoundedSemaphore(self.workers)
        self._closed = False

    @property
    def seen_tools(self) -> Path | None:
        """Return the path of ``tools`` in the box."""
        if self.tools is None:
            return None
        path = str(self.tools.resolve())
        return Path(seen_at(path) if self.rung in APART else path)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill every slot; calls still running get BROKEN or VerifierError."""
        with self._lock:
            self._closed = True
            slots = [*self._busy, *(slot for idle in self._idle.values() for slot in idle)]
            self._idle = {kind: [] for kind in self._idle}
        for slot in slots:
            slot.close()

    @contextlib.contextmanager
    def _slot(self, kind: str) -> Iterator[Slot]:
        """Lend a slot, kept afterwards only if ``usable``."""
        with self._lock:
            if self._closed:
                raise VerifierError("this Sandbox is closed; create another one")
            slot = self._idle[kind].pop() if self._idle[kind] else None
        slot = slot or Slot(self.rung, kind, self.tools)
        slot.usable = False
        with self._lock:
            self._busy.add(slot)
            closed = self._closed
        try:
            if closed:  # while the slot started
                raise VerifierError("this Sandbox was closed")
            yield slot
        finally:
            with self._lock:
                self._busy.discard(slot)
                keep = slot.usable and not self._closed
                if keep:
                    self._idle[kind].append(slot)
            if not keep:
                slot.close()

    def run_python(
        self,
        source: str,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Files | None = None,
        numpy: bool = False,
        tasks: bool = False,
        forks: bool = False,
    ) -> Iterator[RunResult]:
        """Return an iterator of one isolated run per input.

        ``numpy``: load it first. ``tasks``: load numpy and sympy first, and show reasoning-gym. ``forks``: allow child
        processes (slower). Raises VerifierError if numpy is missing.
        """
        if numpy and numpy_site_packages() is None:
            raise VerifierError("a program needs numpy, which is not installed here; install numpy")
        job = _Job("tasks" if tasks else "numpy" if numpy else "std", "python", source.encode(), limits, args, forks)
        return self._run(job, _tests(stdins, files))

    def run_binary(
        self,
        artifact: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Files | None = None,
        forks: bool = False,
    ) -> Iterator[RunResult]:
        """Run a compiled program once per input, as `run_python` does."""
        return self._run(_Job("std", "binary", artifact, limits, args, forks), _tests(stdins, files))

    def _run(self, job: _Job, tests: Sequence[Test]) -> Iterator[RunResult]:
        count, failures = 0, 0
        with self._capacity:
            while count < len(tests):
                with contextlib.closing(self._slot_runs(job, tests[count:])) as session:
                    for ran in session:
                        failures += ran.ending is Ending.BROKEN
                        if ran.ending is Ending.BROKEN and failures < MAX_TRIES:
                            break
                        failures = 0
                        count += 1
                        yield ran
                        if count == len(tests) or ran.ending is Ending.BROKEN:
                            break

    def _slot_runs(self, job: _Job, tests: Sequence[Test]) -> Generator[RunResult, None, None]:
        """Yield a program's runs in one slot, the last BROKEN if it fails."""
        program, limits = memory_file(job.program), job.limits
        try:
            with self._slot(job.kind) as slot:
                opening = {"op": job.op, "args": list(job.args), "limits": limits_message(limits, tree=job.forks)}
                opened = slot.ask(opening, [program], ANSWER_TIMEOUT_S + 10 * limits.wall_guard_s)
                if "died" in opened or worse_than_limits(opened, limits):
                    slot.usable = "died" in opened
                    early = run_result({"killed": "", "status": 9, "cpu_s": 0.0, "wall_s": 0.0, **opened}, limits)
                    yield from itertools.repeat(early, len(tests))
                    return
                try:
                    count, batch_size = 0, 1
                    while count < len(tests):
                        done = count
                        for ran in _run_batch(slot, _batch(tests[count : count + batch_size]), job):
                            count += 1
                            yield ran
                        batch_size = min(2 * (count - done), AHEAD)  # tests that were sent and not run are sent again
                finally:
                    slot.usable = _end_program(slot)
        except SlotError as failure:
            yield broken_run(str(failure))
        finally:
            os.close(program)

    def compile(
        self,
        sources: Mapping[str, bytes],
        command: Sequence[str],
        limits: Limits = COMPILE_LIMITS,
        output: str = "a.out",
    ) -> CompileResult:
        """Run a compiler on these files alone, without network; it must write ``output``.

        ``command[0]`` is found in /usr/local/bin, /usr/bin and /bin. Limits count all processes.
        """
        with self._capacity:
            for _ in range(MAX_TRIES):
                result = self._compile(sources, command, limits, output)
                if result.run.ending not in (Ending.BROKEN, Ending.WALL_LIMIT):
                    break
        if result.run.ending is Ending.WALL_LIMIT:  # a compiler never sleeps: it waited for a disk or a busy machine
            note = f"the compiler waited for more than {limits.wall_guard_s:g} s, {MAX_TRIES} times"
            return CompileResult(result.log, None, broken_run(note))
        return result

    def _compile(
        self, sources: Mapping[str, bytes], command: Sequence[str], limits: Limits, output: str
    ) -> CompileResult:
        with contextlib.ExitStack() as opened:
            outputs = [output_file() for _ in range(3)]
            inputs = [memory_file(content) for content in (b"", *sources.values())]
            for descriptor in (*outputs, *inputs):
                opened.callback(os.close, descriptor)
            try:
                request = {"op": "command", "command": list(command), "output": output, "files": file_names(sources)}
                message = {**request, "limits": limits_message(limits, tree=True)}
                with self._slot("compile") as slot:
                    timeout_s = ANSWER_TIMEOUT_S + 12 * limits.wall_guard_s
                    usage = slot.ask(message, [inputs[0], *outputs, *inputs[1:]], timeout_s)
                    slot.usable = not usage["failed"]
                    ran = run_result(usage, limits, outputs[0], outputs[1])
                    artifact = read_file(outputs[2], os.fstat(outputs[2]).st_size) if usage["written"] else None
            except SlotError as failure:
                ran, artifact = broken_run(str(failure)), None
        ok = ran.ending is Ending.EXITED and ran.exit_code == 0
        log = (ran.stderr + ran.stdout[:LOG_BYTES]).decode(errors="replace")
        return CompileResult(log, artifact if ok else None, ran)


def _end_program(slot: Slot) -> bool:
    """Report a program's end; return whether the slot is reusable."""
    try:
        return slot.process.poll() is None and bool(slot.ask({"op": "end"}, []).get("done", False))
    except SlotError:
        return False


def _tests(stdins: Sequence[bytes], files: Files | None) -> list[Test]:
    each = itertools.repeat(files or {}, len(stdins)) if files is None or isinstance(files, Mapping) else files
    return list(zip(stdins, each, strict=True))


def _batch(tests: Sequence[Test]) -> Sequence[Test]:
    """Return the first test, and those after it that are small enough to send with it."""
    size = 0
    for index, (stdin, files) in enumerate(tests):
        size += len(stdin)
        if index and (files or size > AHEAD_BYTES):
            return tests[:index]
    return tests


def _run_batch(slot: Slot, tests: Sequence[Test], job: _Job) -> Iterator[RunResult]:
    """Yield runs of the first tests, at least one."""
    message = {"op": "tests", "files": [file_names(files) for _, files in tests]}
    descriptors, outputs = [], []
    try:
        for stdin, files in tests:
            pair = output_file(), output_file()
            outputs.append(pair)
            descriptors.append(memory_file(stdin))
            descriptors += [writable(output) for output in pair]
            descriptors += map(memory_file, files.values())
        answer = slot.ask(message, descriptors, ANSWER_TIMEOUT_S + 12 * job.limits.wall_guard_s)
        if "died" in answer:
            slot.close()
            raise SlotError("the process that forks the tests died")
        if not answer["ran"]:
            raise SlotError("the supervisor ran none of the tests")
        for usage, pair in zip(answer["ran"], outputs, strict=False):
            yield run_result(usage, job.limits, *pair)
    finally:
        for descriptor in (*descriptors, *itertools.chain(*outputs)):
            os.close(descriptor)
