"""How much room packing wastes, and how long ranks wait for one another, on log-normal lengths.

    python tests/benchmarks/bench_packing.py [--sequences 2048] [--room 32768] [--seeds 5] [--ranks 64 128 256]

Prints the share of empty room for first-fit decreasing and for arrival order, micro-batches, and the milliseconds that
packing takes. Arrival order is next-fit: a micro-batch is closed by the first sequence that does not fit. Then, for
each number of ranks, the share of time that ranks wait where the packed micro-batches are dealt as they are, and where
they are evened out, and the milliseconds that this takes. Time is in tokens.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.config import PackingSettings
from training.optimisation.balancing import distribute_micro_batches, waiting_share
from training.optimisation.packing import first_fit_decreasing, padding_share


def arrival_order(lengths: list[int], room: int) -> list[list[int]]:
    """Pack by next-fit in the given order."""
    bins: list[list[int]] = []
    free = 0
    for index, length in enumerate(lengths):
        if length > free:
            bins.append([])
            free = room
        bins[-1].append(index)
        free -= length
    return bins


def as_packed(bins: list[list[int]], lengths: list[int], ranks: int) -> list[list[list[int]]]:
    """Deal micro-batches by descending tokens, with empty ones where the number does not come out even."""
    parts = sorted(bins, key=lambda part: -sum(lengths[index] for index in part))
    parts += [[] for _ in range(-len(parts) % ranks)]
    return [parts[rank::ranks] for rank in range(ranks)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sequences", type=int, default=2048)
    options.add_argument("--room", type=int, default=32_768)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--median", type=float, default=7000.0, help="median length in tokens")
    options.add_argument("--sigma", type=float, default=0.7, help="deviation of the logarithm of lengths")
    options.add_argument("--ranks", type=int, nargs="*", default=[64, 128, 256])
    parsed = options.parse_args()
    settings = PackingSettings(micro_batch_tokens=parsed.room)
    ours, theirs, took = [], [], []
    waits: dict[int, list[tuple[float, float]]] = {ranks: [] for ranks in parsed.ranks}
    dealing: dict[int, list[float]] = {ranks: [] for ranks in parsed.ranks}
    for seed in range(parsed.seeds):
        chance = random.Random(seed)
        drawn = (parsed.median * chance.lognormvariate(0, parsed.sigma) for _ in range(parsed.sequences))
        lengths = [min(int(length) + 1, parsed.room) for length in drawn]
        began = time.perf_counter()
        packed = first_fit_decreasing(lengths, settings)
        took.append(1000 * (time.perf_counter() - began))
        waiting = arrival_order(lengths, parsed.room)
        for ranks in parsed.ranks:
            began = time.perf_counter()
            evened = distribute_micro_batches(packed, lengths, ranks, parsed.room)
            dealing[ranks].append(1000 * (time.perf_counter() - began))
            waits[ranks].append(
                (waiting_share(as_packed(packed, lengths, ranks), lengths), waiting_share(evened, lengths))
            )
        ours.append(padding_share(packed, lengths, parsed.room))
        theirs.append(padding_share(waiting, lengths, parsed.room))
        print(
            f"seed {seed}: mean length {statistics.mean(lengths):.0f}, longest {max(lengths)}; "
            f"first-fit decreasing {len(packed)} micro-batches, {ours[-1]:.2%} empty; "
            f"arrival order {len(waiting)}, {theirs[-1]:.2%} empty"
        )
    print(
        f"all: {statistics.mean(ours):.2%} against {statistics.mean(theirs):.2%} empty "
        f"(worst {max(ours):.2%}, best {min(theirs):.2%}); packing took {statistics.median(took):.1f} ms"
    )
    for ranks, seen in waits.items():
        before, after = (statistics.mean(values) for values in zip(*seen, strict=True))
        print(
            f"{ranks} ranks wait {before:.1%} of their time as packed, {after:.1%} evened out "
            f"(worst {max(value for _, value in seen):.1%}); evening took {statistics.median(dealing[ranks]):.0f} ms"
        )


if __name__ == "__main__":
    main()
