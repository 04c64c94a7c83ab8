"""What a refresh knows before it chooses: all attempts so far, its anchor's among them, and what follows from them.

Attempts of the run's stages and versions, of training since, and the anchor's own go into one item response model
(`curation.difficulty.anchor`); from it and the anchor's attempts follows how the refresh spends its attempts
(`curation.difficulty.refresh_forecast`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from curation.config import RefreshSettings
from curation.difficulty.anchor import Anchor, anchor_lines, anchored
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.observations import rollout_counts, stated_counts, with_domains
from curation.difficulty.refresh_forecast import RefreshForecast, foresee_refresh
from curation.storage.stages import read_table
from flows.publish.versions import Version, decisions_of, stored_versions
from flows.run.run_folder import Run
from flows.run.stage import Results
from flows.stages.attempts import problem_domains, stated_rates

_COLUMNS = ["problem", "policy", "correct", "judged"]


@dataclass(frozen=True, slots=True)
class AnchorResult:
    """What the anchor told, and what follows."""

    anchor: Anchor
    forecast: RefreshForecast

    @property
    def lines(self) -> list[str]:
        """Return it in words."""
        return [*anchor_lines(self.anchor), self.forecast.correction.sentence, self.forecast.sentence]

    @property
    def sides(self) -> pl.DataFrame:
        """Return the chances of each side of the band for the policy."""
        return self.forecast.sides

    @property
    def priors(self) -> pl.DataFrame | None:
        """Return the priors by which attempts end, where the anchor bears them out."""
        return self.forecast.priors if self.forecast.replay.holds else None

    def settings(self, settings: RefreshSettings) -> RefreshSettings:
        """Return the settings of a refresh with the probability of another decision from which a problem is judged."""
        if self.priors is None:
            return settings
        return settings.model_copy(update={"change_probability": self.forecast.threshold})


def anchor_result(
    counts: pl.DataFrame,
    policy: str,
    before: Version,
    decisions: pl.DataFrame,
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    settings: RefreshSettings,
) -> AnchorResult | None:
    """Return what the anchor tells; None where the verifier failed on all of it.

    Args:
        counts: of everyone, the policy's own on the anchor among them.
        attempts: the anchor's, in the order of the index, up to their stop by ``rule``.
    """
    anchor = anchored(counts, policy, before.policy)
    if anchor is None:
        return None
    return AnchorResult(anchor, foresee_refresh(anchor, decisions, attempts, rule, settings.error_rate))


def known_counts(run: Run, results: Results, trained: pl.DataFrame) -> pl.DataFrame:
    """Return problem, policy, correct and judged of all stages and versions of a run, of sources, of training since.

    Of equal policies those with the most attempts count.

    Args:
        trained: `curation.difficulty.refresh.ROLLOUT_COUNTS` rows.
    """
    parts = [read_table(result.folder, "decisions", _COLUMNS) for result in results.decisions]
    parts += [decisions_of(run.folder, version.number, _COLUMNS) for version in stored_versions(run.folder)]
    rows = pl.concat([part.select(_COLUMNS) for part in parts])
    judged = rows.sort(_COLUMNS).unique(_COLUMNS[:2], keep="last", maintain_order=True)
    further = [rollout_counts(trained)]
    if rates := stated_rates(run.recipe):
        problems = read_table(results.problems.folder, "kept", ["id", "source", "meta"])
        further += [stated_counts(problems, rates)] if problems.width else []
    return pl.concat([judged, *(part.select(_COLUMNS).cast(judged.schema) for part in further)])


def by_domain(results: Results, counts: pl.DataFrame) -> pl.DataFrame:
    """Return counts with the domains of all problems, where the run has several (`flows.stages.attempts`)."""
    problems = read_table(results.problems.folder, "kept", ["id", "source"])
    return with_domains(counts, problem_domains(problems) if problems.width else None)
