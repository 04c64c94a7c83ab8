"""Groups equal answers into classes.

Invariants: the order of answers does not count; all answers of a class are equal, although equality is not transitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

MAX_COUNTED = 64
"""Max answers to sort by the number of answers they equal; more are sorted by length alone."""


def answer_classes(answers: Sequence[str], are_equal: Callable[[str, str], bool]) -> dict[str, int]:
    """Return each distinct answer's class: 1, 2, … by first appearance.

    Args:
        are_equal: called at most once per pair, with the shorter answer first.

    Example: ``answer_classes(["5 km", "5", "5 cm"], …)`` → ``{"5 km": 1, "5": 2, "5 cm": 2}``
    """
    ordered = sorted(answers, key=lambda answer: (len(answer), answer))
    rank = {answer: number for number, answer in enumerate(ordered)}
    known: dict[tuple[str, str], bool] = {}

    def equal(first: str, second: str) -> bool:
        pair = (first, second) if rank[first] < rank[second] else (second, first)
        if pair not in known:
            known[pair] = are_equal(*pair)
        return known[pair]

    if len(ordered) <= MAX_COUNTED:
        equals = dict.fromkeys(ordered, 0)
        for first, second in combinations(ordered, 2):
            if equal(first, second):
                equals[first] += 1
                equals[second] += 1
        ordered.sort(key=lambda answer: -equals[answer])
    classes: list[list[str]] = []
    for answer in ordered:
        group = next((members for members in classes if all(equal(member, answer) for member in members)), None)
        if group is None:
            classes.append([answer])
        else:
            group.append(answer)
    class_of = {answer: number for number, members in enumerate(classes) for answer in members}
    numbers: dict[int, int] = {}
    return {answer: numbers.setdefault(class_of[answer], len(numbers) + 1) for answer in answers}


def keep_classes(before: Sequence[int | None], now: Sequence[int | None]) -> list[int | None]:
    """Return new classes with the numbers of old ones kept.

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
