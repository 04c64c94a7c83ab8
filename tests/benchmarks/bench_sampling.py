"""Attempts saved by early stopping, and the errors of the sequential mode.

    .venv/bin/python -m tests.benchmarks.bench_sampling [ATTEMPTS.jsonl] [--problems 2000]

The file holds one problem a line: ``samples`` [{``answer``, ``correct``}]; by default that of 18 models' answers to
Odyssey problems in the shared data folder, judged here by its own labels, wrong answers that are written alike taken
for the same. Where n is more than a problem has, its attempts are drawn again (a bootstrap), each time in a new order.
The mixed pools are simulated: p drawn from Beta(a, b), wrong answers agree on one top wrong answer with
probability 0.4, hold no answer with 0.1, else are one of five others.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, OutcomeTally, StoppingRule
from curation.records import Outcome

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
POOLS = {"uniform": (1.0, 1.0), "Beta(.5,.5)": (0.5, 0.5), "Beta(.5,1)": (0.5, 1.0), "Beta(1,.5)": (1.0, 0.5)}
RATES = (0.01, 0.02, 0.05)


def recorded(path: Path) -> list[list[AttemptOutcome]]:
    """Return the attempts of the file, problem by problem."""
    pool = []
    for line in path.read_text(encoding="utf-8").splitlines():
        classes: dict[str, int] = {}
        outcomes: list[AttemptOutcome] = []
        for sample in json.loads(line)["samples"]:
            answer = (sample["answer"] or "").strip()
            if sample["correct"]:
                outcomes.append((Outcome.CORRECT, 0))
            elif not answer:
                outcomes.append((Outcome.NO_ANSWER, None))
            else:
                outcomes.append((Outcome.WRONG, classes.setdefault(answer, len(classes) + 1)))
        pool.append(outcomes)
    return pool


def ordered(
    pool: Sequence[Sequence[AttemptOutcome]], n: int, problems: int, draw: random.Random
) -> list[list[AttemptOutcome]]:
    """Return ``problems`` sequences of n attempts; without replacement where a problem has as many."""
    sequences = []
    for number in range(problems):
        outcomes = pool[number % len(pool)]
        sequences.append(draw.sample(outcomes, n) if len(outcomes) >= n else draw.choices(outcomes, k=n))
    return sequences


def simulated(a: float, b: float, n: int, problems: int, draw: random.Random) -> list[list[AttemptOutcome]]:
    kinds: list[AttemptOutcome] = [(Outcome.CORRECT, 0), (Outcome.WRONG, 1), (Outcome.NO_ANSWER, None)]
    kinds += [(Outcome.WRONG, other) for other in range(2, 7)]
    sequences = []
    for _ in range(problems):
        p = draw.betavariate(a, b)
        weights = [p, 0.4 * (1 - p), 0.1 * (1 - p), *[0.1 * (1 - p)] * 5]
        sequences.append(draw.choices(kinds, weights, k=n))
    return sequences


@dataclass(frozen=True, slots=True)
class Saved:
    """Shares of all attempts and of all problems."""

    saved: float
    differ: float
    differ_keep: float


def decision(rule: StoppingRule, outcomes: Sequence[AttemptOutcome]) -> str | None:
    tally = OutcomeTally()
    for outcome, answer_class in outcomes:
        tally.add(outcome, answer_class)
    now = tally.counts
    if rule.error_rate > 0 and not rule.is_decided(now):
        return rule.likely_decision(now)[0]
    return rule.reason(now.correct, now.top_wrong, now.judged, now.attempts)


def measure(rule: StoppingRule, sequences: Sequence[Sequence[AttemptOutcome]]) -> Saved:
    full = StoppingRule(rule.band, early_stopping=False)
    attempts = differ = keep = 0
    for outcomes in sequences:
        at = rule.counts_at_stop(outcomes).requested
        attempts += at
        early, late = decision(rule, outcomes[:at]), decision(full, outcomes)
        differ += early != late
        keep += (early is None) != (late is None)
    total = len(sequences)
    return Saved(1 - attempts / (total * rule.band.attempts), differ / total, keep / total)


def print_saved(pools: Mapping[str, Any], problems: int) -> None:
    print("attempts saved at the default band; sequential: saved / decisions that differ / kept-or-dropped that differ")
    heads = "".join(f"{f'error_rate {rate}':>26}" for rate in RATES)
    print(f"{'pool':<22}{'n':>4}{'exact':>9}{heads}")
    for name, pool in pools.items():
        for n in (8, 16, 32):
            draw = random.Random(n)
            sequences = (
                ordered(pool, n, problems, draw) if isinstance(pool, list) else simulated(*pool, n, problems, draw)
            )
            exact = measure(StoppingRule(Band(attempts=n)), sequences)
            assert exact.differ == 0
            columns = [measure(StoppingRule(Band(attempts=n), error_rate=rate), sequences) for rate in RATES]
            cells = "".join(f"{f'{c.saved:.1%} / {c.differ:.2%} / {c.differ_keep:.2%}':>26}" for c in columns)
            print(f"{name:<22}{n:>4}{exact.saved:>9.1%}{cells}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=SHARED / "attempts" / "odyssey_models.jsonl")
    parser.add_argument("--problems", type=int, default=2000)
    arguments = parser.parse_args()
    pools: dict[str, Any] = dict(POOLS)
    if arguments.path.exists():
        pools = {arguments.path.stem: recorded(arguments.path), **pools}
    print_saved(pools, arguments.problems)


if __name__ == "__main__":
    main()
