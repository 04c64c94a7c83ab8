"""Judge uncertain problems again with a new checkpoint and make the set's next version.

Other problems keep pass rate, policy and day. A killed refresh resumes in its version's folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from curation.difficulty import pass_rates
from curation.difficulty.early_stopping import AttemptOutcome
from curation.difficulty.refresh import (
    REFRESH_CHOICE,
    ROLLOUT_COUNTS,
    anchor_of_parts,
    trained_counts,
    uncertain_of_part,
)
from curation.difficulty.refresh import VERSION as REFRESH_VERSION
from curation.records import PASS_RATE, PolicyError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import Shard, StageFolder, file_digest, read_shard
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.refresh_anchor import AnchorResult, anchor_result
from flows.pipelines.refresh_decisions import judged_shards, merged_decisions
from flows.pipelines.refresh_inputs import read_trained, with_policy
from flows.pipelines.refresh_levels import LevelChoice, drawn_levels, save_choices, stored_choices
from flows.pipelines.refresh_parts import COUNTS, RefreshParts
from flows.publish import curated_set
from flows.publish.artifacts import show_in_prefect
from flows.publish.versions import (
    RefreshedRun,
    Version,
    refreshed_run,
    settle_version,
    stored_versions,
    summary,
    version_folder,
)
from flows.run import retries
from flows.run.funnel import status
from flows.run.history import recorded
from flows.run.pipeline import read_results, run_pipeline, run_stage
from flows.run.policies import open_policy
from flows.run.policy_session import keep_open
from flows.run.run_folder import Run, difficulty_stage, open_run, stage_model
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun, shard_counts
from flows.run.stage_priors import exact_priors
from flows.stages.attempts import attempts_of, stopping_rule
from flows.stages.labels import keep_labels
from flows.stages.questions import doubtful_verdicts_of, final_verdicts

CHOSEN = "chosen"
"""In a version's folder: the problems judged again for it."""

ANCHOR = "anchor"
"""In a version's folder: the anchor's problems, attempts and verdicts."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """The result of a refresh.

    ``chosen`` counts problems judged again, by reason; ``is_repeated``: this refresh had already made the version;
    ``levels``: the chosen levels of procedural sources.
    """

    version: Version
    is_new: bool
    chosen: Mapping[str, int]
    cost: Mapping[str, int]
    is_repeated: bool = False
    anchor: AnchorResult | None = None
    levels: tuple[LevelChoice, ...] = ()


@dataclass(frozen=True, slots=True)
class _PublishedRun:
    run: Run
    results: Results
    newest: Version
    before: Version | None


class NotPublishedError(PolicyError):
    """The policy's results forbid a new version; a retry would not help."""


class EmptySetError(NotPublishedError):
    """A refresh left no problem in the set."""


def refresh(folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False) -> RefreshResult:
    """Judge uncertain problems again, publish the next version, and return its costs and changes.

    Args:
        policy: a checkpoint's folder, or a TOML file with a table [models.NAME].
        attempts: training's attempts since then, as `curation.difficulty.refresh.ROLLOUT_COUNTS`.
        accept: publish even with a far weaker policy or an empty set.

    Raises:
        NotPublishedError: the policy is far weaker, or the set would be empty.
    """
    folder = folder.absolute()
    with lock_folder(folder), recorded(folder, "refresh"), keep_labels():
        published = _read_published_run(open_run(folder))
        recipe, home = with_policy(published.run, policy)
        newest = published.newest
        if curated_set.published_version(published.run) != newest.number and newest.origin == "refresh":
            republished = _show(published, newest)  # a refresh that was killed while it published
            name = open_policy(stage_model(recipe, published.run.parts[-1]), home).key.policy
            if name == newest.policy:
                return republished
        if _is_repeated(refreshed_run(Run(folder, recipe, home), newest), published, attempts):
            return RefreshResult(newest, False, {}, {}, is_repeated=True)
        run = RefreshedRun(folder, recipe, home, version_folder(folder, newest.number + 1))
        trained = read_trained(attempts) if attempts is not None else ROLLOUT_COUNTS.to_frame()
        parts = RefreshParts(run, published.results, newest.number, trained)
        with keep_open():
            anchor = measure_anchor(run, published, parts)
            is_weak = anchor is not None and anchor.is_far_weaker
            if anchor is not None and is_weak and not accept:
                raise NotPublishedError(_refusal(policy_of(run), "is far weaker than the policy before it", anchor))
            selected = choose_problems(run, published, parts, attempts, anchor)
            if not selected.manifest.kept:
                return RefreshResult(newest, False, {}, {}, anchor=anchor, levels=stored_choices(run.place))
            _cancel_retries(published)
            results = _judge(run, selected)
        with merged_decisions(run, parts, results, policy_of(run), accuses=not is_weak) as (table, cost):
            if not accept and not table.select(pl.col("published").any()).collect().item():
                raise EmptySetError(_refusal(policy_of(run), "leaves no problem in the set", anchor))
            done = _publish(run, published, results, table, cost)
            return replace(done, anchor=anchor, levels=stored_choices(run.place))


def _refusal(policy: str, why: str, anchor: AnchorResult | None) -> str:
    figures = "".join(f"\n  {line}" for line in anchor.lines) if anchor is not None else ""
    return (
        f"{policy} {why}, so no version was published. See whether the checkpoint loads and is asked as it was "
        f"trained; `--accept` publishes all the same.{figures}"
    )


def _judge(run: RefreshedRun, selected: StageResult) -> Results:
    """Sample and judge the selected problems, and retry failures at once."""
    attempts, votes = attempts_of(run.parts[-1]), doubtful_verdicts_of(run.parts[-1])
    results = run_pipeline(run, (attempts, votes), Results((selected,)))
    while retries.plan_round(results[attempts].folder, attempts.retries.rounds):
        results = run_pipeline(run, (attempts, votes), Results((selected,)))
    return results


def measure_anchor(run: RefreshedRun, published: _PublishedRun, parts: RefreshParts) -> AnchorResult | None:
    """Sample the anchor in full, and return its results, or None without an anchor."""
    number, policy, part = published.newest.number, policy_of(run), run.parts[-1]
    settings = run.recipe.refresh
    chosen = anchor_of_parts(parts.decisions(), number + 1, policy)
    if not chosen.height:
        return None
    anchor_run = replace(run, place=run.place / ANCHOR)
    base = stopping_rule(difficulty_stage(run.recipe, part))
    folder = _selection_folder(anchor_run, published, published.newest, None)
    priors = exact_priors(chosen["problem"].to_list()) if base.foresees else None
    chosen_priors = None if priors is None else (lambda _shard, names: _priors_of(names, priors))
    selected = _select(anchor_run, published, folder, lambda _shard, _names: chosen, chosen_priors)
    results = _judge(anchor_run, selected)
    own, exact = [PASS_RATE.to_frame().select(COUNTS)], base.given({}, error_rate=0.0)
    attempts: dict[str, list[AttemptOutcome]] = {}
    for judged in judged_shards(anchor_run, results, policy):
        own.append(judged.rates.select(COUNTS))
        attempts.update(pass_rates.outcomes_by_problem(pass_rates.counted_verdicts(judged.verdicts, exact)))
    return anchor_result(parts, pl.concat(own), policy, published.newest, attempts, exact, settings)


def _cancel_retries(published: _PublishedRun) -> None:
    """Cancel pending retries, as the refreshed set replaces the pipeline's."""
    run, verifier = published.run, published.results.decisions[-1].folder.name
    verdicts = [attempts_of(part).folder_in(run, verifier) for part in run.parts]
    for folder in (*(result.folder for result in published.results.filters), *verdicts):
        retries.cancel_round(folder)


def choose_problems(
    run: RefreshedRun,
    published: _PublishedRun,
    parts: RefreshParts,
    attempts: Path | None,
    anchor: AnchorResult | None = None,
) -> StageResult:
    """Choose the problems to judge again, with reasons, as a stage."""
    stage, policy = difficulty_stage(run.recipe, run.parts[-1]), policy_of(run)
    number = published.newest.number + 1
    threshold, judged = run.recipe.refresh.change_probability, REFRESH_CHOICE.to_frame()
    if anchor is not None:  # its problems are judged already
        judged = anchor_of_parts(parts.decisions(), number, policy)
        threshold = anchor.threshold(run.recipe.refresh)
    band = difficulty_stage(published.run.recipe, run.parts[-1]).band
    choices, from_levels = drawn_levels(run, parts, anchor, band)
    save_choices(run.place, choices)
    exact = exact_priors(judged["problem"].to_list())
    counted = trained_counts(parts.all_trained)

    def chosen(shard: int, names: pl.Series) -> pl.DataFrame:
        sides = anchor.sides(shard, names) if anchor is not None else None
        decisions = parts.decisions_of_shard(shard)
        uncertain = uncertain_of_part(decisions, counted, stage.band, threshold, number, policy, sides)
        drawn = from_levels.join(names.alias("problem").to_frame(), on="problem", how="semi")
        return pl.concat([judged, uncertain.join(judged, on="problem", how="anti"), drawn])

    def priors(shard: int, names: pl.Series) -> pl.DataFrame:
        if anchor is None or not anchor.gives_priors:
            return _priors_of(names, exact)
        learnt = anchor.priors(shard, names)
        return pl.concat([_priors_of(names, exact), learnt.join(exact, on="problem", how="anti")])

    has_priors = anchor is not None and (anchor.gives_priors or stopping_rule(stage).foresees)
    folder = _selection_folder(run, published, published.newest, attempts)
    return _select(run, published, folder, chosen, priors if has_priors else None)


def _priors_of(names: pl.Series, priors: pl.DataFrame) -> pl.DataFrame:
    return priors.join(names.alias("problem").to_frame(), on="problem", how="semi")


OfShard = Callable[[int, pl.Series], pl.DataFrame]
"""Returns rows by problem, from a shard's number and its problems."""


def _select(
    run: RefreshedRun, published: _PublishedRun, folder: StageFolder, chosen: OfShard, priors: OfShard | None
) -> StageResult:

    def choose(job: StageRun) -> StageResult:
        problems = job.problems.folder

        def work(index: int) -> Shard:
            whole = read_shard(problems, "kept", index)
            selection = chosen(index, whole["id"])
            frame = whole.join(selection, left_on="id", right_on="problem", how="inner", maintain_order="left")
            why = frame.select(problem="id", why="why")
            tables = {"kept": frame.drop("why"), "why": why}
            if priors is not None:
                names = frame.select(problem="id")
                of_shard = priors(index, whole["id"])
                tables["priors"] = names.join(of_shard, on="problem", how="inner", maintain_order="left")
            return Shard(frame.height, tables)

        return job.shard_by_shard(folder, work, is_whole=False)

    place = str((run.place / CHOSEN).relative_to(run.folder))
    return run_stage(Stage(name=CHOSEN, title=CHOSEN, folder=place, work=choose), run, published.results)


def _selection_folder(
    run: RefreshedRun, published: _PublishedRun, before: Version, attempts: Path | None
) -> StageFolder:
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    attempts_digest = file_digest(attempts) if attempts is not None else ""
    made_by = f"{run.recipe.refresh.digest()} {band.digest()} {policy_of(run)} {attempts_digest}"
    problems = published.results.problems
    made_from = {problems.name: problems.manifest.digest, "version": before.digest}
    return StageFolder(run.place / CHOSEN, CHOSEN, REFRESH_VERSION, made_by, made_from)


def _is_repeated(run: RefreshedRun, published: _PublishedRun, attempts: Path | None) -> bool:
    if published.newest.origin != "refresh" or published.before is None:
        return False
    if attempts is not None and not attempts.is_file():
        return False
    return _selection_folder(run, published, published.before, attempts).manifest() is not None


def policy_of(run: RefreshedRun) -> str:
    """Return the judged policy, as ``model@revision``."""
    return open_policy(stage_model(run.recipe, run.parts[-1]), run.recipe_folder).key.policy


def _publish(
    run: RefreshedRun, published: _PublishedRun, results: Results, table: pl.LazyFrame, cost: dict[str, int]
) -> RefreshResult:
    policy, selected = policy_of(run), results.problems
    verifier = results[final_verdicts(run, run.parts[-1])].folder.name
    version = settle_version(run, table, verifier, "refresh", policy, published.newest.root, cost)
    if version.number == published.newest.number:
        return RefreshResult(version, False, _count_reasons(selected.folder), cost)
    return _show(published, version)


def _show(published: _PublishedRun, version: Version) -> RefreshResult:
    run = refreshed_run(published.run, version)
    curated = curated_set.republish(published.run, version, published.results)
    stages = status(run, pipeline_of(run.recipe), version.verifier)
    funnel = [stage.row for stage in stages if stage.finished and stage.is_shown]
    show_in_prefect(published.run.recipe.name, curated, funnel)
    return RefreshResult(version, True, _count_reasons(run.place / CHOSEN), version.cost)


def _count_reasons(folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for index in range(len(shard_counts(folder))):
        counts.update(read_shard(folder, "why", index, ["why"])["why"])
    return dict(counts)


def _read_published_run(run: Run) -> _PublishedRun:
    curated_set.restore(run.folder)
    stored = stored_versions(run.folder)
    if not stored or not curated_set.is_published(run):
        raise StoreError(f"{run.folder} holds no finished run of its recipe; finish it with `goldilocks run`.")
    newest = stored[-1]
    verifier = next(version.verifier for version in stored if version.digest == newest.root)
    stages = [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind in (Kind.FILTER, Kind.DECISION)]
    before = stored[-2] if len(stored) > 1 else None
    return _PublishedRun(run, read_results(run, stages, verifier), newest, before)


def summarise_refresh(result: RefreshResult) -> list[str]:
    """Return a refresh's result as lines of text."""
    if result.is_repeated:
        return [f"judged already with this policy, so nothing was done: {summary(result.version)}"]
    shown = result.anchor.lines if result.anchor is not None else []
    shown = [*shown, *(choice.sentence for choice in result.levels)]
    if not result.chosen:
        return [*shown, f"nothing has become uncertain: {summary(result.version)}"]
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(result.chosen.items()))
    lines = [
        *shown,
        f"judged again: {result.cost['problems']:,} problems ({reasons}) "
        f"with {result.cost['attempts']:,} new attempts, "
        f"{result.cost['tokens']:,} tokens; {result.cost['kept_rates']:,} problems keep their pass rates",
        summary(result.version),
    ]
    return lines if result.is_new else [*lines, "no new version: nothing is different"]
