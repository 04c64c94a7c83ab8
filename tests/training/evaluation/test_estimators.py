"""The estimators, against enumeration and by hand."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from itertools import combinations
from random import Random

import pytest

from training.evaluation.estimators import (
    crossed_interval,
    majority_at_k,
    mean_interval,
    paired_difference,
    pass_at_k,
)


def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one() -> None:
    for correct, k in itertools.product(range(7), range(1, 7)):
        subsets = list(combinations(range(6), k))
        share = sum(min(subset) < correct for subset in subsets) / len(subsets)
        assert pass_at_k(6, correct, k) == pytest.approx(share, abs=1e-12)


def by_enumeration(ballots: list[str | None], k: int) -> float:
    """Vote in every subset of k attempts; "r" is right, None does not vote."""
    won = []
    for subset in combinations(ballots, k):
        counts = Counter(ballot for ballot in subset if ballot is not None)
        top = max(counts.values(), default=0)
        leaders = [ballot for ballot, votes in counts.items() if votes == top]
        won.append(1 / len(leaders) if "r" in leaders else 0.0)
    return statistics.fmean(won)


@pytest.mark.parametrize(("right", "silent"), [("a", 0), ("b", 2), ("nobody", 2)])
def test_majority_against_enumeration(right: str, silent: int) -> None:
    votes = {"a": 3, "b": 2, "c": 2, "d": 1}
    ballots = ["r" if name == right else name for name, count in votes.items() for _ in range(count)] + [None] * silent
    rivals = [count for name, count in votes.items() if name != right]
    for k in range(1, len(ballots) + 1):
        exact = majority_at_k(len(ballots), votes.get(right, 0), rivals, k)
        assert exact == pytest.approx(by_enumeration(ballots, k), abs=1e-12)


def test_majority_of_all_is_the_plain_vote_and_of_one_is_pass_at_1() -> None:
    assert majority_at_k(64, 20, [19, 19, 6], 64) == 1.0
    assert majority_at_k(64, 20, [20, 20, 4], 64) == pytest.approx(1 / 3)
    assert majority_at_k(64, 20, [21, 20, 3], 64) == 0.0
    assert majority_at_k(64, 20, [1] * 44, 1) == pytest.approx(20 / 64)


def test_k_beyond_the_attempts_is_refused() -> None:
    for k in (0, 5):
        with pytest.raises(ValueError, match="between 1 and the number of attempts"):
            pass_at_k(4, 2, k)
        with pytest.raises(ValueError, match="between 1 and the number of attempts"):
            majority_at_k(4, 2, [1], k)


def test_a_paired_interval_is_that_of_the_differences() -> None:
    first, second = [0.0, 0.5, None, 1.0, 0.25], [0.5, 0.5, 1.0, 1.0, 0.5]
    estimate = paired_difference(first, second)
    assert estimate.count == 4
    assert estimate.mean == pytest.approx(0.1875)
    assert estimate.high - estimate.mean == pytest.approx(
        3.182 * statistics.stdev([0.5, 0, 0, 0.25]) / 2
    )  # t of 3 degrees


def test_values_that_are_all_the_same_tell_no_interval_and_no_verdict() -> None:
    """Two problems of which each got better by a half do not prove that a policy did."""
    estimate = paired_difference([0.0, 0.5], [0.5, 1.0])
    assert (estimate.mean, estimate.count) == (0.5, 2)
    assert math.isnan(estimate.low)
    assert not estimate.excludes_zero
    assert math.isnan(mean_interval([0.5]).low)
    assert mean_interval([]).count == 0
    assert not crossed_interval([[0.5, 0.5], [0.5, 0.5]]).excludes_zero
    assert not paired_difference([0.0, 0.25], [0.5, 1.0]).excludes_zero  # two that differ hardly more


def test_none_of_few_is_not_surely_none() -> None:
    """Of 30 problems none solved: the interval ends where 30 misses have a chance of 2.5 %."""
    estimate = mean_interval([0.0] * 30, 0.0, 1.0)
    assert (estimate.mean, estimate.low) == (0.0, 0.0)
    assert (1 - estimate.high) ** 30 == pytest.approx(0.025)
    assert mean_interval([1.0] * 30, 0.0, 1.0).low == pytest.approx(1 - estimate.high)


def test_a_crossed_interval_covers_both_ways() -> None:
    """Simulated differences with effects of seeds and of problems: the truth lies within in about 95 of 100."""
    random, truth, covered = Random(5), 0.05, 0
    for _ in range(100):
        of_problem = [random.gauss(0, 0.2) for _ in range(40)]
        rows = []
        for _ in range(5):
            of_seed = random.gauss(0, 0.05)
            rows.append([truth + of_seed + one + random.gauss(0, 0.2) for one in of_problem])
        estimate = crossed_interval(rows)
        covered += estimate.low <= truth <= estimate.high
    assert 90 <= covered <= 100
    assert crossed_interval([[0.1, 0.3]]) == mean_interval([0.1, 0.3], -1, 1)
