"""From fork to the foreign program: system calls made ready before the fork, run one after another in the child.

Order matters: a session of its own, Landlock, descriptors (0, 1, 2 and the report pipe; a binary's file; nothing
else), limits, the filter; only then foreign code. A call that fails is named on the report pipe, which is closed
before foreign code runs: so a failure of the sandbox is never taken for the program's. Landlock and the filter a binary
mostly has from the thread that makes its process (`Library.starter`), and not from a call of its own.

The compiled library (`start.c`) runs the calls where there is one, else Python does, with the same list.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable, Sequence

from . import kernel
from .filter import EXEC_DESCRIPTOR, Template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

REPORT = 3
FAILED_TO_START = 70
THREAD_STACK = 8 << 20
"""Bytes of the stack of a thread of a Python program, unless it sets another; as outside."""
ADDRESS_SPACE, OF_THREAD = 4 << 30, 32 << 20
"""A backstop for what is allocated between two ticks; memory and what threads take (stacks, arenas) come on top."""
FILES, FILES_OF_TREE = 64, 256

IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores and a program started by a shell does not."""

REQUEST_BYTES = 1 << 16
NOTHING = b"."
"""A request without arguments; an empty message would mean the end."""
GetRequest = Callable[[], bytes]
"""Gives the text of a request, which may be long."""
NUMBER, STREAMS = struct.Struct("i"), struct.Struct("3i")

GONE, DIED = -1, 0
Counted = tuple[int, float, float, int, list[int]]
"""Of a test that has ended: its status, CPU seconds, wall seconds, peak KiB, bytes of its two outputs."""
Started = tuple[list[Counted], tuple[int, int, float] | None]
"""Tests that have ended, and one more: a process's number, or that the judge is gone, or that who makes processes has
died; a descriptor that can be read once the process has ended; the seconds since it began."""

Limit = tuple[int, int, int]
Step = tuple[str, tuple[int, ...]]
"""Name and arguments of a system call; pointers as numbers, what they point to is kept by who made them."""


def _structure(*fields: Any) -> Any:
    """Return one of `start.c`'s structures: a field is a name and a type; names alone are longs, as pointers are."""
    longs = ((name, ctypes.c_long) for field in fields if isinstance(field, str) for name in field.split())
    typed = (field for field in fields if not isinstance(field, str))
    return type("Structure", (ctypes.Structure,), {"_fields_": (*typed, *longs)})


_STEP = _structure(("name", ctypes.c_char_p), ("number", ctypes.c_long), ("arguments", ctypes.c_long * 6))
_PLAN = _structure(
    "steps count streams marks marked report failed starter flags link text room length become run plain asked"
)
_TESTS = _structure("link control tick_ms ahead_us ahead_bytes folder text length")
_TEST = _structure(
    ("streams", ctypes.c_int * 3), ("pid", ctypes.c_int), "ended status cpu_us wall_us peak_kb stdout stderr"
)


class Library:
    """`start.c`, compiled."""

    def __init__(self, path: str) -> None:
        library = ctypes.PyDLL(path, use_errno=True)
        self.forked, self.served, self.ran = library.forked, library.served, library.ran
        for function in (self.forked, self.served):
            function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_long
        self.ran.argtypes = (*(3 * (ctypes.c_void_p,)), ctypes.c_long, ctypes.c_void_p)
        self.ran.restype = ctypes.c_long
        self.starting = library.starting
        self.starting.argtypes = ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p
        self.starting.restype = ctypes.c_void_p

    def starter(self, filtering: Template, ruleset: int) -> tuple[int, int]:
        """Make a thread that starts programs, inside a filter with `SECRET` and Landlock's rules, if any.

        Return where the library knows it, and its number.
        """
        number = ctypes.c_long()
        if not (made := self.starting(filtering.address, ruleset, ctypes.addressof(number))):
            raise OSError(ctypes.get_errno(), "no thread that starts programs can be made")
        return int(made), number.value


def limits_of(limits: dict[str, Any], others: int) -> list[Limit]:
    """Return the limits that setrlimit(2) sets for a program, as (resource, soft, hard).

    ``others``: what counts next to it, if the slot is counted alone, else 0. The stack alone may be raised, as outside:
    what it takes is memory, which is watched.
    """
    memory = limits["memory_mb"] << 20
    targets = {
        resource.RLIMIT_CPU: int(limits["cpu_s"]) + 2,
        resource.RLIMIT_FSIZE: max(limits["output_bytes"], limits["file_mb"] << 20) + 1,
        resource.RLIMIT_NOFILE: FILES_OF_TREE if limits["tree"] else FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_STACK: memory // 16 * 15,  # all of it, as contest judges have it; what overflows hits it first
        resource.RLIMIT_MEMLOCK: 1 << 20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_AS: ADDRESS_SPACE + memory + limits["processes"] * OF_THREAD,
    }
    if others:
        targets[resource.RLIMIT_NPROC] = limits["processes"] + 1 + others
    ready = []
    for resource_id, value in targets.items():
        hard = resource.getrlimit(resource_id)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        ready.append((resource_id, value, hard if resource_id == resource.RLIMIT_STACK else value))
    return ready


class Confinement:
    """The calls for one kind of process, made ready once; ``standard`` are the streams of the one that is started.

    ``binary``: the descriptor of an executable file; then the last call executes it, and `command` must be given
    before each start. ``starter``: the thread that starts it, inside the filter and Landlock's rules.
    """

    def __init__(
        self,
        library: Library | None,
        limits: Sequence[Limit],
        filtering: Template | None,
        ruleset: int,
        binary: int = -1,
        last: Sequence[Step] = (),
        starter: int = 0,
    ) -> None:
        self._library, self._filter = library, filtering
        self.calls = 0 if library is None else 2
        """How many calls deeper than who calls `serve` the program starts."""
        self._called: tuple[list[bytes], list[bytes]] | None = None
        steps: list[Step] = [("setsid", ()), ("prctl", (kernel.PR_SET_PDEATHSIG, signal.SIGKILL))]
        if binary < 0:  # what is executed becomes so by itself, and may share its parent's memory until then
            steps.append(("prctl", (kernel.PR_SET_DUMPABLE, 1)))
        if ruleset >= 0:
            steps.append(("landlock_restrict_self", (ruleset,)))
        self._streams = len(steps)
        steps += [("dup3", (0, place)) for place in range(REPORT)]
        if binary >= 0:
            steps.append(("dup3", (binary, EXEC_DESCRIPTOR, os.O_CLOEXEC)))
            steps.append(("close_range", (REPORT + 1, EXEC_DESCRIPTOR - 1)))
        steps.append(("close_range", (EXEC_DESCRIPTOR + 1 if binary >= 0 else REPORT + 1, kernel.LAST_DESCRIPTOR)))
        self._pairs = [(ctypes.c_uint64 * 2)(soft, hard) for _, soft, hard in limits]
        for (resource_id, _, _), pair in zip(limits, self._pairs, strict=True):
            steps.append(("prlimit64", (0, resource_id, ctypes.addressof(pair))))
        if filtering is not None:
            steps.append(("seccomp", (kernel.SECCOMP_SET_MODE_FILTER, 0, filtering.address)))
        if binary >= 0:
            self._default = (ctypes.c_uint64 * 4)()  # struct sigaction: SIG_DFL, no flags, an empty mask
            for number in IGNORED:
                steps.append(("rt_sigaction", (number, ctypes.addressof(self._default), 0, 8)))
            steps.append(("execveat", ()))
        steps += last
        self._steps = (_STEP * len(steps))(*(_step(name, arguments) for name, arguments in steps))
        marks = filtering.marks if filtering is not None else []
        self._marks = (ctypes.c_void_p * len(marks))(*marks)
        steps_at, marks_at = ctypes.addressof(self._steps), ctypes.addressof(self._marks)
        self._plan = _PLAN(steps_at, len(steps), self._streams, marks_at, len(marks), REPORT, FAILED_TO_START, starter)
        self._address = ctypes.addressof(self._plan)

    def command(self, arguments: list[bytes], variables: list[bytes]) -> None:
        """Set the arguments and environment variables of the binary."""
        if self._called == (arguments, variables):
            return
        self._called = arguments, variables
        self._words = kernel.words(arguments), kernel.words(variables)
        self._empty = ctypes.create_string_buffer(b"")
        here, there = map(ctypes.addressof, self._words)
        last = (EXEC_DESCRIPTOR, ctypes.addressof(self._empty), here, there, kernel.AT_EMPTY_PATH)
        self._steps[len(self._steps) - 1] = _step("execveat", last)

    def start(self, standard: Sequence[int]) -> int:
        """Start a confined process. Return its number here, and 0 in the new process (a binary never returns there)."""
        for place, descriptor in enumerate(standard):
            self._steps[self._streams + place].arguments[0] = descriptor
        if self._library is not None:
            pid = int(self._library.forked(self._address))
        else:
            pid = kernel.clone(self._plan.flags)
            if pid == 0:
                self._enter()
        if pid < 0:
            raise OSError(ctypes.get_errno(), "clone: no new process")
        return pid

    def starter(
        self, control: int, folder: str, tick_s: float, ahead: tuple[float, int], link: _socket.socket | None = None
    ) -> Callable[[bytes, Sequence[Sequence[int]]], Started]:
        """Return a function that starts the first of some tests, which have standard streams each.

        The library runs them to their end if that comes before a tick, one after another, as long as they end well,
        leave ``folder`` empty, and take and write no more than ``ahead`` allows (seconds of all of them, bytes of one).
        Their processes are made by who listens at ``link``, on a request, or here where there is none.
        """
        if self._library is None:
            return lambda request, streams: self._started(control, link, request, streams[0])
        run, plan, started = self._library.ran, self._address, ctypes.c_long()
        # Kept with this object: an address keeps nothing, and where the folder's name is gone no test ends plainly.
        self._folder = path = ctypes.create_string_buffer(folder.encode())
        number, until = -1 if link is None else link.fileno(), int(ahead[0] * 1e6)
        tests = _TESTS(number, control, int(tick_s * 1000), until, ahead[1], ctypes.addressof(path))
        there, counted_at = ctypes.addressof(tests), ctypes.addressof(started)

        def start(request: bytes, streams: Sequence[Sequence[int]]) -> Started:
            text = ctypes.create_string_buffer(request)
            tests.text, tests.length = ctypes.addressof(text), len(request)
            each = (_TEST * len(streams))()
            for test, standard in zip(each, streams, strict=True):
                test.streams[:] = standard
            result = run(plan, there, ctypes.addressof(each), len(each), counted_at)
            if result == -2 and link is None:
                raise OSError(ctypes.get_errno(), "no new process can be made")
            last = each[started.value - 1]
            ended = [
                (test.status, test.cpu_us / 1e6, test.wall_us / 1e6, test.peak_kb, [test.stdout, test.stderr])
                for test in each[: started.value - (result != 1)]
            ]
            if result == 1:
                return ended, None
            return ended, ({0: last.pid, -1: GONE, -2: DIED}[result], last.ended, last.wall_us / 1e6)

        return start

    def _started(self, control: int, link: _socket.socket | None, request: bytes, streams: Sequence[int]) -> Started:
        """Start one test without the library."""
        if link is None:
            pid = self.start(streams)
        else:
            link.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, STREAMS.pack(*streams))])
            pid = next_number(link, control)
        return [], (pid, os.pidfd_open(pid) if pid > 0 else -1, 0.0)

    def serve(self, link: _socket.socket, run: Callable[[GetRequest | None], NoReturn]) -> GetRequest | None:
        """Start a process per request from ``link``, which comes with three descriptors; answer with its number.

        Each is a child of this process's parent, confined, and calls ``run`` with what gives the request's text, or
        with None where it has no arguments: the library does so, or who gets that value returned. In this process
        None is returned, once no one asks any more.
        """
        self._plan.flags = kernel.CLONE_PARENT
        if self._library is None:
            return self._serve(link)
        plan, text = self._plan, ctypes.create_string_buffer(REQUEST_BYTES)
        plan.link, plan.text, plan.room = link.fileno(), ctypes.addressof(text), REQUEST_BYTES
        plan.become = ctypes.cast(ctypes.pythonapi.PyObject_CallOneArg, ctypes.c_void_p).value

        def asked() -> bytes:
            return text.raw[: plan.length]

        plan.run, plan.plain, plan.asked = map(id, (run, None, asked))
        if self._library.served(self._address) < 0:
            raise OSError(ctypes.get_errno(), "no new process can be made")
        return None

    def _serve(self, link: _socket.socket) -> GetRequest | None:
        """Do what the library's ``served`` does, more slowly."""
        room = _socket.CMSG_SPACE(STREAMS.size)
        while True:
            request, beside, _, _ = link.recvmsg(REQUEST_BYTES, room, _socket.MSG_CMSG_CLOEXEC)
            if not request:
                return None
            standard = STREAMS.unpack(beside[0][2])
            pid = self.start(standard)
            if pid == 0:
                return lambda: request
            link.send(NUMBER.pack(pid))
            for descriptor in standard:
                os.close(descriptor)

    def _enter(self) -> None:
        """Do what the library does in a new process, more slowly: run the steps."""
        ready = False
        try:
            if self._filter is not None:
                self._filter.fill(os.getpid())
            for step in self._steps:
                kernel.call(step.name.decode(), *step.arguments)
            ready = True
        finally:
            if not ready:
                failed_to_start()


def next_number(link: _socket.socket, control: int) -> int:
    """Return the next number that the forking process sends; `DIED` where it has, `GONE` where the judge has."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    poll.register(control, 0)
    if control in dict(poll.poll()):
        return GONE
    message = link.recv(64)
    return int(NUMBER.unpack(message)[0]) if message else DIED


def _step(name: str, arguments: tuple[int, ...]) -> Any:
    return _STEP(name.encode(), kernel.NUMBER[name], (ctypes.c_long * 6)(*arguments))


def failed_to_start() -> NoReturn:
    """Report why no foreign code ran, to the report pipe; when foreign code runs it is closed."""
    with contextlib.suppress(OSError):
        os.write(REPORT, repr(sys.exc_info()[1]).encode()[:4096])
    os._exit(FAILED_TO_START)
