"""Keeps the sandbox, its threads, and compiled programs.

Invariants: threads compile a request once; sandbox failures are not cached.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Self

from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission, Unready
from curation.verify.programs.toolchain import (
    COMPILE_LIMITS,
    CPP_FLAGS,
    OUTPUT,
    STANDARDS,
    missing_object,
    prebuilt_arguments,
    tools_folder,
)
from curation.verify.sandbox import CompileResult, Ending, Limits, RunResult, Sandbox

KEPT_BYTES = 64 << 20
"""Max bytes of cached compiled programs."""
_FILES = re.compile(r"\btmpfile\b|[\"']/tmp\b")
_MODES = re.compile(r"\b(?:l?f?ch(?:mod|own)|utime\w*|copy2|copystat|permissions|last_write_time)\b")
_FORKS = re.compile(r"\b(?:multiprocessing|ProcessPoolExecutor|forkpty|v?fork)\b")


@dataclass(frozen=True, slots=True)
class Program:
    """A program ready to run.

    ``numpy``: load it first; ``standard``: a binary's language standard.
    """

    lang: CodeLang
    source: str
    artifact: bytes | None = None
    numpy: bool = False
    standard: str = ""


class Runner:
    """A sandbox, started on first use, with threads and compiled programs; ``gathered`` caches first calls."""

    def __init__(self, workers: int | None = None, *, rung: str | None = None, allow_none: bool = False) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.rung, self.allow_none = rung, allow_none
        self.threads = ThreadPoolExecutor(self.workers, "programs")
        self.gathered: dict[str, list[list[str]]] = {}
        self._box: Sandbox | None = None
        self._prebuilt: tuple[str, ...] | None = None
        self._kept: OrderedDict[str, CompileResult] = OrderedDict()
        self._compiling: dict[str, Future[CompileResult]] = {}
        self._opening, self._lock = Lock(), Lock()

    @property
    def box(self) -> Sandbox:
        """Return the sandbox with compilers. Raises `VerifierError` if nothing isolates."""
        with self._opening:
            if self._box is None:
                self._box = Sandbox(self.workers, rung=self.rung, allow_none=self.allow_none, tools=tools_folder())
            return self._box

    @property
    def description(self) -> str:
        """Return what isolates programs here; opens the sandbox."""
        return self.box.description

    def open(self) -> None:
        """Open the sandbox; raise `VerifierError` if nothing isolates."""
        self.box  # noqa: B018  the property opens it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.threads.shutdown(wait=kind is None, cancel_futures=True)
        if self._box is not None:
            self._box.close()

    def compile(
        self, sources: Mapping[str, bytes], command: Sequence[str], limits: Limits = COMPILE_LIMITS
    ) -> CompileResult:
        """Compile ``sources`` by ``command``, or return the cached result."""
        digest = hashlib.sha256(repr((tuple(command), sorted(sources.items()), limits)).encode()).hexdigest()
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest]
            future = self._compiling.get(digest)
            is_owner = future is None
            if future is None:
                future = self._compiling[digest] = Future()
        if is_owner:
            try:
                compiled = self.box.compile(sources, command, limits)
                future.set_result(replace(compiled, run=replace(compiled.run, stdout=b"", stderr=b"")))
            finally:
                with self._lock:
                    del self._compiling[digest]
                if not future.done():  # else a waiting thread would hang
                    future.cancel()
            self._keep(digest, future.result())
        return future.result()

    def _keep(self, digest: str, compiled: CompileResult) -> None:
        if compiled.run.ending is Ending.BROKEN:
            return
        with self._lock:
            self._kept[digest] = compiled
            while sum(len(kept.artifact or b"") + len(kept.log) for kept in self._kept.values()) > KEPT_BYTES:
                self._kept.popitem(last=False)

    def cpp(self, sources: Mapping[str, bytes], main: Sequence[str], flags: Sequence[str] = CPP_FLAGS) -> CompileResult:
        """Compile the C++ files ``main``; other sources are headers."""
        prebuilt = self._prebuilt_arguments()
        compiled = self.compile(sources, ("g++", *flags, *prebuilt, *main, "-o", OUTPUT))
        if not compiled.ok and (why := missing_object(self.box, prebuilt)):  # not the program's fault
            return replace(compiled, run=replace(compiled.run, ending=Ending.BROKEN, note=why))
        return compiled

    def _prebuilt_arguments(self) -> tuple[str, ...]:
        with self._lock:
            if self._prebuilt is None:
                self._prebuilt = prebuilt_arguments(self.box)
            return self._prebuilt

    def prepare(self, submission: Submission) -> Program | Unready:
        """Return a submission ready to run, or why not."""
        if submission.lang is CodeLang.PYTHON:
            return python_program(submission.code)
        sources = {"main.cpp": submission.code.encode("utf-8", "surrogateescape")}
        first: Unready | None = None
        for standard in STANDARDS:
            compiled = self.cpp(sources, ("main.cpp",), (f"-std={standard}", *CPP_FLAGS[1:]))
            program = ready(compiled, submission.code, standard)
            if isinstance(program, Program) or program.verdict is CodeVerdict.BROKEN:
                return program
            first = first or program
            if compiled.run.ending is not Ending.EXITED:  # another standard would exceed the limit, too
                break
        assert first is not None
        return first

    def lacking(self, program: Program, processes: bool = False) -> str:
        """Return what a program may lack here, if anything; ``processes`` allows child processes."""
        if _FORKS.search(program.source) and not processes:
            return "it may need child processes, which its problem does not allow"
        if _FORKS.search(program.source) and not self.box.forks:
            return f"it may need child processes, which rung {self.box.rung!r} does not allow here"
        if self.box.rung == "landlock" and _FILES.search(program.source):
            return "it may need files in /tmp, which rung 'landlock' does not allow"
        if not self.box.owns and _MODES.search(program.source):
            return f"it may need to change modes or times of files, which rung {self.box.rung!r} does not allow here"
        return ""

    def run(
        self,
        program: Program,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Sequence[Mapping[str, bytes]] | None = None,
        processes: bool = False,
    ) -> Generator[RunResult]:
        """Yield one fresh run per input; exhaust or close the generator."""
        if program.artifact is not None:
            yield from self.box.run_binary(
                program.artifact, stdins, limits, args=args, files=files or {}, forks=processes
            )
        else:
            yield from self.box.run_python(
                program.source,
                stdins,
                limits,
                args=args,
                files=files or {},
                numpy=program.numpy,
                forks=processes,
            )


def wants_numpy(code: str) -> bool:
    """Return whether a program mentions numpy, which is installed."""
    return "numpy" in code and importlib.util.find_spec("numpy") is not None


def python_program(code: str) -> Program:
    """Return a Python program ready to run."""
    return Program(CodeLang.PYTHON, code, numpy=wants_numpy(code))


def ready(compiled: CompileResult, source: str, standard: str = "") -> Program | Unready:
    """Return the compiler's result as a program, or verdict."""
    if compiled.artifact is not None:
        return Program(CodeLang.CPP, source, compiled.artifact, standard=standard)
    if compiled.run.ending is Ending.BROKEN:
        return Unready(CodeVerdict.BROKEN, f"the compiler's box failed: {compiled.run.note}")
    if compiled.run.ending is not Ending.EXITED:
        return Unready(CodeVerdict.CE, f"the compiler was stopped: {compiled.run.ending.value}")
    return Unready(CodeVerdict.CE, compiled.log[:500])
