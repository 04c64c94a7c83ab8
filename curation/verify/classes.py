"""Classes of equal answers, for votes: who agrees with whom among answers that differ from the reference.

Equality of written answers is not transitive: 50 % is 50 to one reader and 0.5 to another, 5 is 5 cm and 5 km. A class
has a centre, and holds only answers that equal the centre and one another; so a bridge joins one side, never both.

Invariants: the partition depends on the set of answers, not on their order; centres are the answers that most others
equal, among them the shortest, then the first by alphabet; where equality is transitive, the classes are its own. Pure:
the comparison is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

MAX_COUNTED = 64
"""Answers among which it is counted who equals most others, by all pairs. Of more, the shortest are centres."""


def answer_classes(answers: Sequence[str], are_equal: Callable[[str, str], bool]) -> dict[str, int]:
    """Return the class of each answer: 1, 2, … by first appearance in ``answers``.

    Args:
        answers: each once.
        are_equal: asked at most once a pair, the shorter answer first.

    Example: ``answer_classes(["5 km", "5", "5 cm"], …)`` → ``{"5 km": 1, "5": 2, "5 cm": 2}``
    """
    ordered = sorted(answers, key=lambda answer: (len(answer), answer))
    place = {answer: number for number, answer in enumerate(ordered)}
    known: dict[tuple[str, str], bool] = {}

    def equal(one: str, other: str) -> bool:
        pair = (one, other) if place[one] < place[other] else (other, one)
        if pair not in known:
            known[pair] = are_equal(*pair)
        return known[pair]

    if len(ordered) <= MAX_COUNTED:
        equals = dict.fromkeys(ordered, 0)
        for one, other in combinations(ordered, 2):
            if equal(one, other):
                equals[one] += 1
                equals[other] += 1
        ordered.sort(key=lambda answer: -equals[answer])
    classes: list[list[str]] = []
    for answer in ordered:
        home = next((members for members in classes if all(equal(member, answer) for member in members)), None)
        if home is None:
            classes.append([answer])
        else:
            home.append(answer)
    class_of = {answer: number for number, members in enumerate(classes) for answer in members}
    numbers: dict[int, int] = {}
    return {answer: numbers.setdefault(class_of[answer], len(numbers) + 1) for answer in answers}


def keep_classes(before: Sequence[int | None], now: Sequence[int | None]) -> list[int | None]:
    """Return classes of answers that were judged together again: who had one keeps it, others join who is with them.

    Args:
        before: the class that each answer had; None where it had none.
        now: its class among all of them.

    Example: ``keep_classes([1, 2, None, None], [2, 1, 2, 3])`` → ``[1, 2, 1, 3]``
    """
    known = {0: 0}
    for old, new in zip(before, now, strict=True):
        if old and new:
            known.setdefault(new, old)
    highest = max((old for old in before if old is not None), default=0)
    kept: list[int | None] = []
    for old, new in zip(before, now, strict=True):
        if old is None and new is not None and new not in known:
            highest += 1
            known[new] = highest
        kept.append(old if old is not None or new is None else known[new])
    return kept
