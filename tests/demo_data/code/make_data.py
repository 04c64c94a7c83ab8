"""Make the files of the code demo, which are kept beside it:

    problems.jsonl   name, text, tests [{input, output}], programs [{language, verdict, code}], seconds, checker, …
    programs.jsonl   a recorded answer of an imaginary model that writes test programs, for every problem that has tests
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
FILES = ("problems.jsonl", "programs.jsonl", "attempts.jsonl", "planted.jsonl")
SEED = 2506_10910
ATTEMPTS = 8
LINES = {"python": "Write the program in Python 3.", "cpp": "Write the program in C++20."}
PROGRAMS = """\
Numbers of either sign, all alike, and single ones tell wrong programs apart.

```python
import random
k = int(input())
draw = random.Random(k)
most = [1, 2, 50, 50][k] if k < 4 else 6 if k > 24 else draw.randint(3, 50)
n = most if k <= 24 else draw.randint(1, most)
limit = draw.choice((1, 5, 1000))
numbers = [draw.randint(-limit, limit) for _ in range(n)]
if k % 5 == 0:
    numbers = [numbers[0]] * n
if k % 7 == 0:
    numbers = [-abs(x) - 1 for x in numbers[:-1]] + [max(-1000, -abs(numbers[-1]) - 1)]
    numbers = [max(-1000, x) for x in numbers]
print(n)
print(*numbers)
```

```python
import re, sys
lines = sys.stdin.read().split("\\n")
number = re.compile(r"0|-?[1-9][0-9]*")
ok = len(lines) == 3 and lines[2] == "" and number.fullmatch(lines[0]) and 1 <= int(lines[0]) <= 50
values = lines[1].split(" ") if ok else []
ok = ok and len(values) == int(lines[0]) and all(number.fullmatch(x) and -1000 <= int(x) <= 1000 for x in values)
sys.exit(0 if ok else 1)
```
"""
"""A generator and a validator: the inputs of all tasks have one form."""
TOO_EASY, NEVER = ("evens",), ("alternating",)
"""Sound tasks whose attempts are all right, or all wrong."""


def rows() -> list[tuple[Row, Planted]]:
    """Return all rows with what should become of them."""
    draw = random.Random(SEED)
    planted_rows = []
    for number, task in enumerate(TASKS):
        expected = "too_easy" if task.key in TOO_EASY else "never_solved" if task.key in NEVER else KEEP
        planted_rows.append((faults.row_of(task, draw, cpp=number < 3), Planted("sound", expected)))
    for make in (
        faults.wrong_tests,
        faults.bad_inputs,
        faults.lacking,
        faults.weak,
        faults.without_solutions,
        faults.several,
        faults.formats,
    ):
        planted_rows += make(draw)
    duplicate = dict(planted_rows[3][0])
    planted_rows.append((duplicate, Planted("duplicate", "duplicate")))
    return planted_rows


def attempts(planted_rows: Iterable[tuple[Row, Planted]]) -> list[dict[str, str]]:
    """Return recorded attempts at the rows that reach the difficulty stage."""
    draw = random.Random(SEED + 1)
    cpp = {task.key: task.cpp_program for task in TASKS}
    lines = []
    for number, (row, planted) in enumerate(planted_rows):
        if planted.expected not in (KEEP, "too_easy", "never_solved"):
            continue
        share = {"too_easy": 1.0, "never_solved": 0.0}.get(planted.expected, 0.65 - 0.01 * number)
        right = [
            program["code"] for program in row["programs"] if program["verdict"] == "OK" and program["language"] == "py"
        ]
        wrong = [
            program["code"] for program in row["programs"] if program["verdict"] != "OK" and program["language"] == "py"
        ]
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
                lines.append({"problem": f"{row['text']}\n\n{line}", "text": text})
    return lines


def programs(planted_rows: Iterable[tuple[Row, Planted]]) -> list[dict[str, str]]:
    """Return the recorded answer about each problem."""
    return [{"problem": text, "text": PROGRAMS} for text in dict.fromkeys(row["text"] for row, _ in planted_rows)]


def listed(planted_rows: Iterable[tuple[Row, Planted]]) -> list[dict[str, Any]]:
    """Return the rows of planted.jsonl."""
    return [
        {"row": number, "name": row["name"], **dataclasses.asdict(planted)}
        for number, (row, planted) in enumerate(planted_rows)
    ]


def write(folder: Path = HERE) -> None:
    """Write the files into a folder."""
    planted_rows = rows()
    _lines(folder / "problems.jsonl", [row for row, _ in planted_rows])
    _lines(folder / "programs.jsonl", programs(planted_rows))
    _lines(folder / "attempts.jsonl", attempts(planted_rows))
    _lines(folder / "planted.jsonl", listed(planted_rows))


def _lines(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")


if __name__ == "__main__":
    write()
