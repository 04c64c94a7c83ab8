"""A family of problems with rungs, and a model to which the upper ones are out of reach at first.

A rung is a sum of so many terms. The model is shown how to work such a sum out, and ever more rarely the longer it is;
else it guesses. So it can do all of them and hardly ever does the long ones, and what it learns on one rung (to work a
sum out) helps on the next: the case for which problems are asked again after training. Held out is by computation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

from tests.embedded_model.make import train_embedded_model
from training.embedded_model.problems import HELD_OUT_SHARE, Exercise, Split
from training.optimisation.model import save_model

WORKED_SHARE: Mapping[int, float] = {
    3: 0.6, 4: 0.45, 5: 0.3, 6: 0.18, 7: 0.1, 8: 0.05, 9: 0.025, 10: 0.012, 11: 0.006, 12: 0.003
}  # fmt: skip
"""Share of worked solutions among those shown, by the number of terms."""


def chains(seed: int, split: Split, *, repeats: bool = False) -> Iterator[Exercise]:
    """Yield sums of three to twelve terms, all lengths alike often, none twice unless ``repeats``, without end."""
    random, used = Random(seed), set[str]()
    while True:
        length = min(WORKED_SHARE) + random.randrange(len(WORKED_SHARE))
        terms = [2 + random.randrange(8) for _ in range(length)]
        statement, name = f"What is {' + '.join(map(str, terms))}?", "+".join(map(str, sorted(terms)))
        point = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) / 2**64
        if (point < HELD_OUT_SHARE) is (split is Split.TRAIN) or (statement in used and not repeats):
            continue
        used.add(statement)
        operands = {str(at): term for at, term in enumerate(terms)}
        yield Exercise(statement, "chain", length, "en", operands, sum(terms), name)


def worked_sum(exercise: Exercise) -> str:
    """Return the notes of someone who adds up one term after the other, as ``3+5=8;8+2=10``."""
    terms = list(exercise.operands.values())
    sums = [sum(terms[: at + 1]) for at in range(len(terms))]
    return ";".join(f"{a}+{b}={c}" for a, b, c in zip(sums[:-1], terms[1:], sums[1:], strict=True))


def response(thoughts: str, answer: int) -> str:
    return f"<think>{thoughts}</think>The answer is \\boxed{{{answer}}}."


def demonstrations(seed: int) -> Iterator[tuple[str, str]]:
    random = Random(seed + 1)
    for exercise in chains(seed, Split.TRAIN, repeats=True):
        answer = exercise.answer
        if random.random() < WORKED_SHARE[exercise.level]:
            thoughts = worked_sum(exercise)
        else:
            answer += (1 if random.random() < 0.5 else -1) * (3 + random.randrange(max(10, answer // 3)))
            thoughts = f"About {answer}."
        yield exercise.statement, response(thoughts, answer)


def ladder_model(folder: Path) -> Path:
    """Return the folder of the family's model; minutes the first time."""
    if not folder.exists():
        model, tokenizer = train_embedded_model(demonstrations)
        save_model(model, tokenizer, folder)
    return folder
