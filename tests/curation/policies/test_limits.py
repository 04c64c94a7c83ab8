"""Limits of servers against a simulated server: so many places, a queue behind them, a clock of its own."""

from __future__ import annotations

import heapq

from curation.policies.servers import AdaptiveLimit


def simulated(limit: AdaptiveLimit, places: int, rounds: int, most: int | None = None) -> list[int]:
    """Limits over time: each request takes a second of one of the places, and is refused where more than ``most`` come.

    A place that is shared by k requests takes k seconds, as a batch of a saturated GPU does.
    """
    now, outstanding, seen = 0.0, 0, []
    ends: list[tuple[float, float]] = []
    for _ in range(rounds):
        while outstanding < limit.value:
            if most is not None and outstanding >= most:
                limit.refused(now)
                break
            outstanding += 1
            seconds = max(1.0, outstanding / places)
            heapq.heappush(ends, (now + seconds, seconds))
        now, seconds = heapq.heappop(ends)
        limit.answered(seconds, outstanding)
        outstanding -= 1
        seen.append(limit.value)
    return seen


def test_many_refusals_halve_the_limit_once_a_round_and_it_grows_back_to_its_cap() -> None:
    limit = AdaptiveLimit(64)
    limit.answered(2.0, 64)
    assert [limit.refused(0.0) for _ in range(16)] == [*[False] * 15, True]  # a quarter of a window is overload
    assert limit.value == 32
    assert all(limit.refused(now) for now in (0.0, 0.5, 1.9))
    assert limit.value == 32
    assert [limit.refused(2.1) for _ in range(8)] == [*[False] * 7, True]
    assert limit.value == 16
    assert simulated(limit, 64, 4000)[-1] == 64


def test_a_server_that_refuses_more_than_it_bears_is_asked_for_about_as_much() -> None:
    seen = simulated(AdaptiveLimit(1000), 10_000, 20_000, most=100)
    later = seen[10_000:]
    assert max(later) <= 101
    assert sum(later) / len(later) > 60  # AIMD's saw: between half and all of it
