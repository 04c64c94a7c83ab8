"""Which of the made tests are kept: enough of them, and beyond that only those that tell solutions apart."""

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

    Example: ``chosen([0, 1, 2], {1: frozenset({7})}, frozenset(), 3, 4)`` is ``[1]``
    """
    nobody: frozenset[int] = frozenset()
    kept: list[int] = []
    known = set(caught)
    left = list(sound)
    while left:
        best = max(left, key=lambda test: (len(failing.get(test, nobody) - known), -sound.index(test)))
        if not failing.get(best, nobody) - known:
            break
        kept.append(best)
        left.remove(best)
        known |= failing.get(best, nobody)
    left.sort(key=lambda test: -len(failing.get(test, nobody)))
    kept += left[: max(0, enough - have - len(kept))]
    return sorted(kept)
