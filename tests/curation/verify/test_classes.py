"""Classes of answers: by a centre, whatever the order, and without bridges; by properties and by the judge."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.verify.classes import answer_classes, keep_classes
from curation.verify.math_judge import JudgeTask, MathJudge, Response

ANSWERS = st.lists(st.integers(0, 9).map(str), unique=True, max_size=9)
PAIRS = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: tuple(sorted(map(str, pair)))))


def grouped(classes: dict[str, int]) -> set[frozenset[str]]:
    return {frozenset(one for one in classes if classes[one] == number) for number in classes.values()}


@given(ANSWERS, PAIRS, st.randoms())
def test_a_class_holds_equals_only_whatever_the_order(
    answers: list[str], pairs: set[tuple[str, str]], dice: random.Random
) -> None:
    def are_equal(one: str, other: str) -> bool:
        return tuple(sorted((one, other))) in pairs

    classes = answer_classes(answers, are_equal)
    parts = grouped(classes)
    assert list(classes) == answers
    assert all(are_equal(*two) for part in parts for two in combinations(part, 2)), "no bridge"
    for one, two in combinations(parts, 2):  # of two classes that could be one, some pair differs
        assert any(not are_equal(left, right) for left in one for right in two)
    shuffled = answers.copy()
    dice.shuffle(shuffled)
    assert grouped(answer_classes(shuffled, are_equal)) == parts
    numbers = [classes[answer] for answer in answers]
    assert list(dict.fromkeys(numbers)) == list(range(1, len(parts) + 1)), "by first appearance"


@pytest.mark.parametrize(
    ("answers", "apart"),
    [
        (("0.5", r"50\%", "50"), ("0.5", "50")),
        (("5 km", "5", "5 cm"), ("5 km", "5 cm")),
    ],
)
def test_a_bridge_joins_one_side_only(answers: tuple[str, ...], apart: tuple[str, str]) -> None:
    parts = set()
    with MathJudge(workers=1) as judge:
        for order in (answers, answers[::-1], (answers[1], answers[0], answers[2])):
            task = JudgeTask("p", "77", "en", tuple(Response(None, answer) for answer in order))
            (result,) = judge.judge([task])
            classes = dict(zip(order, (verdict.answer_class for verdict in result.verdicts), strict=True))
            assert classes[apart[0]] != classes[apart[1]]
            parts.add(frozenset(frozenset(one for one in order if classes[one] == n) for n in classes.values()))
    assert len(parts) == 1, "whatever the order"


def test_a_centre_is_who_most_others_equal() -> None:
    """C equals one of five writings of an integral; it takes none of them from the others."""
    equal = {frozenset(pair) for pair in combinations(["F1+C", "F22+C", "F333+C", "F4444+C"], 2)} | {
        frozenset(("C", "F1+C"))
    }
    classes = answer_classes(["C", "F22+C", "F1+C", "F4444+C", "F333+C"], lambda one, other: {one, other} in equal)
    assert classes == {"C": 1, "F22+C": 2, "F1+C": 2, "F4444+C": 2, "F333+C": 2}
    many = [str(number) for number in range(200)]
    assert len(set(answer_classes(many, lambda one, other: int(one) % 9 == int(other) % 9).values())) == 9


def test_classes_are_kept_when_more_answers_come() -> None:
    assert keep_classes([1, 2, None, None], [2, 1, 2, 3]) == [1, 2, 1, 3]
    assert keep_classes([None, 0, None], [0, 0, None]) == [0, 0, None]
    assert keep_classes([1, 1, 2, None, None], [1, 2, 3, 2, 4]) == [1, 1, 2, 1, 3], "none joins another's class"
