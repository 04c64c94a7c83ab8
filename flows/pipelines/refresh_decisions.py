"""Combine a refresh's decisions with the old ones, shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.difficulty import pass_rates
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.label_trust import suspect_labels
from curation.difficulty.pass_rates import failed_verdicts
from curation.publish import export, versions
from curation.records import DropReason
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import scan_table
from curation.storage.stages import read_shard, read_table, write_parquet
from flows.pipelines.refresh_parts import RefreshParts
from flows.publish.versions import RefreshedRun
from flows.run.run_folder import difficulty_stage, verdicts_of_people
from flows.run.stage import Results, shard_counts
from flows.stages.attempts import attempt_store, attempts_of, measured_on, rule_of_shard, stopping_rule
from flows.stages.decisions import decide_with_reviews
from flows.stages.labels import label_shards
from flows.stages.questions import final_verdicts

_STORED = [name for name in versions.KEPT.names() if name != "published"]


@dataclass(frozen=True, slots=True)
class JudgedShard:
    """A shard's pass rates and verdicts in a refresh; ``rule`` includes priors."""

    index: int
    rates: pl.DataFrame
    verdicts: pl.DataFrame
    rule: StoppingRule


def judged_shards(run: RefreshedRun, results: Results, policy: str) -> Iterator[JudgedShard]:
    """Yield what the policy judged, by shard."""
    part = run.parts[-1]
    folder, sampled = results[final_verdicts(run, part)].folder, results[attempts_of(part)].folder
    base = stopping_rule(difficulty_stage(run.recipe, part))
    for index in range(len(shard_counts(results.problems.folder))):
        names = read_shard(results.problems.folder, "kept", index, ["id"])["id"]
        verdicts = read_shard(folder, "verdicts", index)
        stopped = read_shard(folder, "stopped", index)["problem"]
        rule = rule_of_shard(base, sampled, index)
        yield JudgedShard(index, pass_rates.pass_rates(names, verdicts, policy, rule, stopped), verdicts, rule)


@contextmanager
def merged_decisions(
    run: RefreshedRun, parts: RefreshParts, results: Results, policy: str, *, accuses: bool = True
) -> Iterator[tuple[pl.LazyFrame, dict[str, int]]]:
    """Yield the next version's decisions as `curation.publish.versions.KEPT` rows, and their cost.

    The rows are in a temporary folder during the block.

    Args:
        parts: of the version before.
        accuses: whether suspected labels may change.
    """
    scratch = ScratchFolder("decisions")
    try:
        place = Path(scratch.path)
        cost = _write_merged(place, run, parts, results, policy, accuses=accuses)
        decisions = scan_table(place, "decisions")
        over_quota = _over_quota(decisions, parts.results, run) if run.recipe.export.size is not None else []
        stays = pl.col("keep") & ~pl.col("problem").is_in(over_quota)
        yield decisions.with_columns(published=stays).select(versions.KEPT.names()).cast(versions.KEPT), cost
    finally:
        scratch.remove()


def _write_merged(
    place: Path, run: RefreshedRun, parts: RefreshParts, results: Results, policy: str, *, accuses: bool
) -> dict[str, int]:
    part = run.parts[-1]
    verifier = results[final_verdicts(run, part)].folder.name
    store, day = attempt_store(run, results[attempts_of(part)]), measured_on(run, part, verifier)
    opened = label_shards(run, parts.results, verifier) if run.recipe.weighs_labels else nullcontext()
    cost = dict.fromkeys(("problems", "attempts", "tokens", "kept_rates"), 0)
    with opened as labels:
        for judged in judged_shards(run, results, policy):
            trust = labels.read(judged.index) if labels is not None and labels.decides else None
            old = parts.version_of_shard(parts.number, _STORED, judged.index)
            new = _decided(run, judged, trust, accuses=accuses).with_columns(measured_on=pl.lit(day))
            if not accuses:
                suspected = old.filter(pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL.value)
                new = new.join(suspected, on="problem", how="anti", maintain_order="left")
            merged = old.update(new.select(_STORED).cast(old.schema), on="problem", include_nulls=True)
            write_parquet(place / "decisions" / f"{judged.index:05}.parquet", merged)
            counted = judged.verdicts.select("problem", "index")
            attempts = store.read(counted["problem"].unique().to_list(), ["problem", "index", "tokens"])
            tokens = attempts.join(counted, on=["problem", "index"], how="semi")["tokens"].sum()
            made = (new.height, counted.height, int(tokens or 0), old.height - new.height)
            cost = {name: cost[name] + more for name, more in zip(cost, made, strict=True)}
    return cost


def _decided(run: RefreshedRun, judged: JudgedShard, trust: pl.DataFrame | None, *, accuses: bool) -> pl.DataFrame:
    part = run.parts[-1]
    settings, rule = difficulty_stage(run.recipe, part), judged.rule
    failures = failed_verdicts(pass_rates.counted_verdicts(judged.verdicts, rule))
    by_votes = accuses and (trust is None or run.recipe.labels.rule == "posterior")
    reviews = verdicts_of_people(run)
    new = decide_with_reviews(judged.rates, settings, part, reviews, failures, rule, by_votes=by_votes)
    if trust is None or not accuses:
        return new
    return suspect_labels(new, trust.join(new, on="problem", how="semi"), run.recipe.labels.drop_above)


def _over_quota(decisions: pl.LazyFrame, filtered: Results, run: RefreshedRun) -> list[str]:
    index = read_table(filtered.problems.folder, "kept", ["id", "group", "source", "weight"])
    kept = decisions.filter("keep").select("problem").collect()
    index = index.join(kept, left_on="id", right_on="problem", how="semi", maintain_order="left")
    size, seed = run.recipe.export.size, run.recipe.seed
    return export.over_quota(index, size, seed)["id"].to_list() if size is not None and index.height else []
