"""Selects which generated tests are kept: those that tell solutions apart, and others of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TIMES = 3
"""Tests that should fail a known wrong solution: others fail in like ways, not always on the same input."""


def select_tests(
    sound: Sequence[int],
    failing: Mapping[int, frozenset[int]],
    caught: Mapping[int, int],
    room: int,
    fill: int,
    *,
    kinds: Mapping[int, tuple[str, ...]] | None = None,
    answers: Mapping[int, bytes] | None = None,
) -> list[int]:
    """Return the tests to keep, at most ``room``, in their order.

    First those that catch a solution which none before them catches, a real one before mutants, so that none is lost
    for want of room; then those that catch one which few catch, those that catch most first; then others up to
    ``fill`` in all, each kind of input in turn, the more solutions fail on them the sooner; one whose answer none of
    those kept has comes a turn earlier.

    Args:
        sound: tests on which all voting solutions agree.
        failing: test → solutions known to be wrong that fail on it; numbers below 0 are mutants.
        caught: how often each solution fails on a test kept before.
        kinds: what kinds of input each test is of.
        answers: what tells the right answers apart, by test.

    Example: ``select_tests([0, 1, 2], {1: frozenset({7})}, {}, 2, 1)`` is ``[1]``
    """
    nobody: frozenset[int] = frozenset()
    selected: list[int] = []
    times = dict(caught)
    remaining = list(sound)

    def gain(test: int) -> tuple[int, int, float, int]:
        fails = failing.get(test, nobody)
        new = [s for s in fails if not times.get(s, 0)]
        more = sum(1 / (1 + times.get(s, 0)) for s in fails if times.get(s, 0) < TIMES)
        return sum(s >= 0 for s in new), len(new), more, -test

    def take(test: int) -> None:
        selected.append(test)
        remaining.remove(test)
        for solution in failing.get(test, nobody):
            times[solution] = times.get(solution, 0) + 1

    while remaining and len(selected) < room:
        best = max(remaining, key=gain)
        if not gain(best)[2]:
            break
        take(best)
    used: dict[str, int] = {}
    nothing = ("",)
    kind_of, answer_of = kinds or {}, answers or {}
    answered = {answer_of.get(test) for test in selected}

    def turn(test: int) -> tuple[int, int, int]:
        turns = sum(used.get(kind, 0) for kind in kind_of.get(test, nothing)) + (answer_of.get(test) in answered)
        return turns, -len(failing.get(test, nobody)), test

    while remaining and len(selected) < min(room, fill):
        best = min(remaining, key=turn)
        answered.add(answer_of.get(best))
        for kind in kind_of.get(best, nothing):
            used[kind] = used.get(kind, 0) + 1
        take(best)
    return sorted(selected)
