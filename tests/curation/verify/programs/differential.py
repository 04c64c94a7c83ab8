"""A program run bare and in a box, and what differs: the machinery of `test_differential` and of `bench_programs`.

The truth is a run with a bare interpreter, or with what the machine's g++ makes; nothing is expected by hand.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits, RunResult
from tests.curation.verify.programs.foreign_styles import Style

FORKS = re.compile(r"\b(?:multiprocessing|ProcessPoolExecutor|forkpty|v?fork)\b")
"""What a style that starts processes names: its problem would allow them."""
LIMITS = Limits(cpu_s=10.0, wall_s=120.0, memory_mb=1024)
STACK_KB = 1 << 20
BARE_S = 120.0
"""Seconds for a program outside; one that takes longer raises subprocess.TimeoutExpired."""

Seen = tuple[CodeVerdict, bytes]


def seen(ran: RunResult) -> Seen:
    """Return the verdict that its ending alone decides, and its output."""
    failure = failure_of(ran)
    return failure[0] if failure is not None else CodeVerdict.AC, ran.stdout


class Bare:
    """Runs programs as a shell would, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, dict[Style, Seen]()

    @cached_property
    def headers(self) -> Path:
        """A folder with all headers of the library compiled, which g++ takes in their place where it can."""
        header = self.folder / "headers" / "bits" / "stdc++.h"
        header.parent.mkdir(parents=True)
        header.write_text("#include_next <bits/stdc++.h>\n")
        build = ["g++", "-w", "-O2", "-std=gnu++20", "-x", "c++-header", str(header), "-o", f"{header}.gch"]
        subprocess.run(build, check=True)
        return header.parents[1]

    def run(self, style: Style, artifact: bytes | None = None) -> Seen:
        """Return what becomes of a program outside; ``artifact``: what g++ has made of it."""
        if style not in self.known:
            self.known[style] = self._run(style, artifact)
        return self.known[style]

    def _run(self, style: Style, artifact: bytes | None) -> Seen:
        home = self.folder / f"{style.lang.value}-{len(self.known)}"
        (home / "work").mkdir(parents=True)
        if style.lang is CodeLang.PYTHON:
            (home / "solution.py").write_text(style.code)
            command = f"exec {sys.executable} ../solution.py"
        elif artifact is not None:
            (home / "solution").write_bytes(artifact)
            (home / "solution").chmod(0o755)
            command = "exec ../solution"
        else:
            build = ["g++", "-O2", f"-std=gnu++{style.standard}", f"-I{self.headers}"]
            build += ["-x", "c++", "-", "-o", str(home / "solution")]
            if subprocess.run(build, input=style.code.encode(), capture_output=True, check=False).returncode:
                return CodeVerdict.CE, b""
            command = "exec ../solution"
        files = {key: home / key for key in ("stdin", "stdout", "stderr")}
        files["stdin"].write_bytes(style.stdin.encode())
        with contextlib.ExitStack() as opened:
            streams = {
                key: opened.enter_context(path.open("rb" if key == "stdin" else "wb")) for key, path in files.items()
            }
            status = subprocess.run(
                ["/bin/sh", "-c", f"ulimit -S -s {STACK_KB}; {command}"],
                cwd=home / "work",
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(home)},
                check=False,
                timeout=BARE_S,
                **streams,  # type: ignore[call-overload]
            ).returncode
        ending = Ending.EXITED if status >= 0 else Ending.SIGNALED
        code_and_signal = (status, None) if status >= 0 else (None, -status)
        if status == -signal.SIGINT:  # the shell's word for a KeyboardInterrupt, after which Python exits with 1
            ending, code_and_signal = Ending.EXITED, (1, None)
        return seen(
            RunResult(ending, *code_and_signal, files["stdout"].read_bytes(), files["stderr"].read_bytes(), 0, 0, 0)
        )


def boxed(runner: Runner, style: Style) -> Seen:
    """Return what becomes of a program in a box."""
    program = runner.prepare(Submission(style.lang, style.code))
    if not isinstance(program, Program):
        return program.verdict, b""
    (ran,) = runner.run(program, [style.stdin.encode()], LIMITS, processes=FORKS.search(style.code) is not None)
    return seen(ran)


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


def differences(runner: Runner, truth: Mapping[str, tuple[Style, Seen]]) -> dict[str, tuple[object, ...]]:
    """Return name → verdict and beginning of the output in the box, and outside, of those that differ."""
    differ = {}
    for name, (style, outside) in truth.items():
        inside = boxed(runner, style)
        if inside != outside:
            differ[name] = (inside[0].value, inside[1][:200], outside[0].value, outside[1][:200])
    return differ
