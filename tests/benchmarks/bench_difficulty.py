"""How well difficulty is known: held-out attempts foretold, and what a refresh misses with an anchor and without.

    .venv/bin/python -m tests.benchmarks.bench_difficulty [--data FOLDER] [--problems 4000]

First table: a fifth of the recorded attempts of many policies is held out; log-loss (nats per attempt) of what the rest
foretells of it. *Rate*: the problem's share of correct attempts, one half of each kind added. *1PL*, *2PL*: the item
response model without and with slopes. FOLDER is the shared data's `attempts`, or any folder of files that
`tests.benchmarks.recorded_policies` reads.

Second table, simulated: a policy judges all problems with early stopping, a better one refreshes. *Differ*: share of
decisions that are not those of a full judgement with the same attempts; *missed*: of the problems that it finds in the
band; *cost*: attempts against those of a full judgement. ``--problems 0`` leaves it out.
Third table: the same where models of like strength that were recorded are a policy; and where each has eight attempts
or more, pairs of policies by the step from one to the next in logits, four of each: means, in brackets the largest
share of differing decisions and the pairs above 3 %. *Bound*: the least that any rule costs at 3 %, by hindsight
(`tests.benchmarks.refresh_bound`)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curation.config import Band, RefreshSettings
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.item_response import ItemResponseModel, difficulty_posteriors, fit, observations
from curation.difficulty.priors import as_priors
from curation.difficulty.refresh import anchor_of_parts, expected_side, uncertain_of_part
from curation.difficulty.refresh_forecast import ForecastPart, RefreshForecast, anchored, foresee_refresh
from curation.records import DECISION, Outcome
from tests.benchmarks.recorded_policies import attempts_by_policy, files, recorded
from tests.benchmarks.refresh_bound import least_cost
from tests.curation.difficulty.simulated import COUNTS, simulated_rates
from tests.places import SHARED_DATA

BAND, HELD_OUT = Band(attempts=16), 0.2
CONCENTRATIONS, SHIFTS = (None, 20.0, 5.0), (0.0, 0.3, 1.0, 1.5, 2.0, -1.0)
LEAST_TIER = 4
"""Models of a tier, at least."""

STEPS, NEAR, PAIRS = (0.3, 0.6, 1.0, 1.5, 2.0), 0.2, 4
"""Steps between recorded policies in logits, how near a pair must be to one, and how many pairs are tried."""

MAY_DIFFER = 0.03


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh came to: share of decisions that differ, of the problems in the band that are missed, and cost."""

    differ: float
    missed: float
    cost: float

    def __str__(self) -> str:
        return f"{self.differ:.3f} {self.missed:7.3f} {self.cost:5.2f}"


@dataclass(frozen=True, slots=True)
class Compared:
    """A refresh without an anchor and with one; how far the policy is found, and the least cost at `MAY_DIFFER`."""

    without: Refreshed
    anchored: Refreshed
    found: str
    bound: float

    def __str__(self) -> str:
        return f"{self.without!s:>29} | {self.anchored!s:>28} {self.found:>6} {self.bound:6.2f}"


def main() -> None:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    options.add_argument("--problems", type=int, default=4000)
    chosen = options.parse_args()
    print(f"{'attempts of':28} {'policies':>8} {'attempts':>8} {'rate':>6} {'1PL':>6} {'2PL':>6} {'CPU s':>11}")
    for path in files(chosen.data):
        print(foretelling(path), flush=True)
    print(
        f"\n{'shift':>5} {'alike':>5} | {'without: differ':>15} {'missed':>7} {'cost':>5} | "
        f"{'anchor: differ':>14} {'missed':>7} {'cost':>5} {'found':>6} {'bound':>6}"
    )
    for concentration in CONCENTRATIONS:
        for shift in SHIFTS:
            if chosen.problems:
                alike = "all" if concentration is None else f"{concentration:g}"
                print(f"{shift:+5.1f} {alike:>5} | {refreshing(chosen.problems, shift, concentration)}", flush=True)
    print("\nrecorded tiers: problems, attempts, mean pass rates")
    for path in files(chosen.data):
        for line in recorded_tiers(path):
            print(line, flush=True)
    print("\nrecorded policies: problems, attempts, step in logits, pairs")
    for path in files(chosen.data):
        for line in recorded_steps(path):
            print(line, flush=True)


def foretelling(path: Path) -> str:
    """Return the line of one file."""
    table = pl.DataFrame(list(recorded(path)), schema=COUNTS, orient="row")
    is_held = pl.Series(np.random.default_rng(0).random(table.height) < HELD_OUT)
    told, held = table.filter(~is_held), table.filter(is_held)
    rate = ((pl.col("correct").sum() + 0.5) / (pl.col("judged").sum() + 1)).alias("rate")
    rates = held.join(told.group_by("problem").agg(rate), on="problem", how="left", maintain_order="left")["rate"]
    losses, seconds = [log_loss(held, rates.fill_null(0.5).to_numpy())], []
    for slopes in (False, True):
        began = time.process_time()
        model = fit(told, slopes=slopes)
        seconds.append(time.process_time() - began)
        losses.append(log_loss(held, chances(model, told, held)))
    figures = " ".join(f"{loss:6.3f}" for loss in losses)
    return (
        f"{path.stem:28} {table['policy'].n_unique():8} {table.height:8,} {figures} {seconds[0]:5.1f} {seconds[1]:5.1f}"
    )


def chances(model: ItemResponseModel, told: pl.DataFrame, held: pl.DataFrame) -> np.ndarray:
    """Return [held] the probability that each held-out attempt is correct."""
    seen = observations(told, held["problem"])
    pattern = dict(zip(seen.problems, seen.pattern, strict=True))
    posterior, means = difficulty_posteriors(model, seen), {name: model.means(name) for name in model.abilities}
    return np.array([posterior[pattern[problem]] @ means[policy] for problem, policy, _, _ in held.iter_rows()])


def log_loss(held: pl.DataFrame, chance: np.ndarray) -> float:
    """Return the mean log-loss of held-out attempts, in nats."""
    right = held["correct"].to_numpy()
    return float(-np.mean(right * np.log(chance) + (1 - right) * np.log(1 - chance)))


def attempts_at(rates: np.ndarray, rng: np.random.Generator) -> list[list[AttemptOutcome]]:
    """Return all attempts at each problem; a wrong one agrees with no other."""
    draws = rng.random((len(rates), BAND.attempts)) < rates[:, None]
    return [as_outcomes(row) for row in draws.tolist()]


def as_outcomes(row: Iterable[int]) -> list[AttemptOutcome]:
    """Return attempts; a wrong one agrees with no other."""
    return [(Outcome.CORRECT, 0) if right else (Outcome.WRONG, 1 + place) for place, right in enumerate(row)]


def judged(attempts: list[list[AttemptOutcome]], exact: StoppingRule) -> list[tuple[str | None, int, int]]:
    """Return reason, correct and judged of each problem, stopped early."""
    rows = []
    for outcomes in attempts:
        reason, stop = exact.ending(outcomes)
        rows.append((reason, sum(outcome is Outcome.CORRECT for outcome, _ in outcomes[:stop]), stop))
    return rows


def refreshing(problems: int, shift: float, concentration: float | None, *, bounded: bool = True) -> Compared:
    """Return one refresh by a simulated policy, `shift` logits stronger than the earlier one."""
    rates = simulated_rates(problems, {"old": 0.0, "new": shift}, concentration, seed=1)
    rng = np.random.default_rng(2)
    first, second = attempts_at(rates["old"], rng), attempts_at(rates["new"], rng)
    return refreshed(first, second, BAND, bounded=bounded)


def recorded_tiers(path: Path) -> Iterator[str]:
    """Yield the lines of refreshes by recorded tiers: models of like strength, whose attempts are those of one policy.

    Each problem's attempts come in an order of its own, so that none of a tier's models is always the first.
    """
    table = pl.DataFrame(list(recorded(path)), schema=COUNTS, orient="row")
    if table.select("problem", "policy").is_duplicated().any() or table["judged"].max() != 1:
        return
    complete = table.group_by("problem").agg(pl.len()).filter(pl.col("len") == table["policy"].n_unique())
    table = table.join(complete, on="problem", how="semi").sort("problem", "policy")
    means = table.group_by("policy").agg(pl.col("correct").mean()).sort("correct", "policy")
    size = means.height // max(2, round(means.height / 5))
    if size < LEAST_TIER:
        return
    right = {key[0]: dict(part.select("policy", "correct").iter_rows()) for key, part in table.group_by("problem")}
    tiers = []
    for begin in range(0, means.height - size + 1, size):
        rng, members = np.random.default_rng(begin), means["policy"][begin : begin + size].to_list()
        rows = [[right[name][one] for one in rng.permutation(members)] for name in sorted(right)]
        mean = float(means["correct"][begin : begin + size].mean())  # type: ignore[arg-type]
        tiers.append((mean, [as_outcomes(row) for row in rows]))
    for at, (before, first) in enumerate(tiers):
        for after, second in tiers[at + 1 :]:
            line = refreshed(first, second, Band(attempts=size))
            yield f"{path.stem[:20]:20} {len(first):5} {size:2} {before:.2f} to {after:.2f} | {line}"


def recorded_steps(path: Path) -> Iterator[str]:
    """Yield the lines of refreshes from one recorded policy to another, by their distance in logits."""
    made = attempts_by_policy(path)
    logit = {name: float(np.log(rows.mean() / (1 - rows.mean()))) for name, rows in made.items() if 0 < rows.mean() < 1}
    steps = sorted((logit[after] - logit[before], before, after) for before in logit for after in logit)
    for step in STEPS:
        near = [pair for pair in sorted(steps, key=lambda pair: abs(pair[0] - step)) if abs(pair[0] - step) < NEAR]
        found = []
        for _, before, after in near[:PAIRS]:
            first, second = ([as_outcomes(row) for row in made[name].tolist()] for name in (before, after))
            found.append(refreshed(first, second, Band(attempts=made[before].shape[1])))
        if found:
            rows = made[near[0][1]]
            yield f"{path.stem[:24]:24} {rows.shape[0]:5} {rows.shape[1]:3} {step:4.1f} {len(found):2} | {means(found)}"


def means(found: list[Compared]) -> str:
    """Return the means of several refreshes."""

    def mean(parts: list[Refreshed]) -> Refreshed:
        columns = np.mean([(one.differ, one.missed, one.cost) for one in parts], axis=0)
        return Refreshed(*columns.tolist())

    plain, with_anchor = mean([one.without for one in found]), mean([one.anchored for one in found])
    worst, above = max(one.anchored.differ for one in found), sum(one.anchored.differ > MAY_DIFFER for one in found)
    refused, bound = sum(one.found == "no" for one in found), np.mean([one.bound for one in found])
    return f"{plain} | {with_anchor} (most {worst:.3f}, {above} above), refused {refused}, bound {bound:.2f}"


def refreshed(
    first: list[list[AttemptOutcome]], tried: list[list[AttemptOutcome]], band: Band, *, bounded: bool = True
) -> Compared:
    """Return what a refresh comes to, without an anchor and with one.

    Args:
        first, tried: all attempts of the earlier and of the new policy at each problem.
        bounded: compute the bound, which takes most of the time; it is not a number otherwise.
    """
    problems, exact = len(first), StoppingRule(band)
    old, new = judged(first, exact), judged(tried, exact)
    names = [f"p{number:06}" for number in range(problems)]
    rows = [
        {"problem": name, "keep": reason is None, "reason": reason, "correct": correct, "judged": made, "policy": "old"}
        | {"top_wrong_votes": min(1, made - correct)}
        for name, (reason, correct, made) in zip(names, old, strict=True)
    ]
    decisions = pl.DataFrame([{**dict.fromkeys(DECISION), **row} for row in rows], schema=DECISION)
    counts = [(name, "old", correct, made) for name, (_, correct, made) in zip(names, old, strict=True)]
    full = dict(zip(names, new, strict=True))
    anchor = anchor_of_parts([decisions], 2, "new")["problem"].to_list()
    counts += [(name, "new", *full[name][1:]) for name in anchor]
    told = anchored(pl.DataFrame(counts, schema=COUNTS, orient="row"), "new", "old")
    assert told is not None
    by_name = dict(zip(names, tried, strict=True))
    settings, of_anchor = RefreshSettings(), {name: by_name[name][: full[name][2]] for name in anchor}
    whole = [ForecastPart(decisions, told.counts)]
    forecast = foresee_refresh(told, whole, of_anchor, exact, settings.error_rate)
    made_full = sum(row[2] for row in new)

    def outcome(expected: RefreshForecast | None, first: list[str]) -> Refreshed:
        sides = expected.sides_of(0) if expected is not None else None
        chosen, rule = settings.change_probability, exact
        if expected is not None and expected.replay.holds:
            chosen = expected.threshold
            rule = exact.given(as_priors(expected.priors_of(0)))
        asked = {*uncertain_of_part(decisions, {}, band, chosen, 2, "new", sides)["problem"], *first}
        ends = {name: (rule if name not in of_anchor else exact).of(name).ending(by_name[name]) for name in asked}
        made = {name: ends[name][0] if name in asked else row[0] for name, row in zip(names, old, strict=True)}
        inside = [name for name in names if full[name][0] is None]
        differ = sum(made[name] != full[name][0] for name in names) / problems
        missed = sum(made[name] is not None for name in inside) / max(1, len(inside))
        return Refreshed(differ, missed, sum(end[1] for end in ends.values()) / made_full)

    sides = [expected_side(reason) for reason, _, _ in old]
    solved = [sum(outcome is Outcome.CORRECT for outcome, _ in outcomes) for outcomes in tried]
    bound = least_cost(old, solved, sides, band, made_full, MAY_DIFFER) if bounded else float("nan")
    found = f"{told.shift:+.2f}" if told.calibration.holds else "no"
    return Compared(outcome(None, []), outcome(forecast, anchor), found, bound)


if __name__ == "__main__":
    main()
