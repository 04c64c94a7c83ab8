"""How much room packing wastes: first-fit decreasing beside arrival order, on log-normal lengths.

    python tests/benchmarks/bench_packing.py [--sequences 2048] [--room 32768] [--seeds 5]

Prints the share of empty room for both, micro-batches, and the milliseconds that packing takes. Arrival order is
next-fit: a micro-batch is closed by the first sequence that does not fit.
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sequences", type=int, default=2048)
    options.add_argument("--room", type=int, default=32_768)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--median", type=float, default=7000.0, help="median length in tokens")
    options.add_argument("--sigma", type=float, default=0.7, help="deviation of the logarithm of lengths")
    parsed = options.parse_args()
    settings = PackingSettings(micro_batch_tokens=parsed.room)
    ours, theirs, took = [], [], []
    for seed in range(parsed.seeds):
        chance = random.Random(seed)
        drawn = (parsed.median * chance.lognormvariate(0, parsed.sigma) for _ in range(parsed.sequences))
        lengths = [min(int(length) + 1, parsed.room) for length in drawn]
        began = time.perf_counter()
        packed = first_fit_decreasing(lengths, settings)
        took.append(1000 * (time.perf_counter() - began))
        waiting = arrival_order(lengths, parsed.room)
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


if __name__ == "__main__":
    main()
