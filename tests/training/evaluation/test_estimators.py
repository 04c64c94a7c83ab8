"""The estimators, against enumeration and by hand."""

from __future__ import annotations

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


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("correct", range(9))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(correct: int, k: int) -> None:
    subsets = list(combinations(range(8), k))
    share = sum(min(subset) < correct for subset in subsets) / len(subsets)
    assert pass_at_k(8, correct, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_is_unbiased() -> None:
    """The mean over all outcomes of n attempts is what k attempts really reach."""
    p, n, k = 0.3, 6, 4
    mean = sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1))
    assert mean == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


def by_enumeration(ballots: list[str | None], k: int) -> float:
    """Vote in every subset of k attempts; "r" is right, None does not vote."""
    won = []
    for subset in combinations(ballots, k):
        counts = Counter(ballot for ballot in subset if ballot is not None)
        top = max(counts.values(), default=0)
        leaders = [ballot for ballot, votes in counts.items() if votes == top]
        won.append(1 / len(leaders) if "r" in leaders else 0.0)
    return statistics.fmean(won)


@pytest.mark.parametrize("right", ["a", "b", "c", "d", "nobody"])
@pytest.mark.parametrize("silent", [0, 2])
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


@pytest.mark.parametrize(("k", "n"), [(0, 4), (5, 4)])
def test_k_beyond_the_attempts_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="between 1 and the number of attempts"):
        pass_at_k(n, 2, k)
    with pytest.raises(ValueError, match="between 1 and the number of attempts"):
        majority_at_k(n, 2, [1], k)


def test_a_paired_interval_is_that_of_the_differences() -> None:
    first, second = [0.0, 0.5, None, 1.0, 0.25], [0.5, 0.5, 1.0, 1.0, 0.5]
    estimate = paired_difference(first, second)
    assert estimate.count == 4
    assert estimate.mean == pytest.approx(0.1875)
    assert estimate.high - estimate.mean == pytest.approx(
        3.182 * statistics.stdev([0.5, 0, 0, 0.25]) / 2
    )  # t of 3 degrees


def test_one_value_tells_no_interval() -> None:
    assert math.isnan(mean_interval([0.5]).low)
    assert mean_interval([]).count == 0
    assert not mean_interval([0.5]).excludes_zero


def test_values_that_are_all_the_same_tell_no_interval_and_no_verdict() -> None:
    """Two problems of which each got better by a half do not prove that a policy did."""
    estimate = paired_difference([0.0, 0.5], [0.5, 1.0])
    assert (estimate.mean, estimate.count) == (0.5, 2)
    assert math.isnan(estimate.low)
    assert not estimate.excludes_zero
    assert not crossed_interval([[0.5, 0.5], [0.5, 0.5]]).excludes_zero
    assert not paired_difference([0.0, 0.25], [0.5, 1.0]).excludes_zero  # two that differ hardly more


def test_an_interval_of_few_problems_holds_the_truth() -> None:
    """Four draws of a normal variable: Student's interval misses in 5 of 100, the normal one in 14."""
    random, held = Random(7), 0
    for _ in range(2000):
        estimate = mean_interval([random.gauss(0, 1) for _ in range(4)])
        held += estimate.low <= 0 <= estimate.high
    assert 0.935 <= held / 2000 <= 0.965


def test_none_of_few_is_not_surely_none() -> None:
    """Of 30 problems none solved: the interval ends where 30 misses have a chance of 2.5 %."""
    estimate = mean_interval([0.0] * 30, 0.0, 1.0)
    assert (estimate.mean, estimate.low) == (0.0, 0.0)
    assert (1 - estimate.high) ** 30 == pytest.approx(0.025)
    assert mean_interval([1.0] * 30, 0.0, 1.0).low == pytest.approx(1 - estimate.high)


def test_a_crossed_interval_covers_both_ways() -> None:
    """Simulated differences with effects of seeds and of problems: the truth lies within in about 95 of 100."""
    random, truth, covered = Random(5), 0.05, 0
    for _ in range(200):
        of_problem = [random.gauss(0, 0.2) for _ in range(40)]
        rows = []
        for _ in range(5):
            of_seed = random.gauss(0, 0.05)
            rows.append([truth + of_seed + one + random.gauss(0, 0.2) for one in of_problem])
        estimate = crossed_interval(rows)
        covered += estimate.low <= truth <= estimate.high
    assert 184 <= covered <= 200
    assert crossed_interval([[0.1, 0.3]]) == mean_interval([0.1, 0.3], -1, 1)
