"""The small process of a slot: takes programs and tests from the judge, forks for each test, reports what it used.

Messages are JSON over a socket that keeps their borders, descriptors beside them (SCM_RIGHTS):

    {"op": "python"} [source]         a process compiles the source once, and forks per test: {"compiled": …}
    {"op": "binary"} [file]           tests execute this file: {"compiled": …}
    {"op": "test", "limits", "args", "files"} [stdin, stdout, stderr, *files]     one test: what `Watch.wait` returns
    {"op": "end"}                     the program is done with: {"done": true}
    {"op": "command", …} [stdin, stdout, stderr, artifact, *files]               a tool of the toolchain, with fork

Invariants: no input, output or expected output is ever in this process, only descriptors; every test starts from
the same memory; /tmp is empty at the start of each test; after each test nothing of it runs. Foreign code never runs
in this process itself. It ends when the judge's end of the socket is closed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import shutil
import signal
import site
import socket
import stat
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from . import child, watch
from .filter import Template
from .launcher import Plan

PRELOADED = (
    "abc array ast bisect builtins cmath codecs collections.abc contextlib copy dataclasses datetime decimal enum "
    "fileinput fractions functools heapq io itertools json math operator os queue random re signal statistics string "
    "struct sys textwrap threading time traceback types typing unicodedata warnings"
).split()
"""What programs import most; loaded once, forked many times. They behave as if imported by the program."""
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}
MESSAGE, DESCRIPTORS = 1 << 18, 64
COMPILE_MB = 2048


def preload(plan: Plan) -> None:
    """Everything that programs may find loaded, while the host's files can still be seen."""
    if plan.kind != "compile":
        for name in PRELOADED:
            importlib.import_module(name)
        site.setquit()
        site.setcopyright()
        site.sethelper()
    if plan.packages:
        sys.path.append(plan.packages)
    if plan.kind == "numpy":
        importlib.import_module("numpy")
    sys.stdin.close()


class Supervisor:
    """See the module's text."""

    def __init__(self, plan: Plan, ruleset: int, alone: bool) -> None:
        self.plan, self.ruleset, self.alone = plan, ruleset, alone
        self.control = socket.socket(fileno=plan.control)
        self.folder = "/tmp" if plan.apart else plan.scratch
        kinds = ("compiler",) if plan.kind == "compile" else ("python", "binary")
        self.filters = {} if plan.rung == "none" else {kind: Template(kind) for kind in kinds}
        self.environment = {**ENVIRONMENT, "HOME": self.folder}

    def reply(self, **words: Any) -> None:
        """One message to the judge."""
        self.control.send(json.dumps(words).encode())

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message; ends the process when the judge is gone."""
        data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, DESCRIPTORS)
        if not data:
            os._exit(77)
        return json.loads(data), descriptors

    def clean(self) -> None:
        """Empty the scratch folder, also of what was made unreadable."""
        for entry in list(os.scandir(self.folder)):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                for parent, folders, _ in os.walk(entry.path):
                    for path in (os.path.join(parent, folder) for folder in folders):
                        if not os.path.islink(path):
                            os.chmod(path, 0o700)
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)

    def place(self, names: list[str], descriptors: list[int], mode: int) -> None:
        """Files into the scratch folder."""
        for name, descriptor in zip(names, descriptors, strict=True):
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            out = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            copy_bytes(descriptor, out)
            os.close(out)

    def run(self, message: dict[str, Any], descriptors: list[int], start: Callable[[], None], kind: str) -> None:
        """Fork, confine, start, wait, report. ``start`` does not return but by OSError."""
        limits, (source, target) = message["limits"], os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(self.folder)
                child.confine(descriptors, target, limits, self.filters.get(kind), self.ruleset, self.alone)
                start()
            finally:
                failed_to_start(target)
        os.close(target)
        outputs = (descriptors[1], descriptors[2])
        used = watch.Watch(pid, limits, outputs, self.folder, self.plan.apart).wait(self.control.fileno())
        failed = os.read(source, 4096).decode()
        os.close(source)
        message["used"] = {**used, "failed": failed}

    def tests(self, start: Callable[[list[str]], None], kind: str, program: int = -1) -> None:
        """Tests of one program until its end."""
        while True:
            message, descriptors = self.receive()
            if message["op"] == "end":
                return
            self.place(message["files"], descriptors[3:], 0o444)
            standard = descriptors[:3] if program < 0 else [*descriptors[:3], program]
            self.run(message, standard, lambda message=message: start(message["args"]), kind)  # type: ignore[misc]
            for descriptor in descriptors:
                os.close(descriptor)
            self.reply(**message["used"])
            self.clean()

    def python(self, message: dict[str, Any], source: int) -> None:
        """A process of its own compiles (the parser meets foreign text) and forks the tests."""
        pid = os.fork()
        if pid == 0:
            program = compiled(source, message["limits"])
            self.reply(compiled=True, peak_kb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            self.tests(lambda arguments: child.run_python(program, arguments), "python")
            os._exit(0)
        _, status, used = os.wait4(pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 77:
            os._exit(77)
        if status == 0:
            self.reply(done=True)
        else:
            cpu_s = used.ru_utime + used.ru_stime
            self.reply(died=status, status=status, cpu_s=cpu_s, wall_s=cpu_s, peak_kb=used.ru_maxrss)

    def binary(self, program: int) -> None:
        """Tests of a compiled program."""
        self.reply(compiled=True, peak_kb=0)
        self.tests(lambda arguments: child.run_binary(arguments, self.environment), "binary", program)
        self.reply(done=True)

    def command(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """A tool of the toolchain on some files; the file it wrote is copied out."""
        standard, artifact, files = descriptors[:3], descriptors[3], descriptors[4:]
        self.place(message["files"], files, 0o644)
        variables = {**self.environment, "TMPDIR": self.folder, "LC_ALL": "C.UTF-8"}
        self.run(message, standard, lambda: child.run_command(message["command"], variables), "compiler")
        written = False
        if message["used"]["status"] == 0:
            try:
                path = os.path.join(self.folder, message["output"])
                made = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                made = -1
            if made >= 0 and stat.S_ISREG(os.fstat(made).st_mode):
                copy_bytes(made, artifact)
                written = True
            os.close(made) if made >= 0 else None
        self.clean()
        self.reply(**message["used"], written=written)

    def serve(self) -> None:
        """Messages until the judge is gone."""
        while True:
            message, descriptors = self.receive()
            if message["op"] == "python":
                self.python(message, descriptors[0])
            elif message["op"] == "binary":
                self.binary(descriptors[0])
            elif message["op"] == "command":
                self.command(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def failed_to_start(report: int) -> NoReturn:
    """Say why no foreign code ran, to the pipe where it is before or after the descriptors were set in order."""
    error = sys.exc_info()[1]
    for place in (report, child.REPORT):
        try:
            os.write(place, repr(error).encode())
        except OSError:
            continue
        break
    os._exit(70)


def copy_bytes(source: int, target: int) -> None:
    """A whole file into another."""
    left, place = os.fstat(source).st_size, 0
    while place < left:
        sent = os.sendfile(target, source, place, min(left - place, 1 << 24))
        if sent == 0:
            return
        place += sent


def compiled(source: int, limits: dict[str, Any]) -> child.Program:
    """The code of a program, or the exception that an interpreter would have shown."""
    text = os.pread(source, os.fstat(source).st_size, 0)
    seconds = int(limits["cpu_s"]) + 1
    soft = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: COMPILE_MB << 20}
    before = {what: resource.getrlimit(what) for what in soft}
    for what, value in soft.items():
        resource.setrlimit(what, (value, before[what][1]))
    try:
        return compile(text, "solution.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        return error.with_traceback(None)
    finally:
        for what, pair in before.items():
            resource.setrlimit(what, pair)


def serve(plan: Plan, ruleset: int, alone: bool) -> None:
    """Say that the slot is ready, and serve."""
    supervisor = Supervisor(plan, ruleset, alone)
    os.environ.clear()
    os.environ.update(supervisor.environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
    os.chdir(supervisor.folder)
    gc.collect()
    gc.freeze()
    proc = watch.resident_kb(os.getpid()) > 0
    supervisor.reply(ready=True, uid=os.geteuid(), proc=proc, alone=alone)
    supervisor.serve()
