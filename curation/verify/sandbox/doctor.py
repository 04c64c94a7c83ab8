"""Diagnoses this machine's isolation by attempts from Python and C++ in a box, whose targets exist on the host."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from curation.records import VerifierError
from curation.verify.sandbox.box import Sandbox
from curation.verify.sandbox.doctor_attempts import ATTEMPTS, LIMITED, PYTHON, SHUTTING, Host, cpp_program
from curation.verify.sandbox.ladder import RUNGS, probe_rung
from curation.verify.sandbox.outcomes import Ending, Limits, RunResult
from curation.verify.sandbox.slot import SlotError

QUICK_LIMITS = Limits(cpu_s=1.0, wall_s=20.0, memory_mb=100, output_bytes=1 << 20, file_mb=8)
SLEEP_LIMITS = replace(QUICK_LIMITS, wall_s=2.0)
"""Short wall time, only for attempts that it must end."""


@dataclass(frozen=True, slots=True)
class IsolationProperty:
    """One property of the isolation; ``by`` is the attempt's language."""

    name: str
    ok: bool
    attempt: str
    detail: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class _Attempts:
    box: Sandbox
    binary: bytes | None
    found: list[IsolationProperty] = field(default_factory=list)

    def add(
        self,
        name: str,
        attempt: str,
        source: str,
        act: str,
        judged: Callable[[list[RunResult]], tuple[bool, str]],
        stdins: Sequence[bytes] = (b"",),
        limits: Limits = QUICK_LIMITS,
    ) -> None:
        files = {} if self.binary is None else {"own": self.binary}
        runs = {"Python": list(self.box.run_python(source, stdins, limits, files=files))}
        if self.binary is not None:
            runs["C++"] = list(self.box.run_binary(self.binary, stdins, limits, args=(act,), files=files))
        for by, ran in runs.items():
            ok, detail = judged(ran)
            self.found.append(IsolationProperty(name, ok, attempt, detail, by))


@contextlib.contextmanager
def _host() -> Iterator[Host]:
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
                yield Host(tcp.getsockname()[1], folder, process.pid)
            finally:
                process.kill()
                process.wait()


def _refused(runs: list[RunResult]) -> tuple[bool, str]:
    output = runs[0].stdout.decode(errors="replace").strip()
    return output.startswith("refused"), output.removeprefix("refused ") or runs[0].note or str(runs[0].ending)


def _without_effect(path: str, runs: list[RunResult]) -> tuple[bool, str]:
    refused, detail = _refused(runs)
    unchanged = os.stat(path).st_mode & 0o777 != 0o777
    return refused or unchanged, detail if refused or not unchanged else "it stays as it is"


def _own_environment(runs: list[RunResult]) -> tuple[bool, str]:
    names = runs[0].stdout.decode().split()
    foreign = set(names) - {"PATH", "LANG", "HOME", "LC_CTYPE", "TMPDIR"}
    return bool(names) and not foreign, " ".join(names)


def _nothing_left(runs: list[RunResult]) -> tuple[bool, str]:
    listings = [ran.stdout.decode().split() for ran in runs]
    return all(names in ([], ["own"]) for names in listings), " then ".join(map(" ".join, listings)) or "nothing"


def _the_same(runs: list[RunResult]) -> tuple[bool, str]:
    outputs = [f"{ran.ending}: {ran.stdout.decode(errors='replace').strip()}" for ran in runs]
    return outputs == outputs[:1] * len(runs) and runs[0].ending is Ending.EXITED, " then ".join(dict.fromkeys(outputs))


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
    """Return all properties on the strongest or named rung; takes about ten seconds."""
    with Sandbox(workers=1, rung=rung) as box, _host() as host:
        binary, why = _compiled(box)
        attempts = _Attempts(box, binary)
        isolated = box.rung != "none"
        attempts.found.append(
            IsolationProperty("isolation", isolated, f"start a box, as user {os.geteuid()}", box.description)
        )
        for name, attempt, calls in ATTEMPTS:
            judged = partial(_without_effect, f"{host.folder}/secret") if calls.startswith("chmod") else _refused
            attempts.add(name, attempt, PYTHON, "calls", judged, [host.lines(calls)])
        listing = "import os; print(*sorted(os.environ))"
        attempts.add("environment: own", "list the variables of the program", listing, "names", _own_environment)
        leaving = "import os; print(*os.listdir('.'))\ntry: open('left', 'w')\nexcept OSError: pass"
        attempts.add("tests apart", "leave a file for the next test", leaving, "left", _nothing_left, [b"", b""])
        shut = "take all modes away from the folder, the streams and the program, and run again"
        attempts.add("tests apart: modes", shut, SHUTTING, "shut", _the_same, [b""] * 3)
        for name, ending, attempt, source, _ in LIMITED:
            limits = SLEEP_LIMITS if ending is Ending.WALL_LIMIT else QUICK_LIMITS
            attempts.add(name, attempt, source, name, partial(_ended_by, ending), limits=limits)
        if why:
            attempts.found.append(IsolationProperty("compiler", False, "compile a program", why, "C++"))
        return attempts.found


def _compiled(box: Sandbox) -> tuple[bytes | None, str]:
    """Return the C++ program or its error; neither without g++."""
    if shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin") is None:
        return None, ""
    compiled = box.compile({"doctor.cpp": cpp_program().encode()}, ("g++", "-std=c++17", "doctor.cpp", "-ldl"))
    return compiled.artifact, "" if compiled.ok else compiled.log[:300] or compiled.run.note


def require(found: list[IsolationProperty]) -> None:
    """Raise VerifierError unless every property holds."""
    failing = [f"{entry.name} ({entry.by})" for entry in found if not entry.ok]
    if failing:
        raise VerifierError(f"the isolation of this machine fails on: {', '.join(failing)}.")
