"""The curriculum on recorded curves and enumerated cases: where problems go, when something changes, what is drawn."""

import math
import random
from collections import Counter

import pytest

from curation.config import to_plain
from training.rollouts.curriculum.drawing import DrawCounts, draw_problem
from training.rollouts.curriculum.pools import (
    PassCounts,
    PassRateEstimate,
    Pool,
    beta_cdf,
    estimate_pass_rate,
    pool_change,
    uncertain_problems,
)
from training.rollouts.curriculum.settings import CurriculumSettings, PlateauSettings, PoolSettings
from training.rollouts.curriculum.triggers import (
    KVCacheModel,
    activate_deferred,
    adjust_eps_high,
    extend_length,
    shrink_batches,
    trend,
)

POOLS = PoolSettings()
SETTINGS = CurriculumSettings()


@pytest.mark.parametrize(("x", "a", "b", "mass"), [(0.3, 1, 1, 0.3), (0.5, 2, 1, 0.25), (0.1, 1, 3, 1 - 0.9**3)])
def test_beta_distribution(x, a, b, mass):
    assert beta_cdf(x, a, b) == pytest.approx(mass, abs=1e-12)


def test_an_attempt_of_one_half_life_ago_counts_half():
    now = estimate_pass_rate([PassCounts(0, 4, 8), PassCounts(50, 8, 8)], 50, POOLS)
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
        (Pool.RETIRED, 16, 16, None),
        (Pool.DEFERRED, 0, 16, None),
    ],
)
def test_who_moves(pool, correct, judged, new):
    found = pool_change("p", pool, estimate_pass_rate([PassCounts(0, correct, judged)], 0, POOLS), POOLS)
    assert (found.new if found else None) is new
    if found:
        assert found.reason.startswith("pass rate ")


def test_the_least_sure_come_first():
    table = {
        "sure": estimate_pass_rate([PassCounts(0, 8, 16)], 0, POOLS),
        "edge": estimate_pass_rate([PassCounts(0, 14, 16)], 0, POOLS),
        "new": estimate_pass_rate([PassCounts(0, 1, 2)], 0, POOLS),
    }
    assert uncertain_problems(table, POOLS)[0] == "edge"
    assert "sure" not in uncertain_problems(table, POOLS)


def noisy(values, noise=0.01, seed=3):
    """A curve with noise of the given size."""
    draw_noise = random.Random(seed)
    return [value + draw_noise.gauss(0, noise) for value in values]


CLIMB = noisy([0.2 + 0.01 * step for step in range(40)])
PLATEAU = noisy([0.6] * 40)
SLOW_CLIMB = noisy([0.3 + 0.0009 * step for step in range(40)], noise=0.0005)
FALL = noisy([0.6 - 0.01 * step for step in range(40)])


def test_a_straight_line_is_found_exactly():
    found = trend([3.0 + 2.0 * x for x in range(10)], 5)
    assert (found.mean, found.gain) == (pytest.approx(17.0), pytest.approx(8.0))
    assert found.t_value > 1e6
    assert trend([1.0, 2.0], 4) is None


@pytest.mark.parametrize(("curve", "fires"), [(CLIMB, False), (PLATEAU, True), (SLOW_CLIMB, False), (FALL, False)])
def test_harder_problems_come_in_on_a_plateau_only(curve, fires):
    change = activate_deferred(curve, 40, None, active=100, deferred=400, settings=SETTINGS)
    assert (change is not None) is fires
    if change:
        assert (change.setting, change.old, change.new) == ("active", 100, 125)
        assert change.reason.startswith("reward flat: ")


def test_harder_waits_after_a_change_and_stops_when_nothing_is_deferred():
    assert activate_deferred(PLATEAU, 40, 20, 100, 400, SETTINGS) is None
    assert activate_deferred(PLATEAU, 60, 20, 100, 400, SETTINGS) is not None
    assert activate_deferred(PLATEAU, 40, None, 100, 0, SETTINGS) is None
    assert activate_deferred(PLATEAU, 40, None, 100, 3, SETTINGS).new == 103


def test_length_goes_up_the_list_and_stops_at_its_end():
    flat = noisy([9000.0] * 30, noise=50)
    assert extend_length(flat, 30, None, 16_384, SETTINGS).new == 24_576
    assert extend_length(flat, 30, None, 24_576, SETTINGS).new == 32_768
    assert extend_length(flat, 30, None, 32_768, SETTINGS) is None
    growing = noisy([5000.0 + 200 * step for step in range(30)], noise=50)
    assert extend_length(growing, 30, None, 16_384, SETTINGS) is None


def test_concurrency_follows_the_memory_model():
    memory = KVCacheModel(kv_bytes=40e9, bytes_per_token=131_072)
    assert memory.concurrent(16_384) == 18
    assert shrink_batches(16, 8, 8, 16_384, memory) == []
    changes = shrink_batches(64, 32, 8, 16_384, memory)
    assert [(change.setting, change.new) for change in changes] == [("n_async", 16), ("n_batch", 16)]


def test_eps_high_moves_against_the_entropy_within_its_range():
    on = CurriculumSettings(**to_plain({"adapt_eps_high": True}))
    assert adjust_eps_high([0.3], 0.5, 0.27, on).new == pytest.approx(0.275)
    assert adjust_eps_high([0.7], 0.5, 0.27, on).new == pytest.approx(0.265)
    assert adjust_eps_high([0.52], 0.5, 0.27, on) is None
    assert adjust_eps_high([0.3], 0.5, 0.28, on) is None
    assert adjust_eps_high([0.3], 0.5, 0.27, SETTINGS) is None


def test_impossible_settings_are_refused():
    for table in (
        {"length_schedule": [2, 1]},
        {"eps_high_range": [0.3, 0.2]},
        {"pools": {"min_pass_rate": 0.9}},
        {"pools": {"probe_share": 0.4, "retry_share": 0.4}},
    ):
        with pytest.raises(ValueError, match=r"must|impossible|would leave"):
            CurriculumSettings(**to_plain(table))
    assert PlateauSettings().window == 20


def test_no_pool_is_a_dead_end():
    pools = {f"a{i}": Pool.ACTIVE for i in range(10)} | {f"r{i}": Pool.RETIRED for i in range(3)}
    pools |= {f"d{i}": Pool.DEFERRED for i in range(4)}
    drawn = DrawCounts()
    names = [draw_problem(pools, drawn, seed=1, settings=POOLS) for _ in range(1000)]
    kinds = Counter(name[0] for name in names)
    assert kinds == {"a": 931, "d": 49, "r": 20}  # at the thousandth both are due: one waits for the next draw
    assert set(names) == set(pools)
    first = [name for name in names if name[0] == "a"][:10]
    assert len(set(first)) == 10


def test_drawing_goes_on_from_a_checkpoint_as_if_nothing_had_happened():
    pools = {f"p{i}": Pool.ACTIVE for i in range(7)} | {"r": Pool.RETIRED}
    whole, drawn = DrawCounts(), DrawCounts()
    straight = [draw_problem(pools, whole, 5, POOLS) for _ in range(60)]
    half = [draw_problem(pools, drawn, 5, POOLS) for _ in range(25)]
    resumed = DrawCounts(drawn.total, dict(drawn.by_pool))
    assert half + [draw_problem(pools, resumed, 5, POOLS) for _ in range(35)] == straight


def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="no problem in any pool"):
        draw_problem({}, DrawCounts(), 0, POOLS)
    assert draw_problem({"d": Pool.DEFERRED}, DrawCounts(), 0, POOLS) == "d"


def test_estimate_is_a_plain_record():
    assert PassRateEstimate(1.0, 3.0, 0.33, 0.0, 0.0).effective_rollouts == 4.0
    assert math.isclose(estimate_pass_rate([], 0, POOLS).pass_rate, 0.5)
