"""Fit all attempts with the anchor's, and plan the refresh's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from curation.config import RefreshSettings
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.refresh_forecast import (
    FEW,
    Anchor,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
)
from flows.pipelines.refresh_parts import COUNTS, RefreshParts
from flows.publish.versions import Version

FAR_WEAKER = 2.0
"""Logits below the set's policy from which a policy counts as broken."""


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
        """Return whether the policy is too weak to judge problems or labels."""
        return self.anchor.shift is not None and self.anchor.shift < -FAR_WEAKER

    @property
    def gives_priors(self) -> bool:
        """Return whether the anchor confirms the priors."""
        return self.forecast.replay.holds

    def sides(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return each side of the band's probability, for a shard's problems."""
        return self.forecast.shared.sides_of(shard, problems)

    def priors(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return the stopping priors of a shard's problems."""
        return self.forecast.shared.priors_of(shard, problems, self.forecast.threshold)

    def threshold(self, settings: RefreshSettings) -> float:
        """Return the min probability of another decision to judge a problem again: the forecast's if priors hold."""
        return self.forecast.threshold if self.gives_priors else settings.change_probability


def anchor_result(
    parts: RefreshParts,
    own: pl.DataFrame,
    policy: str,
    before: Version,
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    settings: RefreshSettings,
) -> AnchorResult | None:
    """Return the anchor's results; None if the verifier failed on all of it.

    Args:
        own: the policy's counts on the anchor.
        attempts: the anchor's, up to their stop by ``rule``.
    """
    parts = replace(parts, own=own.select(COUNTS))
    anchor = anchored(_met_counts(parts, policy), policy, before.policy)
    if anchor is None:
        return None
    return AnchorResult(anchor, foresee_refresh(anchor, parts, attempts, rule, settings.error_rate))


def _met_counts(parts: RefreshParts, policy: str) -> pl.DataFrame:
    """Return counts on problems that the policy tried; on all if fewer than `FEW`."""
    met, tried = [], 0
    for part in parts:
        names = part.counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0)).select("problem")
        met.append(part.counts.join(names, on="problem", how="semi", maintain_order="left"))
        tried += names["problem"].n_unique()
    return pl.concat(met if tried >= FEW else [part.counts for part in parts])
