"""Limits of servers against a simulated server: so many places, a queue behind them, a clock of its own."""

from __future__ import annotations

import heapq

from curation.policies.servers import FIRST_LIMIT, AdaptiveLimit


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
        limit.answered(1000, seconds, now, outstanding)
        outstanding -= 1
        seen.append(limit.value)
    return seen


def test_a_healthy_server_gets_its_cap_from_the_first_request_on() -> None:
    assert set(simulated(AdaptiveLimit(64), 64, 2000)) == {64}


def test_refusals_halve_the_limit_once_a_round_and_it_grows_back_to_its_cap() -> None:
    limit = AdaptiveLimit(64)
    limit.answered(1000, 2.0, 0.0, 64)
    for now in (0.0, 0.5, 1.9):
        limit.refused(now)
    assert limit.value == 32
    limit.refused(2.1)
    assert limit.value == 16
    assert simulated(limit, 64, 4000)[-1] == 64


def test_a_server_that_refuses_more_than_it_bears_is_asked_for_about_as_much() -> None:
    seen = simulated(AdaptiveLimit(1000), 10_000, 20_000, most=100)
    later = seen[10_000:]
    assert max(later) <= 101
    assert sum(later) / len(later) > 60  # AIMD's saw: between half and all of it


def test_a_server_that_nobody_knows_is_probed_up_to_what_it_bears() -> None:
    wide, narrow = (simulated(AdaptiveLimit(1024, probes=True), places, 60_000) for places in (400, 8))
    assert wide[0] <= FIRST_LIMIT + 1
    assert sum(wide[-5000:]) / 5000 > 300  # less leaves places empty
    assert max(narrow) < 100  # more only makes each answer late
    assert AdaptiveLimit(4, probes=True).value == 4


def test_a_limit_is_never_below_one() -> None:
    limit = AdaptiveLimit(2)
    for now in range(10):
        limit.refused(float(now))
    assert limit.value == 1
