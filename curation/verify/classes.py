"""Groups equal answers into classes.

Invariants: independent of order; all answers of a class equal one another, although equality is not transitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

MAX_COUNTED = 64
"""Max answers to sort by how many others they equal; beyond, the shortest come first."""


def answer_classes(answers: Sequence[str], are_equal: Callable[[str, str], bool]) -> dict[str, int]:
    """Return each distinct answer's class: 1, 2, … by first appearance.

    Args:
        are_equal: called at most once per pair, with the shorter answer first.

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
    """Return new classes that keep the numbers of old ones.

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
