"""Diagnoses this machine's isolation by attempts from Python and C++ in a box.

Their targets exist on the host, so an escape would reach them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from curation.records import VerifierError
from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.doctor_attempts import ATTEMPTS, LIMITED, PYTHON, SHUTTING, cpp_program
from curation.verify.sandbox.ladder import RUNGS, probe_rung
from curation.verify.sandbox.outcomes import Ending, Limits, RunResult
from curation.verify.sandbox.slot import SlotError

QUICK_LIMITS = Limits(cpu_s=1.0, wall_s=20.0, memory_mb=100, output_bytes=1 << 20, file_mb=8)
SLEEP_LIMITS = replace(QUICK_LIMITS, wall_s=2.0)
"""A short guard on wall time only where that must end a program: on a busy machine the others wait."""


@dataclass(frozen=True, slots=True)
class IsolationProperty:
    """One property of the isolation; ``by`` is the attempt's language."""

    name: str
    ok: bool
    attempt: str
    detail: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class _Host:
    """The targets of the attempts on the host."""

    port: int
    folder: str
    pid: int


@dataclass(frozen=True, slots=True)
class _Tried:
    """A box with its C++ program, if any."""

    box: Sandbox
    host: _Host
    binary: bytes | None
    found: list[IsolationProperty] = field(default_factory=list)

    def python(self, source: str, runs: int, limits: Limits) -> list[RunResult]:
        files = {} if self.binary is None else {"own": self.binary}
        return list(self.box.run_python(source, [b""] * runs, limits, files=files))

    def cpp(self, which: str, runs: int, limits: Limits) -> list[RunResult]:
        assert self.binary is not None
        args = (which, str(self.host.port), self.host.folder, str(self.host.pid))
        files = {"own": self.binary}
        return list(self.box.run_binary(self.binary, [b""] * runs, limits, args=args, files=files))

    def add(
        self,
        name: str,
        attempt: str,
        source: str,
        which: str,
        judged: Callable[[list[RunResult]], tuple[bool, str]],
        runs: int = 1,
        limits: Limits = QUICK_LIMITS,
    ) -> None:
        """Make an attempt in Python and C++ and add the results."""
        self.found.append(
            IsolationProperty(name, *_parts(attempt, judged(self.python(source, runs, limits))), "Python")
        )
        if self.binary is not None:
            self.found.append(IsolationProperty(name, *_parts(attempt, judged(self.cpp(which, runs, limits))), "C++"))


def _parts(attempt: str, seen: tuple[bool, str]) -> tuple[bool, str, str]:
    return seen[0], attempt, seen[1]


@contextlib.contextmanager
def _host() -> Iterator[_Host]:
    """Set up targets: a port, a secret file, a process."""
    with (
        tempfile.TemporaryDirectory(prefix="goldilocks-doctor-") as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
    ):
        with open(f"{folder}/secret", "w") as file:
            file.write("secret")
        os.mkdir(f"{folder}/covered")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(f"{folder}/socket")
            unix.listen()
            process = subprocess.Popen(["sleep", "300"])
            try:
                yield _Host(tcp.getsockname()[1], folder, process.pid)
            finally:
                process.kill()
                process.wait()


def _refused(runs: list[RunResult]) -> tuple[bool, str]:
    output = runs[0].stdout.decode(errors="replace").strip()
    return output.startswith("refused"), output.removeprefix("refused ") or runs[0].note or str(runs[0].ending)


def _own_environment(runs: list[RunResult]) -> tuple[bool, str]:
    names = runs[0].stdout.decode().replace("REACHED 0", "").split()
    beyond = set(names) - {"PATH", "LANG", "HOME", "LC_CTYPE", "TMPDIR"}
    return bool(names) and not beyond, " ".join(names)


def _nothing_left(runs: list[RunResult]) -> tuple[bool, str]:
    seen = [ran.stdout.decode().replace("REACHED 0", "").split() for ran in runs]
    return all(names in ([], ["own"]) for names in seen), " then ".join(map(" ".join, seen)) or "nothing"


def _the_same(runs: list[RunResult]) -> tuple[bool, str]:
    seen = [f"{ran.ending}: {ran.stdout.decode(errors='replace').strip()}" for ran in runs]
    return seen == seen[:1] * len(runs) and runs[0].ending is Ending.EXITED, " then ".join(dict.fromkeys(seen))


def _ended_by(ending: Ending, runs: list[RunResult]) -> tuple[bool, str]:
    return runs[0].ending is ending, f"ended by {runs[0].ending}"


def working_rungs() -> list[str]:
    """Return the rungs that work on this machine, strongest first."""
    works = []
    for rung in RUNGS[:-1]:
        with contextlib.suppress(SlotError):
            probe_rung(rung).close()
            works.append(rung)
    return works


def diagnose(rung: str | None = None) -> list[IsolationProperty]:
    """Return all properties on the strongest or named rung, in about ten seconds."""
    with Sandbox(workers=1, rung=rung) as box, _host() as host:
        binary, why = _compiled(box)
        tried = _Tried(box, host, binary)
        isolated = box.rung != "none"
        tried.found.append(
            IsolationProperty("isolation", isolated, f"start a box, as user {os.geteuid()}", box.description)
        )
        for name, attempt, act, _ in ATTEMPTS:
            tried.add(name, attempt, PYTHON.replace("{act}", _aimed(act, host)), name, _refused)
        listing = "import os; print(*sorted(os.environ))"
        tried.add("environment: own", "list the variables of the program", listing, "names", _own_environment)
        leaving = "import os; print(*os.listdir('.'))\ntry: open('left', 'w')\nexcept OSError: pass"
        tried.add("tests apart", "leave a file for the next test", leaving, "left", _nothing_left, runs=2)
        shut = "take all modes away from the folder, the streams and the program, and run again"
        tried.add("tests apart: modes", shut, SHUTTING, "shut", _the_same, runs=3)
        for name, ending, attempt, source, _ in LIMITED:
            limits = SLEEP_LIMITS if ending is Ending.WALL_LIMIT else QUICK_LIMITS
            tried.add(name, attempt, source, name, partial(_ended_by, ending), limits=limits)
        if why:
            tried.found.append(IsolationProperty("compiler", False, "compile a program", why, "C++"))
        return tried.found


def _aimed(act: str, host: _Host) -> str:
    return act.format(port=host.port, folder=host.folder, pid=host.pid)


def _compiled(box: Sandbox) -> tuple[bytes | None, str]:
    """Return the C++ program or its error; neither without g++."""
    if shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin") is None:
        return None, ""
    compiled = box.compile({"doctor.cpp": cpp_program().encode()}, ("g++", "-std=c++17", "doctor.cpp"))
    return compiled.artifact, "" if compiled.ok else compiled.log[:300] or compiled.run.note


def require(found: list[IsolationProperty]) -> None:
    """Raise VerifierError unless every property holds."""
    failing = [f"{entry.name} ({entry.by})" for entry in found if not entry.ok]
    if failing:
        raise VerifierError(f"the isolation of this machine fails on: {', '.join(failing)}.")
