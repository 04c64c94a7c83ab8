"""BYOL-AC as a forecaster of pass rates, beside the difficulty model and plain regressions.

    .venv/bin/python -m tests.benchmarks.bench_representation [--data FOLDER] [--seeds 1 2 3 4 5]

A policy's versions judge all problems; the last version has judged an anchor of 50 problems, and its attempts at the
others are foretold (log-loss, nats per attempt; 95 % over seeds, or over problems where there is one seed).

- *rate*: the version before, Jeffreys' prior, shifted to the anchor. *posterior*: the item response model of all
  attempts. *posterior, actions apart*: the problems that were trained on since are a domain of their own.
- *regression*: a logistic readout of the white features, per action, of all earlier steps. *BYOL-AC*: the same readout
  of a representation of that size. *BYOL-Pi*: without actions. All three are scaled and shifted to the anchor.

Simulated: four versions, 1,500 problems × 8 attempts. The ability grows by .5 a version; half of the problems in the
band are trained on, which makes them easier by a further .8 (`trained`) or by nothing (`alike`); pass rates scatter
around the model with concentration 10. Recorded: models of like strength are a version, weakest first, each of them one
attempt; nobody is trained on. Features: the log-odds of the problem's share at the version, and of all before it, their
squares, whether it was always or never solved; a length that tells nothing, where it is simulated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curation.difficulty.item_response import fit
from curation.difficulty.posteriors import pass_rate_posteriors
from curation.difficulty.representation import learn
from tests.benchmarks.recorded_policies import files, recorded
from tests.curation.difficulty.simulated import COUNTS
from tests.places import SHARED_DATA
from training.evaluation.estimators import mean_interval

ANCHOR, SIZES = 50, (1, 2, 4)
VERSIONS, PROBLEMS, ATTEMPTS = 4, 1500, 8
GROWTH, BOOST, CONCENTRATION = 0.5, 0.8, 10.0
LEAST_TIER = 3


@dataclass(frozen=True, slots=True)
class History:
    """[versions, problems] correct and judged attempts; [versions - 1, problems] whether trained on since."""

    correct: np.ndarray
    judged: np.ndarray
    trained: np.ndarray
    length: np.ndarray


def simulated(seed: int, boost: float) -> History:
    """Return the history of a simulated training."""
    rng = np.random.default_rng(seed)
    difficulty, correct, trained = rng.normal(0, 2.5, PROBLEMS), [], []
    for version in range(VERSIONS):
        mean = 1 / (1 + np.exp(difficulty - GROWTH * version))
        rates = rng.beta(mean * CONCENTRATION, (1 - mean) * CONCENTRATION)
        correct.append(rng.binomial(ATTEMPTS, rates))
        in_band = (correct[-1] > 0) & (correct[-1] < ATTEMPTS)
        trained.append(in_band & (rng.random(PROBLEMS) < 0.5))
        difficulty = difficulty - boost * trained[-1]
    judged = np.full((VERSIONS, PROBLEMS), ATTEMPTS)
    return History(np.array(correct), judged, np.array(trained[:-1]).astype(int), rng.normal(size=PROBLEMS))


def tiers(path: Path) -> History | None:
    """Return the history of models of like strength; None where there are too few of them."""
    frame = pl.DataFrame(list(recorded(path)), schema=COUNTS, orient="row")
    strength = frame.group_by("policy").agg(pl.len(), rate=pl.col("correct").sum() / pl.col("judged").sum())
    models = strength.filter(pl.col("len") > 0.8 * pl.col("len").max()).sort("rate")["policy"].to_list()
    if len(models) < LEAST_TIER * VERSIONS:
        return None
    parts = [list(part) for part in np.array_split(models, VERSIONS)]
    version = pl.DataFrame(
        [(name, at) for at, part in enumerate(parts) for name in part], schema=["policy", "version"], orient="row"
    )
    sums = frame.join(version, on="policy").group_by("problem", "version").agg(pl.col("correct", "judged").sum())
    whole = sums.filter(pl.col("judged").min().over("problem") > 0, pl.len().over("problem") == VERSIONS)
    table = whole.sort("problem", "version").select("correct", "judged").to_numpy().reshape(-1, VERSIONS, 2)
    correct, judged = table[:, :, 0].T, table[:, :, 1].T
    still = np.zeros((VERSIONS - 1, correct.shape[1]), dtype=int)
    return History(correct, judged, still, np.zeros(correct.shape[1]))


def features(history: History, version: int) -> np.ndarray:
    """Return [problems, features] at a version."""
    own, judged = history.correct[version], history.judged[version]
    total, of = history.correct[: version + 1].sum(axis=0), history.judged[: version + 1].sum(axis=0)
    now, ever = np.log((own + 0.5) / (judged - own + 0.5)), np.log((total + 0.5) / (of - total + 0.5))
    return np.column_stack([now, ever, now**2, ever**2, own == 0, own == judged, history.length]).astype(float)


def to_anchor(logits: np.ndarray, correct: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Return log-odds scaled and shifted to the anchor's attempts, by a regression held to 1 and 0."""
    scale, shift = 1.0, 0.0
    x = np.column_stack([logits[:ANCHOR], np.ones(ANCHOR)])
    for _ in range(30):
        rates = 1 / (1 + np.exp(-np.clip(x @ [scale, shift], -30, 30)))
        slope = x.T @ (correct[:ANCHOR] - judged[:ANCHOR] * rates) - [(scale - 1) * 20, shift]
        curvature = (x.T * (judged[:ANCHOR] * rates * (1 - rates))) @ x + np.diag([20.0, 1.0])
        scale, shift = np.array([scale, shift]) + np.linalg.solve(curvature, slope)
    return scale * logits + shift


def losses(logits: np.ndarray, correct: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Return [problems] nats per attempt."""
    rates = np.clip(1 / (1 + np.exp(-np.clip(logits, -30, 30))), 1e-4, 1 - 1e-4)
    return np.asarray(-(correct * np.log(rates) + (judged - correct) * np.log(1 - rates)) / judged)


def counts(history: History, *, by_action: bool) -> pl.DataFrame:
    """Return the attempts that are known: of all versions but the last, and the last one's at the anchor."""
    rows = [
        (f"p{problem:05}", f"v{version}", int(history.correct[version, problem]), int(history.judged[version, problem]))
        for version in range(VERSIONS)
        for problem in range(ANCHOR if version == VERSIONS - 1 else history.correct.shape[1])
    ]
    frame = pl.DataFrame(rows, schema=COUNTS, orient="row")
    if not by_action:
        return frame
    domain = pl.DataFrame({"problem": names(history), "domain": [f"a{action}" for action in history.trained[-1]]})
    return frame.join(domain, on="problem")


def names(history: History) -> list[str]:
    return [f"p{problem:05}" for problem in range(history.correct.shape[1])]


def forecasts(history: History, seed: int) -> dict[str, np.ndarray]:
    """Return [problems] losses of each forecaster beyond the anchor."""
    last = VERSIONS - 1
    correct, judged, action = history.correct[last], history.judged[last], history.trained[-1]
    before = np.concatenate([features(history, version) for version in range(last - 1)])
    after = np.concatenate([features(history, version + 1) for version in range(last - 1)])
    actions = np.concatenate(history.trained[: last - 1])
    results = np.concatenate(history.correct[1:last]), np.concatenate(history.judged[1:last])
    now, own = features(history, last - 1), (history.correct[last - 1], history.judged[last - 1])
    logits: dict[str, np.ndarray] = {"rate": np.log((own[0] + 0.5) / (own[1] - own[0] + 0.5))}
    for name, by_action in (("posterior", False), ("posterior, actions apart", True)):
        if by_action and not action.any():
            continue
        known = counts(history, by_action=by_action)
        means = pass_rate_posteriors(fit(known), known, f"v{last}", pl.Series("problem", names(history)))["mean"]
        logits[name] = np.log(means.to_numpy() / (1 - means.to_numpy()))
    still = np.zeros_like(actions)
    logits["regression"] = learn(before, actions, after, *results, None).logits(now, action)
    for size in SIZES:
        logits[f"BYOL-AC, {size}"] = learn(before, actions, after, *results, size, seed).logits(now, action)
    if action.any():
        logits["BYOL-Pi, 4"] = learn(before, still, after, *results, 4, seed).logits(now, np.zeros_like(action))
    told = {
        name: value if name.startswith("posterior") else to_anchor(value, correct, judged)
        for name, value in logits.items()
    }
    return {name: losses(value, correct, judged)[ANCHOR:] for name, value in told.items()}


def show(name: str, by_seed: Mapping[str, list[np.ndarray]]) -> None:
    """Print a line per forecaster: its loss, and its difference to the posterior's."""
    base = by_seed["posterior"]
    for forecaster, found in by_seed.items():
        pairs = zip(found, base, strict=True)
        apart = [value - other for value, other in pairs]
        values = [float(one.mean()) for one in apart] if len(apart) > 1 else list(apart[0])
        within = mean_interval(values)
        mean = float(np.mean([one.mean() for one in found]))
        difference = (
            "" if forecaster == "posterior" else f"{within.mean:+.4f} ({within.low:+.4f} to {within.high:+.4f})"
        )
        print(f"| {name} | {forecaster} | {mean:.4f} | {difference} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    begun = time.process_time()
    print("| versions | forecaster | nats per attempt | to the posterior (95 %) |\n|---|---|---|---|")
    for name, boost in (("simulated, trained", BOOST), ("simulated, alike", 0.0)):
        runs = [forecasts(simulated(seed, boost), seed) for seed in options.seeds]
        show(name, {key: [run[key] for run in runs] for key in runs[0]})
    for path in files(options.data) if options.data.is_dir() else ():
        history = tiers(path)
        if history is not None:
            rng = np.random.default_rng(0)
            order = rng.permutation(history.correct.shape[1])
            drawn = History(history.correct[:, order], history.judged[:, order], history.trained, history.length)
            show(f"{path.stem}, {len(order):,}", {key: [one] for key, one in forecasts(drawn, 0).items()})
    print(f"{time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
