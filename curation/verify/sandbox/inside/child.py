"""The last steps of a forked process before it is the foreign program: limits, descriptors, filter, start.

Order matters: a session of its own, Landlock, descriptors (0, 1, 2 and the report pipe; a binary's file; nothing
else), limits, the filter; only then foreign code. A step that fails is written to the report pipe, which is
closed before foreign code runs: so a failure of the sandbox is never taken for the program's.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import importlib
import io
import os
import resource
import signal
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import kernel
from .filter import EXEC_DESCRIPTOR, Template

REPORT = 3
STACK = 256 << 20
ADDRESS_SPACE = 4 << 30
"""A backstop for what is allocated between two ticks; stacks of threads (RLIMIT_STACK each) come on top."""

WELCOME = frozenset(
    "abc array ast bisect cmath codecs collections contextlib copy dataclasses datetime decimal enum fileinput "
    "fractions functools heapq io itertools json math operator os queue random re signal statistics string struct sys "
    "textwrap threading time traceback types typing unicodedata warnings".split()
)
"""Modules that are loaded once per program where it mentions them; they behave as if its tests imported them."""

Program = types.CodeType | Exception
"""A program compiled, or why it cannot be."""


Limit = tuple[int, tuple[int, int]]


def limits_of(limits: dict[str, Any], alone: bool) -> list[Limit]:
    """Arguments of setrlimit(2) for a program, made ready before the fork."""
    wanted = {
        resource.RLIMIT_CPU: int(limits["cpu_s"]) + 2,
        resource.RLIMIT_FSIZE: max(limits["output_bytes"], limits["file_mb"] << 20) + 1,
        resource.RLIMIT_NOFILE: 256 if limits["tree"] else EXEC_DESCRIPTOR + 1,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_STACK: STACK,
        resource.RLIMIT_MEMLOCK: 1 << 20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_AS: ADDRESS_SPACE + limits["processes"] * STACK,
    }
    if alone:  # the supervisor and the process that compiled count too
        wanted[resource.RLIMIT_NPROC] = limits["processes"] + 3
    ready = []
    for what, value in wanted.items():
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        ready.append((what, (value, value)))
    return ready


def _descriptors(standard: tuple[int, ...]) -> None:
    """Standard streams to 0, 1, 2; a binary's file to 63; all others closed but the report pipe, which stands at 3."""
    for place in range(3):
        os.dup2(standard[place], place)
    if len(standard) > 3:
        os.dup2(standard[3], EXEC_DESCRIPTOR, inheritable=False)
        kernel.close_from(REPORT + 1, EXEC_DESCRIPTOR - 1)
        kernel.close_from(EXEC_DESCRIPTOR + 1)
    else:
        kernel.close_from(REPORT + 1)


def confine(standard: tuple[int, ...], limits: list[Limit], filtering: Template | None, ruleset: int) -> None:
    """Everything between fork and the program, but the start itself. ``standard`` may end with a binary's file."""
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    if ruleset >= 0:
        kernel.landlock_enter(ruleset)
    _descriptors(standard)
    for what, pair in limits:
        resource.setrlimit(what, pair)
    if filtering is not None:
        filtering.install(os.getpid())


def _default_signals() -> None:
    """What a program started by a shell finds, instead of what Python sets for itself."""
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)


def make_streams() -> None:
    """Standard streams as a fresh interpreter makes them in the C.UTF-8 locale, none of them a terminal.

    Made once per slot, over empty files: a fork finds them ready when 0, 1 and 2 have become the test's.
    """
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
        *([sys.modules["threading"]._shutdown] if "threading" in sys.modules else []),
        atexit._run_exitfuncs,
        lambda: _flush(sys.stdout),
        main.__dict__.clear,
        lambda: _flush(standard),
        lambda: _flush(sys.stderr),
    ]
    _leave([*report, *ending], code)


def make_ready(program: Program, folder: str) -> types.ModuleType:
    """The module ``__main__`` of a program, and what else each of its tests should find loaded.

    To be called as far down the stack as `run_python` will be.
    """
    for name in _mentioned(program) & WELCOME:
        importlib.import_module(name)
    if "random" in sys.modules:
        sys.modules["random"].seed()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__="solution.py")
    sys.modules["__main__"] = main
    sys.path.insert(0, folder)
    _count_recursion_from(_depth())
    gc.collect()
    gc.freeze()
    gc.disable()
    return main


def _mentioned(program: object) -> set[str]:
    """The names that a program's code uses, modules among them."""
    if not isinstance(program, types.CodeType):
        return set()
    return set(program.co_names).union(*map(_mentioned, program.co_consts))


def _depth() -> int:
    count, frame = 0, sys._getframe(1)
    while frame is not None:
        count, frame = count + 1, frame.f_back  # type: ignore[assignment]
    return count


def _count_recursion_from(depth: int) -> None:
    """Let a program set its recursion limit as if it stood at the bottom of the stack."""
    set_limit, get_limit = sys.setrecursionlimit, sys.getrecursionlimit

    def setrecursionlimit(limit: int, /) -> None:
        set_limit(limit + depth)

    def getrecursionlimit() -> int:
        return get_limit() - depth

    sys.setrecursionlimit, sys.getrecursionlimit = setrecursionlimit, getrecursionlimit
    set_limit(1000 + depth)


def run_python(program: Program, main: types.ModuleType, arguments: list[str]) -> NoReturn:
    """Run a program as ``__main__``; ends the process."""
    sys.argv = ["solution.py", *arguments]
    gc.enable()
    os.close(REPORT)
    if isinstance(program, Exception):
        _finish(type(program), program, None, main)
    try:
        exec(program, main.__dict__)
    finally:
        kind, value, trace = sys.exc_info()
        _finish(kind, value, trace.tb_next if trace else None, main)


def run_binary(arguments: list[str], environment: dict[str, str]) -> None:
    """Become the program that waits at descriptor 63. Returns by OSError only."""
    _default_signals()
    variables = [f"{name}={value}".encode() for name, value in environment.items()]
    kernel.execute(EXEC_DESCRIPTOR, [b"solution", *(word.encode() for word in arguments)], variables)


def run_command(command: list[str], environment: dict[str, str]) -> None:
    """Become a tool of the toolchain. Returns by OSError only."""
    _default_signals()
    os.execvpe(command[0], command, environment)
