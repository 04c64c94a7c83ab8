"""Selects which generated tests are kept: enough of them, and beyond that only those that tell solutions apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def select_tests(
    sound: Sequence[int], failing: Mapping[int, frozenset[int]], caught: frozenset[int], have: int, enough: int
) -> list[int]:
    """Return the tests to keep, in their order.

    First those that catch a solution which nothing before them catches, those that catch most first; then others, the
    more solutions fail on them the sooner, until there are ``enough``.

    Args:
        sound: tests on which all voting solutions agree.
        failing: test → solutions known to be wrong that fail on it.
        caught: solutions that fail on a test kept before.
        have: tests kept before.

    Example: ``select_tests([0, 1, 2], {1: frozenset({7})}, frozenset(), 3, 4)`` is ``[1]``
    """
    nobody: frozenset[int] = frozenset()
    selected: list[int] = []
    covered = set(caught)
    remaining = list(sound)
    while remaining:
        best = max(remaining, key=lambda test: (len(failing.get(test, nobody) - covered), -sound.index(test)))
        if not failing.get(best, nobody) - covered:
            break
        selected.append(best)
        remaining.remove(best)
        covered |= failing.get(best, nobody)
    remaining.sort(key=lambda test: -len(failing.get(test, nobody)))
    selected += remaining[: max(0, enough - have - len(selected))]
    return sorted(selected)
