"""What is planted in the code demo: rows that should leave with a reason, tests that should be corrected or go.

Each fault makes one row of problems.jsonl from a sound task or from a text of its own, and says what should become of
it (`Planted`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.records import DropReason
from flows.demo.report import KEEP
from tests.demo_data.code.tasks import READ, TASKS, Task

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planted:
    """What should become of a row: ``expected`` is a DropReason or `KEEP`.

    ``corrected`` and ``discarded`` are positions of tests, ``made`` whether tests must have been generated, ``caught``
    whether a wrong program that the given tests let pass must be caught.
    """

    kind: str
    expected: str
    corrected: tuple[int, ...] = ()
    discarded: tuple[int, ...] = ()
    made: bool = False
    caught: bool = False
    note: str = field(default="")


def text_of(values: Sequence[int]) -> str:
    """Return an input: the number of values, then the values."""
    return f"{len(values)}\n{' '.join(map(str, values))}\n"


def draw_values(draw: random.Random, least: int = -1000, sizes: tuple[int, int] = (2, 12)) -> list[int]:
    """Draw some values; in four of ten draws from a narrow range."""
    count = draw.randint(*sizes)
    top = 1000 if draw.random() < 0.6 else max(least + 3, 3)
    return [draw.randint(max(least, -top), top) for _ in range(count)]


def row_of(
    task: Task, draw: random.Random, *, tests: int = 7, right: int = 3, wrong: int = 2, cpp: bool = False
) -> Row:
    """Return a sound row: random tests, a test of one value, right programs, wrong ones."""
    inputs = [draw_values(draw) for _ in range(tests - 1)] + [[draw.randint(-9, 9)]]
    programs = [{"language": "py", "verdict": "OK", "code": task.python(body)} for body in task.right[:right]]
    programs += [{"language": "py", "verdict": "WRONG", "code": task.python(body)} for body in task.wrong[:wrong]]
    if cpp:
        programs.insert(0, {"language": "c++", "verdict": "OK", "code": task.cpp_program})
    return {
        "name": task.key,
        "text": task.statement,
        "tests": [{"input": text_of(values), "output": task.answer(values)} for values in inputs],
        "programs": programs,
        "seconds": 1.0,
        "checker": None,
        "interaction": None,
        "mode": "stdio",
        "function": None,
        "pictures": 0,
    }


def _reworded(task: Task, key: str, first: str) -> Task:
    """Return the same task under another name and with another first sentence, so that it is another problem."""
    return Task(key, f"{first} {task.ask}", task.solve, task.right, task.wrong, task.cpp)


def wrong_tests(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant expected outputs that no solution gives: the solutions' common output takes their place."""
    planted_rows = []
    firsts = (
        "A shop notes its daily takings.",
        "A gauge writes down how the level of a river changed.",
        "Scores come in.",
    )
    for task, first in zip(TASKS[1:4], firsts, strict=True):
        row = row_of(_reworded(task, f"{task.key}-wrong", first), draw, cpp=task.key == "spread")
        row["tests"][2]["output"] = f"{int(row['tests'][2]['output']) + 3}\n"
        planted_rows.append((row, Planted("wrong_test", KEEP, corrected=(2,))))
    return planted_rows


def bad_inputs(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant a test that the constraints forbid, on which right programs differ: it goes, the problem stays."""
    row = row_of(_reworded(TASKS[10], "pairs-input", "Cards lie in a row."), draw)
    row["programs"][1]["code"] = f"{READ}a = a[:n]\nprint(sum(a.count(x) - 1 for x in a) // 2)\n"
    row["programs"][2]["code"] = (
        f"{READ}from collections import Counter\nassert n == len(a)\n"
        "print(sum(c * (c - 1) // 2 for c in Counter(a).values()))\n"
    )
    row["tests"][3] = {"input": "2\n4 4 4 4\n", "output": "1\n"}
    row["programs"][0]["code"] = f"{READ}n = len(a)\nprint(sum(a[i] == a[j] for i in range(n) for j in range(i)))\n"
    return [(row, Planted("bad_input", KEEP, discarded=(3,)))]


def lacking(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant too few tests: more are made where several solutions agree; one solution alone, or no test, is dropped."""
    agreeing = row_of(_reworded(TASKS[5], "inversions-few", "Books stand on a shelf."), draw, tests=3)
    alone = row_of(_reworded(TASKS[7], "squares-alone", "Tiles are laid."), draw, tests=3, right=1)
    none = row_of(_reworded(TASKS[9], "alternating-none", "A clerk keeps a ledger."), draw)
    none["tests"] = []
    few = DropReason.TOO_FEW_TESTS.value
    return [
        (agreeing, Planted("few_tests_made", KEEP, made=True)),
        (alone, Planted("few_tests_alone", few)),
        (none, Planted("no_tests", few)),
    ]


def weak(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant tests that let a known wrong program pass: new tests must catch it."""
    row = row_of(_reworded(TASKS[4], "stretch-weak", "A hiker notes ups and downs."), draw)
    task = TASKS[4]
    inputs = [[abs(x) + 1 for x in draw_values(draw)] + [-5] for _ in range(7)]
    row["tests"] = [{"input": text_of(values), "output": task.answer(values)} for values in inputs]
    return [(row, Planted("weak_tests", KEEP, made=True, caught=True))]


def without_solutions(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant problems without any program that is known to be right, or may be."""
    wrong = row_of(_reworded(TASKS[0], "evens-wrong-only", "Coins are counted."), draw, right=0)
    other = row_of(_reworded(TASKS[2], "distinct-java", "Stamps are sorted."), draw)
    other["programs"] = [{"language": "java", "verdict": "OK", "code": "class Main {}"}]
    crash = row_of(_reworded(TASKS[6], "peaks-crash", "A ridge is drawn."), draw)
    crash["programs"] = [{"language": "py", "verdict": "OK", "code": f"{READ}print(a[n])\n"}]
    reason = DropReason.NO_SOLUTION.value
    return [
        (wrong, Planted("only_wrong", reason)),
        (other, Planted("other_language", reason)),
        (crash, Planted("only_crashing", reason)),
    ]


_PAIR = """{first} Print the places $i$ and $j$, $i < j$, of two different numbers of the list. \
{said}

Input: the first line holds a whole number $n$, $2 \\le n \\le 50$, the second line $n$ whole numbers between \
-1000 and 1000, not all of them equal. Places count from 1.

Output: two whole numbers."""
_PAIR_BODIES = (
    "print(*next((i + 1, j + 1) for i in range(n) for j in range(i + 1, n) if a[i] != a[j]))",
    "print(*next((i + 1, j + 1) for j in range(n - 1, 0, -1) for i in range(j) if a[i] != a[j]))",
    "i = a.index(max(a))\nj = a.index(min(a))\nprint(min(i, j) + 1, max(i, j) + 1)",
)
_CHECKER = """import sys
given, answer, output = (open(name).read().split() for name in sys.argv[1:4])
values = given[1:]
try:
    i, j = map(int, output)
    print(int(1 <= i < j <= len(values) and values[i - 1] != values[j - 1]))
except ValueError:
    print(0)
"""


def several(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant problems with several right outputs: stated, not stated, with a checker, and drawn by chance."""
    planted_rows = []
    reason = DropReason.SEVERAL_OUTPUTS.value
    cases = (
        ("any-said", "Two beads are compared.", "If there are several such pairs, print any of them.", False, reason),
        ("any-unsaid", "Two flags are swapped.", "", False, reason),
        ("any-checked", "Two boats are raced.", "If there are several such pairs, print any of them.", True, KEEP),
    )
    for key, first, hint, checked, expected in cases:
        row = row_of(TASKS[0], draw)
        inputs = [[1, 2, *draw_values(draw, sizes=(3, 9))] for _ in range(7)]
        wrong = f"{READ}print(2, 1)\n"
        row |= {
            "name": key,
            "text": _PAIR.format(first=first, said=hint),
            "tests": [{"input": text_of(values), "output": "1 2\n"} for values in inputs],
            "programs": [{"language": "py", "verdict": "OK", "code": f"{READ}{body}\n"} for body in _PAIR_BODIES]
            + [{"language": "py", "verdict": "WRONG", "code": wrong}],
            "checker": _CHECKER if checked else None,
        }
        planted_rows.append((row, Planted(key.replace("-", "_"), expected)))
    chance = row_of(TASKS[0], draw)
    shuffle = "import random\nrandom.seed()\nrandom.shuffle(a)\nprint(*a)"
    bodies = (shuffle, f"# again\n{shuffle}", f"# once more\n{shuffle}")
    chance |= {
        "name": "chance",
        "text": "A deck of numbered cards is mixed. Print the numbers in an order drawn by chance.\n\nInput: the first "
        "line holds $n$, $1 \\le n \\le 50$, the second $n$ whole numbers between -1000 and 1000.\n\nOutput: one line.",
        "programs": [{"language": "py", "verdict": "OK", "code": f"{READ}{body}\n"} for body in bodies],
    }
    for test in chance["tests"][:-1]:
        test["input"] = text_of(draw.sample(range(-500, 500), 9))
    planted_rows.append((chance, Planted("by_chance", reason)))
    noisy = row_of(_reworded(TASKS[11], "climb-noisy", "A lift goes up and down."), draw)
    noise = f"{READ}import random\nrandom.seed()\nprint(random.randint(1, 10 ** 9))\n"
    noisy["programs"].append({"language": "py", "verdict": "OK", "code": noise})
    planted_rows.append((noisy, Planted("one_by_chance", KEEP)))
    return planted_rows


def formats(draw: random.Random) -> list[tuple[Row, Planted]]:
    """Plant rows that ask for something else than a program that reads and prints."""
    firsts = ("Bells ring.", "Seeds are sown.", "Trains pass.", "Kites fly.", "Lamps glow.")
    rows = [row_of(_reworded(TASKS[8], f"frequent-{i}", first), draw) for i, first in enumerate(firsts)]
    rows[0]["interaction"] = "Ask for a number with `? i`."
    rows[1]["text"] += "\n\n<img src='seeds.png'>"
    rows[2]["mode"] = "file"
    rows[3]["function"] = "most_frequent"
    rows[4]["pictures"] = 1
    short = row_of(TASKS[8], draw) | {"name": "short", "text": "See title."}
    reasons = (
        DropReason.INTERACTIVE,
        DropReason.MISSING_FIGURE,
        DropReason.NEEDS_FILES,
        DropReason.ASKS_FUNCTION,
        DropReason.MISSING_FIGURE,
    )
    kinds = ("interactive", "picture_mark", "files", "function", "pictures")
    planted_rows = [(row, Planted(kind, reason.value)) for row, kind, reason in zip(rows, kinds, reasons, strict=True)]
    return [*planted_rows, (short, Planted("short", DropReason.MISSING_STATEMENT.value))]
