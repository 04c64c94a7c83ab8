"""The curriculum on recorded curves and enumerated cases: where problems go, when something changes, what is drawn."""

import random
from collections import Counter

import pytest

from training.rollouts.curriculum.drawing import DrawCounts, draw_from_pools
from training.rollouts.curriculum.pools import (
    PassCounts,
    Pool,
    estimate_pass_rate,
    pool_change,
)
from training.rollouts.curriculum.triggers import TrainingCurves, activate_deferred, length_plateau


def test_an_attempt_of_one_half_life_ago_counts_half():
    assert estimate_pass_rate([], 0).pass_rate == pytest.approx(0.5)
    now = estimate_pass_rate([PassCounts(0, 4, 8), PassCounts(50, 8, 8)], 50)
    assert (now.correct, now.wrong) == (10.0, 2.0)
    assert now.pass_rate == pytest.approx(11 / 14)


@pytest.mark.parametrize(
    ("pool", "correct", "judged", "new"),
    [
        (Pool.ACTIVE, 16, 16, Pool.RETIRED),
        (Pool.ACTIVE, 14, 16, None),  # on the edge: it stays
        (Pool.ACTIVE, 0, 32, Pool.DEFERRED),
        (Pool.ACTIVE, 0, 2, None),  # too few attempts to say anything
        (Pool.DEFERRED, 5, 16, Pool.ACTIVE),
        (Pool.RETIRED, 8, 16, Pool.ACTIVE),
        (Pool.DEFERRED, 0, 16, None),
    ],
)
def test_who_moves(pool, correct, judged, new):
    found = pool_change("p", pool, estimate_pass_rate([PassCounts(0, correct, judged)], 0))
    assert (found.new if found else None) is new


def noisy(values, noise=0.01, seed=3):
    """A curve with noise of the given size."""
    draw_noise = random.Random(seed)
    return [value + draw_noise.gauss(0, noise) for value in values]


def curves(reward=(), length=(), pass_rate=0.5, limited=0.2):
    steps = max(len(reward), len(length))
    return TrainingCurves(list(reward), list(length), [pass_rate] * steps, [limited] * steps)


PLATEAU = noisy([0.6] * 40)
SLOW_CLIMB = noisy([0.3 + 0.0009 * step for step in range(40)], noise=0.0005)
FALL = noisy([0.6 - 0.01 * step for step in range(40)])


@pytest.mark.parametrize(("curve", "fires"), [(PLATEAU, True), (SLOW_CLIMB, False), (FALL, False)])
def test_harder_problems_come_in_on_a_plateau_only(curve, fires):
    change = activate_deferred(curves(curve), 0.05, 40, None, active=100, deferred=400)
    assert (change is not None) is fires
    if change:
        assert (change.setting, change.old, change.new) == ("active", 100, 125)
        assert change.reason.startswith("reward flat: ")


def test_harder_waits_after_a_change_at_the_floor_and_when_nothing_is_deferred():
    assert activate_deferred(curves(PLATEAU), 0.05, 40, 20, 100, 400) is None
    assert activate_deferred(curves(PLATEAU), 0.05, 60, 20, 100, 400) is not None
    assert activate_deferred(curves(PLATEAU), 0.05, 40, None, 100, 0) is None
    assert activate_deferred(curves(PLATEAU), 0.05, 40, None, 100, 3).new == 103
    floor = curves(noisy([0.1] * 40), pass_rate=0.02)
    assert activate_deferred(floor, 0.05, 40, None, active=100, deferred=400) is None


def test_a_length_is_flat_by_its_share_of_the_mean():
    flat = noisy([9000.0] * 30, noise=50)
    assert length_plateau(curves(length=flat)) is not None
    assert length_plateau(curves(length=flat, limited=0.01)) is None  # the limit does not cause it
    assert length_plateau(curves(length=noisy([5000.0 + 200 * step for step in range(30)], noise=50))) is None
    assert length_plateau(curves(length=[9000.0] * 3)) is None


def members(pools):
    """The problems of each pool."""
    return {pool: sorted(name for name, one in pools.items() if one is pool) for pool in Pool}


def test_no_pool_is_a_dead_end():
    pools = {f"a{i}": Pool.ACTIVE for i in range(10)} | {f"r{i}": Pool.RETIRED for i in range(3)}
    pools |= {f"d{i}": Pool.DEFERRED for i in range(4)}
    drawn = DrawCounts()
    names = [draw_from_pools(members(pools), drawn, seed=1) for _ in range(1000)]
    kinds = Counter(name[0] for name in names)
    assert kinds == {"a": 931, "d": 49, "r": 20}  # at the thousandth both are due: one waits for the next draw
    assert set(names) == set(pools)
    first = [name for name in names if name[0] == "a"][:10]
    assert len(set(first)) == 10
