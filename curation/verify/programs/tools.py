"""The means of running programs: the sandbox, the threads that drive it, a cache of compiled programs.

Programs are compiled once, by the hash of their sources.

Invariants: the same request is compiled once, also when threads ask at the same time; what failed because the
sandbox failed is not remembered.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import CodeVerdict, Submission
from curation.verify.sandbox import CompileResult, Ending, Limits, RunResult, Sandbox
from curation.verify.sandbox.library import cache_folder

COMPILE_LIMITS = Limits(cpu_s=10.0, wall_s=60.0, memory_mb=2048)
"""The recipe's 10 s, of CPU time; memory and the guard on wall time are not in the paper."""
STANDARDS = ("gnu++20", "gnu++17", "gnu++14", "gnu++11", "gnu++98")
"""What a program is compiled as: the first of these that accepts it. Not in the paper.

Solutions of older data sets name globals ``size`` or ``byte``, use ``throw()`` or, before C++14, ``gets``; globals
``rank`` and ``array`` are of before C++11.
"""
CPP_FLAGS = (f"-std={STANDARDS[0]}", "-O2")
"""C++20 with GNU's extensions, as contest judges have it. The precompiled header holds for exactly these."""
PRECOMPILE_LIMITS = Limits(cpu_s=120.0, memory_mb=4096, output_bytes=16 << 20, file_mb=512, processes=32)
OUTPUT = "a.out"
_INCLUDE = "include"
"""Where the compiler looks: nothing but the header lies there, for whatever does would be found as ``<its name>``."""
_MAX_COMPILED = 512
_FILES = re.compile(r"\btmpfile\b|[\"']/tmp\b")
_FORKS = re.compile(r"\b(?:multiprocessing|ProcessPoolExecutor|forkpty|v?fork)\b")


@dataclass(frozen=True, slots=True)
class Program:
    """A program ready to run: source, or a binary.

    ``numpy``: it runs in the process that has numpy loaded. ``forks``: it may start processes, by `wants_processes`.
    ``standard``: what a binary was compiled as.
    """

    lang: CodeLang
    source: str
    artifact: bytes | None = None
    numpy: bool = False
    forks: bool = False
    standard: str = ""


@dataclass(frozen=True, slots=True)
class Unready:
    """Why there is no program to run: NA, CE, or BROKEN where the compiler's box failed."""

    verdict: CodeVerdict
    how: str


class Toolbox:
    """The sandbox and the compiled programs, shared by threads. The newest 512 binaries are kept.

    ``gathered`` remembers, per test program, the calls it makes before it knows any result.
    """

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self._header: bool | None = None
        self._compiled: OrderedDict[str, Future[CompileResult]] = OrderedDict()
        self._lock = Lock()
        self.gathered: dict[str, list[list[str]]] = {}

    def compile(
        self, sources: Mapping[str, bytes], command: Sequence[str], limits: Limits = COMPILE_LIMITS
    ) -> CompileResult:
        """Compile ``sources`` by ``command``. The same request is compiled once, also when several threads ask."""
        digest = hashlib.sha256(repr((tuple(command), sorted(sources.items()), limits)).encode()).hexdigest()
        with self._lock:
            future = self._compiled.get(digest)
            is_owner = future is None
            if future is None:
                future = self._compiled[digest] = Future()
                while len(self._compiled) > _MAX_COMPILED:
                    self._compiled.popitem(last=False)
            else:
                self._compiled.move_to_end(digest)
        if is_owner:
            try:
                compiled = self.box.compile(sources, command, limits)
                if compiled.run.ending is Ending.BROKEN:
                    self._forget(digest)
                future.set_result(compiled)
            finally:
                if not future.done():  # who waits for it must not wait for ever
                    self._forget(digest)
                    future.cancel()
        return future.result()

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._compiled.pop(digest, None)

    def cpp(self, sources: Mapping[str, bytes], main: Sequence[str], flags: Sequence[str] = CPP_FLAGS) -> CompileResult:
        """Compile a C++ program of the files ``main``; the other sources are headers."""
        return self.compile(sources, ("g++", *flags, *self._header_flags(), *main, "-o", OUTPUT))

    def _header_flags(self) -> tuple[str, ...]:
        """Return the flags that point to the precompiled bits/stdc++.h.

        The header is made on the first call, in the box, and kept on disk.

        Where it cannot be made the compiler reads the header as it is: slower, with the same result.
        """
        folder = self.box.tools
        if folder is None:
            return ()
        with self._lock:
            if self._header is None:
                self._header = precompiled(self.box, folder)
        return ("-I", str(folder.resolve() / _INCLUDE)) if self._header else ()

    def prepare(self, submission: Submission) -> Program | Unready:
        """Return a submission ready to run, or why it is not."""
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
            if compiled.run.ending is not Ending.EXITED:  # it takes too much, and would again
                break
        assert first is not None
        return first

    def lacking(self, program: Program) -> str:
        """Return what a program seems to use that this box has not, so that it may fail here alone; often empty."""
        if program.forks and not self.box.forks:
            return f"it may want processes of its own, which rung {self.box.rung!r} does not allow here"
        if self.box.rung == "landlock" and _FILES.search(program.source):
            return "it may want files in /tmp, which rung 'landlock' does not allow"
        return ""

    def run(
        self,
        program: Program,
        stdins: Sequence[bytes],
        limits: Limits,
        *,
        args: Sequence[str] = (),
        files: Sequence[Mapping[str, bytes]] | None = None,
    ) -> Generator[RunResult]:
        """Yield one run per standard input, in order, each in a fresh process with its ``files``.

        The generator must be exhausted or closed.
        """
        if program.artifact is not None:
            yield from self.box.run_binary(
                program.artifact, stdins, limits, args=args, files=files or {}, forks=program.forks
            )
        else:
            yield from self.box.run_python(
                program.source,
                stdins,
                limits,
                args=args,
                files=files or {},
                numpy=program.numpy,
                forks=program.forks,
            )


class Runner:
    """A sandbox, its compiled programs, and threads that drive it. A context manager; started when first needed."""

    def __init__(self, workers: int | None = None, *, rung: str | None = None, allow_none: bool = False) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.rung, self.allow_none = rung, allow_none
        self._box: Sandbox | None = None
        self._tools: Toolbox | None = None
        self._opening = Lock()
        self.threads = ThreadPoolExecutor(self.workers, "programs")

    @property
    def tools(self) -> Toolbox:
        """Return the sandbox with its compilers, opened on first use. Raises `VerifierError` where nothing isolates."""
        with self._opening:
            if self._tools is None:
                self._box = Sandbox(self.workers, rung=self.rung, allow_none=self.allow_none, tools=tools_folder())
                self._box.__enter__()
                self._tools = Toolbox(self._box)
            return self._tools

    @property
    def description(self) -> str:
        """Return what isolates the programs here; opens the sandbox."""
        return self.tools.box.description

    def open(self) -> None:
        """Open the sandbox now. Raises `VerifierError` where nothing isolates."""
        self.tools  # noqa: B018  opened by being asked for

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.threads.shutdown(wait=kind is None, cancel_futures=True)
        if self._box is not None:
            self._box.__exit__(kind, error, trace)


def tools_folder() -> Path:
    """Return the folder of the precompiled header: in the user's cache, by the compiler flags it holds for."""
    folder = cache_folder() / f"cpp-{hashlib.sha256(repr(CPP_FLAGS).encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    return folder


def precompiled(box: Sandbox, folder: Path) -> bool:
    """Make ``bits/stdc++.h.gch`` below this folder with the compiler in the box; return whether it is there."""
    probe = box.compile({}, ("g++", "--version"), COMPILE_LIMITS, output="none")
    version = hashlib.sha256(probe.log.encode()).hexdigest()
    mark, header = folder / "version", folder / _INCLUDE / "bits" / "stdc++.h.gch"
    if header.is_file() and mark.is_file() and mark.read_text() == version:
        return True
    command = ("g++", *CPP_FLAGS, "-x", "c++-header", "all.h", "-o", OUTPUT)
    header_build = box.compile({"all.h": b"#include <bits/stdc++.h>\n"}, command, PRECOMPILE_LIMITS)
    if not header_build.ok or header_build.artifact is None:
        return False
    for part in (folder / _INCLUDE, header.parent):
        part.mkdir(mode=0o755, exist_ok=True)
    mark.unlink(missing_ok=True)
    temporary = header.with_name(f"{header.name}.{os.getpid()}")
    temporary.write_bytes(header_build.artifact)
    temporary.chmod(0o644)
    temporary.replace(header)
    mark.write_text(version)
    return True


def wants_numpy(code: str) -> bool:
    """Return whether a program mentions numpy and this machine has it. It then runs where numpy is already loaded."""
    return "numpy" in code and importlib.util.find_spec("numpy") is not None


def wants_processes(code: str) -> bool:
    """Return whether a program names a way to start processes. Its tests then run one by one, more slowly.

    It may do so where the rung has namespaces; what it starts can only be itself (no program can be executed).
    """
    return _FORKS.search(code) is not None


def python_program(code: str) -> Program:
    """Return a Python program ready to run."""
    return Program(CodeLang.PYTHON, code, numpy=wants_numpy(code), forks=wants_processes(code))


def ready(compiled: CompileResult, source: str, standard: str = "") -> Program | Unready:
    """Return the compiler's result as a program, or as the verdict on it; ``standard``: what it was compiled as."""
    if compiled.ok and compiled.artifact is not None:
        return Program(CodeLang.CPP, source, compiled.artifact, forks=wants_processes(source), standard=standard)
    if compiled.run.ending is Ending.BROKEN:
        return Unready(CodeVerdict.BROKEN, f"the compiler's box failed: {compiled.run.note}")
    if compiled.run.ending is not Ending.EXITED:
        return Unready(CodeVerdict.CE, f"the compiler was stopped: {compiled.run.ending.value}")
    return Unready(CodeVerdict.CE, compiled.log[:500])
