"""Read a set's decisions and counts, a shard at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import polars as pl

from curation.difficulty.item_response import rollout_counts, with_domain_column
from curation.difficulty.refresh import READ
from curation.difficulty.refresh_forecast import ForecastPart
from curation.records import PASS_RATE
from curation.storage.stages import read_shard
from flows.publish.versions import decisions_on, scan_decisions, stored_versions
from flows.run.run_folder import Run
from flows.run.stage import Results, shard_counts
from flows.stages.attempts import problem_domains

COUNTS = ["problem", "policy", "correct", "judged"]


@dataclass(frozen=True)
class RefreshParts:
    """A set's problems by shard, with newest version ``number``.

    Args:
        all_trained: `curation.difficulty.refresh.ROLLOUT_COUNTS` rows since that version.
        own: the new policy's counts on the anchor.
    """

    run: Run
    results: Results
    number: int
    all_trained: pl.DataFrame
    own: pl.DataFrame = field(default_factory=lambda: PASS_RATE.to_frame().select(COUNTS))

    def __iter__(self) -> Iterator[ForecastPart]:
        return (ForecastPart(self.decisions_of_shard(at), self.counts_of_shard(at)) for at in range(len(self)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @cached_property
    def trained(self) -> pl.DataFrame:
        """Return the rollouts at problems of the set."""
        if not self.all_trained.height:
            return self.all_trained
        named = pl.concat([self._names(index) for index in range(len(self))])
        return self.all_trained.filter(pl.col("problem").is_in(named.implode()))

    def decisions(self) -> Iterator[pl.DataFrame]:
        """Yield the decisions of the newest version."""
        return (self.decisions_of_shard(index) for index in range(len(self)))

    def decisions_of_shard(self, index: int) -> pl.DataFrame:
        """Return the newest version's decisions on a shard's problems, in order."""
        return self.version_of_shard(self.number, list(READ), index)

    def counts_of_shard(self, index: int) -> pl.DataFrame:
        """Return counts of all stages and versions, of the anchor and of training since.

        They have a column ``domain`` if there are several.
        """
        decided = [read_shard(result.folder, "decisions", index, COUNTS) for result in self.results.decisions]
        decided += [self.version_of_shard(number, COUNTS, index) for number in self._numbers]
        names = self._names(index).alias("problem").to_frame()
        further = (part.join(names, on="problem", how="semi") for part in (self._rollouts, self.own))
        counts = join_counts(decided, list(further))
        if not self._has_domains:
            return counts
        return with_domain_column(counts, self._domains(index))

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(shard_counts(self.results.problems.folder), initial=0))

    @cached_property
    def _numbers(self) -> list[int]:
        return [version.number for version in stored_versions(self.run.folder)]

    @cached_property
    def _rollouts(self) -> pl.DataFrame:
        return rollout_counts(self.trained)

    @cached_property
    def _has_domains(self) -> bool:
        domains: set[str] = set()
        for index in range(len(self)):
            domains.update(self._domains(index)["domain"].unique())
        return len(domains) > 1

    def _domains(self, index: int) -> pl.DataFrame:
        made = self.run.made_sources
        return problem_domains(self._problems(index, ["id", "source", *(["meta"] if made else [])]), made)

    def _problems(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        return read_shard(self.results.problems.folder, "kept", index, columns)

    def _names(self, index: int) -> pl.Series:
        return self._problems(index, ["id"])["id"]

    def version_of_shard(self, number: int, columns: list[str], index: int) -> pl.DataFrame:
        """Return a version's decisions on a shard's problems, in order."""
        table = scan_decisions(self.run.folder, number).select(columns)
        return decisions_on(table, self._names(index), self._starts[index])


def join_counts(decided: Sequence[pl.DataFrame], further: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the largest counts of decisions per problem and policy, and all further counts."""
    rows = pl.concat([part.select(COUNTS) for part in decided])
    judged = rows.sort(COUNTS).unique(COUNTS[:2], keep="last", maintain_order=True)
    return pl.concat([judged, *(part.select(COUNTS).cast(judged.schema) for part in further)])
