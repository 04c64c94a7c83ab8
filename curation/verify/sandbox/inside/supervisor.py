"""Serves a slot: takes programs and tests from the judge, has them forked, reports their usage.

Messages are JSON over a SEQPACKET socket, with descriptors (SCM_RIGHTS):

    {"op": "python", "limits", "args"} [source]     a process compiles the source once and forks each test:
                                           {"peak_kb": …}
    {"op": "binary", "limits", "args"} [file]       the same for an executable file
    {"op": "tests", "files"} [stdin, stdout, stderr, *files, …]     tests, ``files`` being the names of each one's
                                           files: {"ran": what `Watch.wait` returns of the first ones, at least one;
                                           those after a failure or after some time were not run}
    {"op": "end"}                          the program is done with: {"done": true}
    {"op": "command", …} [stdin, stdout, stderr, artifact, *files]      a tool of the toolchain, which may fork

With ``tree`` in its limits, a program may start processes. This needs an exclusive user id, so that the kernel limits
their number and ends all of them at once, and a /proc to watch them; elsewhere ``tree`` is ignored and forking refused.

Invariants: inputs and outputs never enter this process, only descriptors; every test starts from the same memory; /tmp
is empty at the start of each test, and nothing of a test runs after it. Foreign code never runs in this process. It
ends when the judge closes the socket, or, after a report of what ran, if /tmp cannot be emptied quickly.
"""

from __future__ import annotations

import _socket
import contextlib
import gc
import importlib
import itertools
import json
import os
import resource
import signal
import site
import sys
import time

from . import child, folder, fresh, kernel, watch
from .confinement import (
    CALLS,
    DIED,
    FAILED_TO_START,
    GONE,
    IGNORED,
    NUMBER,
    REPORT,
    THREAD_STACK,
    Confinement,
    Library,
    Start,
    failed_to_start,
    limits_of,
    next_number,
)
from .filter import Template
from .launcher import Plan, move_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}
MESSAGE, DESCRIPTORS = 1 << 16, 253
"""Max bytes of a message, and the kernel's maximum of descriptors with it."""
AHEAD_S, AHEAD_BYTES = 0.05, 1 << 20
"""Seconds and bytes from which tests are reported one by one."""


def preload(plan: Plan) -> Library:
    """Load modules for programs while the host's files are visible; return the library that starts them.

    Integers convert to text of any length, as before Python 3.11; the CPU limit bounds that.
    """
    sys.set_int_max_str_digits(0)
    if plan.kind != "compile":
        site.setquit()
        site.setcopyright()
        site.sethelper()
    if plan.packages:
        sys.path.append(plan.packages)
    for name in {"numpy": ("numpy",), "tasks": ("numpy", "sympy")}.get(plan.kind, ()):
        importlib.import_module(name)
    sys.stdin.close()
    return Library(plan.library)


def _collected_s() -> float:
    """Return the CPU seconds of all collected children."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _is_ordinary(used: dict[str, Any]) -> bool:
    """Return whether the next test may run before the judge has read this result."""
    return not used["status"] and not used["killed"] and max(used["sizes"]) < AHEAD_BYTES


class Supervisor:
    """Serves the judge for one slot."""

    def __init__(self, plan: Plan, library: Library, ruleset: int, outer: int, alone: bool, owns: bool) -> None:
        self.plan, self.library, self.alone, self.owns = plan, library, alone, owns
        self.control, self.report, self.ruleset = self._own_descriptors(ruleset, outer)
        self.folder = "/tmp" if plan.apart else plan.scratch
        kinds = ("compiler",) if plan.kind == "compile" else ("python", "binary")
        self.filters = {} if plan.rung == "none" else {kind: Template(kind, self.owns) for kind in kinds}
        self.environment = {**ENVIRONMENT, "HOME": self.folder}
        if self.folder != "/tmp":
            self.environment["TMPDIR"] = self.folder
        self.whole = plan.apart or owns
        """Whether this process may signal only the slot's."""
        self.forks = plan.rung != "none" and self.whole and alone and watch.sees_children()

    def _own_descriptors(self, ruleset: int, outer: int) -> tuple[_socket.socket, int, int]:
        """Return the control socket, the report pipe and Landlock's rules (none with an outer /proc).

        0, 1 and 2 are empty files, over which programs' streams are prepared; 3 is the report pipe's end.
        """
        source, target = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        numbers = [number for number in (target, self.plan.control, source, ruleset, outer) if number >= 0]
        free = max(*numbers, 15) + 1
        high = [os.dup2(number, free + index, inheritable=False) for index, number in enumerate(numbers)]
        kernel.close_from(0, free - 1)
        for _ in range(REPORT):
            os.memfd_create("empty", 0)
        low = [os.dup2(number, REPORT + index, inheritable=False) for index, number in enumerate(high)]
        kernel.close_from(REPORT + len(low))
        if outer >= 0:
            watch.PROC.look_from(low[3])
        return _socket.socket(fileno=low[1]), low[2], low[3] if ruleset >= 0 else -1

    def leave(self) -> NoReturn:
        """Clean up and end this process, as the judge is gone."""
        watch.kill_rest(self.whole)
        if not self.plan.apart:
            with contextlib.suppress(OSError):
                folder.empty(self.folder, float("inf"))  # no caller waits
                os.rmdir(self.folder)
        os._exit(77)

    def reply(self, **words: Any) -> None:
        """Send one message to the judge."""
        self.control.send(json.dumps(words).encode())

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """Return the next message; end this process if the judge is gone."""
        room = _socket.CMSG_SPACE(DESCRIPTORS * NUMBER.size)
        data, ancillary, _, _ = self.control.recvmsg(MESSAGE, room, _socket.MSG_CMSG_CLOEXEC)
        if not data:
            self.leave()
        return json.loads(data), [number for _, _, packed in ancillary for (number,) in NUMBER.iter_unpack(packed)]

    def _confined(
        self, kind: str, limits: dict[str, Any], binary: int = -1, spared: tuple[int, ...] = ()
    ) -> Confinement:
        """Return a program's confinement; with ``spared`` it may start processes and signal any but these."""
        ready, filtering = limits_of(limits, self.alone * 2), self.filters.get(kind)
        if spared and filtering is not None:
            filtering = Template(kind, self.owns, spared)
        last, ruleset = ([("close", (REPORT,))], -1) if kind == "python" else ([], self.ruleset)
        return Confinement(self.library, ready, filtering, ruleset, binary, last)

    def python(self, limits: dict[str, Any], arguments: list[str], source: int) -> None:
        """Run a Python program's tests until the end, each forked by a process that has the program ready.

        That process also compiles it, under Landlock's rules if any, as the parser reads foreign text.
        """
        limits["tree"] = limits["tree"] and self.forks
        link, child_end = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        confinement = self._confined("python", limits)
        pid = kernel.fork()
        if pid == 0:
            link.close()
            self.control.close()
            if watch.PROC.descriptor >= 0:
                os.close(watch.PROC.descriptor)
            if limits["tree"]:
                confinement = self._confined("python", limits, spared=(os.getppid(), os.getpid()))
            if self.ruleset >= 0:
                kernel.call("landlock_restrict_self", self.ruleset)
            self._fork_tests(child_end, confinement, limits, arguments, source)
        child_end.close()
        with contextlib.closing(link):
            peak_kb, start = next_number(link, self.control.fileno()), self._runner(confinement, link)
            if peak_kb == GONE:
                self.leave()
            if peak_kb:
                self.reply(peak_kb=peak_kb)
            alive = peak_kb > 0 and self._tests(limits, start, pid)
        with watch.ended_or_gone(os.pidfd_open(pid), self.control.fileno()) as ended:
            if not ended(None):
                self.leave()
        _, status, used = os.wait4(pid, 0)
        watch.kill_rest(self.whole)
        if alive:
            self.reply(done=True)
        else:
            cpu_s = used.ru_utime + used.ru_stime
            self.reply(died=status, status=status, cpu_s=cpu_s, wall_s=cpu_s, peak_kb=used.ru_maxrss)

    def _fork_tests(
        self, link: _socket.socket, confinement: Confinement, limits: dict[str, Any], arguments: list[str], source: int
    ) -> NoReturn:
        """Make a program ready, send its peak memory (KiB), then fork a test per request.

        Invariants: this process does little else, as each page that it writes to while a fork shares it is copied; it
        has no input or output, only descriptors for its next child; it ends with the supervisor.
        """
        try:
            text = child.Source(source)
            run = child.make_ready(child.compiled(text, limits), text, arguments, self.folder, CALLS)
            link.send(NUMBER.pack(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
            confinement.serve(link, run)
            os._exit(0)
        finally:
            os._exit(71)

    def _runner(self, confinement: Confinement, link: _socket.socket | None = None) -> Start:
        ahead = AHEAD_S, AHEAD_BYTES
        return confinement.runner(self.control.fileno(), self.folder, watch.TICK_S, ahead, link)

    def binary(self, limits: dict[str, Any], arguments: list[str], program: int) -> None:
        """Run a compiled program's tests until the end."""
        limits["tree"] = limits["tree"] and self.forks
        confinement = self._confined("binary", limits, program, (os.getpid(),) if limits["tree"] else ())
        variables = [f"{name}={value}".encode() for name, value in self.environment.items()]
        confinement.command([b"solution", *(word.encode() for word in arguments)], variables)
        self.reply(peak_kb=0)
        self._tests(limits, self._runner(confinement), 0)
        watch.kill_rest(self.whole)
        self.reply(done=True)

    def _tests(self, limits: dict[str, Any], start: Start, spare: int) -> bool:
        """Run tests until the end, reporting quick ones together; return False if one could not be started.

        ``spare``: the process that forks them, if any.
        """
        bare = folder.used_bytes(self.folder, self.plan.apart)
        while True:
            message, descriptors = self.receive()
            if message["op"] == "end":
                return True
            ran: list[dict[str, Any]] = []
            tests, alive = [], True
            for names in message["files"]:
                tests.append((descriptors[: 3 + len(names)], names))
                del descriptors[: 3 + len(names)]
            until = time.monotonic() + AHEAD_S
            while alive and len(ran) < len(tests):
                count = len(ran)
                spent = _collected_s()
                alive = self._some(limits, start, tests[count:], bare, ran, spare)
                if limits["tree"] or not self.filters:  # with a filter nothing can be left
                    watch.kill_rest(self.whole, spare)
                    ran[-1:] = [{**last, "cpu_s": max(last["cpu_s"], _collected_s() - spent)} for last in ran[-1:]]
                self._clean(ran)
                if len(ran) == count or not _is_ordinary(ran[-1]) or time.monotonic() > until:
                    break
            for test_descriptors, _ in tests:
                for descriptor in test_descriptors:
                    os.close(descriptor)
            if ran:
                self.reply(ran=ran)
            if not alive:
                return False

    def _clean(self, ran: list[dict[str, Any]]) -> None:
        """Empty /tmp; if that fails, report what ran and end this process, which removes /tmp."""
        try:
            folder.empty(self.folder)
        except OSError:
            if ran:
                self.reply(ran=ran)
            os._exit(78)

    def _some(
        self,
        limits: dict[str, Any],
        start: Start,
        tests: list[tuple[list[int], list[str]]],
        bare: int,
        ran: list[dict[str, Any]],
        spare: int,
    ) -> bool:
        """Run the first of these tests, or several, append to ``ran``, and return whether the forking process lives."""
        (descriptors, names), base = tests[0], bare
        together = [descriptors[:3]]
        if names:
            folder.place(self.folder, names, descriptors[3:], 0o444)
            base = folder.used_bytes(self.folder, self.plan.apart)
        elif self.filters and not limits["tree"]:
            together += [streams[:3] for streams, _ in itertools.takewhile(lambda test: not test[1], tests[1:])]
        ended, going = start(together)
        for status, cpu_s, wall_s, peak_kb, sizes in ended:
            ran.append({**watch.used(status, cpu_s, wall_s, peak_kb), "sizes": sizes})
        if going is not None and going[0] != DIED:
            pid, ready, ago = going
            outputs = together[len(ended)][1:3]
            watched = watch.Watch(limits, outputs, self.folder, self.plan.apart, base, ago, spare)
            if pid == GONE:
                self.leave()
            used = self._used(watched, pid, ready)
            ran.append({**used, "sizes": [os.fstat(output).st_size for output in outputs]})
        if ran:
            ran[-1]["failed"] = self._failed(ran[-1]["status"])
        return going is None or going[0] != DIED

    def _used(self, watched: watch.Watch, pid: int, ended: int) -> dict[str, Any]:
        used = watched.wait(pid, ended, self.control.fileno())
        if used is None:
            self.leave()
        return used

    def _failed(self, status: int) -> str:
        """Return why a program could not be started, if so."""
        if status == FAILED_TO_START << 8:
            with contextlib.suppress(BlockingIOError):
                return os.read(self.report, 4096).decode()
        return ""

    def command(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Run a tool of the toolchain on files, and copy its result out."""
        standard, artifact, files = descriptors[:3], descriptors[3], descriptors[4:]
        folder.place(self.folder, message["files"], files, 0o644)
        variables = {**self.environment, "TMPDIR": self.folder, "LC_ALL": "C.UTF-8"}
        limits = message["limits"]
        confinement = self._confined("compiler", limits)
        watched = watch.Watch(
            limits, standard[1:3], self.folder, self.plan.apart, folder.used_bytes(self.folder, self.plan.apart)
        )
        pid = confinement.start(standard)
        if pid == 0:
            try:
                child.run_command(message["command"], variables)
            finally:
                failed_to_start()
        used = self._used(watched, pid, os.pidfd_open(pid))
        used["failed"] = self._failed(used["status"])
        watch.kill_rest(self.whole)
        written = used["status"] == 0 and folder.fetch(self.folder, message["output"], artifact)
        self.reply(**used, written=written)
        self._clean([])

    def serve(self) -> None:
        """Serve messages until the judge is gone."""
        while True:
            message, descriptors = self.receive()
            if message["op"] == "python":
                self.python(message["limits"], message["args"], descriptors[0])
            elif message["op"] == "binary":
                self.binary(message["limits"], message["args"], descriptors[0])
            elif message["op"] == "command":
                self.command(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def serve(plan: Plan, library: Library, ruleset: int, outer: int, alone: bool, owns: bool) -> None:
    """Report that the slot is ready, and serve."""
    if plan.apart:
        move_imports()
    supervisor = Supervisor(plan, library, ruleset, outer, alone, owns)
    folder.reset(supervisor.folder)
    os.environ.clear()
    os.environ.update(supervisor.environment)
    for number in signal.valid_signals() - {*IGNORED}:  # a judge in the background, or under nohup, ignores some
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if plan.kind != "compile":
        kernel.set_thread_stack(THREAD_STACK)
        child.make_streams()
        child.warm()
    os.chdir(supervisor.folder)
    gc.collect()
    gc.freeze()
    fresh.fill_all()
    proc = watch.resident_kb(os.getpid()) > 0
    supervisor.reply(ready=True, uid=os.geteuid(), proc=proc, alone=alone, forks=supervisor.forks, owns=supervisor.owns)
    supervisor.serve()
