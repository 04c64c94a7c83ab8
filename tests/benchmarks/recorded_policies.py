"""Recorded attempts of many policies, one by one or several of each policy at a problem.

Two kinds of file are read: JSON lines with ``problem`` or ``id`` and ``correct`` = {policy: 0 or 1} or ``samples`` =
[{model, correct}], a model once or several times; and the ``performances*.json`` of LiveCodeBench's site
(LiveCodeBench/livecodebench.github.io, src/mocks), whose pass rates are of 10 attempts each.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LEAST_ATTEMPTS = 8
"""Attempts of a policy at a problem from which it is a policy of its own, and no member of a tier."""

_LIVECODEBENCH_ATTEMPTS = 10
_PASS_RATES = ("pass@1", "Pass@1-COT")

Row = tuple[str, str, int, int]


def files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold recorded attempts."""
    return sorted([*folder.glob("*.jsonl"), *folder.glob("performances*.json")])


def recorded(path: Path) -> Iterator[Row]:
    """Yield problem, policy, correct and judged of recorded attempts."""
    if path.suffix == ".json":
        yield from _livecodebench(path)
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row: dict[str, Any] = json.loads(line)
            pairs = row["correct"].items() if "correct" in row else ((s["model"], s["correct"]) for s in row["samples"])
            name = str(row["problem"] if "correct" in row else row["id"])
            yield from ((name, str(policy), int(right), 1) for policy, right in pairs)


def _livecodebench(path: Path) -> Iterator[Row]:
    """Yield the rows of one of its files; the n-th row of a model and a question is the question's n-th part."""
    parts: Counter[tuple[str, str]] = Counter()
    for row in json.loads(path.read_text(encoding="utf-8"))["performances"]:
        rate = next((row[key] for key in _PASS_RATES if row.get(key) is not None), None)
        model, name = str(row["model"]), str(row.get("sample_id", row["question_id"]))
        parts[model, name] += 1
        if rate is not None and "n=1" not in model.lower():
            correct = round(rate * _LIVECODEBENCH_ATTEMPTS / 100)
            yield f"{name}#{parts[model, name]}", model, correct, _LIVECODEBENCH_ATTEMPTS


def attempts_by_policy(path: Path, seed: int = 0) -> dict[str, np.ndarray]:
    """Return [problems, attempts] of each policy with equally many attempts, `LEAST_ATTEMPTS` or more, at all problems.

    The attempts at a problem come in an order of their own, problems by name. Empty where there is no such policy.
    """
    made: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for problem, policy, correct, judged in recorded(path):
        made[policy][problem] += [1] * correct + [0] * (judged - correct)
    problems = sorted({problem for of_policy in made.values() for problem in of_policy})
    wide = {policy: rows for policy, rows in made.items() if len(rows) > 0.99 * len(problems)}
    shared = [problem for problem in problems if all(problem in rows for rows in wide.values())]
    rng, found = np.random.default_rng(seed), {}
    for policy, rows in sorted(wide.items()):
        sizes = {len(rows[problem]) for problem in shared}
        if len(sizes) == 1 and min(sizes) >= LEAST_ATTEMPTS:
            found[policy] = np.array([rng.permutation(rows[problem]) for problem in shared])
    return found
