"""Simulated loops, driven by the real scheduler: who idles, and whether the lengths trained on are those sampled."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.config import CollectorSettings
from training.rollouts.rollout_scheduler import GroupDecision
from training.rollouts.simulation import SimulationCosts, simulate_asynchronous, simulate_synchronous

SIZES = CollectorSettings(group_size=8, n_async=256, n_batch=128)
SMALL = st.builds(
    lambda group, in_batch, places, staleness: CollectorSettings(
        group_size=group,
        n_async=places,
        n_batch=group * in_batch,
        max_staleness=staleness,
    ),
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(0, 5),
)


def spread(seed: int, low: int = 200, high: int = 1000) -> Callable[[], int]:
    """Lengths spread 1:5."""
    chance = random.Random(seed)
    return lambda: chance.randint(low, high)


def heavy(seed: int, group: int) -> Callable[[], int]:
    """Log-normal lengths with a heavy tail; half of the spread belongs to the problem, so whole groups are long."""
    chance = random.Random(seed)
    state = {"drawn": 0, "problem": 0.0}

    def draw() -> int:
        if state["drawn"] % group == 0:
            state["problem"] = chance.gauss(0, 0.5)
        state["drawn"] += 1
        return int(300 * 2.718 ** (state["problem"] + chance.gauss(0, 0.5))) + 1

    return draw


def distance(one: Sequence[int], other: Sequence[int]) -> float:
    """Kolmogorov-Smirnov: the largest difference of the two distribution functions."""
    places = sorted({*one, *other})
    left, right = sorted(one), sorted(other)
    worst, i, j = 0.0, 0, 0
    for place in places:
        while i < len(left) and left[i] <= place:
            i += 1
        while j < len(right) and right[j] <= place:
            j += 1
        worst = max(worst, abs(i / len(left) - j / len(right)))
    return worst


def reference(group: int) -> list[int]:
    draw = heavy(99, group)
    return [draw() for _ in range(40_000)]


def first_finished(draw: Callable[[], int], wave: int, wanted: int, batches: int) -> list[int]:
    """The naive collector: a fresh wave per batch, the first ``wanted`` that finish are trained on, the rest is cut."""
    return [length for _ in range(batches) for length in sorted(draw() for _ in range(wave))[:wanted]]


@pytest.mark.parametrize("staleness", [8, 3])
def test_the_lengths_trained_on_are_those_sampled(staleness: int) -> None:
    sizes = SIZES.model_copy(update={"max_staleness": staleness})
    run = simulate_asynchronous(sizes, heavy(1, 8), batches=250, warmup=20)
    steady = run.trained_lengths[20 * 128 :]
    wanted = reference(8)
    assert distance(steady, wanted) < 0.02
    assert sum(steady) / len(steady) == pytest.approx(sum(wanted) / len(wanted), rel=0.02)
    assert run.ledger.balanced
    assert run.ledger.dropped == {}


def test_a_naive_collector_fails_the_same_check() -> None:
    naive = first_finished(heavy(1, 8), 256, 128, 250)
    wanted = reference(8)
    assert distance(naive, wanted) > 0.3
    assert sum(naive) / len(naive) < 0.6 * sum(wanted) / len(wanted)


def test_generators_hardly_idle_where_the_synchronous_loop_does() -> None:
    sizes = CollectorSettings(group_size=8, n_async=128, n_batch=128)
    tokens = 600 * 128
    costs = SimulationCosts(train_ticks=0.5 * 600 / tokens)  # a step takes half the time that a batch's tokens do
    ours = simulate_asynchronous(sizes, spread(1), batches=80, warmup=10, costs=costs)
    theirs = simulate_synchronous(sizes, spread(1), batches=80, costs=costs)
    assert ours.generator_idle <= 0.05
    assert theirs.generator_idle >= 0.30
    assert ours.ticks < 0.6 * theirs.ticks
    assert (
        simulate_synchronous(sizes, spread(1), batches=80, costs=SimulationCosts(train_ticks=0)).generator_idle >= 0.30
    )


def test_staleness_is_bounded_and_zero_is_synchronous() -> None:
    for bound in (0, 1, 2, 4):
        sizes = CollectorSettings(group_size=8, n_async=128, n_batch=128, max_staleness=bound)
        run = simulate_asynchronous(sizes, heavy(2, 8), batches=40, warmup=5)
        assert max(run.staleness) <= bound
        assert len(run.trained_lengths) == 40 * 128
    theirs = simulate_synchronous(SIZES, spread(3), batches=20)
    ours = simulate_asynchronous(SIZES.model_copy(update={"max_staleness": 0}), spread(3), batches=20, warmup=0)
    assert ours.ticks == pytest.approx(theirs.ticks, rel=0.01)
    assert max(ours.staleness) == 0


@settings(max_examples=60)
@given(SMALL, st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 5.0]))
def test_whatever_the_sizes_nothing_gets_stuck(sizes: CollectorSettings, seed: int, train_ticks: float) -> None:
    costs = SimulationCosts(train_ticks=train_ticks)
    run = simulate_asynchronous(sizes, heavy(seed, sizes.group_size), batches=6, warmup=0, costs=costs)
    assert len(run.trained_lengths) >= 6 * sizes.n_batch
    assert max(run.staleness) <= sizes.max_staleness
    assert run.ledger.balanced


def test_a_slow_trainer_fills_the_queue_and_no_more() -> None:
    costs = SimulationCosts(train_ticks=3 * 600 / (600 * 128))  # three times slower than generation
    run = simulate_asynchronous(SIZES, spread(1), batches=30, warmup=10, costs=costs)
    held = run.ledger.running + run.ledger.judging + run.ledger.waiting + run.ledger.ready
    assert held <= SIZES.max_outstanding
    assert run.trainer_idle < 0.05
    assert run.generator_idle > 0.3
    assert run.ledger.balanced


def test_dropped_groups_are_replaced() -> None:
    """Groups whose first length is even are dropped: batches stay whole, and all is counted."""

    def fate(lengths: Sequence[int]) -> GroupDecision:
        return GroupDecision("no_diversity" if lengths[0] % 2 == 0 else None, (None,) * len(lengths))

    run = simulate_asynchronous(SIZES, spread(5), batches=30, warmup=5, decide_group=fate)
    assert len(run.trained_lengths) == 30 * 128
    assert 0.7 < run.ledger.dropped["no_diversity"] / run.ledger.trained < 1.4
    assert run.generator_idle < 0.05
