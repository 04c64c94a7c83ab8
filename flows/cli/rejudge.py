"""Judge the recorded attempts of a run again: which decisions a better verifier changes, and why.

No attempt is made. Verdicts and decisions of each verifier stay side by side in the run folder; the set that is
published is that of the verifier that judged last. The problems are those of the run: references that only the new
verifier can read come in with the next `goldilocks run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.config import Recipe
from curation.policies.excerpt import excerpt
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import atomic_replace, read_shard, write_parquet
from flows.cli.commands import print_funnel
from flows.pipelines.by_recipe import pipeline_of
from flows.publish import curated_set
from flows.run.pipeline import read_results, run_pipeline
from flows.run.recipe import override_recipe
from flows.run.run_folder import Run, as_written, open_run, with_grader
from flows.run.stage import Kind, shard_counts
from flows.run.terminal import SafeConsole
from flows.run.training_status import is_training
from flows.stages.attempts import attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.export import PUBLISHED
from flows.stages.judging import verifier_version
from flows.stages.label_trust import label_trust_of
from flows.stages.questions import doubtful_verdicts_of, final_verdicts
from flows.stages.verdicts import verdicts_of

_REJUDGED = re.compile(r"workers|verify\.\w+|questions\.doubtful_verdicts\.[\w.]+|stage[12]\.band\.(?!attempts\b)\w+")

EXAMPLES = 20
"""Changed decisions that are printed; all of them are written to DIR/rejudged.jsonl."""

VERDICTS = 3
"""Changed verdicts that are printed behind each of them; those with another outcome come first."""


@dataclass(frozen=True, slots=True)
class ChangedDecision:
    """One decision that changed, with the verdicts behind it."""

    stage: str
    problem: str
    before: str
    after: str
    verdicts: tuple[str, ...]


def rejudge_run(folder: Path, overrides: Sequence[str]) -> None:
    """Judge again, publish, and print what changed; for a training run, print what its attempts are now worth."""
    if is_training(folder):
        from flows.cli.rejudge_training import rejudge_training

        return rejudge_training(folder, overrides)
    console = SafeConsole()
    folder = folder.absolute()
    run = open_run(folder)
    old = curated_set.published_verifier(run)
    if old is None:
        raise StoreError(f"{folder} holds no finished run yet; finish it with `goldilocks run`.")
    if not curated_set.is_published(run):
        raise StoreError(
            f"{folder}: the recipe has changed since its set was published; finish it with `goldilocks run`."
        )
    before_run, run = run, Run(folder, override_verifier(run, overrides), run.recipe_folder)
    pipeline = pipeline_of(run.recipe)
    with lock_folder(folder):
        filters = read_results(run, [stage for stage in pipeline.stages_of(run) if stage.kind is Kind.FILTER])
        attempts = read_results(run, [attempts_of(part) for part in run.parts])
        with _snapshot(before_run, old) as before:
            new = verifier_version(run)
            makers = (verdicts_of, doubtful_verdicts_of, label_trust_of, decisions_of)
            stages = [make(part) for part in run.parts for make in makers]
            results = run_pipeline(run, stages, results=filters.plus(*attempts))
            count, total, shown = _write_changes(before, _tables(run, new), folder / "rejudged.jsonl")
        run.save()
        curated_set.publish(run, run_pipeline(run, PUBLISHED, results=results))
    console.print(f"verifier {old} → {new}: {count} of {total:,} decisions changed")
    _print_changes(console, shown, count)
    if count:
        console.print(f"all of them: {folder / 'rejudged.jsonl'}")
        print_funnel(run)


def override_verifier(run: Run, overrides: Sequence[str]) -> Recipe:
    """Return the run's recipe with other settings; where a grader makes stage 2, ``stage2.band.*`` is its band."""
    allowed = _allowed(overrides)
    if run.recipe.grader is not None:
        allowed = [re.sub(r"^\s*stage2\.", "grader.", override) for override in allowed]
    return with_grader(override_recipe(as_written(run.recipe), allowed), run.folder)


def _allowed(overrides: Sequence[str]) -> Sequence[str]:
    """Return the overrides, checked: only settings that judging and deciding read may change here.

    Raises:
        ConfigError: an override concerns how the attempts were made; these are not made again.
    """
    for override in overrides:
        key = override.partition("=")[0].strip()
        if not _REJUDGED.fullmatch(key):
            raise ConfigError(
                f"--set {override}: rejudge changes verify.*, questions.doubtful_verdicts.*, workers and stageN.band.* "
                "(but not its attempts) only; use `goldilocks run` for the rest."
            )
    return overrides


_ROW = {
    "stage": pl.String(),
    "problem": pl.String(),
    "before": pl.String(),
    "after": pl.String(),
    "why": pl.List(pl.String()),
}
_COMPARED = {
    "decisions": ("problem", "reason"),
    "verdicts": ("problem", "index", "reference", "outcome", "answer", "answer_class", "method"),
}

Tables = dict[str, dict[str, Path]]
"""By part and table, where a stage's table lies."""


def _tables(run: Run, verifier: str) -> Tables:
    """Return where the decisions of each difficulty stage lie, and the verdicts that they were made from."""
    return {
        part: {
            "decisions": decisions_of(part).folder_in(run, verifier),
            "verdicts": final_verdicts(run, part).folder_in(run, verifier),
        }
        for part in run.parts
    }


@contextmanager
def _snapshot(run: Run, verifier: str) -> Iterator[Tables]:
    """Keep in a temporary folder what of decisions and verdicts is compared: judging again may write their places."""
    scratch = ScratchFolder("rejudge")
    try:
        kept: Tables = {}
        for part, tables in _tables(run, verifier).items():
            kept[part] = dict.fromkeys(tables, Path(scratch.path) / part)
            for table, folder in tables.items():
                for shard in range(len(shard_counts(folder, table))):
                    frame = read_shard(folder, table, shard, _COMPARED[table])
                    write_parquet(kept[part][table] / table / f"{shard:05}.parquet", frame)
        yield kept
    finally:
        scratch.remove()


def _write_changes(before: Tables, after: Tables, path: Path) -> tuple[int, int, list[ChangedDecision]]:
    """Write the decisions that differ as JSON lines, and return how many do, of how many, and the first of them."""
    count, total, shown = 0, 0, list[ChangedDecision]()
    with atomic_replace(path) as file:
        for part, tables in after.items():
            for shard in range(len(shard_counts(tables["decisions"], "decisions"))):
                was, now = (
                    {name: read_shard(side[part][name], name, shard, columns) for name, columns in _COMPARED.items()}
                    for side in (before, after)
                )
                changes = list(changed_decisions(part, was, now))
                pl.DataFrame([_as_row(change) for change in changes], schema=_ROW, orient="row").write_ndjson(file)
                count, total = count + len(changes), total + now["decisions"].height
                shown += changes[: EXAMPLES - len(shown)]
    return count, total, shown


def changed_decisions(
    stage: str, before: Mapping[str, pl.DataFrame], after: Mapping[str, pl.DataFrame]
) -> Iterator[ChangedDecision]:
    """Yield the decisions that differ, each with the verdicts that differ, in the order of the problems.

    Args:
        before, after: the same problems' ``decisions`` and ``verdicts``.
    """
    reasons = _decision_reasons(before["decisions"], "before").join(
        _decision_reasons(after["decisions"], "after"), on="problem", maintain_order="left"
    )
    changed = reasons.filter(pl.col("before") != pl.col("after"))
    changed_verdicts = _changed_verdicts(before["verdicts"], after["verdicts"])
    for problem, was, now in changed.iter_rows():
        yield ChangedDecision(stage, problem, was, now, tuple(changed_verdicts.get(problem, ())))


def _decision_reasons(decisions: pl.DataFrame, name: str) -> pl.DataFrame:
    return decisions.select("problem", pl.coalesce("reason", pl.lit("kept")).alias(name))


def _changed_verdicts(old: pl.DataFrame, new: pl.DataFrame) -> dict[str, list[str]]:
    """Return, per problem, the attempts whose outcome, answer or answer class changed, a line each."""
    columns = ["outcome", "answer", "answer_class", "method"]
    both = old.select("problem", "index", *columns).join(
        new.select("problem", "index", "reference", *columns), on=["problem", "index"], maintain_order="right"
    )
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_right")) for name in columns[:3])
    lines: dict[str, list[str]] = {}
    changed = both.filter(differs).sort(pl.col("outcome") == pl.col("outcome_right"), maintain_order=True)
    for row in changed.iter_rows(named=True):
        lines.setdefault(row["problem"], []).append(
            f"attempt {row['index']}: {excerpt(row['answer_right'])} against {excerpt(row['reference'])} was "
            f"{row['outcome']} ({row['method']}), is {row['outcome_right']} ({row['method_right']})"
        )
    return lines


def _as_row(change: ChangedDecision) -> tuple[str, str, str, str, list[str]]:
    return change.stage, change.problem, change.before, change.after, list(change.verdicts)


def _print_changes(console: Console, shown: Sequence[ChangedDecision], count: int) -> None:
    for change in shown:
        console.print(
            f"{change.stage}  {change.problem}  {change.before} → {change.after}", soft_wrap=True, markup=False
        )
        for line in change.verdicts[:VERDICTS]:
            console.print(f"    {line}")
        if len(change.verdicts) > VERDICTS:
            console.print(f"    … and {len(change.verdicts) - VERDICTS} more verdicts")
    if count > len(shown):
        console.print(f"… and {count - len(shown)} more decisions")
