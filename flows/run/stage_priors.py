"""Learn a difficulty stage's priors from earlier policies and an anchor.

A problem's prior never uses its own attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import polars as pl

from curation.difficulty.early_stopping import AttemptOutcome, Prior, StoppingRule
from curation.difficulty.item_response import with_domains
from curation.difficulty.priors import PRIOR, LearntPriors, learn_priors
from curation.difficulty.refresh import spread_sample
from curation.difficulty.sampling import SampledProblem
from curation.records import COUNTED_OUTCOMES, Outcome
from curation.verify.math_judge import Verdict

ANCHOR_SHARE, ANCHOR_LEAST = 0.05, 100
"""Share and min number of anchor problems; nothing is learnt if they exceed half of all."""

_RATES = pl.Schema(
    {
        "problem": pl.String(),
        "policy": pl.String(),
        "correct": pl.Int64(),
        "judged": pl.Int64(),
        "top_wrong_votes": pl.Int64(),
    }
)

_COUNTS = pl.Schema({name: _RATES[name] for name in ("problem", "policy", "correct", "judged")})

RATES = tuple(_RATES)


@dataclass(frozen=True, slots=True)
class PriorLearner:
    """Learns a stage's priors.

    Args:
        problems: the stage's ids; ``anchor``: those sampled first.
        counts: others' attempts: problem, policy, correct, judged.
        rates: others' `RATES`.
        doubtful_is_open: doubtful verdicts count as broken.
        domains: problem, domain, if distinguished.
    """

    rule: StoppingRule
    policy: str
    problems: pl.Series
    anchor: tuple[str, ...]
    counts: pl.DataFrame
    rates: pl.DataFrame
    doubtful_is_open: bool
    domains: pl.DataFrame | None = None

    @property
    def exact(self) -> StoppingRule:
        """Return the anchor's rule, which stops at a certain decision."""
        return StoppingRule(self.rule.band)

    def learn(self, sampled: Sequence[SampledProblem]) -> LearntPriors:
        """Return all priors outside the anchor."""
        attempts = {item.problem: self.outcomes(item.verdicts) for item in sampled}
        own = pl.DataFrame(
            [(name, self.policy, *_counts(rows)) for name, rows in attempts.items()], _RATES, orient="row"
        )
        counts = pl.concat([self.counts, own.select(self.counts.columns).cast(self.counts.schema)])
        counts = with_domains(counts, self.domains)
        rates = pl.concat([self.rates, own.cast(self.rates.schema)])
        return learn_priors(counts, rates, self.policy, self.problems, attempts, self.exact, self.rule.error_rate)

    def table(self, learnt: LearntPriors) -> pl.DataFrame:
        """Return the stage's `PRIOR` rows; the anchor's foresee nothing."""
        of_anchor = exact_priors(self.anchor)
        return pl.concat([of_anchor, learnt.table]) if learnt.hold else of_anchor

    def outcomes(self, verdicts: Mapping[int, Verdict]) -> list[AttemptOutcome]:
        """Return a problem's attempts for the stopping rule."""
        outcomes: list[AttemptOutcome] = []
        for index in range(max(verdicts, default=-1) + 1):
            verdict = verdicts.get(index)
            if verdict is None:
                outcomes.append((None, None))
            elif self.doubtful_is_open and verdict.is_doubtful:
                outcomes.append((Outcome.BROKEN, None))
            else:
                outcomes.append((verdict.outcome, verdict.answer_class))
        return outcomes


def prior_learner(
    rule: StoppingRule,
    policy: str,
    problems: pl.Series,
    counts: pl.DataFrame,
    rates: pl.DataFrame,
    *,
    doubtful_is_open: bool,
    domains: pl.DataFrame | None = None,
) -> PriorLearner | None:
    """Return a stage's learner; None if unwanted or the anchor would exceed half."""
    size = max(ceil(ANCHOR_SHARE * len(problems)), ANCHOR_LEAST)
    if rule.error_rate == 0 or 2 * size > len(problems):
        return None
    counts, rates = (frame.filter(pl.col("policy") != policy) for frame in (counts, rates))
    seen = counts.group_by("problem").agg(rate=pl.col("correct").sum() / pl.col("judged").sum().clip(1))
    rated = (
        problems.alias("problem")
        .to_frame()
        .join(seen, on="problem", how="left")
        .with_columns(pl.col("rate").fill_null(-1.0))
    )
    anchor = spread_sample(rated, ["rate"], size, 1)
    of_others = rates.select(RATES).cast(_RATES)
    counts = counts.cast(_COUNTS)
    return PriorLearner(rule, policy, problems, tuple(anchor), counts, of_others, doubtful_is_open, domains)


def exact_priors(problems: Sequence[str]) -> pl.DataFrame:
    """Return `PRIOR` rows that foresee nothing."""
    prior = Prior()
    row = prior.correct, prior.other, prior.agree, prior.differ, 0.0, ""
    return pl.DataFrame([(name, *row) for name in problems], PRIOR, orient="row")


def _counts(outcomes: Sequence[AttemptOutcome]) -> tuple[int, int, int]:
    votes = Counter(answer_class for _, answer_class in outcomes if answer_class)
    correct = sum(outcome is Outcome.CORRECT for outcome, _ in outcomes)
    judged = sum(outcome in COUNTED_OUTCOMES for outcome, _ in outcomes)
    return correct, judged, max(votes.values(), default=0)
