"""Who idles: the asynchronous loop beside the synchronous one, same work, driven by the scheduler of the real loop.

    python tests/benchmarks/bench_async.py [--places 1024] [--batch 1024] [--group 16] [--batches 60] [--trainer 0.5]
    python tests/benchmarks/bench_async.py --starving   (idle by staleness, with narrow and wide lengths)
    python tests/benchmarks/bench_async.py --bias       (lengths of the first 40 batches)

A discrete-event simulation (`training.rollouts.simulation`): lengths are uniform between 1 and 5 times the shortest, a
step takes ``--trainer`` times as long as generating the batch would with all places busy. Prints idle shares, ages, and
the time per batch, for several bounds on staleness; then how far the lengths trained on are from those sampled, beside
a naive collector that trains on the first to finish of a fresh wave.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.config import CollectorSettings
from training.rollouts.simulation import SimulationCosts, simulate_asynchronous, simulate_synchronous
from training.rollouts.starvation import LENGTHS, simulated_idle, wide_lengths

SHORTEST = 1000


def spread(seed: int) -> Callable[[], int]:
    """Return lengths spread 1:5."""
    chance = random.Random(seed)
    return lambda: chance.randint(SHORTEST, 5 * SHORTEST)


def print_starving() -> None:
    """Print what `training.rollouts.starvation` simulates for the paper's sizes."""
    for ratio in (1, 2, 4):
        for bound in (1, 2, 4, 8, 16):
            settings = CollectorSettings(n_async=2048 * ratio, n_batch=2048, max_staleness=bound)
            idle = ", ".join(f"{name} lengths {simulated_idle(settings, name):.1%}" for name in LENGTHS)
            print(f"n_async / n_batch = {ratio}, staleness at most {bound}: generators idle, {idle}")


def print_bias(batches: int = 40, seeds: int = 10, group: int = 16) -> None:
    """Print how much shorter the first batches are than as many rollouts in the order of admission."""
    for places, n_batch, bound in ((256, 256, 8), (512, 256, 16)):
        sizes = CollectorSettings(
            group_size=group,
            n_async=places,
            n_batch=n_batch,
            max_staleness=bound,
        )
        runs = [
            simulate_asynchronous(sizes, wide_lengths(seed, group), batches=batches, warmup=batches // 8)
            for seed in range(seeds)
        ]
        count = batches * n_batch
        lacking = [sum(run.trained_lengths[:count]) / sum(run.sampled_lengths[:count]) - 1 for run in runs]
        ages = [statistics.mean(run.staleness) for run in runs]
        print(
            f"n_async / n_batch = {places // n_batch}: first {batches} batches {statistics.mean(lacking):+.2%} "
            f"(standard error {statistics.stdev(lacking) / seeds**0.5:.2%}), generators idle "
            f"{statistics.mean(run.generator_idle for run in runs):.1%}, age {statistics.mean(ages):.2f}"
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--places", type=int, default=1024)
    options.add_argument("--batch", type=int, default=1024)
    options.add_argument("--group", type=int, default=16)
    options.add_argument("--batches", type=int, default=60)
    options.add_argument("--trainer", type=float, default=0.5)
    options.add_argument("--starving", action="store_true")
    options.add_argument("--bias", action="store_true")
    parsed = options.parse_args()
    if parsed.starving or parsed.bias:
        (print_starving if parsed.starving else print_bias)()
        return
    mean = 3 * SHORTEST
    step = parsed.trainer * mean * parsed.batch / parsed.places
    costs = SimulationCosts(train_ticks=step / (parsed.batch * mean), verify_ticks=20.0, update_ticks=10.0)
    sizes = CollectorSettings(group_size=parsed.group, n_async=parsed.places, n_batch=parsed.batch)
    theirs = simulate_synchronous(sizes, spread(0), batches=parsed.batches, costs=costs)
    free = simulate_synchronous(sizes, spread(0), batches=parsed.batches, costs=SimulationCosts(train_ticks=0.0))
    print(
        f"synchronous: generators idle {theirs.generator_idle:.1%} (instant trainer: {free.generator_idle:.1%}), "
        f"trainer idles {theirs.trainer_idle:.1%}, {theirs.ticks / parsed.batches:.0f} ticks a batch"
    )
    warmup = parsed.batches // 5
    for bound in (1, 2, 3, 4, 8):
        settings = sizes.model_copy(update={"max_staleness": bound})
        ours = simulate_asynchronous(settings, spread(0), batches=parsed.batches, warmup=warmup, costs=costs)
        steady = ours.trained_lengths[warmup * parsed.batch :]
        print(
            f"asynchronous, staleness at most {bound}: generators idle {ours.generator_idle:.1%}, trainer idles "
            f"{ours.trainer_idle:.1%}, {ours.ticks / parsed.batches:.0f} ticks a batch, age mean "
            f"{statistics.mean(ours.staleness):.2f} max {max(ours.staleness)}; mean length trained on "
            f"{statistics.mean(steady):.0f} of {mean} sampled; accounted for: {ours.ledger.balanced}"
        )
    draw = spread(0)
    waves = (sorted(draw() for _ in range(2 * parsed.batch))[: parsed.batch] for _ in range(parsed.batches))
    naive = [length for wave in waves for length in wave]
    print(f"naive, first half of a wave: mean length trained on {statistics.mean(naive):.0f} of {mean} sampled")


if __name__ == "__main__":
    main()
