"""Load problems to train on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curation.prompts.solving import FENCE
from curation.records import Domain, DropReason, PromptRequest, SourceError
from curation.storage.stages import read_json, require_hash
from curation.verify.generator_scores import scorer_of
from curation.verify.own_judges import needed_judges
from training.embedded_model.problems import Split, generate_exercises
from training.recipe import CuratedData, DataSettings, EmbeddedData

if TYPE_CHECKING:
    from curation.verify.programs.problem import CodeProblem

_DROPPED = ("id", "group", "domain", "statement", "answer", "lang", "meta")
_MEASURED = ("judged", "correct", "policy", "raw_answer", "accepted", "source")
"""Optional columns."""

LATENT_REASONS = ("proof", "textual_answer", "unverifiable_answer")
"""Drop reasons of problems that no rule can judge."""


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """A problem with a reference answer, tests, or an unverifiable reference text.

    ``policy`` solved it ``correct`` of ``judged`` times; its set dropped it as too hard if ``deferred``. ``accepted``
    answers count as the reference; ``judges`` are the user's own. ``level`` and ``scorer`` are of procedural problems.
    """

    request: PromptRequest
    reference_answer: str | None
    code_problem: CodeProblem | None = None
    judged: int = 0
    correct: int = 0
    deferred: bool = False
    reference_text: str | None = None
    policy: str | None = None
    raw_answer: str | None = None
    accepted: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    level: str | None = None
    scorer: str | None = None

    @property
    def id(self) -> str:
        return self.request.id


def load_tasks(data: DataSettings, split: Split, folder: Path) -> dict[str, TrainingTask]:
    """Read the tasks by id; ``data`` is relative to ``folder``, ``split`` only of embedded problems."""
    if isinstance(data, EmbeddedData):
        items = itertools.islice(generate_exercises(data.seed, split), data.problems)
        requests = (
            (PromptRequest(exercise.id, exercise.statement, Domain.MATH, exercise.lang), str(exercise.answer))
            for exercise in items
        )
        source: Iterator[TrainingTask] = itertools.starmap(TrainingTask, requests)
    else:
        source = _latent_tasks(data, folder) if data.kind == "latent" else _curated_tasks(data, folder)
    tasks: dict[str, TrainingTask] = {}
    for task in source:
        if task.id in tasks:
            raise SourceError(f"problem {task.id} is in the data twice; leave one of the sets out")
        tasks[task.id] = task
    if not tasks:
        raise SourceError("the data has no problem; give another set")
    return tasks


def _tables(data: CuratedData, folder: Path, part: str) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each set's folder and its tables of this part."""
    for name in data.folders:
        curated = folder / Path(name).expanduser()
        files = sorted((curated / part).glob("*.parquet"))
        if not files:
            raise SourceError(f"{curated}: no {part}/*.parquet; give the folder of a curated set, such as RUN/curated.")
        yield curated, files


def _curated_tasks(data: CuratedData, folder: Path) -> Iterator[TrainingTask]:
    for curated, files in _tables(data, folder, "data"):
        judges = needed_judges(curated)
        tables = {file: _rows(file, _DROPPED, _MEASURED) for file in files}
        is_code = pl.col("domain") == Domain.CODE.value
        code = [(file, row) for file, rows in tables.items() for row in rows.filter(is_code).iter_rows(named=True)]
        programs = _code_problems(curated, code) if code else {}
        for file, rows in tables.items():
            for row in rows.iter_rows(named=True):
                yield replace(_task_from_row(row, programs.get(row["id"]), file), judges=judges)
        hard = (pl.col("reason") == DropReason.NEVER_SOLVED.value) & (pl.col("domain") == Domain.MATH.value)
        for file in sorted((curated / "dropped").glob("*.parquet")) if data.hard else ():
            for row in _rows(file, (*_DROPPED, "reason"), where=hard).iter_rows(named=True):
                if row["answer"] is not None:
                    yield replace(_task_from_row(row, None, file), judges=judges, deferred=True)


def _latent_tasks(data: CuratedData, folder: Path) -> Iterator[TrainingTask]:
    seen: set[str] = set()
    is_latent = pl.col("reason").is_in(LATENT_REASONS)
    for _, files in _tables(data, folder, "dropped"):
        tables = (_rows(file, (*_DROPPED, "solution", "reason"), where=is_latent) for file in files)
        for row in (row for rows in tables for row in rows.iter_rows(named=True)):
            text = row["solution"] or row["answer"]
            if text and row["id"] not in seen:
                seen.add(row["id"])
                request = PromptRequest(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", {})
                yield TrainingTask(request, None, reference_text=text)


def _code_problems(curated: Path, rows: Sequence[tuple[Path, Mapping[str, Any]]]) -> dict[str, CodeProblem]:
    from curation.verify.programs.problem import CodeLang
    from curation.verify.programs.tables import set_problems

    languages = {}
    for file, row in rows:
        try:
            languages[str(row["id"])] = str(row["group"] or row["id"]), CodeLang(_language(row))
        except ValueError as error:
            raise SourceError(f"{file}: problem {row['id']} asks for {error}; leave it out") from error
    return set_problems(curated, languages)


def _language(row: Mapping[str, Any]) -> str:
    return str(json.loads(row["meta"] or "{}").get(FENCE, "python"))


def _task_from_row(row: Mapping[str, Any], program: CodeProblem | None, file: Path) -> TrainingTask:
    is_code = row["domain"] == Domain.CODE
    if is_code and program is None:
        raise SourceError(f"{file}: problem {row['id']} has no tests next to the data; publish its tests")
    if not is_code and row["answer"] is None:
        raise SourceError(f"{file}: problem {row['id']} has no reference answer; leave it out")
    details = {FENCE: _language(row)} if is_code else {}
    request = PromptRequest(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", details)
    meta = json.loads(row["meta"] or "{}")
    is_procedural = {"level", "seed", "judged_by"} <= meta.keys()
    return TrainingTask(
        request,
        row["answer"],
        program,
        row.get("judged") or 0,
        row.get("correct") or 0,
        policy=row.get("policy"),
        raw_answer=row.get("raw_answer"),
        accepted=tuple(row.get("accepted") or ()),
        level=f"{row.get('source') or 'source'}, level {meta['level']}" if is_procedural else None,
        scorer=scorer_of(row["meta"]),
    )


def _rows(
    file: Path, columns: Sequence[str], optional: Sequence[str] = (), where: pl.Expr | None = None
) -> pl.DataFrame:
    """Return a table's rows, with ``optional`` columns if it has them."""
    mark = read_json(file.parents[1] / ".published.json") or {}
    require_hash(file, mark.get("files", {}).get(f"{file.parent.name}/{file.name}"))
    try:
        has = pl.read_parquet_schema(file)
        table = pl.read_parquet(file, columns=[*columns, *(name for name in optional if name in has)], glob=False)
    except (pl.exceptions.ColumnNotFoundError, pl.exceptions.ComputeError) as error:
        raise SourceError(f"{file}: no table of a curated set ({error}); publish the set again.") from error
    rows = table if where is None else table.filter(where)
    lacking = rows.filter(pl.col("statement").is_null())["id"]
    if lacking.len():
        raise SourceError(
            f"{file}: problem {lacking[0]} has no statement; withheld texts are put back by "
            "`goldilocks publish DIR --restore`"
        )
    return rows
