"""Prepares the system calls between fork and foreign program, which the child runs in order.

Order matters: a new session, Landlock, descriptors (only 0, 1, 2, the report pipe, a binary's file), limits, the
filter; then foreign code. A failing call is named on the report pipe, which is closed before foreign code runs, so the
sandbox's failures are never taken for the program's. The compiled library (`start.c`) runs the calls.
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
"""Default bytes of a thread's stack in a Python program, as without a sandbox."""
ADDRESS_SPACE, OF_THREAD = 4 << 30, 32 << 20
"""Bytes of address space beyond the memory limit, for allocations between two ticks, and per thread."""
FILES, FILES_OF_TREE = 64, 256

IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, unlike a program started by a shell."""

NUMBER = struct.Struct("i")

GONE, DIED = -1, 0
Counted = tuple[int, float, float, int, list[int]]
"""An ended test: status, CPU seconds, wall seconds, peak KiB, bytes of its two outputs."""
Started = tuple[list[Counted], tuple[int, int, float] | None]
"""Ended tests, and a running one: its process number, `GONE` (the judge) or `DIED` (the forking process); a descriptor
that is readable once it has ended; the seconds since it began.
"""

Limit = tuple[int, int, int]
Step = tuple[str, tuple[int, ...]]
"""A system call's name and arguments; pointers are numbers, whose targets the caller keeps alive."""


def _structure(*fields: Any) -> Any:
    """Return a structure of `start.c` from (name, type) fields; names alone are longs, as pointers are."""
    longs = ((name, ctypes.c_long) for field in fields if isinstance(field, str) for name in field.split())
    typed = (field for field in fields if not isinstance(field, str))
    return type("Structure", (ctypes.Structure,), {"_fields_": (*typed, *longs)})


_STEP = _structure(("name", ctypes.c_char_p), ("number", ctypes.c_long), ("arguments", ctypes.c_long * 6))
_PLAN = _structure("steps count streams marks marked report failed flags link become run")
_TESTS = _structure("link control tick_ms ahead_us ahead_bytes folder")
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


def limits_of(limits: dict[str, Any], others: int) -> list[Limit]:
    """Return a program's limits for setrlimit(2), as (resource, soft, hard).

    ``others``: the number of further processes in the count, 0 if the slot is not counted separately. Programs may
    raise only the stack, whose memory is watched.
    """
    memory = limits["memory_mb"] << 20
    targets = {
        resource.RLIMIT_CPU: int(limits["cpu_s"]) + 2,
        resource.RLIMIT_FSIZE: max(limits["output_bytes"], limits["file_mb"] << 20) + 1,
        resource.RLIMIT_NOFILE: FILES_OF_TREE if limits["tree"] else FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_STACK: memory // 16 * 15,  # nearly all, as in contests; an overflow reaches it first
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


Start = Callable[[Sequence[Sequence[int]]], Started]
"""Starts the first of some tests, each given by its standard streams, and more if possible."""
CALLS = 3
"""Stack frames between the caller of `Confinement.serve` and the program."""


class Confinement:
    """Prepares calls for one kind of process.

    ``binary``: an executable's descriptor, which the last call executes; call `command` before each start.
    """

    def __init__(
        self,
        library: Library,
        limits: Sequence[Limit],
        filtering: Template | None,
        ruleset: int,
        binary: int = -1,
        last: Sequence[Step] = (),
    ) -> None:
        self._library, self._filter = library, filtering  # kept alive, as only its address is used
        steps: list[Step] = [("setsid", ()), ("prctl", (kernel.PR_SET_PDEATHSIG, signal.SIGKILL))]
        if binary < 0:  # exec sets it, and until then a binary may share its parent's memory
            steps.append(("prctl", (kernel.PR_SET_DUMPABLE, 1)))
        if ruleset >= 0:
            steps.append(("landlock_restrict_self", (ruleset,)))
        self._streams = len(steps)
        steps += [("dup3", (0, number)) for number in range(REPORT)]
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
        self._plan = _PLAN(steps_at, len(steps), self._streams, marks_at, len(marks), REPORT, FAILED_TO_START)
        self._address = ctypes.addressof(self._plan)

    def command(self, arguments: list[bytes], variables: list[bytes]) -> None:
        """Set the arguments and environment variables of the binary."""
        self._words = kernel.words(arguments), kernel.words(variables)
        self._empty = ctypes.create_string_buffer(b"")
        arguments_at, variables_at = map(ctypes.addressof, self._words)
        last = (EXEC_DESCRIPTOR, ctypes.addressof(self._empty), arguments_at, variables_at, kernel.AT_EMPTY_PATH)
        self._steps[len(self._steps) - 1] = _step("execveat", last)

    def start(self, standard: Sequence[int]) -> int:
        """Start a confined process. Return its number, and 0 in the new process (a binary never returns there)."""
        for index, descriptor in enumerate(standard):
            self._steps[self._streams + index].arguments[0] = descriptor
        pid = int(self._library.forked(self._address))
        if pid < 0:
            raise OSError(ctypes.get_errno(), "clone: no new process")
        return pid

    def runner(
        self, control: int, folder: str, tick_s: float, ahead: tuple[float, int], link: _socket.socket | None = None
    ) -> Start:
        """Return the function that starts tests.

        The library runs tests one after another while each succeeds before a tick, leaves ``folder`` empty, and stays
        within ``ahead`` (seconds of all, bytes of each). The process at ``link`` forks them, or else this one.
        """
        run, plan, started = self._library.ran, self._address, ctypes.c_long()
        path = ctypes.create_string_buffer(folder.encode())
        number, until = -1 if link is None else link.fileno(), int(ahead[0] * 1e6)
        tests = _TESTS(number, control, int(tick_s * 1000), until, ahead[1], ctypes.addressof(path))
        self._kept = path, tests  # kept alive, as only addresses are used
        tests_at, counted_at = ctypes.addressof(tests), ctypes.addressof(started)

        def start(streams: Sequence[Sequence[int]]) -> Started:
            each = (_TEST * len(streams))()
            for test, standard in zip(each, streams, strict=True):
                test.streams[:] = standard
            result = run(plan, tests_at, ctypes.addressof(each), len(each), counted_at)
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

    def serve(self, link: _socket.socket, run: Callable[[], NoReturn]) -> None:
        """Start a process per request of three descriptors from ``link``, and answer with its number.

        Each is a confined child of this process's parent that calls ``run``. Returns at the end of the link.
        """
        plan = self._plan
        plan.flags, plan.link, plan.run = kernel.CLONE_PARENT, link.fileno(), id(run)
        plan.become = ctypes.cast(ctypes.pythonapi.PyObject_CallNoArgs, ctypes.c_void_p).value
        if self._library.served(self._address) < 0:
            raise OSError(ctypes.get_errno(), "no new process can be made")


def next_number(link: _socket.socket, control: int) -> int:
    """Return the forking process's next number; `DIED` if it died, `GONE` if the judge is gone."""
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
    """Write to the report pipe why no foreign code ran."""
    with contextlib.suppress(OSError):
        os.write(REPORT, repr(sys.exc_info()[1]).encode()[:4096])
    os._exit(FAILED_TO_START)
