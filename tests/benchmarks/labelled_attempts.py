"""Recorded and simulated attempts with classes of equal answers, and wrong labels planted in them.

A recorded set is a file of JSON lines with ``id``, ``gold`` and ``samples`` = [{model, answer}], as in the shared
data's `attempts`; classes are those of the verifier, and what it takes for wrong and the file calls correct is correct.
Planted labels are an answer that nobody gave, or (a share of them) one that a policy gave: people slip alike.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curation.difficulty.label_votes import VOTES
from curation.verify.math_judge import JudgeTask, MathJudge, Response

NO_ANSWER = re.compile(r"no answer|cannot be|can't be|null|none|indeterminate|^<", re.IGNORECASE)
PLANTED = -2
"""The class of a planted label that nobody gave."""

Answers = dict[str, list[tuple[str, int | None, str]]]
"""By problem: policy, class (0: the reference's) and text of each attempt's answer."""


@dataclass(frozen=True, slots=True)
class PlantedLabels:
    """Which class is each problem's label now, and which labels are wrong."""

    label: Mapping[str, int]
    wrong: frozenset[str]


def recorded(path: Path) -> Answers:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if isinstance(row.get("samples"), list)]
    answers = [[_plain(sample["answer"]) for sample in row["samples"]] for row in rows]
    tasks = (
        JudgeTask(row["id"], _gold(row["gold"]), "en", tuple(Response(None, answer) for answer in given))
        for row, given in zip(rows, answers, strict=True)
    )
    found: Answers = {}
    with MathJudge(workers=1) as judge:
        for row, given, result in zip(rows, answers, judge.judge(tasks), strict=True):
            classes = [verdict.answer_class for verdict in result.verdicts]
            doubted = {verdict.answer_class for verdict in result.verdicts if verdict.is_doubtful}
            models = [str(sample["model"]) for sample in row["samples"]]
            said = {c for c, sample in zip(classes, row["samples"], strict=True) if c and sample.get("correct")}
            classes = [0 if c in said else c for c in classes]
            attempts = zip(models, classes, given, strict=True)
            found[row["id"]] = [(m, c, a or "") for m, c, a in attempts if c == 0 or c is None or c not in doubted]
    return found


def _gold(text: str) -> str:
    return re.split(r"\\\\|\n", str(text))[0].strip() or str(text)


def _plain(answer: str | None) -> str | None:
    """Return an answer without the debris of a cut-off JSON object; None where it says that there is none."""
    text = re.sub(r'^"?answer"?\s*:\s*|["}\s]+$|^"', "", str(answer or "")).strip().strip('"')
    return None if not text or NO_ANSWER.search(text) else text


def simulated(
    problems: int,
    abilities: Mapping[str, float],
    attempts: int,
    seed: int,
    repeats: tuple[float, float] = (1.0, 2.0),
) -> Answers:
    """Return answers of policies whose errors are systematic: each has an error of its own at a problem, to which it
    holds with a share of Beta(repeats); on a fifth of the hard problems this is the same error for all."""
    rng = np.random.default_rng(seed)
    found: Answers = {}
    for number in range(problems):
        difficulty, shared = rng.normal(0, 2.0), rng.random() < 0.2
        rows: list[tuple[str, int | None, str]] = []
        for place, (name, ability) in enumerate(abilities.items()):
            rate = 1 / (1 + np.exp(difficulty - ability))
            rate = rng.beta(rate * 3, (1 - rate) * 3)
            trap, hold = 1 if shared else 2 + place, rng.beta(*repeats)
            for _ in range(attempts):
                slip = trap if rng.random() < hold else int(rng.integers(20, 60))
                answer = 0 if rng.random() < rate else slip
                rows.append((name, answer, str(answer)))
        found[f"p{number:05}"] = rows
    return found


def plant(answers: Answers, share: float, seed: int, given: float = 0.3) -> PlantedLabels:
    """Plant wrong labels; ``given`` of them are an answer that somebody gave, where there is one."""
    rng = random.Random(seed)
    names = sorted(answers)
    wrong = frozenset(rng.sample(names, round(share * len(names))))
    label = dict.fromkeys(names, 0)
    for name in sorted(wrong):
        others = [answer for _, answer, _ in answers[name] if answer]
        label[name] = rng.choice(others) if others and rng.random() < given else PLANTED
    return PlantedLabels(label, wrong)


def votes_of(answers: Answers, planted: PlantedLabels) -> pl.DataFrame:
    """Return the answers as `VOTES` against the labels as they are now; the class of the right answer is 1."""
    rows = []
    for name, attempts in answers.items():
        label = planted.label[name]
        numbers = {label: 0, 0: 1} if label else {0: 0}
        counts: Counter[tuple[str, int | None]] = Counter()
        for policy, answer, _ in attempts:
            counts[policy, None if answer is None else numbers.setdefault(answer, len(numbers))] += 1
        rows += [(name, policy, answer, votes) for (policy, answer), votes in counts.items()]
    return pl.DataFrame(rows, schema=VOTES, orient="row")
