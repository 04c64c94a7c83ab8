"""Marks: a marked program does what the program does, and tells which of its blocks an input made it enter."""

import subprocess
import sys

from curation.programs.test_generation import marks_told, with_marks

PROGRAM = '''"""Says of a number whether it is 26."""
from __future__ import annotations
import sys

def kind(n: int) -> str:
    if n == 26:
        return "it is"
    elif n > 3:
        return "large"
    return "small"

try:
    print(kind(int(input())))
except ValueError:
    sys.exit(3)
'''


def run(code: str, text: str) -> tuple[str, int, str]:
    ran = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False)
    return ran.stdout, ran.returncode, marks_told(ran.stderr)


def test_a_marked_program_prints_the_same_and_its_branches_are_told_apart() -> None:
    marked = with_marks(PROGRAM)
    assert marked is not None
    told = {}
    for text in ("26", "5", "6", "1", "x"):
        output, code, told[text] = run(marked, text)
        assert (output, code) == run(PROGRAM, text)[:2]
    assert told["5"] == told["6"]
    assert len({*told.values()}) == 4
    assert all(told.values())


def test_what_cannot_be_read_or_has_no_block_is_not_marked() -> None:
    assert with_marks("print(") is None
    assert with_marks("print(1)") is None
    assert marks_told("a line of its own") == ""
