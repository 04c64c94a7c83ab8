"""Read how far a run is, its plan, and what its stages did with one problem, for commands and the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from curation.config.mistakes import did_you_mean
from curation.difficulty.planning import StagePlan, short_number
from curation.publish.review import dispute_counts
from curation.records import ATTEMPT, DropReason, StoreError
from curation.storage.stages import read_manifest
from flows.pipelines.by_recipe import pipeline_of
from flows.publish.curated_set import published_mark
from flows.publish.disputes import published_queue
from flows.publish.versions import Version, latest, newest_run, scan_decisions, stored_versions, summary
from flows.run import retries
from flows.run.history import last_command, last_lines
from flows.run.pipeline import StageStatus, read_result, status
from flows.run.run_folder import Run, open_run
from flows.run.stage import Kind, Stage, rows_of
from flows.run.training import is_training, training_lines
from flows.stages.attempts import attempt_store, attempts_of
from flows.stages.judging import verifier_version
from flows.stages.questions import VARIANTS, final_verdicts, question_lines


def status_table(folder: Path, *, with_lines: bool = True) -> dict[str, Any]:
    """Return a run's funnel, newest version, disputed labels, last command, and what is to be noted about it.

    Args:
        with_lines: also the notes, which read every shard's mark.
    """
    if is_training(folder):
        return {"kind": "training", "folder": str(folder.absolute()), "lines": list(training_lines(folder))}
    run = newest_run(folder.absolute())
    version, verifier = latest(run.folder), verifier_of(run)
    stages, queue = status(run, pipeline_of(run.recipe), verifier), published_queue(run)
    disputed, questions = {} if queue is None else dispute_counts(queue), list(question_lines(run, verifier))
    return {
        "kind": "curation",
        "recipe": run.recipe.name,
        "folder": str(run.folder),
        "curated": str(run.folder / "curated") if (run.folder / "curated").exists() else None,
        "stages": [
            {
                "name": stage.row.stage,
                "title": stage.row.title,
                "in": stage.row.rows_in,
                "kept": stage.row.kept,
                "dropped": stage.row.dropped,
                "reasons": dict(stage.row.reasons),
                "finished": stage.finished,
                "shards": stage.shards,
                "shards_in_all": stage.total,
                "shown": stage.is_shown,
            }
            for stage in stages
        ],
        "version": asdict(replace(version, changes="")) if version is not None else None,
        "disputed": disputed,
        "questions": questions,
        "last_command": last_lines(run.folder),
        "lines": [*_lines(run, verifier, stages, version, disputed, questions)] if with_lines else [],
    }


def _lines(
    run: Run,
    verifier: str,
    stages: Sequence[StageStatus],
    version: Version | None,
    disputed: Mapping[str, int],
    questions: Sequence[str],
) -> Iterator[str]:
    if stages[-1].finished and not stages[-1].row.kept:
        yield "Nothing is left for the curated set; the table shows where the rows were dropped."
    if version is not None:
        yield summary(version)
    if disputed:
        counts = ", ".join(f"{name} {count:,}" for name, count in disputed.items())
        yield f"disputed labels: {counts}; see `goldilocks review {run.folder}`"
    for stage in stages:
        if count := stage.notes.get("templates", 0):
            problems = "1 problem has" if count == 1 else f"{count:,} problems have"
            yield f"{stage.row.title}: {problems} a benchmark's wording with other numbers"
    yield from compare_with_plan(run, verifier)
    yield from _failure_lines(stages, run, verifier)
    yield from questions
    if (command := last_command(run.folder)) is not None:
        yield command
    yield from _label_lines(run, verifier)


def _failure_lines(stages: Sequence[StageStatus], run: Run, verifier: str) -> Iterator[str]:
    for stage in stages:
        folder = stage.stage.folder_in(run, verifier)
        for kind, (what, remedy) in retries.KINDS.items():
            if not (failures := stage.notes.get(kind, 0)):
                continue
            if pending := retries.pending_round(folder):
                becomes = f"the next run tries them again (retry {pending} of {retries.ROUNDS})"
            elif retries.last_round(folder) >= retries.ROUNDS:
                becomes = f"no further run tries them again; {remedy}"
            else:
                becomes = "`goldilocks explain` names them"
            yield f"{stage.row.title}: {what}: {failures:,}; {becomes}"


def _label_lines(run: Run, verifier: str) -> Iterator[str]:
    """Yield how many verdicts of each stage agree with the labels of recorded attempts."""
    for part in run.parts:
        result = read_result(attempts_of(part), run, verifier)
        if result is None or not (labelled := result.manifest.notes.get("labelled", 0)):
            continue
        differ = result.manifest.notes["disagreements_with_labels"]
        share = f"{labelled - differ:,} of {labelled:,} verdicts ({100 * (1 - differ / labelled):.2f} %)"
        others = f"; the others: {result.folder / 'disagreements_with_labels'}" if differ else ""
        yield f"{part}: {share} agree with the file's own labels{others}"


def verifier_of(run: Run) -> str:
    """Return the published set's verifier version, else the recipe's."""
    return published_mark(run).get("verifier") or verifier_version(run)


PLAN = "plan.json"  # in the run folder: each stage's `StagePlan`


def stored_plan(run: Run) -> dict[str, StagePlan]:
    """Return a run's plan by stage, if any."""
    path = run.folder / PLAN
    if not path.exists():
        return {}
    try:
        return {plan.stage: plan for plan in TypeAdapter(list[StagePlan]).validate_json(path.read_bytes())}
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); `goldilocks plan` writes it again.") from error


def compare_with_plan(run: Run, verifier: str) -> list[str]:
    """Return planned and actual attempts of stages that have run."""
    lines = []
    for part, plan in stored_plan(run).items():
        manifest = read_manifest(attempts_of(part).folder_in(run, verifier))
        if manifest is not None:
            took = f"{short_number(manifest.notes['counted'])} attempts in {manifest.notes['ms'] / 1000:,.0f} s"
            lines.append(f"{part}: planned {plan.attempts} attempts and {plan.tokens} tokens; took {took}")
    return lines


def filters_of(run: Run) -> list[Stage]:
    """Return a run's filter stages, the sources first."""
    return [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind is Kind.FILTER]


def find_id(run: Run, beginning: str) -> str:
    """Return the run's one id with this beginning, or with this value in its `meta`; variants find the original.

    Raises:
        StoreError: no id matches, or several do.
    """
    filters = filters_of(run)
    additions = [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind is Kind.ADDITION]
    begins = pl.col("id").str.starts_with(beginning)
    is_own = pl.col("meta").str.contains(rf'": "?{re.escape(json.dumps(beginning, ensure_ascii=False)[1:-1])}"?[,}}]')
    searched = ((filters[:1], begins, "id"), (filters[-1:], begins, "group"), (additions, begins, "group"))
    for stages, where, column in (*searched, (filters[:1], is_own, "id")):
        if ids := {name for stage in stages for name in _matching(run, stage, where, column)}:
            break
    else:
        near = did_you_mean(beginning, DropReason)
        raise StoreError(
            f"{run.folder} holds no problem whose id begins with {beginning!r}, or whose `columns.meta` hold it "
            f'(meta = ["uid"] keeps a column of your ids){near or "."} A drop reason instead of an id lists its rows.'
        )
    if len(ids) > 1:
        examples = ", ".join(sorted(ids)[:5])
        raise StoreError(f"{beginning!r} matches {len(ids)} ids: {examples}{' …' if len(ids) > 5 else ''}; give more.")
    return ids.pop()


def attempt_ids_of(run: Run, name: str) -> list[str]:
    """Return the ids of a problem's variants after the last filter, else its own."""
    ids = rows_of(filters_of(run)[-1].folder_in(run), "kept", name, "group")
    return ids["id"].to_list() if ids.height else [name]


def _matching(run: Run, stage: Stage, where: pl.Expr, column: str) -> Iterator[str]:
    for file in sorted((stage.folder_in(run) / "kept").glob("*.parquet")):
        yield from pl.scan_parquet(file, glob=False).filter(where).select(column).collect()[column]


Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage's rows of a problem by table, and further lines."""

    stage: Stage
    tables: Mapping[str, Rows]
    lines: tuple[str, ...]

    @property
    def kept(self) -> Rows:
        """Return the rows that the stage kept."""
        return self.tables.get("kept", [])

    @property
    def dropped(self) -> Rows:
        """Return the rows that the stage dropped."""
        return self.tables.get("dropped", [])

    def decision_on(self, problem: str) -> dict[str, Any] | None:
        """Return a difficulty stage's decision on a problem or variant."""
        return next((row for row in self.tables.get("decisions", ()) if row["problem"] == problem), None)


def steps_of(run: Run, name: str, *, verdicts: bool = False) -> list[Step]:
    """Return a problem's way through the stages, in its newest version where the set is made.

    Args:
        verdicts: read these large tables too.
    """
    run, newest = open_run(run.folder), newest_run(run.folder)
    verifier, variants, steps = verifier_of(run), attempt_ids_of(run, name), []
    for stage in pipeline_of(run.recipe).stages_of(run):
        is_late = stage.kind in (Kind.ADDITION, Kind.EXPORT)
        own = newest if is_late else run
        folder, ids = stage.folder_in(own, verifier), variants if is_late or stage.part else [name]
        names: tuple[str, ...] = ("kept", "dropped")
        if stage.kind in (Kind.MEASURE, Kind.DECISION):
            names = ("decisions", "verdicts") if verdicts else ("decisions",)
        tables = {table: [row for problem in ids for row in _rows(stage, folder, table, problem)] for table in names}
        lines = tuple(line for problem in ids for line in stage.explain(own, folder, problem))
        steps.append(Step(stage, tables, lines))
    return steps


def _rows(stage: Stage, folder: Path, table: str, name: str) -> Rows:
    columns: tuple[str, ...] = ("id", "group")
    if stage.kind in (Kind.MEASURE, Kind.DECISION):
        columns = ("problem",)
    elif stage.kind is Kind.ADDITION and table == "kept":
        columns = ("variant_of" if stage.name == VARIANTS.name else "translation_of",)
    found = rows_of(folder, table, name, *columns)
    own = found.filter(id=name) if "id" in columns else found
    return (own if own.height else found).to_dicts()


def explain_table(run: Run, name: str) -> dict[str, Any]:
    """Return a problem's rows in each stage."""
    stages = [
        {"name": step.stage.name, **{table: rows for table, rows in step.tables.items() if rows}}
        for step in steps_of(run, name, verdicts=True)
    ]
    return {"problem": name, "recipe": run.recipe.name, "stages": stages}


def judged_attempts(
    run: Run, part: str, verifier: str, problem: str
) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return a stage's verdicts on a problem, each with its attempt if it is stored."""
    verdicts = rows_of(final_verdicts(run, part).folder_in(run, verifier), "verdicts", problem, "problem")
    result = read_result(attempts_of(part), run, verifier)
    stored = attempt_store(run, result).read([problem]) if result is not None else pl.DataFrame(schema=ATTEMPT)
    attempts = {row["index"]: row for row in stored.iter_rows(named=True)}
    return [(verdict, attempts.get(verdict["index"])) for verdict in verdicts.iter_rows(named=True)]


def version_rows(run: Run, problems: Sequence[str]) -> Rows:
    """Return each version's decisions on a problem and its variants, oldest first, with the `version`."""
    rows = []
    for version in stored_versions(run.folder):
        decided = scan_decisions(run.folder, version.number).filter(pl.col("problem").is_in(problems)).collect()
        rows += [{"version": version, **row} for row in decided.iter_rows(named=True)]
    return rows
