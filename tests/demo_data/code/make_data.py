"""Makes the files of the code demo, which are kept beside it:

    problems.jsonl   name, text, tests [{input, output}], programs [{language, verdict, code}], seconds, checker, …
    attempts.jsonl   eight recorded attempts of an imaginary model at every problem that should survive, per language
    planted.jsonl    what was planted where: row, name, kind, expected, and the tests that should change

    python -m tests.demo_data.code.make_data

The attempts were not sampled from any language model: they are the demo's own programs, drawn right or wrong with a
probability that falls along the list. Invariants: the same bytes every time; every row is listed in planted.jsonl.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import flows.demo.code
from flows.demo.report import KEEP
from tests.demo_data.code import faults
from tests.demo_data.code.faults import Planted, Row
from tests.demo_data.code.tasks import TASKS

HERE = Path(flows.demo.code.__file__).parent
FILES = ("problems.jsonl", "attempts.jsonl", "planted.jsonl")
SEED = 2506_10910
ATTEMPTS = 8
LINES = {"python": "Write the program in Python 3.", "cpp": "Write the program in C++20."}
TOO_EASY, NEVER = ("evens",), ("alternating",)
"""Sound tasks whose attempts are all right, or all wrong."""


def rows() -> list[tuple[Row, Planted]]:
    """All rows with what should become of them."""
    draw = random.Random(SEED)
    found = []
    for number, task in enumerate(TASKS):
        expected = "too_easy" if task.key in TOO_EASY else "never_solved" if task.key in NEVER else KEEP
        found.append((faults.row_of(task, draw, cpp=number < 3), Planted("sound", expected)))
    for make in (
        faults.wrong_tests,
        faults.bad_inputs,
        faults.lacking,
        faults.weak,
        faults.without_solutions,
        faults.several,
        faults.formats,
    ):
        found += make(draw)
    twice = dict(found[3][0])
    found.append((twice, Planted("duplicate", "duplicate")))
    return found


def attempts(made: Iterable[tuple[Row, Planted]]) -> list[dict[str, str]]:
    """Recorded attempts at the rows that go as far as that."""
    draw = random.Random(SEED + 1)
    cpp = {task.key: task.cpp_program for task in TASKS}
    found = []
    for number, (row, planted) in enumerate(made):
        if planted.expected not in (KEEP, "too_easy", "never_solved"):
            continue
        share = {"too_easy": 1.0, "never_solved": 0.0}.get(planted.expected, 0.65 - 0.01 * number)
        right = [one["code"] for one in row["programs"] if one["verdict"] == "OK" and one["language"] == "py"]
        wrong = [one["code"] for one in row["programs"] if one["verdict"] != "OK" and one["language"] == "py"]
        base = row["name"].partition("-")[0]
        for language, line in LINES.items():
            good = right[:1] if language == "python" else [cpp[base]] if base in cpp else []
            bad = wrong if language == "python" else ["int main() { return 0 }\n"]
            for index in range(ATTEMPTS):
                solved = index / ATTEMPTS < share if planted.expected == KEEP else share == 1.0
                code = draw.choice(good) if solved and good else draw.choice(bad) if bad else "print(0)\n"
                text = f"<think>\nLet me see.\n</think>\nHere it is.\n\n```{language}\n{code}```\n"
                if not solved and draw.random() < 0.2:
                    text = "<think>\nI am not sure.\n</think>\nI could not find a way."
                found.append({"problem": f"{row['text']}\n\n{line}", "text": text})
    return found


def listed(made: Iterable[tuple[Row, Planted]]) -> list[dict[str, Any]]:
    """planted.jsonl."""
    return [
        {"row": number, "name": row["name"], **dataclasses.asdict(planted)}
        for number, (row, planted) in enumerate(made)
    ]


def write(folder: Path = HERE) -> None:
    """Write the files."""
    made = rows()
    _lines(folder / "problems.jsonl", [row for row, _ in made])
    _lines(folder / "attempts.jsonl", attempts(made))
    _lines(folder / "planted.jsonl", listed(made))


def _lines(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")


if __name__ == "__main__":
    write()
