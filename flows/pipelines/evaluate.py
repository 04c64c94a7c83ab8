"""Evaluate a policy on a bench with a run's stages; resumable. In DIR/evaluation:

- `problems.parquet`: a row per problem (`training.evaluation.scores.SCORES`)
- `evaluation.json`: the figures
- `report.html`: the page

A policy that was trained on the bench is refused, by problem ids and overlapping texts. A model's folder leads to its
training data, and to that of earlier models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from curation.config import Bench, LiveModel, RecordedModel
from curation.config.policies import ModelSettings
from curation.filters.decontamination.overlap import OVERLAP, BenchmarkIndex, OverlapSettings
from curation.policies.recorded import Recorded
from curation.public_urls import public_url
from curation.records import ConfigError, SourceError, StoreError
from curation.response_formats import ANY, BOXED
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write, read_shard, read_table, write_parquet
from curation.thinking import ThinkingTags
from flows.publish.curated_set import published_folder
from flows.run.benches import BenchRun, bench_run
from flows.run.history import recorded
from flows.run.pipeline import run_pipeline
from flows.run.policies import check_models, policy_name
from flows.run.run_folder import stage_model
from flows.run.stage import Results, StageResult, shard_counts
from flows.run.training import is_training, read_run
from flows.stages.attempts import attempt_key, attempt_store, attempts_of
from flows.stages.bench import BENCH_LANGUAGE, BENCH_ROWS, BENCH_TESTS
from flows.stages.sources import SOURCES
from training.embedded_model import EMBEDDED
from training.embedded_model.problems import Split
from training.evaluation.report import Comparison, Report, report_json, report_page
from training.evaluation.scores import compare_scores, evaluate_scores, score_problems
from training.recipe import CuratedData, DataSettings, EmbeddedData
from training.rollouts.tasks import load_tasks
from training.stored.general import read_chats

PART = "stage1"
FOLDER = "evaluation"
COLUMNS = ("problem", "index", "text", "finish", "tokens")

PARENTS = 3  # max folders from a run to its model: RUN/checkpoints/N/hf

BATCH = 5_000

_PROBLEMS = {"id": pl.String, "statement": pl.String}


@dataclass(frozen=True, slots=True)
class TrainedSet:
    """Problems that a policy was trained on; ``drawn`` ones are compared by id only."""

    name: str
    problems: pl.DataFrame  # id, statement
    drawn: bool = False


def trained_sets(policy: ModelSettings, folder: Path, more: Sequence[Path] = ()) -> list[TrainedSet]:
    """Return the sets a policy was trained on, as its folder and the user name them.

    Args:
        more: folders of curated sets or runs.
    """
    sets = list[TrainedSet]()
    for path in more:
        if not path.is_dir():
            raise ConfigError(f"--trained-on {path}: there is no such folder; name a curated set or a training run.")
        if is_training(path):
            sets += _of_run(path)
        else:
            curated = CuratedData(kind="curated", folders=(str(published_folder(path).absolute()),))
            sets.append(_tasks(str(path), curated, path))
    if isinstance(policy, LiveModel) and policy.loads_folder:
        sets += _of_model(policy.model, folder)
    return sets


def refuse_trained_on(bench: str, problems: pl.DataFrame, sets: Sequence[TrainedSet]) -> None:
    """Refuse a bench that shares problems with a set.

    Raises:
        ConfigError: problems are shared.
    """
    for trained in sets:
        if hits := _shared(problems, trained):
            row, how = min(hits.items())
            text = " ".join(problems["statement"][row].split())[:100]
            raise ConfigError(
                f"bench {bench}: {len(hits)} of its {problems.height} problems are in {trained.name}, which this "
                f"policy was trained on (row {row}, {how}: {text!r}). Take another bench, or curate that set with "
                f'decontamination.benches = ["{bench}"] and train again.'
            )


def _shared(problems: pl.DataFrame, trained: TrainedSet) -> dict[int, str]:
    known = set(trained.problems["id"])
    hits = {row: "the same text" for row, name in enumerate(problems["id"]) if name in known}
    if trained.drawn or trained.problems.is_empty():
        return hits
    statements = problems.select("statement", benchmark=pl.lit("bench"), row=pl.int_range(pl.len()))
    index = BenchmarkIndex(statements, OverlapSettings())
    batches = [batch["statement"] for batch in trained.problems.iter_slices(BATCH)]
    for batch in batches:
        index.count(batch)
    for batch in batches:
        found = index.hits(batch).filter(pl.col("kind") == OVERLAP)
        for row, method in found.select("benchmark_row", "method").iter_rows():
            hits.setdefault(row, f"overlap by {method}")
    return hits


def _of_model(name: str, folder: Path) -> Iterator[TrainedSet]:
    model = folder / Path(name).expanduser()
    if name != EMBEDDED and model.is_dir():
        model = model.resolve()
        for run in filter(is_training, (model, *model.parents[:PARENTS])):
            yield from _of_run(run)
            return


def _of_run(folder: Path) -> Iterator[TrainedSet]:
    recipe, home = read_run(folder)
    data = recipe.data
    name = ", ".join(data.folders) if isinstance(data, CuratedData) else f"the problems of {folder.name}"
    yield _tasks(name, data, home, drawn=isinstance(data, EmbeddedData))
    if recipe.stored is not None and recipe.stored.general is not None:
        path = home / Path(recipe.stored.general).expanduser()
        texts = [" ".join(message["content"] for message in chat[:-1]) for chat in read_chats(path)]
        table = pl.DataFrame({"id": texts, "statement": texts}, schema=_PROBLEMS)
        yield TrainedSet(f"the instruction data of {folder.name}", table)
    yield from _of_model(recipe.trained.model, home)


def _tasks(name: str, data: DataSettings, home: Path, *, drawn: bool = False) -> TrainedSet:
    rows = [(task.id, task.request.statement) for task in load_tasks(data, Split.TRAIN, home).values()]
    return TrainedSet(name, pl.DataFrame(rows, schema=_PROBLEMS, orient="row"), drawn)


def default_folder(bench: Bench, policy: ModelSettings) -> Path:
    """Return an evaluation's folder if none is given."""
    name = policy_name(policy)
    parts = [part for part in re.split(r"[^A-Za-z0-9.-]+", name) if part not in ("", "model", "runs", "hf")]
    return Path("runs") / f"evaluate-{bench.name}-{'-'.join(parts[-3:])}"


def evaluate(
    bench: Bench,
    policy: ModelSettings,
    folder: Path,
    bench_folder: Path,
    policy_folder: Path,
    *,
    against: Path | None = None,
    trained_on: Sequence[Path] = (),
    own_problems: bool = False,
) -> Report:
    """Evaluate a policy on a bench, or resume; write the figures and the page.

    Args:
        bench_folder, policy_folder: bases of relative paths.
        against: folder of another evaluation to compare with.
        trained_on: the policy's further training sets.
        own_problems: the policy may know the bench.

    Raises:
        ConfigError: the policy was trained on the bench, or k exceeds its attempts.
        SourceError: the bench's rows cannot be read.
    """
    run = bench_run(bench, _at_home(policy, policy_folder), folder.absolute(), bench_folder)
    run.check_owner()
    with lock_folder(run.folder):
        run.save()
        with recorded(run.folder, "evaluate"):
            results = _rows(run)
            problems = read_table(results.problems.folder, "kept")
            if not own_problems:
                statement = pl.coalesce("raw_statement", "statement")
                published = problems.with_columns(id="group", statement=statement)
                refuse_trained_on(bench.name, published, trained_sets(policy, policy_folder, trained_on))
            unused = _unused(policy, policy_folder, bench, problems)
            check_models(run)
            return _write(run, run_pipeline(run, (attempts_of(PART),), results), problems, against, unused)


def _unused(policy: ModelSettings, folder: Path, bench: Bench, problems: pl.DataFrame) -> tuple[str, ...]:
    """Return a line on recorded attempts outside the bench, if any."""
    if not isinstance(policy, RecordedModel):
        return ()
    file = Recorded(policy, folder)
    given, known = file.attempts, file.attempts_at(problems["id"])
    if not known:
        raise ConfigError(
            f"{file.path}: none of its {given:,} attempts is of a problem of bench {bench.name}; its "
            f"column `{policy.columns.problem}` must hold the bench's statements, as they are asked."
        )
    line = f"{given - known:,} of the file's {given:,} attempts are not of the bench's problems"
    return (line,) if known < given else ()


def _at_home(policy: ModelSettings, folder: Path) -> ModelSettings:
    """Return a policy with absolute paths."""
    if isinstance(policy, RecordedModel):
        return policy.model_copy(update={"path": str((folder / Path(policy.path).expanduser()).absolute())})
    local = folder / Path(policy.model).expanduser()
    is_local = policy.loads_folder and local.is_dir()
    return policy.model_copy(update={"model": str(local.absolute())}) if is_local else policy


def _rows(run: BenchRun) -> Results:
    bench = run.bench
    of_code = (BENCH_TESTS, BENCH_LANGUAGE) if bench.domain == "code" else ()
    try:
        SOURCES.check(run)
        results = run_pipeline(run, (SOURCES, BENCH_ROWS, *of_code))
    except SourceError as error:
        raise SourceError(f"bench {bench.name}: {error} {bench.note}".rstrip()) from error
    if not results.problems.manifest.kept:
        raise SourceError(f"bench {bench.name}: none of its rows is left to ask; see {results.problems.folder}.")
    return results


def _write(
    run: BenchRun, results: Results, problems: pl.DataFrame, against: Path | None, unused: Sequence[str]
) -> Report:
    judged = results[attempts_of(PART)]
    scores = _scores(run, results, judged)
    place = run.folder / FOLDER
    place.mkdir(exist_ok=True)
    write_parquet(place / "problems.parquet", scores)
    sizes = _sizes(run.bench, scores)
    reasons = [result.manifest.reasons.items() for result in results.filters[1:] if result.manifest.reasons]
    left_out = ["left out of the bench: " + ", ".join(f"{count:,} {why}" for why, count in found) for found in reasons]
    key = attempt_key(judged.folder)
    about = (*_about(run, key.prompt), f"verifier {judged.folder.name}")
    evaluation = evaluate_scores(scores, sizes)
    report = Report(run.bench.name, key.policy, key.prompt, about, (*left_out, *unused), evaluation)
    if against is not None:
        report = replace(report, compared=_compared(report, scores, sizes, against))
    shown = scores.join(problems.select(problem="id", statement="statement"), on="problem", maintain_order="left")
    shown = shown.sort(pl.col("correct") / pl.col("attempts"), nulls_last=True, maintain_order=True)
    atomic_write(place / "evaluation.json", report_json(report))
    atomic_write(place / "report.html", report_page(report, shown))
    return report


def _scores(run: BenchRun, results: Results, judged: StageResult) -> pl.DataFrame:
    bench, policy, problems = run.bench, stage_model(run.recipe, PART), results.problems.folder
    store, check_language = attempt_store(run, judged), None
    if bench.consistency:
        from curation.languages.identification import consistent

        check_language = consistent
    wanted = ANY if bench.domain == "code" else bench.verify.response_format
    form, scores = BOXED if wanted == ANY else wanted, []
    for index in range(len(shard_counts(problems))):
        frame, verdicts = read_shard(problems, "kept", index), read_shard(judged.folder, "verdicts", index)
        texts = store.read(frame["id"].to_list(), COLUMNS)
        scores.append(score_problems(frame, texts, verdicts, ThinkingTags.of(policy.thinking), form, check_language))
    return pl.concat(scores)


def _sizes(bench: Bench, scores: pl.DataFrame) -> list[int]:
    """Return each k: the bench's, or the fewest attempts of a problem, if above 1."""
    fewest, most = int((scores["attempts"] + scores["failed"]).min() or 0), int(scores["attempts"].max() or 0)  # type: ignore[arg-type]
    if not bench.k:
        return [fewest] if fewest > 1 else []
    beyond = [k for k in bench.all_k if k > most]
    if beyond:
        raise ConfigError(f"k = {beyond[0]} of {most} attempts per problem has no unbiased estimate; lower `k`.")
    return list(bench.all_k)


def _about(run: BenchRun, prompt: str) -> Iterator[str]:
    for source in run.bench.sources:
        revision = f" at {source.revision}" if source.revision is not None else ""
        yield f"source {source.name}: {source.kind} {public_url(source.path)}{revision}, licence {source.license}"
    policy = stage_model(run.recipe, PART)
    if isinstance(policy, LiveModel):
        drawn = policy.decoding
        yield (
            f"{run.bench.attempts} attempts a problem at temperature {drawn.temperature:g}, top-p {drawn.top_p:g}, "
            f"at most {drawn.max_tokens:,} tokens; prompt {prompt}"
        )


def _compared(report: Report, scores: pl.DataFrame, sizes: Sequence[int], against: Path) -> Comparison:
    """Compare with another evaluation; a remark mentions another prompt."""
    place = against / FOLDER
    try:
        other = json.loads((place / "evaluation.json").read_text(encoding="utf-8"))
        other_scores = pl.read_parquet(place / "problems.parquet", glob=False)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise StoreError(
            f"--against {against}: holds no finished evaluation; run `goldilocks evaluate` there."
        ) from error
    if other_scores.join(scores, on="problem", how="semi").is_empty():
        raise StoreError(
            f"--against {against}: is of bench {other['bench']}, and shares no problem with {report.bench}."
        )
    remark = ""
    if other["prompt"] != report.prompt:
        remark = (
            f"prompts differ: {other['prompt']} there, {report.prompt} here; the differences come from prompt and "
            "weights together"
        )
    return Comparison(str(other["policy"]), compare_scores(other_scores, scores, sizes), remark)
