"""What a prior is worth: attempts and wrong decisions of early stopping with the model's priors and without.

    .venv/bin/python -m tests.benchmarks.bench_stopping [--problems 2000] [--data FOLDER] [--large]

First table, simulated: stage 1's policy judges all problems in full, a policy one logit better judges them again by
each rule. *Wrong*: share of problems of which the decision to keep is not that of the true pass rate (kept from 1/16
to 3/4; of n attempts n/16 must be correct); *other*: share of decisions that are not those of all n attempts;
*attempts*: mean, an anchor's that is sampled in full among them. *Alike*: the concentration of the policies' rates.

Second table, recorded: a fifth of the attempts of FOLDER's policies (the shared data's ``attempts``, or any folder in
that schema) is held out; of the rest so many attempts a problem, drawn by chance, foretell it. *Same*: the attempts
with which the model foretells as well as raw pass rates do with all of them.

``--large`` prints seconds and memory of a fit and of all posteriors at 700,000 problems x 20 policies instead.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.item_response import fit
from curation.difficulty.priors import as_priors, learn_priors, problem_priors
from curation.records import Outcome
from tests.benchmarks.bench_difficulty import CONCENTRATIONS, HELD_OUT, chances, log_loss, recorded
from tests.curation.difficulty.simulated import COUNTS, simulated, simulated_rates
from tests.places import SHARED_DATA

LOWEST, HIGHEST = 1 / 16, 0.75
DOMAINS = 4
"""Domains of the large set."""
RULES: tuple[tuple[int, float, str], ...] = (
    (16, 0.0, "counts"),
    (16, 0.1, "jeffreys"),
    (16, 0.1, "model"),
    (32, 0.1, "jeffreys"),
    (32, 0.1, "model"),
    (32, 0.2, "model"),
    (64, 0.1, "jeffreys"),
    (64, 0.1, "model"),
    (64, 0.2, "jeffreys"),
    (64, 0.2, "model"),
)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--problems", type=int, default=2000)
    options.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    options.add_argument("--large", action="store_true")
    chosen = options.parse_args()
    if chosen.large:
        print(large(700_000, 20))
        return
    print(f"{'alike':>5} {'n':>3} {'error rate':>10} {'by':>8} | {'wrong':>6} {'other':>6} {'attempts':>8}")
    for concentration in CONCENTRATIONS:
        for attempts, error_rate, prior in RULES:
            alike = "all" if concentration is None else f"{concentration:g}"
            found = stopping(chosen.problems, concentration, attempts, error_rate, prior)
            print(f"{alike:>5} {attempts:3} {error_rate:10.2f} {prior:>8} | {found}", flush=True)
    print(f"\n{'attempts of':28} {'a problem':>9} {'rate':>6} {'model':>6} {'same':>5}")
    for path in sorted(chosen.data.glob("*.jsonl")):
        print("\n".join(foretelling(path)))


def attempts_at(rates: np.ndarray, number: int, seed: int) -> dict[str, list[AttemptOutcome]]:
    """Return attempts at each problem; a wrong one agrees with no other."""
    draws = np.random.default_rng(seed).random((len(rates), number)) < rates[:, None]
    return {
        f"p{place:06}": [
            (Outcome.CORRECT, 0) if right else (Outcome.WRONG, 1 + at) for at, right in enumerate(row.tolist())
        ]
        for place, row in enumerate(draws)
    }


def counted(name: str, outcomes: list[AttemptOutcome], policy: str) -> tuple[str, str, int, int, int]:
    """Return problem, policy, correct, judged and top wrong votes."""
    correct = sum(outcome is Outcome.CORRECT for outcome, _ in outcomes)
    return name, policy, correct, len(outcomes), min(1, len(outcomes) - correct)


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a rule comes to: counts of problems, and of attempts in all."""

    problems: int
    wrong: int
    other: int
    attempts: int

    def __str__(self) -> str:
        shares = [self.wrong / self.problems, self.other / self.problems]
        return f"{shares[0]:6.3f} {shares[1]:6.3f} {self.attempts / self.problems:8.2f}"


def stopping(
    problems: int, concentration: float | None, attempts: int, error_rate: float, prior: str, seed: int = 11
) -> Stopped:
    """Return what one rule comes to."""
    rates = simulated_rates(problems, {"first": -1.0, "second": 0.0}, concentration, seed=seed)
    band = Band(attempts=attempts, min_correct=attempts // 16)
    first, second = attempts_at(rates["first"], 16, seed + 1), attempts_at(rates["second"], attempts, seed + 2)
    exact, rule = StoppingRule(band), StoppingRule(band, error_rate=error_rate)
    names, anchor = list(second), set[str]()
    if prior == "model":
        anchor = set(names[:: max(1, problems // max(100, problems // 20))])
        before = StoppingRule(Band(attempts=16))
        schema = {**COUNTS, "top_wrong_votes": pl.Int64}
        old = [counted(name, first[name][: before.ending(first[name])[1]], "first") for name in names]
        own = {name: second[name][: exact.ending(second[name])[1]] for name in names if name in anchor}
        seen = pl.DataFrame([*old, *(counted(name, own[name], "second") for name in own)], schema, orient="row")
        told = learn_priors(
            seen.select(COUNTS.names()), seen, "second", pl.Series("problem", names), own, exact, error_rate
        )
        rule = rule.given(as_priors(told.table)) if told.hold else rule
    wrong = other = made = 0
    for name, rate in zip(names, rates["second"], strict=True):
        reason, needed = (exact if name in anchor else rule.of(name)).ending(second[name])
        wrong += (reason is None) != (LOWEST <= rate <= HIGHEST)
        other += reason != exact.ending(second[name])[0]
        made += needed
    return Stopped(problems, wrong, other, made)


def foretelling(path: Path) -> list[str]:
    """Return the lines of one file."""
    table = pl.DataFrame(list(recorded(path)), schema=COUNTS, orient="row")
    rng = np.random.default_rng(0)
    is_held = pl.Series(rng.random(table.height) < HELD_OUT)
    told, held = table.filter(~is_held), table.filter(is_held)
    told = told.with_columns(draw=pl.Series(rng.random(told.height))).with_columns(
        place=pl.col("draw").rank().over("problem")
    )
    most = int(told["place"].max())  # type: ignore[arg-type]
    found = []
    for number in [size for size in (1, 2, 3, 4, 6, 8, 11, 14, 20, 30, 50) if size < most] + [most]:
        part = told.filter(pl.col("place") <= number).select(COUNTS.names())
        rate = ((pl.col("correct").sum() + 0.5) / (pl.col("judged").sum() + 1)).alias("rate")
        rates = held.join(part.group_by("problem").agg(rate), on="problem", how="left", maintain_order="left")["rate"]
        of_rate = log_loss(held, rates.fill_null(0.5).to_numpy())
        found.append((number, of_rate, log_loss(held, chances(fit(part, slopes=True), part, held))))
    goal = found[-1][1]
    same = next((number for number, _, loss in found if loss <= goal), None)
    tells = f"{same} of {most}" if same is not None else "none"
    lines = [f"{path.stem:28} {number:9} {rate:6.3f} {model:6.3f}" for number, rate, model in found]
    return [*lines, f"{path.stem:28} as well as raw pass rates of all with {tells} attempts a problem"]


def large(problems: int, policies: int) -> str:
    """Return what a fit and all posteriors take where each policy made 4 attempts at each problem."""
    abilities = {f"m{number:02}": 0.25 * number - 2 for number in range(policies)}
    counts = simulated(problems, abilities, 4, 20.0, seed=1)
    counts = counts.with_columns(domain=pl.format("domain {}", pl.col("problem").hash(0) % DOMAINS))
    names, before = counts["problem"].unique().sort(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time(), time.monotonic()
    model = fit(counts, slopes=True)
    fitted = time.process_time() - began[0], time.monotonic() - began[1]
    problem_priors(model, counts, "m00", names, (0.5, 0.5), 0.1)
    done = time.process_time() - began[0], time.monotonic() - began[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        f"{problems:,} problems x {policies} policies, {DOMAINS} domains: 2PL in {fitted[0]:.1f} CPU s "
        f"({fitted[1]:.1f} s), priors of all in {done[0] - fitted[0]:.1f} CPU s ({done[1] - fitted[1]:.1f} s); "
        f"{memory / 2**20:.1f} GiB at most, {(memory - before) / 2**20:.1f} above the attempts themselves"
    )


if __name__ == "__main__":
    main()
