"""The sandbox's interface: programs and tests go into warm slots, `RunResult`s come out.

Each call occupies one slot, as long as its iterator lives; `workers` slots work at once, further calls wait. Slots
are started when first needed and kept, per kind: programs, programs with numpy, compilers. A slot that failed is
thrown away and the test tried once more in a fresh one; a second failure is `Ending.BROKEN`, never a verdict.

Iterators should be exhausted or closed; ``stop`` ends the tests early. Quick tests are run some ahead of what has been
yielded, never past one that did not end well; what nobody asks for is dropped. Safe to call from several threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from curation.records import VerifierError
from curation.verify.sandbox.ladder import choose_rung
from curation.verify.sandbox.outcomes import CompileResult, Ending, Limits, RunResult
from curation.verify.sandbox.results import broken_run, run_result, worse_than_limits
from curation.verify.sandbox.slot import Slot, SlotError, limits_message, memory_file, output_file, read_file, writable
from curation.verify.sandbox.view import numpy_site_packages

LOG_BYTES = 65536
COMPILE_LIMITS = Limits(cpu_s=10.0, memory_mb=2048, output_bytes=16 << 20, file_mb=512, processes=32)
ANSWER_TIMEOUT_S = 60.0
MAX_TRIES = 2
AHEAD, AHEAD_BYTES = 16, 1 << 20
"""Tests sent to a slot at once, at most, and the bytes of their inputs."""


class Sandbox:
    """Runs foreign programs.

    ``workers``: slots at once, by default the CPUs of this process. ``rung``: one of `RUNGS`, else the strongest that
    works here; ``"none"`` (no isolation) must be named or allowed with ``allow_none``. ``tools``: a folder that
    `compile` sees, read only, at its own path (precompiled headers, say). Raises VerifierError where no rung works.

    ``rung`` and ``description`` say what was chosen and why nothing stronger; ``forks``: whether a program that asks
    may start processes, which takes namespaces and a user id of its own.
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
        self.rung, self.description, first, self._library = choose_rung(rung, allow_none)
        self.forks = bool(first.facts["forks"])
        self._idle: dict[str, list[Slot]] = {"std": [first], "numpy": [], "compile": []}
        self._busy: set[Slot] = set()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(self.workers)
        self._closed = False

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
    def _place(self) -> Iterator[None]:
        with self._places:
            yield

    def _take_slot(self, kind: str) -> Slot:
        with self._lock:
            if self._closed:
                raise VerifierError("this Sandbox is closed; make another one")
            slot = self._idle[kind].pop() if self._idle[kind] else None
        if slot is None:
            slot = Slot(self.rung, kind, self.tools, self._library)
        with self._lock:
            self._busy.add(slot)
        return slot

    def _return_slot(self, slot: Slot, usable: bool) -> None:
        with self._lock:
            self._busy.discard(slot)
            usable = usable and not self._closed
            if usable:
                self._idle[slot.kind].append(slot)
        if not usable:
            slot.close()

    def run_python(
        self,
        source: str,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Mapping[str, bytes] | Sequence[Mapping[str, bytes]] | None = None,
        stop: Callable[[int, RunResult], bool] | None = None,
        numpy: bool = False,
        forks: bool = False,
    ) -> Iterator[RunResult]:
        """Run a Python program once per input, and return an iterator over the runs.

        The source is compiled once; each run is a fork that shares nothing with the others.

        ``files``: read-only files in the working directory, the same for all or one mapping per input. ``numpy``: in
        a process that has numpy loaded (the program may import it). ``forks``: it may start processes, all of which
        count, where this box can hold them (``Sandbox.forks``); slower. Raises VerifierError where numpy is missing.
        """
        if numpy and numpy_site_packages() is None:
            raise VerifierError("a program needs numpy, which is not installed here; install numpy")
        opening = {"op": "python", "limits": limits_message(limits, tree=forks)}
        program = source.encode("utf-8", "surrogatepass")
        return self._run("numpy" if numpy else "std", opening, program, stdins, limits, args, files or {}, stop)

    def run_binary(
        self,
        artifact: bytes | Path,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Mapping[str, bytes] | Sequence[Mapping[str, bytes]] | None = None,
        stop: Callable[[int, RunResult], bool] | None = None,
        forks: bool = False,
    ) -> Iterator[RunResult]:
        """Run a compiled program (its bytes, or a file that holds them) once per input, as `run_python` does."""
        program = artifact if isinstance(artifact, bytes) else artifact.read_bytes()
        return self._run(
            "std",
            {"op": "binary", "limits": limits_message(limits, tree=forks)},
            program,
            stdins,
            limits,
            args,
            files or {},
            stop,
        )

    def _run(
        self,
        kind: str,
        opening: Mapping[str, Any],
        program: bytes,
        stdins: Sequence[bytes],
        limits: Limits,
        args: Sequence[str],
        files: Mapping[str, bytes] | Sequence[Mapping[str, bytes]],
        stop: Callable[[int, RunResult], bool] | None,
    ) -> Iterator[RunResult]:
        file_sets = [files] * len(stdins) if isinstance(files, Mapping) else list(files)
        count, failures = 0, 0
        with self._place():
            while count < len(stdins):
                session = self._session(
                    kind, opening, program, list(zip(stdins, file_sets, strict=True))[count:], limits, args
                )
                with contextlib.closing(session):
                    for ran in session:
                        failures += ran.ending is Ending.BROKEN
                        if ran.ending is Ending.BROKEN and failures < MAX_TRIES:
                            break
                        failures = 0
                        count += 1
                        yield ran
                        if count == len(stdins) or (stop is not None and stop(count - 1, ran)):
                            return
                        if ran.ending is Ending.BROKEN:
                            break

    def _session(
        self,
        kind: str,
        opening: Mapping[str, Any],
        program: bytes,
        tests: Sequence[tuple[bytes, Mapping[str, bytes]]],
        limits: Limits,
        args: Sequence[str],
    ) -> Generator[RunResult, None, None]:
        """Yield the runs of one program's tests in one slot. A slot's failure is one BROKEN, and the end."""
        slot, usable = None, False
        program_file = memory_file(program)
        try:
            slot = self._take_slot(kind)
            opened = slot.ask(opening, [program_file], ANSWER_TIMEOUT_S + 10 * limits.wall_guard_s)
            if "died" in opened or worse_than_limits(opened, limits):
                usable = "died" in opened
                early = run_result({"killed": "", "status": 9, "cpu_s": 0.0, "wall_s": 0.0, **opened}, limits)
                for _ in tests:
                    yield early
                return
            try:
                count, ahead = 0, 1
                while count < len(tests):
                    before = count
                    for ran in _ran(slot, tests[count : count + _together(tests[count : count + ahead])], limits, args):
                        count += 1
                        yield ran
                    ahead = min(2 * (count - before), AHEAD)  # what was sent and not run is sent again
            finally:
                usable = _ended(slot)
        except SlotError as failure:
            yield broken_run(str(failure))
        finally:
            os.close(program_file)
            if slot is not None:
                self._return_slot(slot, usable)

    def compile(
        self,
        sources: Mapping[str, bytes],
        command: Sequence[str],
        limits: Limits = COMPILE_LIMITS,
        output: str = "a.out",
    ) -> CompileResult:
        """Run a compiler on these files in an empty folder, without network; ``output`` is the file it must write.

        ``command[0]`` is looked up in /usr/local/bin, /usr/bin and /bin. CPU time and memory count for all processes.
        """
        with self._place():
            for _ in range(MAX_TRIES):
                result = self._compile(sources, command, limits, output)
                if result.run.ending not in (Ending.BROKEN, Ending.WALL_LIMIT):
                    break
        if result.run.ending is Ending.WALL_LIMIT:  # a compiler never sleeps: it waited, for a disk or a busy machine
            note = f"the compiler waited for more than {limits.wall_guard_s:g} s, {MAX_TRIES} times"
            return CompileResult(False, result.log, None, "", broken_run(note))
        return result

    def _compile(
        self, sources: Mapping[str, bytes], command: Sequence[str], limits: Limits, output: str
    ) -> CompileResult:
        message: dict[str, Any] = {"op": "command", "command": list(command), "output": output, "files": list(sources)}
        message |= {"limits": limits_message(limits, tree=True)}
        outputs = [output_file() for _ in range(3)]
        inputs = [memory_file(content) for content in (b"", *sources.values())]
        slot, usable = None, False
        try:
            slot = self._take_slot("compile")
            used = slot.ask(message, [inputs[0], *outputs, *inputs[1:]], ANSWER_TIMEOUT_S + 12 * limits.wall_guard_s)
            usable = not used["failed"]
            ran = run_result(used, limits, outputs[0], outputs[1])
            artifact = read_file(outputs[2], os.fstat(outputs[2]).st_size) if used["written"] else None
        except SlotError as failure:
            ran, artifact = broken_run(str(failure)), None
        finally:
            for descriptor in (*outputs, *inputs):
                os.close(descriptor)
            if slot is not None:
                self._return_slot(slot, usable)
        ok = ran.ending is Ending.EXITED and ran.exit_code == 0 and artifact is not None
        log = (ran.stderr + ran.stdout[:LOG_BYTES]).decode(errors="replace")
        digest = hashlib.sha256(artifact).hexdigest() if ok and artifact is not None else ""
        return CompileResult(ok, log, artifact if ok else None, digest, ran)


def _ended(slot: Slot) -> bool:
    """Tell a slot that its program is done with; return whether it can take another."""
    try:
        return slot.process.poll() is None and bool(slot.ask({"op": "end"}, []).get("done", False))
    except SlotError:
        return False


def _together(tests: Sequence[tuple[bytes, Mapping[str, bytes]]]) -> int:
    """Return how many of these tests are sent to a slot at once: the first, and as many more as are small."""
    size = 0
    for place, (stdin, files) in enumerate(tests):
        size += len(stdin)
        if place and (files or size > AHEAD_BYTES):
            return place
    return len(tests)


def _ran(
    slot: Slot, tests: Sequence[tuple[bytes, Mapping[str, bytes]]], limits: Limits, args: Sequence[str]
) -> Iterator[RunResult]:
    """Yield the runs of the first of these tests, at least one."""
    message = {"op": "tests", "args": list(args), "files": [list(files) for _, files in tests]}
    descriptors, outputs = [], []
    try:
        for stdin, files in tests:
            pair = output_file(), output_file()
            outputs.append(pair)
            descriptors.append(memory_file(stdin))
            descriptors += [writable(output) for output in pair]
            descriptors += map(memory_file, files.values())
        answer = slot.ask(message, descriptors, ANSWER_TIMEOUT_S + 12 * limits.wall_guard_s)
        if "died" in answer:
            slot.close()
            raise SlotError("the process that forks the tests died")
        for used, pair in zip(answer["ran"], outputs, strict=False):
            yield run_result(used, limits, *pair)
    finally:
        for descriptor in (*descriptors, *itertools.chain(*outputs)):
            os.close(descriptor)
