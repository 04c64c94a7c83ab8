"""Turns a forked, confined process into a Python program, or a tool of the toolchain.

A Python program gets a fresh interpreter's streams, ``__main__``, modules and stack, and ends as an interpreter does.
The report pipe is closed before foreign code runs.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import io
import os
import resource
import signal
import sys
import types
from atexit import _ncallbacks as _exit_functions
from atexit import _run_exitfuncs as _run_exit_functions
from collections.abc import Callable, Iterator
from os import _exit

from . import fresh
from .confinement import IGNORED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

PRELOADED = frozenset(
    "abc array ast bisect cmath codecs collections contextlib copy dataclasses datetime decimal enum fileinput "
    "fractions functools heapq io itertools json math operator os queue random re signal statistics string struct sys "
    "textwrap threading time traceback types typing unicodedata warnings".split()
)
"""Modules loaded once per program that mentions them, which behaves as if its tests imported them."""

PRELOADED_OF_NUMPY = frozenset(("fft", "linalg", "ma", "polynomial", "random"))
"""Numpy's, which it loads on first use."""

Program = types.CodeType | Exception
"""A compiled program, or why it cannot be compiled."""


def _stream(descriptor: int, name: str, errors: str) -> io.TextIOWrapper:
    """Return a standard stream like CPython's `create_stdio`."""
    mode = "r" if name == "<stdin>" else "w"
    raw = io.FileIO(descriptor, mode, closefd=False)
    raw.name = name
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    stream = io.TextIOWrapper(buffer, "utf-8", errors, "\n", line_buffering=name == "<stderr>")
    stream.mode = mode  # type: ignore[misc]
    return stream


def _streams(*descriptors: int) -> list[io.TextIOWrapper]:
    names = ("<stdin>", "surrogateescape"), ("<stdout>", "surrogateescape"), ("<stderr>", "backslashreplace")
    return [_stream(descriptor, *words) for descriptor, words in zip(descriptors, names, strict=True)]


def make_streams() -> None:
    """Set the standard streams as a fresh interpreter does in the C.UTF-8 locale without a terminal.

    Made once per slot over empty files, which forks replace.
    """
    sys.stdin, sys.stdout, sys.stderr = _streams(0, 1, 2)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


COMPILE_MB = 2048
"""MiB of address space for compiling a program."""
WARM_RUNS = 20
"""Runs after which the interpreter has adapted its code."""
WARMING = """
import sys
def main():
    line = input()
    words = [int(word) for word in line.split()] + list(map(int, input().strip().split(",")))
    rest = sys.stdin.readline().split() + sys.stdin.read().split() + [line for line in sys.stdin]
    seen, kinds = {}, set()
    for place, value in enumerate(words):
        seen.setdefault(value, place)
        seen[value] = seen.get(value, 0) + 1
        kinds.add(value % 7)
    words.sort(key=lambda value: -value)
    words.append(max(words) // 2)
    print(sum(words), len(rest), min(kinds), *sorted(seen.items())[:2], sep=" ", end="\\n")
    print("\\n".join(str(value) for value in words), f"{words[0]:d} {words[0] / 2:.3f}", "%d" % words[0])
    sys.stdout.write(" ".join(map(str, reversed(words))) + "\\n")
    print("".join(zip("ab", "cd").__next__()), any(words), all(words), abs(-1), divmod(7, 2), ord("a"), chr(98))
main()
"""


def warm() -> None:
    """Run typical code, so that forks start with an adapted interpreter."""
    streams = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as files:
        source, target = (os.memfd_create("warm", os.MFD_CLOEXEC) for _ in range(2))
        files.callback(os.close, source)
        files.callback(os.close, target)
        os.pwrite(source, b"1 2 3\n4,5\n6 7\n8\n9\n", 0)
        for _ in range(WARM_RUNS):
            os.lseek(source, 0, os.SEEK_SET)
            sys.stdin, sys.stdout, sys.stderr = _streams(source, target, target)
            space = {"__name__": "__main__", "__builtins__": builtins}
            exec(compile(WARMING, "warm.py", "exec"), space)
            _let_go(space, False)
    sys.stdin, sys.stdout, sys.stderr = streams


GENERATOR = 0x20
"""A generator's code flag (inspect.CO_GENERATOR)."""
UNFLUSHED = 120
"""Exit code of an interpreter that cannot write its output."""
MAX_C_LONG = 1 << 63
DEFINED = (type, types.ModuleType, types.FunctionType)
_getattr, _isinstance, _type = getattr, isinstance, type
"""Kept, as a program may remove them from the built-ins."""


def _flush(name: str) -> None:
    stream = _getattr(sys, name, None)
    if stream is not None and not _getattr(stream, "closed", False):
        stream.flush()


def _finish(space: dict[str, Any], finalises: bool, code: int) -> NoReturn:
    """End as the interpreter does: wait for threads, run exit functions, flush, finalise, flush.

    Each step may run foreign code; the next one always follows.
    """
    let_go = False
    try:
        try:
            if "threading" in sys.modules:
                sys.modules["threading"]._shutdown()
        finally:
            if _exit_functions():
                _run_exit_functions()
    finally:
        try:
            _let_go(space, finalises)
            let_go = True
        finally:
            _exit(code if let_go else UNFLUSHED)


def _let_go(space: dict[str, Any], finalises: bool) -> None:
    """Flush, and empty a program's module."""
    try:
        try:
            _flush("stdout")
        finally:
            if finalises:
                _finalise(space)
            space.clear()
    finally:
        try:
            _flush("__stdout__")
        finally:
            _flush("stderr")


def _finalise(space: dict[str, Any]) -> None:
    """Release a program's values, while its definitions and imports remain for finalisers.

    Values with a finaliser go first, then the newest; cycles are collected.
    """
    finalised = [name for name, value in space.items() if _getattr(_type(value), "__del__", None)]
    made = [name for name, value in space.items() if not _isinstance(value, DEFINED)]
    for name in (*finalised, *made[::-1]):
        space.pop(name, None)
    gc.collect()


def _finish_badly(space: dict[str, Any], finalises: bool) -> NoReturn:
    """End by the exception being handled: sys.exit's code, or a report and 1."""
    kind, value, trace = sys.exc_info()
    assert kind is not None
    assert value is not None
    trace, code = trace.tb_next if trace else None, 1
    try:
        if not isinstance(value, SystemExit):
            sys.excepthook(kind, value.with_traceback(trace), trace)
        elif value.code is None or isinstance(value.code, int):
            number = value.code or 0
            code = number & 0xFF if -MAX_C_LONG <= number < MAX_C_LONG else 0xFF
        else:
            print(value.code, file=sys.stderr)
    finally:
        _finish(space, finalises, code)


class Source:
    """A program's text for `inspect` and `traceback`, which find no file."""

    def __init__(self, descriptor: int) -> None:
        self.text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def get_source(self, _: str) -> str:
        """Return the text as an interpreter reads it."""
        return importlib.import_module("importlib.util").decode_source(self.text)  # type: ignore[no-any-return]


def make_ready(
    program: Program, source: Source, arguments: list[str], folder: str, calls: int
) -> Callable[[], NoReturn]:
    """Make a program's module ``__main__``, load what its tests may need, and return the function that runs a test.

    The function must be called ``calls`` frames deeper than this one.
    """
    codes = list(_code_objects(program))
    names = {name for code in codes for name in code.co_names}
    finalises = any(
        code.co_name == "__del__" or (code.co_flags & GENERATOR and code.co_name != "<genexpr>") for code in codes
    )
    for name in names & PRELOADED - sys.modules.keys():
        importlib.import_module(name)
    if "numpy" in sys.modules:
        for name in names & PRELOADED_OF_NUMPY:
            importlib.import_module(f"numpy.{name}")
    reseed = [sys.modules[name].seed for name in ("random", "numpy.random") if name in sys.modules]
    main = types.ModuleType("__main__")
    space = main.__dict__
    space.update(__builtins__=builtins, __file__="solution.py", __cached__=None, __annotations__={}, __loader__=source)
    sys.modules["__main__"] = main
    sys.path.insert(0, folder)
    sys.argv = ["solution.py", *arguments]

    def run() -> NoReturn:
        for seed in reseed:  # else all tests would draw the same numbers
            seed()
        ended = False
        try:
            if isinstance(program, Exception):
                raise program
            exec(program, space)
            ended = True
        finally:
            if not ended:
                _finish_badly(space, finalises)
            _finish(space, finalises, 0)

    _count_recursion_from(_depth() + calls)
    gc.freeze()
    fresh.fill_pools()
    return run


def _code_objects(program: object) -> Iterator[types.CodeType]:
    codes = [program]
    while codes:
        code = codes.pop()
        if isinstance(code, types.CodeType):
            yield code
            codes += code.co_consts


def _depth() -> int:
    count, frame = 0, sys._getframe(1)
    while frame is not None:
        count, frame = count + 1, frame.f_back  # type: ignore[assignment]
    return count


def _count_recursion_from(depth: int) -> None:
    """Let recursion limits count from this depth."""
    set_limit, get_limit = sys.setrecursionlimit, sys.getrecursionlimit

    def setrecursionlimit(limit: int, /) -> None:
        set_limit(limit + depth)

    def getrecursionlimit() -> int:
        return get_limit() - depth

    sys.setrecursionlimit, sys.getrecursionlimit = setrecursionlimit, getrecursionlimit
    set_limit(1000 + depth)


def compiled(source: Source, limits: dict[str, Any]) -> Program:
    """Return a program's code, or the exception of its compilation."""
    seconds = int(limits["cpu_s"]) + 1
    soft = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: COMPILE_MB << 20}
    before = {resource_id: resource.getrlimit(resource_id) for resource_id in soft}
    for resource_id, value in soft.items():
        resource.setrlimit(resource_id, (value, before[resource_id][1]))
    try:
        return compile(source.text, "solution.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        return error.with_traceback(None)
    finally:
        for resource_id, pair in before.items():
            resource.setrlimit(resource_id, pair)


def run_command(command: list[str], environment: dict[str, str]) -> None:
    """Execute a tool of the toolchain; raise OSError if that fails."""
    for ignored in IGNORED:
        signal.signal(ignored, signal.SIG_DFL)
    os.execvpe(command[0], command, environment)
