"""Disputed labels argued before scripted judges: the share of suspicions that are resolved rightly.

    .venv/bin/python -m tests.benchmarks.bench_debates [--problems 400] [--rounds 1]

A problem is a sum of three steps. Half of the references are planted wrong and the rival is right; the others are right
and suspected wrongly. A wrong answer comes of one slip in one step. Scripted speakers list the steps that lead to their
answer, so that whoever argues for the wrong one states one false sum.

Scripted judges: `solves .6` sums the problem itself and is right in .6 of the cases, deaf to speeches; `checks .9`
takes each stated sum for false in .9 of the cases where it is, and in .05 where it is not, and solves by itself with .6
where that tells the sides not apart; `last` believes who spoke last, `longer` who said more.

With 0 rounds the judge decides alone. Rightly: the score is on the right answer's side of
1/2, ties half. Sure: the score is .8 or more for an answer; of these the share that is right.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from curation.questions.debates import Debate
from curation.records import PromptRequest
from tests.curation.questions.test_debates import argued_by, heard, score_by
from training.evaluation.estimators import mean_interval

SURE = 0.8


@dataclass(frozen=True, slots=True)
class Case:
    """A planted dispute: the reference and its rival, of which one is ``right``."""

    statement: str
    reference: int
    rival: int
    right: int


def cases(count: int, seed: int = 0) -> Iterator[Case]:
    """Yield disputes, every other one with a wrong reference."""
    rng, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        first, second, third, fourth = (rng.randint(11, 89) for _ in range(4))
        statement = f"What is {first} + {second} + {third} + {fourth}?"
        if statement in seen:
            continue
        right, slip = first + second + third + fourth, rng.choice([-20, -10, -2, -1, 1, 2, 10, 20])
        wrong_reference = len(seen) % 2 == 0
        seen.add(statement)
        answers = (right + slip, right) if wrong_reference else (right, right + slip)
        yield Case(statement, *answers, right)


def speech(request: PromptRequest) -> str:
    """Argue for an answer by its steps; a wrong one slips in a step that the text of the request chooses."""
    problem, mine = (
        re.search(r"What is ([\d +]+)\?", request.statement),
        re.search(r"Your answer:\n\n> (\d+)", request.statement),
    )
    assert problem is not None
    assert mine is not None
    numbers = [int(number) for number in problem[1].split("+")]
    slip = int(mine[1]) - sum(numbers)
    slips_at = int(hashlib.blake2b(problem[1].encode()).hexdigest(), 16) % (len(numbers) - 1)
    total, steps = numbers[0], []
    for place, number in enumerate(numbers[1:]):
        after = total + number + (slip if place == slips_at else 0)
        steps.append(f"{total} + {number} = {after}.")
        total = after
    tail = " Every step can be checked, and there is no other way to read the problem." if slip else ""
    return f"{' '.join(steps)} So my answer {total} is right.{tail}"


def chance(*parts: object) -> float:
    """Return a number below 1 that is always the same for the same parts."""
    return int(hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest(), 16) / 2**48


def solves(request: PromptRequest) -> str:
    """Give the letter of the right answer in .6 of the problems, that of the other one in the rest."""
    answers: dict[str, int] = {
        letter: int(text) for letter, text in re.findall(r"Answer ([AB]):\n\n> (\d+)", request.statement)
    }
    problem = re.search(r"What is ([\d +]+)\?", request.statement)
    assert problem is not None
    right = sum(int(number) for number in problem[1].split("+"))
    is_able = chance("solves", problem[1]) < 0.6
    return next(letter for letter, answer in answers.items() if (answer == right) is is_able)


def checks(request: PromptRequest) -> str:
    """Give the letter of the side of which fewer sums seem false; its own solution where that is no difference."""
    doubts = dict.fromkeys("AB", 0)
    for letter, text in heard(request):
        for one, two, result in set(re.findall(r"(\d+) \+ (\d+) = (\d+)", text)):
            is_false = int(one) + int(two) != int(result)
            doubts[letter] += chance("sum", one, two, result) < (0.9 if is_false else 0.05)
    return solves(request) if doubts["A"] == doubts["B"] else min(("A", "B"), key=lambda letter: doubts[letter])


def last(request: PromptRequest) -> str:
    """Give the letter of who spoke last."""
    return heard(request)[-1][0] if heard(request) else "A"


def longer(request: PromptRequest) -> str:
    """Give the letter of who said more."""
    lengths = dict.fromkeys("AB", 0)
    for letter, text in heard(request):
        lengths[letter] += len(text)
    return max(("A", "B"), key=lambda letter: lengths[letter])


JUDGES: dict[str, Callable[[PromptRequest], str]] = {
    "solves .6": solves,
    "checks .9": checks,
    "last": last,
    "longer": longer,
}


def row(name: str, rounds: int, scores: Sequence[float]) -> str:
    """Return a line of the table, of the probabilities of the right answers."""
    rightly = [0.5 if abs(score - 0.5) < 1e-9 else float(score > 0.5) for score in scores]
    sure = [score > 0.5 for score in scores if max(score, 1 - score) >= SURE]
    within = mean_interval(rightly, 0.0, 1.0)
    precision = f"{sum(sure) / len(sure):.2f}" if sure else "none"
    mean = sum(scores) / len(scores)
    return (
        f"| {name} | {rounds} | {within.mean:.2f} ({within.low:.2f} to {within.high:.2f}) | {mean:.2f} | "
        f"{len(sure) / len(scores):.2f}: {precision} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    print("| judge | rounds | rightly resolved (95 %) | mean probability of the right answer | sure: right |")
    print("|---|---|---|---|---|")
    planted = list(cases(options.problems))
    for name, judge in JUDGES.items():
        for rounds in (0, options.rounds):
            scores = []
            for case in planted:
                answers = str(case.reference), str(case.rival)
                debate = argued_by(Debate("", case.statement, "en", answers), rounds, speech)
                assert debate is not None
                score = score_by(debate, lambda request, judge=judge: f"VERDICT: {judge(request)}")  # type: ignore[misc]
                assert score is not None
                scores.append(score if case.reference == case.right else 1 - score)
            print(row(name, rounds, scores), flush=True)


if __name__ == "__main__":
    main()
