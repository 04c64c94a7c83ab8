"""Fit all attempts so far, including the anchor's, and plan how the refresh spends its attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curation.config import RefreshSettings
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.refresh_forecast import (
    FEW,
    Anchor,
    ForecastPart,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
)
from flows.pipelines.refresh_parts import COUNTS, RefreshParts
from flows.publish.versions import Version

FAR_WEAKER = 2.0
"""Logits below the policy that judged the set from which a policy is taken for a broken one. A policy that answers half
of the problems would answer an eighth of them."""


@dataclass(frozen=True, slots=True)
class AnchorResult:
    """What the anchor shows, and what follows."""

    anchor: Anchor
    forecast: RefreshForecast

    @property
    def lines(self) -> list[str]:
        """Return it in words."""
        return [*anchor_lines(self.anchor), self.forecast.correction.sentence, self.forecast.sentence]

    @property
    def is_far_weaker(self) -> bool:
        """Return whether the policy is so weak that its answers speak neither of the problems nor of their labels."""
        return self.anchor.shift is not None and self.anchor.shift < -FAR_WEAKER

    @property
    def gives_priors(self) -> bool:
        """Return whether the anchor bears the priors out by which attempts end."""
        return self.forecast.replay.holds

    def sides(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return the chances of each side of the band for the policy, of a shard's problems."""
        return self.forecast.shared.sides_of(shard, problems)

    def priors(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return the priors by which attempts at a shard's problems end."""
        return self.forecast.shared.priors_of(shard, problems, self.forecast.threshold)

    def settings(self, settings: RefreshSettings) -> RefreshSettings:
        """Return the settings of a refresh with the probability of another decision from which a problem is judged."""
        if not self.gives_priors:
            return settings
        return settings.model_copy(update={"change_probability": self.forecast.threshold})


def anchor_result(
    parts: RefreshParts,
    own: pl.DataFrame,
    policy: str,
    before: Version,
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    settings: RefreshSettings,
) -> AnchorResult | None:
    """Return what the anchor shows; None where the verifier failed on all of it.

    Args:
        own: problem, policy, correct and judged of the policy on the anchor.
        attempts: the anchor's, in the order of the index, up to their stop by ``rule``.
    """
    anchor = anchored(_met_counts(parts, own.select(COUNTS), policy), policy, before.policy)
    if anchor is None:
        return None
    read = _ForecastParts(parts, own.select(COUNTS))
    return AnchorResult(anchor, foresee_refresh(anchor, read, attempts, rule, settings.error_rate))


@dataclass(frozen=True, slots=True)
class _ForecastParts:
    """All shards as a forecast reads them, each time anew."""

    parts: RefreshParts
    own: pl.DataFrame

    def __iter__(self) -> Iterator[ForecastPart]:
        return (self.parts.forecast_part(index, self.own) for index in range(len(self.parts)))


def _met_counts(parts: RefreshParts, own: pl.DataFrame, policy: str) -> pl.DataFrame:
    """Return everyone's counts at the problems that the policy has tried; at all problems where these are few."""
    met, tried = [], 0
    for index in range(len(parts)):
        counts = parts.counts_of_shard(index, own)
        names = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0)).select("problem")
        met.append(counts.join(names, on="problem", how="semi", maintain_order="left"))
        tried += names["problem"].n_unique()
    if tried >= FEW:
        return pl.concat(met)
    return pl.concat([parts.counts_of_shard(index, own) for index in range(len(parts))])
