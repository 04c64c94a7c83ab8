"""The last steps of a forked process before it is the foreign program: limits, descriptors, filter, start.

Order matters: a session of its own, Landlock, descriptors (0, 1, 2 and the report pipe; a binary's file; nothing
else), limits, the filter; only then foreign code. A step that fails is written to the report pipe, which is
closed before foreign code runs: so a failure of the sandbox is never taken for the program's.
"""

from __future__ import annotations

import atexit
import builtins
import fcntl
import gc
import io
import os
import resource
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import kernel
from .filter import EXEC_DESCRIPTOR, Template

REPORT = 3
STACK = 256 << 20
ADDRESS_SPACE = 4 << 30
"""A backstop for what is allocated between two ticks; stacks of threads (RLIMIT_STACK each) come on top."""

Program = types.CodeType | Exception
"""A program compiled, or why it cannot be."""


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def _limits(limits: dict[str, Any], alone: bool) -> None:
    size = max(limits["output_bytes"], limits["file_mb"] << 20) + 1
    seconds = int(limits["cpu_s"]) + 2
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_FSIZE, size)
    _limit(resource.RLIMIT_NOFILE, 256 if limits["tree"] else EXEC_DESCRIPTOR + 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_STACK, STACK)
    _limit(resource.RLIMIT_MEMLOCK, 1 << 20)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_AS, ADDRESS_SPACE + limits["processes"] * STACK)
    if alone:  # the supervisor and the process that compiled count too
        _limit(resource.RLIMIT_NPROC, limits["processes"] + 3)


def _descriptors(standard: list[int], report: int, program: int) -> None:
    """Standard streams to 0, 1, 2; the report pipe to 3; a binary's file to 63; all others closed."""
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, 128) for number in [*standard, report]]
    held = fcntl.fcntl(program, fcntl.F_DUPFD, 128) if program >= 0 else -1
    for place, number in enumerate(high):
        os.dup2(number, place, inheritable=place != REPORT)
    os.closerange(REPORT + 1, EXEC_DESCRIPTOR)
    if held >= 0:
        os.dup2(held, EXEC_DESCRIPTOR, inheritable=False)
    kernel.close_from(EXEC_DESCRIPTOR + (held >= 0))


def confine(
    standard: list[int], report: int, limits: dict[str, Any], filtering: Template | None, ruleset: int, alone: bool
) -> None:
    """Everything between fork and the program, but the start itself. ``standard`` may end with a binary's file."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    if ruleset >= 0:
        kernel.landlock_enter(ruleset)
    _descriptors(standard[:3], report, standard[3] if len(standard) > 3 else -1)
    _limits(limits, alone)
    if filtering is not None:
        filtering.install(os.getpid())


def _default_signals() -> None:
    """What a program started by a shell finds, instead of what Python sets for itself."""
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)


def _streams() -> None:
    """Standard streams as a fresh interpreter makes them in the C.UTF-8 locale, none of them a terminal."""
    reader = io.BufferedReader(io.FileIO(0, "r", closefd=False))
    writers = [io.BufferedWriter(io.FileIO(number, "w", closefd=False)) for number in (1, 2)]
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(reader, "utf-8", "surrogateescape")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(writers[0], "utf-8", "surrogateescape", "\n")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
        writers[1], "utf-8", "backslashreplace", "\n", line_buffering=True
    )


def _leave(steps: list[Callable[[], object]], code: int) -> NoReturn:
    """Run the steps, each whatever became of those before it (they may run foreign code), and end with ``code``."""
    try:
        if steps:
            steps[0]()
    finally:
        if len(steps) > 1:
            _leave(steps[1:], code)
        os._exit(code)


def _flush(stream: Any) -> None:
    if stream is not None and not getattr(stream, "closed", False):
        stream.flush()


def _finish(kind: type[BaseException] | None, value: Any, trace: Any, main: types.ModuleType) -> NoReturn:
    """End as the interpreter does: report, wait for threads, exit functions, flush; the code as sys.exit(3) says."""
    standard, report, code = sys.__stdout__, [], 0 if kind is None else 1
    if kind is not None and issubclass(kind, SystemExit):
        exit_value = value.code
        if exit_value is None or isinstance(exit_value, int):
            code = (exit_value or 0) & 0xFF
        else:
            report = [lambda: print(exit_value, file=sys.stderr)]
    elif kind is not None:
        report = [lambda: sys.excepthook(kind, value.with_traceback(trace), trace)]
    ending = [
        lambda: threading._shutdown(),  # type: ignore[attr-defined]
        lambda: atexit._run_exitfuncs(),
        lambda: _flush(sys.stdout),
        lambda: main.__dict__.clear(),
        lambda: _flush(standard),
        lambda: _flush(sys.stderr),
    ]
    _leave([*report, *ending], code)


def run_python(program: Program, arguments: list[str]) -> NoReturn:
    """Run a program as ``__main__``; ends the process."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__="solution.py")
    sys.modules["__main__"] = main
    sys.argv = ["solution.py", *arguments]
    sys.path.insert(0, os.getcwd())
    _streams()
    sys.setrecursionlimit(1000 + len(_frames()))
    gc.enable()
    os.close(REPORT)
    if isinstance(program, Exception):
        _finish(type(program), program, None, main)
    try:
        exec(program, main.__dict__)
    finally:
        kind, value, trace = sys.exc_info()
        _finish(kind, value, trace.tb_next if trace else None, main)


def _frames() -> list[types.FrameType]:
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def run_binary(arguments: list[str], environment: dict[str, str]) -> None:
    """Become the program that waits at descriptor 63. Returns by OSError only."""
    _default_signals()
    variables = [f"{name}={value}".encode() for name, value in environment.items()]
    kernel.execute(EXEC_DESCRIPTOR, [b"solution", *(word.encode() for word in arguments)], variables)


def run_command(command: list[str], environment: dict[str, str]) -> None:
    """Become a tool of the toolchain. Returns by OSError only."""
    _default_signals()
    os.execvpe(command[0], command, environment)
