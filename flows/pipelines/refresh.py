"""The refresh: a new checkpoint judges again what has become uncertain, and the set gets its next version.

Problems are chosen by `curation.difficulty.refresh`; they are sampled, judged and decided on as in the line's last
stage, with the same band; all others keep their pass rate with its policy and its day. Everything of a refresh lies in
the folder of the version that it makes (`flows.publish.versions`); one that was killed goes on there when it is started
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
from prefect import flow

from curation.config import Recipe
from curation.difficulty import pass_rates
from curation.difficulty.refresh import ROLLOUT_COUNTS
from curation.difficulty.refresh import VERSION as REFRESH_VERSION
from curation.difficulty.refresh import select_uncertain as select_uncertain
from curation.publish import export, review, versions
from curation.records import StoreError
from curation.storage.stages import Shard, StageFolder, file_digest, lock_folder, read_shard, read_table
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.curating import as_task
from flows.pipelines.refresh_inputs import read_trained, with_policy
from flows.publish import curated_set
from flows.publish.artifacts import show_set
from flows.publish.versions import (
    Cause,
    RefreshedRun,
    Version,
    decisions_of,
    refreshed_run,
    settle_version,
    stored_versions,
    summary,
    version_folder,
)
from flows.run.funnel import status
from flows.run.pipeline import read_results, run_pipeline, run_stage
from flows.run.policies import open_policy
from flows.run.run_folder import Run, difficulty_stage, open_run
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun, shard_counts
from flows.stages.attempts import attempt_store, attempts_of, measured_on, stopping_rule
from flows.stages.decisions import decide_with_reviews
from flows.stages.verdicts import verdicts_of

CHOSEN = "chosen"
"""In the folder of a version: the problems that were judged again for it."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a refresh came to. ``chosen`` counts the problems judged again by why; ``version`` is the set's newest.

    ``is_repeated`` says that this very refresh had made the version before, so that nothing was done.
    """

    version: Version
    is_new: bool
    chosen: Mapping[str, int]
    cost: Mapping[str, int]
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class _PublishedRun:
    """The finished pipeline behind a set; ``results`` are its filters and its decisions."""

    run: Run
    results: Results
    newest: Version
    before: Version | None


@flow(name="refresh", persist_result=False)
def refresh(folder: Path, policy: Path, attempts: Path | None = None) -> RefreshResult:
    """Judge again what has become uncertain, publish the next version, say what it took and what changed.

    Args:
        folder: of a finished run.
        policy: a checkpoint's folder, or a TOML file with a table ``policy`` as in a recipe.
        attempts: attempts that training made since, in the columns of `curation.difficulty.refresh.ROLLOUT_COUNTS`.
    """
    folder = folder.absolute()
    with lock_folder(folder):
        line = _line(open_run(folder))
        recipe, home = with_policy(line.run, policy)
        if curated_set.published_version(line.run) != line.newest.number and line.newest.origin == "refresh":
            done = _show(line, line.newest)  # a refresh that was killed while it published
            name = open_policy(difficulty_stage(recipe, line.run.parts[-1]).policy, home).key.policy
            if name == line.newest.policy:
                return done
        if _is_repeated(refreshed_run(Run(folder, recipe, home), line.newest), line, attempts):
            return RefreshResult(line.newest, False, {}, {}, is_repeated=True)
        run = RefreshedRun(folder, recipe, home, version_folder(folder, line.newest.number + 1))
        chosen = choose_problems(run, line, attempts)
        if not chosen.manifest.kept:
            return RefreshResult(line.newest, False, {}, {})
        part = run.parts[-1]
        results = run_pipeline(run, (attempts_of(part), verdicts_of(part)), as_task, Results((chosen,)))
        return _publish(run, line, results)


def choose_problems(run: RefreshedRun, line: _PublishedRun, attempts: Path | None) -> StageResult:
    """Choose the problems to judge again, as a stage in the shards of the pipeline; beside them, why."""
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    trained = read_trained(attempts) if attempts is not None else ROLLOUT_COUNTS.to_frame()
    old, number = decisions_of(run.folder, line.newest.number), line.newest.number + 1
    chosen = select_uncertain(old, trained, band, run.recipe.refresh, number, _policy_of(run))

    def choose(job: StageRun) -> StageResult:
        problems = job.problems.folder

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index).join(chosen, left_on="id", right_on="problem", how="inner")
            why = frame.select(problem="id", why="why")
            return Shard(frame.height, {"kept": frame.drop("why"), "why": why})

        counts = shard_counts(problems)
        shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
        return job.compute(_chosen_folder(run, line, line.newest, attempts), shards, total=sum(counts))

    folder = str((run.place / CHOSEN).relative_to(run.folder))
    return run_stage(Stage(name=CHOSEN, title=CHOSEN, folder=folder, work=choose), run, line.results)


def _chosen_folder(run: RefreshedRun, line: _PublishedRun, before: Version, attempts: Path | None) -> StageFolder:
    """Return the folder of what is chosen for the version after ``before``, by all that a refresh depends on."""
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    seen = file_digest(attempts) if attempts is not None else ""
    made_by = f"{run.recipe.refresh.digest()} {band.digest()} {_policy_of(run)} {seen}"
    problems = line.results.problems
    made_from = {problems.name: problems.manifest.digest, "version": before.digest}
    return StageFolder(run.place / CHOSEN, CHOSEN, REFRESH_VERSION, made_by, made_from)


def _is_repeated(run: RefreshedRun, line: _PublishedRun, attempts: Path | None) -> bool:
    """Return whether the newest version came of this very refresh: the same policy, settings and attempts of training.

    Without this, the next share of the probed and retried would be judged by a policy that nobody has trained since.
    """
    if line.newest.origin != "refresh" or line.before is None or (attempts is not None and not attempts.is_file()):
        return False
    return _chosen_folder(run, line, line.before, attempts).manifest() is not None


def _policy_of(run: RefreshedRun) -> str:
    """Return who judges again, as attempts are filed: ``model@revision``."""
    return open_policy(difficulty_stage(run.recipe, run.parts[-1]).policy, run.recipe_folder).key.policy


def _publish(run: RefreshedRun, line: _PublishedRun, results: Results) -> RefreshResult:
    """Decide, make the next version of old and new decisions, and publish it."""
    part, old = run.parts[-1], decisions_of(run.folder, line.newest.number)
    chosen, verdicts = results.problems, results[verdicts_of(part)]
    settings = difficulty_stage(run.recipe, part)
    rule = stopping_rule(settings)
    names = read_table(chosen.folder, "kept", ["id"])["id"]
    policy = _policy_of(run)
    stopped = read_table(verdicts.folder, "stopped")["problem"]
    rates = pass_rates.pass_rates(names, read_table(verdicts.folder, "verdicts"), policy, rule, stopped)
    new = decide_with_reviews(rates, settings, part, review.read_verdicts(run.folder))
    new = new.with_columns(measured_on=pl.lit(measured_on(run, part)))
    table = merge_decisions(old, new, line, run.recipe)
    cost = {
        "problems": len(names),
        **_spent(run, results[attempts_of(part)], verdicts),
        "kept_rates": table.height - len(names),
    }
    root = line.newest.root
    version = settle_version(run, table, verdicts.folder.name, Cause("refresh", policy, root, cost))
    if version.number == line.newest.number:
        return RefreshResult(version, False, _why(chosen.folder), cost)
    return _show(line, version)


def _show(line: _PublishedRun, version: Version) -> RefreshResult:
    """Publish a refreshed version, and show it on Prefect's page."""
    run = refreshed_run(line.run, version)
    curated = curated_set.republish(line.run, version, line.results)
    stages = status(run, pipeline_of(run.recipe), version.verifier)
    funnel = [one.row for one in stages if one.finished and one.is_shown]
    show_set(line.run.recipe.name, curated, funnel)
    return RefreshResult(version, True, _why(run.place / CHOSEN), version.cost)


def _spent(run: RefreshedRun, made: StageResult, verdicts: StageResult) -> dict[str, int]:
    """Return the attempts that count and their tokens, however often the refresh was killed in between."""
    counted = read_table(verdicts.folder, "verdicts").select("problem", "index")
    held = attempt_store(run, made).read(counted["problem"].unique().to_list(), ["problem", "index", "tokens"])
    tokens = held.join(counted, on=["problem", "index"], how="semi")["tokens"].sum()
    return {"attempts": counted.height, "tokens": int(tokens or 0)}


def _why(chosen: Path) -> dict[str, int]:
    return dict(Counter(read_table(chosen, "why")["why"].to_list()))


def merge_decisions(old: pl.DataFrame, new: pl.DataFrame, line: _PublishedRun, recipe: Recipe) -> pl.DataFrame:
    """Return the decisions of the next version: the new ones in place of the old, and who stands in a set of its size.

    Args:
        old: `curation.publish.versions.KEPT` rows.
        new: the same without ``published``, of problems that are in ``old``.
    """
    order = old.select("problem")
    rest = old.drop("published").join(new, on="problem", how="anti")
    both = order.join(pl.concat([rest, new.select(rest.columns)]), on="problem", how="left", maintain_order="left")
    index = read_table(line.results.problems.folder, "kept", ["id", "group", "source", "weight"])
    index = index.join(both.filter("keep"), left_on="id", right_on="problem", how="semi", maintain_order="left")
    leaving = export.over_quota(index, recipe.export.size, recipe.seed) if index.height else {}
    stays = pl.col("keep") & ~pl.col("problem").is_in(list(leaving))
    return both.with_columns(published=stays).select(versions.KEPT.names()).cast(versions.KEPT)


def _line(run: Run) -> _PublishedRun:
    """Return the stages of a finished run as they lie on disk.

    Raises:
        StoreError: the run is not finished, or its recipe has changed since.
    """
    curated_set.restore(run.folder)
    known = stored_versions(run.folder)
    if not known or not curated_set.is_published(run):
        raise StoreError(f"{run.folder} holds no finished run of its recipe; finish it with `goldilocks run`.")
    newest = known[-1]
    verifier = next(version.verifier for version in known if version.digest == newest.root)
    stages = [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind in (Kind.FILTER, Kind.DECISION)]
    before = known[-2] if len(known) > 1 else None
    return _PublishedRun(run, read_results(run, stages, verifier), newest, before)


def summarise_refresh(done: RefreshResult) -> list[str]:
    """Return what a refresh did, in lines."""
    if done.is_repeated:
        return [f"judged already with this policy, so nothing was done: {summary(done.version)}"]
    if not done.chosen:
        return [f"nothing has become uncertain: {summary(done.version)}"]
    why = ", ".join(f"{name} {count:,}" for name, count in sorted(done.chosen.items()))
    lines = [
        f"judged again: {done.cost['problems']:,} problems ({why}) with {done.cost['attempts']:,} new attempts, "
        f"{done.cost['tokens']:,} tokens; {done.cost['kept_rates']:,} problems keep their pass rates",
        summary(done.version),
    ]
    return lines if done.is_new else [*lines, "no new version: nothing is different"]
