"""Diagnosis of the isolation on this machine, property by property. Each is tried in a box, never just looked up.

A property is ``ok`` when the attempt failed as it should. The programs that try are below, one per property; the
judge's side of an attempt (a listening socket, a file, a process) is set up on the host, so that an attempt that
got out would really reach something. Raises VerifierError where no rung works at all.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.outcomes import Ending, Limits, RunResult

QUICK_LIMITS = Limits(cpu_s=1.0, wall_s=2.0, memory_mb=100, output_bytes=1 << 20, file_mb=8)


@dataclass(frozen=True, slots=True)
class IsolationProperty:
    """One property of the isolation.

    Example: ``IsolationProperty("network: TCP", True, "connect to a port of this machine", "PermissionError: …")``
    """

    name: str
    ok: bool
    attempt: str
    detail: str


ATTEMPT = """
import ctypes, os, socket, sys
try:
    result = {act}
    print("REACHED", repr(result)[:200])
except (OSError, ValueError) as error:
    print("refused", type(error).__name__ + ":", error)
"""


@dataclass(frozen=True, slots=True)
class _Host:
    """The things on the host that the attempts aim at."""

    port: int
    folder: str
    pid: int


ATTEMPTS = (
    (
        "network: TCP",
        "connect to a listening port of this machine",
        "socket.create_connection(('127.0.0.1', {port}), 1)",
    ),
    (
        "network: UDP",
        "send a datagram",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    ),
    ("network: unix sockets", "connect to a socket file", "socket.socket(socket.AF_UNIX).connect('{folder}/socket')"),
    ("host files: reading", "read a file of this user", "open('{folder}/secret').read()"),
    ("host files: system", "read /etc/passwd", "open('/etc/passwd').read(100)"),
    ("host files: writing", "write beside a file of this user", "open('{folder}/written', 'w')"),
    ("host files: the toolchain", "write to the library folder", "open(os.__file__ + '.attack', 'w')"),
    ("host files: attributes", "chmod a file of this user", "os.chmod('{folder}/secret', 0o777)"),
    ("environment: of others", "read the environment of a process", "open('/proc/{pid}/environ').read(100)"),
    ("processes: visible", "look into a process of this user", "open('/proc/{pid}/cmdline').read(100)"),
    ("processes: fork", "fork", "os.fork()"),
    ("processes: exec", "execute a program", "os.execv('/bin/sh', ['sh', '-c', 'echo REACHED'])"),
    ("signals", "signal a process of this user", "os.kill({pid}, 15)"),
    ("signals: the parent", "signal the parent", "os.kill(os.getppid(), 15)"),
    ("devices", "open the memory of the machine", "open('/dev/mem', 'rb')"),
    ("devices: shared memory", "write to /dev/shm", "open('/dev/shm/goldilocks-doctor', 'w')"),
    ("memory files", "memfd_create", "os.memfd_create('x')"),
)
LIMITED = (
    ("limit: memory", Ending.MEMORY_LIMIT, "take 1 GiB where 100 MiB are allowed", "b = b'x' * (1 << 30)"),
    ("limit: CPU time", Ending.CPU_LIMIT, "loop where 1 s is allowed", "while True: pass"),
    ("limit: wall time", Ending.WALL_LIMIT, "sleep where 2 s are allowed", "import time; time.sleep(60)"),
    ("limit: output", Ending.OUTPUT_LIMIT, "print for ever where 1 MiB is allowed", "while True: print('x' * 9999)"),
)


@contextlib.contextmanager
def _host() -> Iterator[_Host]:
    """Set up a port, a folder with a secret, and a process: things worth reaching."""
    with (
        tempfile.TemporaryDirectory(prefix="goldilocks-doctor-") as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
    ):
        with open(f"{folder}/secret", "w") as file:
            file.write("secret")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(f"{folder}/socket")
            unix.listen()
            process = subprocess.Popen(["sleep", "300"])
            try:
                yield _Host(tcp.getsockname()[1], folder, process.pid)
            finally:
                process.kill()
                process.wait()


def _ran(box: Sandbox, source: str) -> RunResult:
    (ran,) = box.run_python(source, [b""], QUICK_LIMITS)
    return ran


def _try_attempt(box: Sandbox, host: _Host, name: str, attempt: str, act: str) -> IsolationProperty:
    aimed = act.format(port=host.port, folder=host.folder, pid=host.pid)
    ran = _ran(box, ATTEMPT.replace("{act}", aimed))
    output = ran.stdout.decode(errors="replace").strip()
    return IsolationProperty(
        name, output.startswith("refused"), attempt, output.removeprefix("refused ") or ran.note or str(ran.ending)
    )


def _ptrace(box: Sandbox) -> IsolationProperty:
    source = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
    source += "print(libc.ptrace(0, 0, 0, 0), os.strerror(ctypes.get_errno()))"
    output = _ran(box, source).stdout.decode().strip()
    return IsolationProperty("ptrace", output.startswith("-1"), "ask to be traced by the parent", output)


def _environment(box: Sandbox) -> IsolationProperty:
    names = _ran(box, "import os; print(*sorted(os.environ))").stdout.decode().split()
    beyond = set(names) - {"PATH", "LANG", "HOME", "LC_CTYPE"}
    return IsolationProperty(
        "environment: own", bool(names) and not beyond, "list the variables of the program", " ".join(names)
    )


def _clean(box: Sandbox) -> IsolationProperty:
    source = "import os; print(os.listdir('.'))\ntry: open('left', 'w')\nexcept OSError: pass"
    runs = [ran.stdout.decode().strip() for ran in box.run_python(source, [b"", b""], QUICK_LIMITS)]
    return IsolationProperty("tests apart", runs == ["[]", "[]"], "leave a file for the next test", " then ".join(runs))


def diagnose(rung: str | None = None) -> list[IsolationProperty]:
    """Return every property on the strongest rung that works here, or on the one named. Takes about ten seconds."""
    with Sandbox(workers=1, rung=rung) as box, _host() as host:
        isolated = box.rung != "none"
        properties = [IsolationProperty("isolation", isolated, f"start a box, as user {os.geteuid()}", box.description)]
        properties += [_try_attempt(box, host, *act) for act in ATTEMPTS]
        properties += [_ptrace(box), _environment(box), _clean(box)]
        for name, expected, attempt, source in LIMITED:
            ending = _ran(box, source).ending
            properties.append(IsolationProperty(name, ending is expected, attempt, f"ended by {ending}"))
    return properties
