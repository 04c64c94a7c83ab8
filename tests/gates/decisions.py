"""Decisions on difficulty by attempts that were recorded or are simulated: early stopping, refreshes, wrong labels.

Recorded attempts are drawn again where more are wanted than a problem has (a bootstrap). Simulated ones of a pool: p is
drawn from Beta(a, b); wrong answers agree on one top wrong answer with probability 0.4, hold no answer with 0.1, else
are one of five others. Of simulated policies a wrong attempt agrees with no other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from curation.config import Band, LabelSettings, RefreshSettings
from curation.difficulty.early_stopping import AttemptOutcome, OutcomeTally, StoppingRule
from curation.difficulty.label_trust import accused_by_votes, check_by_planting, fit_labels, label_posteriors
from curation.difficulty.label_votes import ANSWERS, VoteParts
from curation.difficulty.priors import as_priors, learn_priors
from curation.difficulty.refresh import anchor_of_parts, uncertain_of_part
from curation.difficulty.refresh_forecast import ForecastPart, anchored, foresee_refresh
from curation.records import DECISION, Outcome
from tests.benchmarks.labelled_attempts import Answers, PlantedLabels, votes_of
from tests.curation.difficulty.simulated import COUNTS, simulated_rates

CONCENTRATIONS, SHIFTS = (None, 20.0, 5.0), (0.0, 0.3, 1.0, 1.5, 2.0, -1.0)
"""How alike policies are (None: but for their strength), and steps in strength, in logits."""

POOLS = {"uniform": (1.0, 1.0), "Beta(.5,.5)": (0.5, 0.5), "Beta(.5,1)": (0.5, 1.0), "Beta(1,.5)": (1.0, 0.5)}
LOWEST, HIGHEST = 1 / 16, 0.75
"""True pass rates of problems that a right decision keeps."""


def recorded(path: Path) -> list[list[AttemptOutcome]]:
    """Return recorded attempts, problem by problem; wrong answers that are written alike are the same."""
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


def simulated_pool(a: float, b: float, n: int, problems: int, draw: random.Random) -> list[list[AttemptOutcome]]:
    """Return ``problems`` sequences of n attempts of a pool."""
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
    """What exact early stopping saves, a share of all attempts, and in how many decisions it differs."""

    saved: float
    differ: int


def exactly_stopped(attempts: int, sequences: Sequence[Sequence[AttemptOutcome]]) -> Saved:
    """Return what exact early stopping comes to on sequences of so many attempts."""
    rule = StoppingRule(Band(attempts=attempts))
    made = differ = 0
    for outcomes in sequences:
        at = rule.counts_at_stop(outcomes).requested
        made += at
        differ += _decision(rule, outcomes[:at]) != _decision(rule, outcomes)
    return Saved(1 - made / (len(sequences) * attempts), differ)


def _decision(rule: StoppingRule, outcomes: Sequence[AttemptOutcome]) -> str | None:
    tally = OutcomeTally()
    for outcome, answer_class in outcomes:
        tally.add(outcome, answer_class)
    now = tally.counts
    return rule.reason(now.correct, now.top_wrong, now.judged, now.attempts)


def _drawn(rates: np.ndarray, number: int, rng: np.random.Generator) -> dict[str, list[AttemptOutcome]]:
    """Return ``number`` attempts at each problem, by its name."""
    draws = rng.random((len(rates), number)) < rates[:, None]
    return {
        f"p{place:06}": [
            (Outcome.CORRECT, 0) if right else (Outcome.WRONG, 1 + at) for at, right in enumerate(row.tolist())
        ]
        for place, row in enumerate(draws)
    }


def _correct(outcomes: Sequence[AttemptOutcome]) -> int:
    return sum(outcome is Outcome.CORRECT for outcome, _ in outcomes)


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a rule comes to: counts of problems, and of attempts in all.

    ``wrong``: the decision is not that of the true pass rate; ``other``: it is not that of all attempts.
    """

    problems: int
    wrong: int
    other: int
    attempts: int


def stopped_by_the_model(
    problems: int, concentration: float | None, attempts: int, error_rate: float, seed: int
) -> Stopped:
    """Return what early stopping with the model's priors comes to.

    One policy judges all problems in full, a policy one logit better judges them again; an anchor is sampled in full.
    """
    rates = simulated_rates(problems, {"first": -1.0, "second": 0.0}, concentration, seed=seed)
    first = _drawn(rates["first"], 16, np.random.default_rng(seed + 1))
    second = _drawn(rates["second"], attempts, np.random.default_rng(seed + 2))
    band = Band(attempts=attempts, min_correct=attempts // 16)
    exact, rule, before = StoppingRule(band), StoppingRule(band, error_rate=error_rate), StoppingRule(Band(attempts=16))
    names = list(second)
    anchor = set(names[:: max(1, problems // max(100, problems // 20))])

    def counted(name: str, outcomes: list[AttemptOutcome], policy: str) -> tuple[str, str, int, int, int]:
        correct = _correct(outcomes)
        return name, policy, correct, len(outcomes), min(1, len(outcomes) - correct)

    old = [counted(name, first[name][: before.ending(first[name])[1]], "first") for name in names]
    own = {name: second[name][: exact.ending(second[name])[1]] for name in names if name in anchor}
    schema = {**COUNTS, "top_wrong_votes": pl.Int64}
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


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A refresh against a full judgement: the share of decisions that differ, and of attempts that it makes."""

    differ: float
    cost: float


def refreshed(problems: int, shift: float, concentration: float | None) -> Refreshed:
    """Return what a refresh with an anchor comes to, by a simulated policy `shift` logits stronger than the earlier."""
    band, settings = Band(attempts=16), RefreshSettings()
    exact = StoppingRule(band)
    rates = simulated_rates(problems, {"old": 0.0, "new": shift}, concentration, seed=1)
    rng = np.random.default_rng(2)
    first, tried = _drawn(rates["old"], band.attempts, rng), _drawn(rates["new"], band.attempts, rng)
    old, new = (
        {name: (reason, _correct(outcomes[:stop]), stop) for name, outcomes in attempts.items()
         for reason, stop in [exact.ending(outcomes)]}
        for attempts in (first, tried)
    )  # fmt: skip
    rows = [
        {"problem": name, "keep": reason is None, "reason": reason, "correct": correct, "judged": made, "policy": "old"}
        | {"top_wrong_votes": min(1, made - correct)}
        for name, (reason, correct, made) in old.items()
    ]
    decisions = pl.DataFrame([{**dict.fromkeys(DECISION), **row} for row in rows], schema=DECISION)
    anchor = anchor_of_parts([decisions], 2, "new")["problem"].to_list()
    counts = [(name, "old", *known[1:]) for name, known in old.items()]
    counts += [(name, "new", *new[name][1:]) for name in anchor]
    told = anchored(pl.DataFrame(counts, schema=COUNTS, orient="row"), "new", "old")
    assert told is not None
    of_anchor = {name: tried[name][: new[name][2]] for name in anchor}
    forecast = foresee_refresh(told, [ForecastPart(decisions, told.counts)], of_anchor, exact, settings.error_rate)
    chosen, rule = settings.change_probability, exact
    if forecast is not None and forecast.replay.holds:
        chosen, rule = forecast.threshold, exact.given(as_priors(forecast.priors_of(0)))
    sides = forecast.sides_of(0) if forecast is not None else None
    asked = {*uncertain_of_part(decisions, {}, band, chosen, 2, "new", sides)["problem"], *anchor}
    ends = {name: (exact if name in of_anchor else rule).of(name).ending(tried[name]) for name in asked}
    differ = sum((ends[name] if name in ends else old[name])[0] != new[name][0] for name in tried)
    made = sum(stop for _, stop in ends.values())
    return Refreshed(differ / problems, made / sum(stop for _, _, stop in new.values()))


def accused(answers: Answers, planted: PlantedLabels) -> set[str]:
    """Return the problems whose labels a run accuses: by the posterior, or by votes if planting shows them better."""
    drop_above, votes = LabelSettings().drop_above, votes_of(answers, planted)
    voters = votes["policy"].unique().to_list()
    model = fit_labels(votes)
    with TemporaryDirectory() as folder:
        stored = VoteParts([(votes, ANSWERS.to_frame())], Path(folder))
        check = check_by_planting(stored, voters, drop_above, seed=99, start=model)
    if check is not None and not check.posterior_holds:
        return accused_by_votes(votes, voters)
    labels = label_posteriors(model, votes, votes["problem"].unique().sort())
    return set(labels.filter(pl.col("wrong_label") >= drop_above)["problem"])
