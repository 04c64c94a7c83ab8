"""What provokes a box ends as it would outside: by its own exit, its own signal, or a limit, and never as BROKEN.

Ways that harm nobody outside are among the styles of `tests/curation/verify/programs`, where a bare interpreter decides
what is right; ``provocations.jsonl`` has those that would, and that end by a limit. A row has the ``lang``, the
``name``, the endings that it ``may`` have, and the ``code``: a program, or what `main` does in C++; and ``limits`` of
its own where rungs differ in what enforces them; perhaps its whole ``stdout``, and what is in its ``stderr``. After
each the same slot serves the next program.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.verify.sandbox import Ending, Limits, RunResult, Sandbox
from tests.curation.verify.sandbox.rungs import ISOLATING, STRONGEST, USUAL, Runner, on

RUNGS = (STRONGEST,)
"""What ends these programs is the same on every rung."""

LIMITS = Limits(cpu_s=1.0, wall_s=1.0, memory_mb=200, output_bytes=1 << 20, file_mb=16)
WORDS = {
    Ending.CPU_LIMIT: "cpu",
    Ending.WALL_LIMIT: "wall",
    Ending.MEMORY_LIMIT: "memory",
    Ending.OUTPUT_LIMIT: "output",
    Ending.SIGNALED: "signal",
    Ending.BROKEN: "broken",
}
ROWS = [json.loads(line) for line in Path(__file__).with_name("provocations.jsonl").read_text("utf-8").splitlines()]
CPP = [row for row in ROWS if row["lang"] == "cpp"]

HEADERS = (
    "atomic cstdio cstdlib cstring functional thread vector fcntl.h signal.h unistd.h sys/eventfd.h sys/inotify.h "
    "sys/mman.h sys/prctl.h sys/ptrace.h sys/resource.h sys/sendfile.h sys/signalfd.h sys/socket.h sys/syscall.h "
    "sys/time.h sys/wait.h"
).split()
SOURCE = "".join(f"#include <{header}>\n" for header in HEADERS)
SOURCE += "static void (*const ways[])() = {\n" + "".join(f"[] {{ {row['code']} }},\n" for row in CPP) + "};\n"
SOURCE += "int main() { char digits[8] = {}; if (read(0, digits, 7) < 1) return 99; ways[atoi(digits)](); return 0; }\n"
"""One program, whose input names which of the ways it goes: compiled once per rung."""


def ending(ran: RunResult) -> str:
    return WORDS.get(ran.ending) or ("well" if ran.exit_code == 0 else "badly")


def check(row: dict[str, Any], ran: RunResult) -> None:
    limits = Limits(**row.get("limits", {"output_bytes": LIMITS.output_bytes}))
    assert ending(ran) in row["may"].split(), ran
    assert ran.stdout == row.get("stdout", "").encode() or "stdout" not in row, ran
    assert row.get("stderr", "").encode() in ran.stderr, ran
    assert len(ran.stdout) <= limits.output_bytes
    assert len(ran.stderr) <= 65536


def rows(lang: str, *, limited: bool) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in ROWS if row["lang"] == lang and ("limits" in row) == limited]


@pytest.mark.parametrize("row", rows("python", limited=False))
def test_what_a_python_program_does_is_its_own_end(python: Runner, row: dict[str, Any]) -> None:
    check(row, python(row["code"], b"abc\n", LIMITS))


@on(*USUAL)
@pytest.mark.parametrize("row", rows("python", limited=True))
def test_what_a_rung_limits_in_a_python_program(python: Runner, row: dict[str, Any]) -> None:
    check(row, python(row["code"], limits=Limits(**row["limits"])))


@pytest.mark.slow
@pytest.mark.parametrize("row", rows("cpp", limited=False))
def test_what_a_binary_does_is_its_own_end(box: Sandbox, cpp: Callable[..., RunResult], row: dict[str, Any]) -> None:
    check(row, cpp(SOURCE, b"%d" % CPP.index(row), LIMITS))
    (after,) = box.run_python("import os; print(os.listdir('.'))", [b""], LIMITS)
    assert after.stdout == b"[]\n"


@on(*USUAL)
@pytest.mark.parametrize("row", rows("cpp", limited=True))
def test_what_a_rung_limits_in_a_binary(cpp: Callable[..., RunResult], row: dict[str, Any]) -> None:
    check(row, cpp(SOURCE, b"%d" % CPP.index(row), Limits(**row["limits"])))


ORPHANS = {
    "that sleep": "time.sleep(600)",
    "that stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "that ignore all": "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 13, 15)], time.sleep(600)",
    "that write on": "[os.write(1, b'x') or time.sleep(0.001) for _ in range(10 ** 6)]",
    "that start others": "[os.fork() or time.sleep(0.001) for _ in range(3)]",
}


@on(*ISOLATING)
def test_orphans_are_no_bodys_burden(box: Sandbox, python: Runner) -> None:
    if not box.forks:
        pytest.skip("no program may start processes there")
    for way, act in ORPHANS.items():
        twice = f"if os.fork() == 0:\n    if os.fork() == 0: {act}\n    os._exit(0)\nos.wait()"
        ran = python(f"import os, signal, time\n{twice}", limits=LIMITS, forks=True)
        assert ending(ran) == "well", (way, ran)
