"""Judge uncertain problems again with a new checkpoint and make the set's next version.

Other problems keep pass rate, policy and day. A killed refresh resumes in its version's folder. Inputs are the new
policy, training's attempts, and the published set by shard; the choice depends only on the version's inputs.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Band, LiveModel, Recipe, TorchModel, VllmModel
from curation.difficulty import pass_rates
from curation.difficulty.early_stopping import AttemptOutcome
from curation.difficulty.item_response import rollout_counts, with_domain_column
from curation.difficulty.refresh import (
    READ,
    REFRESH_CHOICE,
    ROLLOUT_COUNTS,
    RefreshCause,
    anchor_of_parts,
    trained_counts,
    uncertain_of_part,
)
from curation.difficulty.refresh import VERSION as REFRESH_VERSION
from curation.difficulty.refresh_forecast import (
    FEW,
    ForecastPart,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
)
from curation.prompts.asked import asked_settings
from curation.publish import export, versions
from curation.records import COUNTED_OUTCOMES, PASS_RATE, DropReason, Outcome, PolicyError, SourceError, StoreError
from curation.sources.procedural import made_meta
from curation.storage.locks import lock_folder
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import scan_table
from curation.storage.stages import (
    Shard,
    StageFolder,
    file_digest,
    read_json,
    read_shard,
    read_table,
    write_json,
    write_parquet,
)
from flows.pipelines.by_recipe import pipeline_of
from flows.publish import curated_set
from flows.publish.artifacts import show_in_prefect
from flows.publish.versions import (
    RefreshedRun,
    Version,
    decisions_on,
    refreshed_run,
    scan_decisions,
    settle_version,
    stored_versions,
    summary,
    version_folder,
)
from flows.run import retries
from flows.run.history import recorded
from flows.run.pipeline import read_results, run_pipeline, run_stage, status
from flows.run.policies import load_model, open_policy
from flows.run.policy_session import keep_open
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run, difficulty_stage, open_run, stage_model, verdicts_of_people
from flows.run.sampling_session import exact_priors, problem_domains
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun, shard_counts
from flows.stages.attempts import attempt_store, attempts_of, measured_on, stopping_rule
from flows.stages.decisions import JudgedShard, label_shards
from flows.stages.questions import doubtful_verdicts_of, final_verdicts

CHECKPOINT = "checkpoint"  # name of the judging model in a refresh's recipe
MODELS = ("", "model", "hf")  # folders of a checkpoint that may hold Hugging Face weights

COUNTS = ["problem", "policy", "correct", "judged"]


def with_policy(run: Run, path: Path) -> tuple[Recipe, Path]:
    """Return the recipe of a refresh, and the base of the policy's paths.

    The last stage gets the policy, and its band the refresh's `max_pass_rate` if higher.

    Raises:
        ConfigError, PolicyError: the policy is missing or invalid.
    """
    part = run.parts[-1]
    table = run.recipe.model_dump()
    table["grader"] = None  # it is trained; the stage names its model
    band = table[part]["band"]
    band["max_pass_rate"] = max(band["max_pass_rate"], run.recipe.refresh.max_pass_rate)
    name = CHECKPOINT
    while name in table["models"]:
        name += "-"
    table[part]["model"] = name
    if path.is_dir():
        table["models"][name] = checkpoint_table(path, stage_model(run.recipe, part))
        return parse_recipe(table, str(path)), path.absolute().parent
    settings, home = load_model(path)
    table["models"][name] = settings.model_dump()
    return parse_recipe(table, str(path)), home


def checkpoint_table(path: Path, previous: object) -> dict[str, Any]:
    """Return a checkpoint's folder as a model's table.

    Prompt, tags and examples are those of its `asked.json`, else of a live ``previous`` policy, whose decoding is kept.
    The engine is vLLM if installed, unless ``previous`` uses torch.
    """
    home = next((path / name for name in MODELS if (path / name / "config.json").is_file()), None)
    if home is None:
        raise PolicyError(f"--policy {path}: the folder holds no model (no config.json); name a checkpoint.")
    use_vllm = importlib.util.find_spec("vllm") is not None and not isinstance(previous, TorchModel)
    kind: type[LiveModel] = VllmModel if use_vllm else TorchModel
    fields = set(kind.model_fields) if isinstance(previous, kind) else {"prompt", "thinking", "examples", "decoding"}
    shared = previous.model_dump(include=fields - {"model", "revision"}) if isinstance(previous, LiveModel) else {}
    return {**shared, **asked_settings(home), "kind": "vllm" if use_vllm else "torch", "model": str(home.absolute())}


def read_trained(path: Path) -> pl.DataFrame:
    """Count training's attempts as `curation.difficulty.refresh.ROLLOUT_COUNTS`.

    Args:
        path: .jsonl or .parquet, a row per attempt, as in ``attempts.jsonl``; a null outcome counts as not correct.

    Raises:
        SourceError: the file is missing or unreadable, or lacks a column.
    """
    outcome = pl.col("outcome")
    is_counted = outcome.is_null() | outcome.is_in([counted.value for counted in COUNTED_OUTCOMES])
    try:
        frame = pl.read_parquet(path, glob=False) if path.suffix == ".parquet" else pl.read_ndjson(path)
        judged = frame.filter(is_counted).group_by("problem", "step", maintain_order=True)
        counts = judged.agg(correct=(outcome == Outcome.CORRECT.value).sum(), judged=pl.len())
        return counts.select(ROLLOUT_COUNTS.names()).cast(ROLLOUT_COUNTS)
    except FileNotFoundError as error:
        raise SourceError(f"--attempts {path}: there is no such file.") from error
    except pl.exceptions.PolarsError as error:
        columns = "problem, step, outcome"
        raise SourceError(f"--attempts {path}: cannot be read with the columns {columns} ({error}).") from error


@dataclass(frozen=True)
class RefreshParts:
    """A published set's problems by shard, with all that is known about them.

    Args:
        run: the refresh's.
        results: of the pipeline's filters and decisions.
        newest: the version before the refresh's.
        all_trained: `curation.difficulty.refresh.ROLLOUT_COUNTS` rows since that version.
        own: the new policy's counts on the anchor.
    """

    run: RefreshedRun
    results: Results
    newest: Version
    all_trained: pl.DataFrame
    own: pl.DataFrame = field(default_factory=lambda: PASS_RATE.to_frame().select(COUNTS))

    def __iter__(self) -> Iterator[ForecastPart]:
        return (ForecastPart(self.decisions(at), self._counts(at)) for at in range(len(self)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @cached_property
    def policy(self) -> str:
        """Return the judging policy, as ``model@revision``."""
        return open_policy(stage_model(self.run.recipe, self.run.parts[-1]), self.run.recipe_folder).key.policy

    def decisions(self, index: int, columns: tuple[str, ...] = READ, number: int | None = None) -> pl.DataFrame:
        """Return a version's decisions on a shard's problems, in order; by default the newest version's."""
        table = scan_decisions(self.run.folder, self.newest.number if number is None else number).select(columns)
        return decisions_on(table, self._problems(index)["id"], self._starts[index])

    def _counts(self, index: int) -> pl.DataFrame:
        """Return the largest counts of all stages and versions, and those of the anchor and of training since.

        They have a column ``domain`` if there are several.
        """
        decided = [read_shard(result.folder, "decisions", index, COUNTS) for result in self.results.decisions]
        decided += [
            self.decisions(index, tuple(COUNTS), version.number) for version in stored_versions(self.run.folder)
        ]
        names = self._problems(index).select(problem="id")
        further = [part.join(names, on="problem", how="semi") for part in (self._rollouts, self.own)]
        rows = pl.concat([part.select(COUNTS) for part in decided])
        judged = rows.sort(COUNTS).unique(COUNTS[:2], keep="last", maintain_order=True)
        counts = pl.concat([judged, *(part.select(COUNTS).cast(judged.schema) for part in further)])
        return with_domain_column(counts, self._domains(index)) if self._has_domains else counts

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(shard_counts(self.results.problems.folder), initial=0))

    @cached_property
    def _rollouts(self) -> pl.DataFrame:
        trained = self.all_trained
        if trained.height:
            names = pl.concat([self._problems(index)["id"] for index in range(len(self))])
            trained = trained.filter(pl.col("problem").is_in(names.implode()))
        return rollout_counts(trained)

    @cached_property
    def _has_domains(self) -> bool:
        return len({name for index in range(len(self)) for name in self._domains(index)["domain"].unique()}) > 1

    def _domains(self, index: int) -> pl.DataFrame:
        made = self.run.made_sources
        return problem_domains(self._problems(index, "id", "source", *(["meta"] if made else [])), made)

    def _problems(self, index: int, *columns: str) -> pl.DataFrame:
        return read_shard(self.results.problems.folder, "kept", index, columns or ("id",))


FAR_WEAKER = 2.0  # logits below the set's policy from which a policy counts as broken
LEVELS = "levels.json"  # in a version's folder: each level's expected pass rate and drawn rows

DRAWN, RETIRED, WAITS = "drawn", "retired", "waits"
"""A level's expected pass rate is in the band, above or below it."""


def _forecast_lines(forecast: RefreshForecast | None) -> list[str]:
    """Return what the anchor shows, and what follows."""
    return [*anchor_lines(forecast.anchor), forecast.correction.sentence, forecast.sentence] if forecast else []


def _met_counts(parts: RefreshParts) -> pl.DataFrame:
    """Return counts on problems that the policy tried; on all if fewer than `FEW`."""
    counts = pl.concat([part.counts for part in parts])
    met = counts.filter((pl.col("policy") == parts.policy) & (pl.col("judged") > 0))["problem"].unique()
    return counts.filter(pl.col("problem").is_in(met.implode())) if len(met) >= FEW else counts


def drawn_levels(parts: RefreshParts, forecast: RefreshForecast | None, band: Band) -> pl.DataFrame:
    """Return the rows drawn of sources with a reserve as `REFRESH_CHOICE`, and write the levels' choices.

    A choice has ``source``, ``level``, ``expected`` pass rate, ``status``, and rows ``drawn`` and in ``reserve``.
    """
    made = [source for source in parts.run.recipe.read_sources if source.is_made and source.reserve_per_level]
    sizes = {source.name: source.rows_per_level for source in made}
    if not sizes:
        return REFRESH_CHOICE.to_frame()
    rows = _rows_of_levels(parts, list(sizes), forecast).sort("seed")
    level, expected = ["source", "level"], pl.col("expected")
    foreseen = expected.drop_nulls().first()
    known = pl.col("rate").count() + foreseen.is_not_null().cast(pl.UInt32)
    is_reachable = expected * band.attempts >= band.min_correct
    status = pl.when(expected > band.max_pass_rate).then(pl.lit(RETIRED)).when(is_reachable).then(pl.lit(DRAWN))
    size = pl.min_horizontal("reserve", pl.col("source").replace_strict(sizes, return_dtype=pl.UInt32))
    choices = (
        rows.group_by(level)
        .agg(
            expected=(pl.col("rate").sum() + foreseen.fill_null(0.0)) / pl.max_horizontal(known, 1),
            reserve=pl.col("waits").sum(),
        )
        .with_columns(status=status.otherwise(pl.lit(WAITS)))
        .with_columns(drawn=pl.when(status=DRAWN).then(size).otherwise(0))
        .select(*level, expected.round(4), "status", "drawn", "reserve")
        .sort(level)
    )
    write_json(parts.run.place / LEVELS, {"levels": choices.to_dicts()})
    waiting = rows.filter("waits").join(choices.select(*level, "drawn"), on=level, maintain_order="left")
    taken = waiting.filter(pl.int_range(pl.len()).over(level) < pl.col("drawn"))
    return taken.select("problem", why=pl.lit(RefreshCause.DRAWN.value))


def _rows_of_levels(parts: RefreshParts, made: list[str], forecast: RefreshForecast | None) -> pl.DataFrame:
    """Return the rows of procedural sources: problem, source, level, seed, waits, rate, expected.

    ``rate`` is measured; ``expected`` is the item response model's, for reserve.
    """
    folder, columns = parts.results.problems.folder, ["id", "source", "meta"]
    problems = read_table(folder, "kept", columns, pl.col("source").is_in(made)).with_columns(made_meta(made))
    rows = problems.unnest("made").select("source", "level", "seed", problem="id")
    decisions = scan_decisions(parts.run.folder, parts.newest.number).select("problem", "reason", "correct", "judged")
    decided = decisions.filter(pl.col("problem").is_in(rows["problem"].implode())).collect()
    measured, expected = decided, pl.DataFrame(schema={"problem": pl.String, "expected": pl.Float64})
    if forecast is not None:
        mean = pl.col("correct") / (pl.col("correct") + pl.col("other"))
        priors = pl.concat([forecast.priors_of(index) for index in range(len(parts))])
        expected = priors.select("problem", expected=mean)
        measured = forecast.anchor.counts.filter(policy=forecast.anchor.policy)
    rates = measured.filter(pl.col("judged") > 0).select("problem", rate=pl.col("correct") / pl.col("judged"))
    waits = pl.col("reason").eq_missing(DropReason.RESERVED.value)
    rows = rows.join(decided.select("problem", waits=waits), on="problem", how="inner", maintain_order="left")
    for table in (rates, expected):
        rows = rows.join(table, on="problem", how="left", maintain_order="left")
    return rows.with_columns(expected=pl.when("waits").then("expected"))


CHOSEN = "chosen"  # in a version's folder: the problems judged again for it
ANCHOR = "anchor"  # in a version's folder: the anchor's problems, attempts and verdicts

_STORED = tuple(name for name in versions.KEPT.names() if name != "published")

Selection = tuple[pl.DataFrame, pl.DataFrame | None]
"""A shard's chosen problems (`REFRESH_CHOICE`), and their stopping priors."""


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
    forecast: RefreshForecast | None = None
    levels: tuple[Mapping[str, Any], ...] = ()


class NotPublishedError(PolicyError):
    """The policy's results forbid a new version; a retry would not help."""


class EmptySetError(NotPublishedError):
    """A refresh left no problem in the set."""


def refresh(folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False) -> RefreshResult:
    """Judge uncertain problems again, publish the next version, and return its costs and changes.

    Args:
        policy: a checkpoint's folder, or a TOML file with a table [models.NAME].
        attempts: training's attempts since then, for `read_trained`.
        accept: publish even with a far weaker policy or an empty set.

    Raises:
        NotPublishedError: the policy is far weaker, or the set would be empty.
    """
    folder = folder.absolute()
    with lock_folder(folder), recorded(folder, "refresh"):
        original = open_run(folder)
        results, stored = _published(original)
        newest = stored[-1]
        recipe, home = with_policy(original, policy)
        trained = read_trained(attempts) if attempts is not None else ROLLOUT_COUNTS.to_frame()
        if newest.origin == "refresh" and curated_set.published_mark(original).get("version") != newest.number:
            republished = _show(original, results, newest)  # a refresh that was killed while it published
            if open_policy(stage_model(recipe, original.parts[-1]), home).key.policy == newest.policy:
                return republished
        run = RefreshedRun(folder, recipe, home, version_folder(folder, newest.number + 1))
        parts = RefreshParts(run, results, newest, trained)
        if newest.origin == "refresh" and len(stored) > 1:
            made = replace(run, place=version_folder(folder, newest.number))
            if _selection_folder(made, replace(parts, newest=stored[-2]), attempts).manifest() is not None:
                return RefreshResult(newest, False, {}, {}, is_repeated=True)
        with keep_open():
            forecast = _measure_anchor(parts)
            shift = forecast.anchor.shift if forecast is not None else None
            is_weak = shift is not None and shift < -FAR_WEAKER
            if is_weak and not accept:
                raise NotPublishedError(_refusal(parts, "is far weaker than the policy before it", forecast))
            selected = _choose_problems(parts, original, attempts, forecast)
            levels = tuple((read_json(run.place / LEVELS) or {}).get("levels", ()))
            if not selected.manifest.kept:
                return RefreshResult(newest, False, {}, {}, forecast=forecast, levels=levels)
            _cancel_retries(original, results)
            judged = _judge(run, selected)
        with _merged_decisions(parts, judged, accuses=not is_weak) as (table, cost):
            if not accept and not table.select(pl.col("published").any()).collect().item():
                raise EmptySetError(_refusal(parts, "leaves no problem in the set", forecast))
            verifier = judged[final_verdicts(run, run.parts[-1])].folder.name
            version = settle_version(run, table, verifier, "refresh", parts.policy, newest.root, cost)
            done = RefreshResult(version, False, _count_reasons(selected.folder), cost)
            if version.number != newest.number:
                done = _show(original, results, version)
            return replace(done, forecast=forecast, levels=levels)


def _published(run: Run) -> tuple[Results, list[Version]]:
    """Return the results of a run's filters and decisions, and its versions."""
    curated_set.restore(run.folder)
    stored = stored_versions(run.folder)
    if not stored or not curated_set.is_published(run):
        raise StoreError(f"{run.folder} holds no finished run of its recipe; finish it with `goldilocks run`.")
    verifier = next(version.verifier for version in stored if version.digest == stored[-1].root)
    stages = [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind in (Kind.FILTER, Kind.DECISION)]
    return read_results(run, stages, verifier), stored


def _refusal(parts: RefreshParts, why: str, forecast: RefreshForecast | None) -> str:
    figures = "".join(f"\n  {line}" for line in _forecast_lines(forecast))
    return (
        f"{parts.policy} {why}, so no version was published. Check that it loads, and that its prompt is that of its "
        f"training; `--accept` publishes anyway.{figures}"
    )


def _judge(run: RefreshedRun, selected: StageResult) -> Results:
    """Sample and judge the selected problems, and retry failures at once."""
    attempts, votes = attempts_of(run.parts[-1]), doubtful_verdicts_of(run.parts[-1])
    while True:
        results = run_pipeline(run, (attempts, votes), Results((selected,)))
        if not retries.plan_round(results[attempts].folder):
            return results


def _measure_anchor(parts: RefreshParts) -> RefreshForecast | None:
    """Sample the anchor in full, and return its results, or None without an anchor."""
    chosen = _anchor_of(parts)
    if not chosen.height:
        return None
    run = replace(parts.run, place=parts.run.place / ANCHOR)
    base = stopping_rule(difficulty_stage(run.recipe, run.parts[-1]))
    exact = exact_priors(chosen["problem"].to_list())
    selected = _select(run, parts, None, lambda _shard, names: (chosen, _on(names, exact) if base.foresees else None))
    own, rule = [PASS_RATE.to_frame().select(COUNTS)], base.given({}, error_rate=0.0)
    attempts: dict[str, list[AttemptOutcome]] = {}
    for judged in _judged_shards(run, _judge(run, selected), parts.policy):
        own.append(judged.rates.select(COUNTS))
        attempts.update(pass_rates.outcomes_by_problem(pass_rates.counted_verdicts(judged.verdicts, rule)))
    parts = replace(parts, own=pl.concat(own))
    anchor = anchored(_met_counts(parts), parts.policy, parts.newest.policy)
    if anchor is None:  # the verifier failed on all of it
        return None
    return foresee_refresh(anchor, parts, attempts, rule, parts.run.recipe.refresh.error_rate)


def _anchor_of(parts: RefreshParts) -> pl.DataFrame:
    decisions = (parts.decisions(index) for index in range(len(parts)))
    return anchor_of_parts(decisions, parts.newest.number + 1, parts.policy)


def _cancel_retries(run: Run, results: Results) -> None:
    """Cancel pending retries, as the refreshed set replaces the pipeline's."""
    verifier = results.decisions[-1].folder.name
    verdicts = [attempts_of(part).folder_in(run, verifier) for part in run.parts]
    for folder in (*(result.folder for result in results.filters), *verdicts):
        retries.cancel_round(folder)


def _choose_problems(
    parts: RefreshParts, original: Run, attempts: Path | None, forecast: RefreshForecast | None
) -> StageResult:
    """Choose the problems to judge again, with reasons, as a stage."""
    recipe, number = parts.run.recipe, parts.newest.number + 1
    stage = difficulty_stage(recipe, parts.run.parts[-1])
    trusted = forecast if forecast is not None and forecast.replay.holds else None  # its priors are confirmed
    judged = REFRESH_CHOICE.to_frame() if forecast is None else _anchor_of(parts)  # its problems are judged already
    threshold = recipe.refresh.change_probability if trusted is None else trusted.threshold
    from_levels = drawn_levels(parts, forecast, difficulty_stage(original.recipe, parts.run.parts[-1]).band)
    exact, counted = exact_priors(judged["problem"].to_list()), trained_counts(parts.all_trained)
    has_priors = trusted is not None or (forecast is not None and stopping_rule(stage).foresees)

    def choose(shard: int, names: pl.Series) -> Selection:
        sides = forecast.sides_of(shard) if forecast is not None else None
        decisions = parts.decisions(shard)
        uncertain = uncertain_of_part(decisions, counted, stage.band, threshold, number, parts.policy, sides)
        rows = pl.concat([judged, uncertain.join(judged, on="problem", how="anti"), _on(names, from_levels)])
        priors = [_on(names, exact)]
        if trusted is not None:
            priors.append(trusted.priors_of(shard).join(exact, on="problem", how="anti"))
        return rows, pl.concat(priors) if has_priors else None

    return _select(parts.run, parts, attempts, choose)


def _on(names: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.join(names.alias("problem").to_frame(), on="problem", how="semi")


def _select(
    run: RefreshedRun, parts: RefreshParts, attempts: Path | None, choose: Callable[[int, pl.Series], Selection]
) -> StageResult:
    """Run the stage that keeps the chosen problems, with reasons and priors."""

    def select(job: StageRun) -> StageResult:
        def work(index: int) -> Shard:
            whole = read_shard(job.problems.folder, "kept", index)
            chosen, priors = choose(index, whole["id"])
            frame = whole.join(chosen, left_on="id", right_on="problem", how="inner", maintain_order="left")
            names = frame.select(problem="id")
            tables = {"kept": frame.drop("why"), "why": names.with_columns(frame["why"])}
            if priors is not None:
                tables["priors"] = names.join(priors, on="problem", how="inner", maintain_order="left")
            return Shard(frame.height, tables)

        return job.shard_by_shard(_selection_folder(run, parts, attempts), work, is_whole=False)

    place = str((run.place / CHOSEN).relative_to(run.folder))
    return run_stage(Stage(name=CHOSEN, title=CHOSEN, folder=place, work=select), run, parts.results)


def _selection_folder(run: RefreshedRun, parts: RefreshParts, attempts: Path | None) -> StageFolder:
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    attempts_digest = file_digest(attempts) if attempts is not None else ""
    made_by = f"{run.recipe.refresh.digest()} {band.digest()} {parts.policy} {attempts_digest}"
    problems = parts.results.problems
    made_from = {problems.name: problems.manifest.digest, "version": parts.newest.digest}
    return StageFolder(run.place / CHOSEN, CHOSEN, REFRESH_VERSION, made_by, made_from)


def _judged_shards(run: RefreshedRun, results: Results, policy: str) -> Iterator[JudgedShard]:
    """Yield what the policy judged, by shard."""
    part = run.parts[-1]
    folders = results[final_verdicts(run, part)].folder, results[attempts_of(part)].folder
    for index in range(len(shard_counts(results.problems.folder))):
        names = read_shard(results.problems.folder, "kept", index, ["id"])["id"]
        yield JudgedShard.read(run, part, *folders, index, names, policy)


@contextmanager
def _merged_decisions(
    parts: RefreshParts, results: Results, *, accuses: bool
) -> Iterator[tuple[pl.LazyFrame, dict[str, int]]]:
    """Yield the next version's decisions as `curation.publish.versions.KEPT` rows, and their cost.

    The rows are in a temporary folder during the block.

    Args:
        accuses: whether suspected labels may change.
    """
    run, part = parts.run, parts.run.parts[-1]
    verifier = results[final_verdicts(run, part)].folder.name
    store, day = attempt_store(run, results[attempts_of(part)]), measured_on(run, part, verifier)
    labels = label_shards(run, parts.results, verifier) if run.recipe.weighs_labels else None
    cost, reviews = Counter(problems=0, attempts=0, tokens=0, kept_rates=0), verdicts_of_people(run)
    with ScratchFolder("decisions") as place:
        for index, judged in enumerate(_judged_shards(run, results, parts.policy)):
            trust = labels.read(index) if labels is not None and labels.decides else None
            old = parts.decisions(index, _STORED)
            new = judged.decide(run, part, trust, reviews, accuses=accuses).with_columns(measured_on=pl.lit(day))
            if not accuses:
                suspected = old.filter(reason=DropReason.SUSPECTED_WRONG_LABEL.value)
                new = new.join(suspected, on="problem", how="anti", maintain_order="left")
            merged = old.update(new.select(_STORED).cast(old.schema), on="problem", include_nulls=True)
            write_parquet(place / "decisions" / f"{index:05}.parquet", merged)
            counted = judged.verdicts.select("problem", "index")
            attempts = store.read(counted["problem"].unique().to_list(), ["problem", "index", "tokens"])
            tokens = attempts.join(counted, on=["problem", "index"], how="semi")["tokens"].sum()
            cost.update(problems=new.height, attempts=counted.height, tokens=int(tokens or 0))
            cost.update(kept_rates=old.height - new.height)
        decisions = scan_table(place, "decisions")
        stays = pl.col("keep") & ~pl.col("problem").is_in(_over_quota(decisions, parts))
        yield decisions.with_columns(published=stays).select(versions.KEPT.names()).cast(versions.KEPT), dict(cost)


def _over_quota(decisions: pl.LazyFrame, parts: RefreshParts) -> list[str]:
    size, seed = parts.run.recipe.export.size, parts.run.recipe.seed
    if size is None:
        return []
    rows = read_table(parts.results.problems.folder, "kept", ["id", "group", "source", "weight"])
    kept = decisions.filter("keep").select("problem").collect()
    rows = rows.join(kept, left_on="id", right_on="problem", how="semi", maintain_order="left")
    return export.over_quota(rows, size, seed)["id"].to_list() if rows.height else []


def _show(original: Run, results: Results, version: Version) -> RefreshResult:
    """Publish a refreshed version."""
    run = refreshed_run(original, version)
    curated = curated_set.republish(original, version, results)
    stages = status(run, pipeline_of(run.recipe), version.verifier)
    funnel = [stage.row for stage in stages if stage.finished and stage.is_shown]
    show_in_prefect(original.recipe.name, curated, funnel)
    return RefreshResult(version, True, _count_reasons(run.place / CHOSEN), version.cost)


def _count_reasons(folder: Path) -> dict[str, int]:
    return dict(read_table(folder, "why", ["why"])["why"].value_counts().sort("why").iter_rows())


def summarise_refresh(result: RefreshResult) -> list[str]:
    """Return a refresh's result as lines of text."""
    if result.is_repeated:
        return [f"already judged with this policy; nothing was done: {summary(result.version)}"]
    shown = _forecast_lines(result.forecast)
    for level in result.levels:
        is_drawn = level["status"] == DRAWN
        what = f"{level['drawn']} of {level['reserve']} rows in reserve drawn" if is_drawn else level["status"]
        shown.append(f"{level['source']}, level {level['level']}: expected pass rate {level['expected']:.2f}, {what}")
    if not result.chosen:
        return [*shown, f"nothing has become uncertain: {summary(result.version)}"]
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(result.chosen.items()))
    shown += [
        f"judged again: {result.cost['problems']:,} problems ({reasons}) with {result.cost['attempts']:,} new "
        f"attempts, {result.cost['tokens']:,} tokens; {result.cost['kept_rates']:,} problems keep their pass rates",
        summary(result.version),
    ]
    return shown if result.is_new else [*shown, "no new version: nothing is different"]
