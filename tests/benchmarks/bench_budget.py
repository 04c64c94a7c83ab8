"""A budget of attempts: is more of the band found if they go where they find the most, than problem by problem?

    .venv/bin/python -m tests.benchmarks.bench_budget [--data FOLDER] [--error-rate .1]

FOLDER is the shared data's `attempts`: answers of 18 models to Odyssey's problems (16 of them), and of 14 to TabMWP's,
in a random order as the attempts of one policy. The band's members are the problems that all attempts keep. A problem
is found once the stopping rule ends with the decision to keep it.

- today: problem after problem, each to its stop; what is found grows with the attempts;
- uniform: one attempt at each open problem in turn;
- index: for each number m of further attempts, the probability that a problem is found within m, over the attempts
  made until then; the largest quotient is the index, and the largest indices come first (Gittins 1979).

With `known` half of the models are an earlier stage: each problem's prior is the Beta distribution, by moments, of the
problems of which they solved as many. Each share is of the members that today's rule finds with all its attempts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curation.config import Band
from curation.difficulty.early_stopping import OutcomeCounts, Prior, StoppingRule
from tests.places import SHARED_DATA

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
SHARES = (0.4, 0.6, 0.8)
ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Tables:
    """What a rule does and what attempts are worth to it, by [judged, correct] so far."""

    stops: NDArray[np.bool_]
    keeps: NDArray[np.bool_]
    index: Array
    ahead: Indices


@cache
def tables(rule: StoppingRule) -> Tables:
    """Return a rule's tables; wrong answers that agree are left out."""
    n, prior = rule.band.attempts, rule.prior
    stops, keeps = np.ones((n + 1, n + 1), dtype=bool), np.zeros((n + 1, n + 1), dtype=bool)
    for judged in range(n + 1):
        for correct in range(judged + 1):
            counts = OutcomeCounts(correct, 0, judged, judged, judged)
            stops[judged, correct] = rule.should_stop(counts)
            keeps[judged, correct] = stops[judged, correct] and rule.decision(counts) is None
    at_judged, at_correct = np.mgrid[: n + 1, : n + 1]
    solves = (prior.correct + at_correct) / (prior.correct + prior.other + at_judged)
    found, made = keeps.astype(float), np.zeros((n + 1, n + 1))
    index, ahead = np.zeros((n + 1, n + 1)), np.ones((n + 1, n + 1), dtype=np.int64)
    for more in range(1, n + 1):
        found = np.where(stops, keeps, mean_after(found, solves))
        made = np.where(stops, 0.0, 1 + mean_after(made, solves))
        quotient = np.where(stops, 0.0, found / np.maximum(made, 1.0))
        is_better = quotient > index + 1e-12
        index, ahead = np.where(is_better, quotient, index), np.where(is_better, more, ahead)
    return Tables(stops, keeps, index, ahead)


def mean_after(values: Array, solves: Array) -> Array:
    """Return the expected values after one more attempt."""
    after = np.zeros_like(values)
    after[:-1, :-1] = solves[:-1, :-1] * values[1:, 1:] + (1 - solves[:-1, :-1]) * values[1:, :-1]
    return after


class Pool:
    """Problems with their attempts in order, and how many of these were made so far."""

    def __init__(self, attempts: Indices, rules: list[StoppingRule], kind: Indices) -> None:
        size, n = attempts.shape
        self.correct = np.concatenate([np.zeros((size, 1), int), np.cumsum(attempts, axis=1)], axis=1)
        found = [tables(rule) for rule in rules]
        self.stops, self.keeps = np.stack([one.stops for one in found]), np.stack([one.keeps for one in found])
        self.index, self.ahead = np.stack([one.index for one in found]), np.stack([one.ahead for one in found])
        self.kind, self.rows = kind, np.arange(size)
        self.members = np.array([rules[0].reason(correct, 0, n, n) is None for correct in self.correct[:, n]])
        self.made = np.zeros(size, int)

    def at(self, table: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a table's entry of each problem as it is now."""
        return np.asarray(table[self.kind, self.made, self.correct[self.rows, self.made]])

    def found(self) -> int:
        """Return how many members of the band are found so far."""
        return int((self.at(self.keeps).astype(bool) & self.members).sum())

    def make(self, chosen: Indices, numbers: Indices) -> None:
        """Make so many attempts at each of the chosen problems, each until it stops."""
        for number in range(int(numbers.max())):
            is_open = ~self.at(self.stops).astype(bool)[chosen]
            self.made[chosen[is_open & (numbers > number)]] += 1


def uniform(pool: Pool) -> tuple[Indices, Indices]:
    """Return all open problems, with one attempt each."""
    chosen = np.flatnonzero(~pool.at(pool.stops).astype(bool))
    return chosen, np.ones(len(chosen), int)


def by_index(pool: Pool) -> tuple[Indices, Indices]:
    """Return the open problems with the largest indices, with the attempts that reach these."""
    index = np.where(pool.at(pool.stops).astype(bool), -1.0, pool.at(pool.index).astype(float))
    chosen = np.argsort(-index, kind="stable")[: max(1, len(index) // ROUNDS)]
    chosen = chosen[index[chosen] >= 0]
    return chosen, pool.at(pool.ahead).astype(int)[chosen]


def curve(pool: Pool, choose: Callable[[Pool], tuple[Indices, Indices]]) -> Array:
    """Return rows of attempts made and members found, until all problems have stopped."""
    points = [(0, 0)]
    while not pool.at(pool.stops).all():
        pool.make(*choose(pool))
        points.append((int(pool.made.sum()), pool.found()))
    return np.array(points, float)


def recorded(folder: Path) -> Iterator[tuple[str, Indices]]:
    """Yield the recorded sets: name, and [problems, attempts] of 0 and 1."""
    odyssey = [json.loads(line)["samples"] for line in (folder / "odyssey_models.jsonl").open(encoding="utf-8")]
    yield "Odyssey", np.array([[bool(s["correct"]) for s in row[:16]] for row in odyssey if len(row) >= 16], int)
    tabmwp = [json.loads(line)["correct"] for line in (folder / "tabmwp_models.jsonl").open(encoding="utf-8")]
    yield "TabMWP", np.array([list(row.values()) for row in tabmwp], int)


def beta(attempts: Indices) -> Prior:
    """Return the Beta distribution of the pass rates of these problems, by moments."""
    rates, n = attempts.mean(axis=1), attempts.shape[1]
    mean = float(np.clip(rates.mean(), 0.02, 0.98))
    within = mean * (1 - mean)
    share = float(np.clip((rates.var() - within / n) / (within - within / n), 0.02, 0.9))
    return Prior(mean * (1 / share - 1), (1 - mean) * (1 / share - 1))


def report(name: str, attempts: Indices, rules: list[StoppingRule], kind: Indices) -> None:
    """Print the shares of the band found at shares of today's attempts."""
    stopped = Pool(attempts, rules, kind)
    curve(stopped, uniform)
    total, whole = int(stopped.made.sum()), stopped.found()
    print(
        f"{name}: {len(attempts):,} problems, {int(stopped.members.sum()):,} in the band; today {whole:,} found with "
        f"{total / len(attempts):.2f} attempts a problem, {1000 * whole / total:.0f} per 1,000"
    )
    for label, choose in (("uniform", uniform), ("index", by_index)):
        points = curve(Pool(attempts, rules, kind), choose)
        shares = [float(np.interp(share * total, points[:, 0], points[:, 1])) / whole for share in SHARES]
        cells = ", ".join(f"{found:.3f} at {share:g}" for share, found in zip(SHARES, shares, strict=True))
        for_most = float(np.interp(0.95 * whole, points[:, 1], points[:, 0])) / total
        print(f"    {label:8} {cells} of the attempts; .95 of the band takes {for_most:.2f}", flush=True)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    options.add_argument("--error-rate", type=float, default=0.1)
    chosen = options.parse_args()
    for name, attempts in recorded(chosen.data):
        draw = np.random.default_rng(0)
        draw.shuffle(attempts)
        half = attempts.shape[1] // 2
        earlier, own = attempts[:, :half].sum(axis=1), draw.permuted(attempts[:, half:], axis=1)
        mixed = draw.permuted(attempts, axis=1)
        for label, rows, kind in ((name, mixed, np.zeros(len(mixed), int)), (f"{name}, known", own, earlier)):
            band = Band(attempts=rows.shape[1], wrong_label_share=1.0)
            groups = [rows[kind == number] for number in range(int(kind.max()) + 1)]
            priors = [beta(group) if len(group) > 1 else Prior() for group in groups] if kind.any() else [Prior()]
            rules = [StoppingRule(band, error_rate=chosen.error_rate, prior=prior) for prior in priors]
            report(label, rows, rules, kind)


if __name__ == "__main__":
    main()
