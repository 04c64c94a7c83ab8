"""Programs of many styles end and print in every box as they do outside, on a quiet machine and on a busy one.

The truth is a run with a bare interpreter, or with what the machine's g++ makes; nothing is expected by hand. The
interpreter's own is quick; the whole corpus on every rung, at a load of sixteen besides, is for the slow lane.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.records import VerifierError
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeTest, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits, RunResult
from tests.curation.verify.programs.cpp_styles import CPP_STYLES
from tests.curation.verify.programs.python_styles import PYTHON_STYLES

RUNGS = ("namespaces", "user-namespace", "landlock")
LOAD = 16
LIMITS = Limits(cpu_s=10.0, wall_s=120.0, memory_mb=1024)
STACK_KB = 1 << 20
WITH_PROCESSES = {
    "a process of multiprocessing",
    "a pool of processes",
    "a queue between processes",
    "an executor of processes",
    "fork and wait",
    "a child that aborts",
    "a child that is terminated",
}
"""What needs more than one process, which a box says where it cannot hold them."""
WITHOUT_TMP = {"tmpfile"}
"""What the rung without namespaces says that it cannot do."""
QUICK = (
    "the fast-input template",
    "what the streams say of themselves",
    "line endings as they come",
    "recursion behind a raised limit",
    "a thread with a big stack",
    "a thread that is left to end",
    "asyncio.run",
    "a pair of sockets",
    "a pool of processes",
    "temporary files",
    "numpy's random and fft",
    "an exception in a thread",
    "sys.exit with a text",
    "exit functions",
    "finalisers",
)

Seen = tuple[CodeVerdict, bytes]


def seen(ran: RunResult) -> Seen:
    """The verdict that its ending alone decides, and its output."""
    failure = failure_of(ran)
    return failure[0] if failure is not None else CodeVerdict.AC, ran.stdout


class Bare:
    """Runs programs as a shell would, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, dict[tuple[CodeLang, str], Seen]()

    def run(self, lang: CodeLang, name: str) -> Seen:
        if (lang, name) not in self.known:
            self.known[lang, name] = self._run(lang, name)
        return self.known[lang, name]

    def _run(self, lang: CodeLang, name: str) -> Seen:
        home = self.folder / f"{lang.value}-{len(self.known)}"
        (home / "work").mkdir(parents=True)
        if lang is CodeLang.PYTHON:
            code, stdin = PYTHON_STYLES[name]
            (home / "solution.py").write_text(code)
            command = f"exec {sys.executable} ../solution.py"
        else:
            code, stdin, standard = CPP_STYLES[name]
            build = ["g++", "-O2", f"-std=gnu++{standard}", "-x", "c++", "-", "-o", str(home / "solution")]
            if subprocess.run(build, input=code.encode(), capture_output=True, check=False).returncode:
                return CodeVerdict.CE, b""
            command = "exec ../solution"
        files = {key: home / key for key in ("stdin", "stdout", "stderr")}
        files["stdin"].write_bytes(stdin.encode())
        with contextlib.ExitStack() as opened:
            streams = {
                key: opened.enter_context(path.open("rb" if key == "stdin" else "wb")) for key, path in files.items()
            }
            status = subprocess.run(
                ["/bin/sh", "-c", f"ulimit -s {STACK_KB}; {command}"],
                cwd=home / "work",
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(home)},
                check=False,
                **streams,  # type: ignore[call-overload]
            ).returncode
        ending = Ending.EXITED if status >= 0 else Ending.SIGNALED
        code_and_signal = (status, None) if status >= 0 else (None, -status)
        if status == -signal.SIGINT:  # the shell's word for a KeyboardInterrupt, after which Python exits with 1
            ending, code_and_signal = Ending.EXITED, (1, None)
        return seen(
            RunResult(ending, *code_and_signal, files["stdout"].read_bytes(), files["stderr"].read_bytes(), 0, 0, 0)
        )


def boxed(runner: Runner, lang: CodeLang, name: str) -> Seen:
    code, stdin = PYTHON_STYLES[name] if lang is CodeLang.PYTHON else CPP_STYLES[name][:2]
    program = runner.tools.prepare(Submission(lang, code))
    if not isinstance(program, Program):
        return program.verdict, b""
    (ran,) = runner.tools.run(program, [stdin.encode()], LIMITS)
    return seen(ran)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """One slot on one rung."""
    with Runner(1, rung=request.param) as runner:
        try:
            runner.open()
        except VerifierError as why:
            pytest.skip(f"{why}")
        yield runner


@contextlib.contextmanager
def load(count: int) -> Iterator[None]:
    burn = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(burn) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def corpus(runner: Runner) -> list[tuple[CodeLang, str]]:
    names = [(CodeLang.PYTHON, name) for name in PYTHON_STYLES] + [(CodeLang.CPP, name) for name in CPP_STYLES]
    box = runner.tools.box
    lacking = (set() if box.forks else WITH_PROCESSES) | (WITHOUT_TMP if box.rung == "landlock" else set())
    assert box.forks or "programs cannot start processes" in box.description
    return [(lang, name) for lang, name in names if name not in lacking]


def test_what_a_weaker_rung_cannot_do_is_told_with_the_verdict() -> None:
    tests = (CodeTest(b"", b"3"),)
    with Runner(1, rung="landlock") as runner:
        try:
            runner.open()
        except VerifierError as why:
            pytest.skip(f"{why}")
        jobs = [
            (CodeProblem(name, tests), Submission(CodeLang.CPP, CPP_STYLES[name][0]))
            for name in ("fork and wait", "tmpfile")
        ]
        forked, filed = judge_programs(runner, jobs)
    assert forked.verdict is CodeVerdict.WA
    assert forked.how.endswith("; it may want processes of its own, which rung 'landlock' does not allow here")
    assert filed.verdict is CodeVerdict.RTE
    assert filed.how.endswith("; it may want files in /tmp, which rung 'landlock' does not allow")


def test_there_are_enough_styles() -> None:
    assert len(PYTHON_STYLES) + len(CPP_STYLES) >= 150
    assert set(QUICK) <= PYTHON_STYLES.keys()
    assert PYTHON_STYLES.keys() | CPP_STYLES.keys() >= WITH_PROCESSES | WITHOUT_TMP


@pytest.mark.parametrize("runner", [None], indirect=True, ids=["strongest"])
def test_what_is_easily_got_wrong_is_as_outside(runner: Runner, bare: Bare) -> None:
    for lang, name in corpus(runner):
        if lang is CodeLang.PYTHON and name in QUICK:
            assert boxed(runner, lang, name) == bare.run(lang, name), name


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNGS, indirect=True)
def test_no_style_is_judged_otherwise_than_outside(runner: Runner, bare: Bare) -> None:
    differ = {}
    truth = {(lang, name): bare.run(lang, name) for lang, name in corpus(runner)}
    for count in (0, LOAD):
        with load(count):
            for (lang, name), outside in truth.items():
                inside = boxed(runner, lang, name)
                if inside != outside:
                    differ[count, lang.value, name] = (inside[0], inside[1][:200], outside[0], outside[1][:200])
    assert differ == {}
