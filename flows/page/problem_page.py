"""Shows a problem's way, attempts and translations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flows.page.attempts import attempts_at
from flows.page.marking import deciding_words, differences
from flows.page.open_runs import curation_run
from flows.page.rendering import show
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.find_problem import filters_of, find_id
from flows.pipelines.run_tables import explain_table, verifier_of
from flows.publish.versions import scan_decisions, stored_versions
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.run.stage import Kind, Stage

Rows = dict[tuple[str, int], dict[str, Any]]
"""By source and number."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stage's result; ``state`` is kept, dropped, measured or not reached."""

    title: str
    state: str
    reason: str | None
    evidence: tuple[str, ...]
    lines: tuple[str, ...]
    change: tuple[Markup, Markup] | None
    rows: tuple[dict[str, Any], ...]
    decision: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TranslatedPair:
    """A problem and its translation."""

    lang: str
    id: str
    statement: str
    answers: tuple[str | None, str | None]


def steps_of(run: Run, name: str) -> list[Step]:
    """Return a problem's way through the stages."""
    tables = {stage["name"]: stage for stage in explain_table(run.folder, name)["stages"]}
    verifier, steps = verifier_of(run), []
    before: Rows = {}
    for stage in pipeline_of(run.recipe).stages_of(run):
        step, kept = _step(run, stage, verifier, name, tables[stage.name], before)
        before = kept or before
        if step is not None:
            steps.append(step)
    return steps


def _step(
    run: Run,
    stage: Stage,
    verifier: str,
    name: str,
    table: dict[str, Any],
    before: dict[tuple[str, int], dict[str, Any]],
) -> tuple[Step | None, Rows]:
    lines = tuple(stage.explain(run, stage.folder_in(run, verifier), name))
    if stage.kind in (Kind.MEASURE, Kind.ADDITION):
        return (Step(stage.title, "measured", None, (), lines, None, (), None) if lines else None), {}
    if stage.kind is Kind.DECISION:
        decision = next(iter(table.get("decisions", ())), None)
        state = "not reached" if decision is None else "kept" if decision["keep"] else "dropped"
        reason = decision["reason"] if decision is not None else None
        evidence = (str(decision["evidence"]),) if decision is not None and decision["evidence"] else ()
        return Step(stage.title, state, reason, evidence, lines, None, (), decision), {}
    kept, dropped = table.get("kept", []), table.get("dropped", [])
    if not kept and not dropped:
        return Step(stage.title, "not reached", None, (), lines, None, (), None), {}
    now = {(row["source"], row["row"]): row for row in kept}
    changed = [(before[key], row) for key, row in now.items() if key in before and _text(before[key]) != _text(row)]
    change = differences(_text(changed[0][0]), _text(changed[0][1])) if changed else None
    reason = dropped[0]["reason"] if dropped else None
    told = tuple(str(row["evidence"]) for row in dropped if row["evidence"])
    state = "kept" if kept else "dropped"
    return Step(stage.title, state, reason, told, lines, change, tuple(kept + dropped), None), now


def _text(row: dict[str, Any]) -> str:
    return f"{row['statement'] or ''}\n\n→ {row['answer'] or '–'}" if row.get("answer") else str(row["statement"] or "")


def translations_of(run: Run, row: dict[str, Any]) -> list[TranslatedPair]:
    """Return a problem's published translations."""
    files = sorted((run.folder / "curated" / "data").glob("*.parquet"))
    columns = ["id", "group", "lang", "statement", "answer"]
    parts = [
        pl.scan_parquet(file, glob=False).filter(pl.col("group") == row["group"]).select(columns).collect()
        for file in files
    ]
    pairs = []
    for other in (pl.concat(parts) if parts else pl.DataFrame(schema=columns)).iter_rows(named=True):
        if other["lang"] != row["lang"]:
            answers = row["answer"], other["answer"]
            pairs.append(TranslatedPair(other["lang"], other["id"], other["statement"], answers))
    return pairs


def source_row(run: Run, name: str) -> dict[str, Any] | None:
    """Return a problem's source row, or None."""
    rows = rows_of(filters_of(run)[0].folder_in(run), "kept", name)
    return rows.row(0, named=True) if rows.height else None


def version_lines(run: Run, name: str) -> list[dict[str, Any]]:
    """Return each version's decision on a problem, oldest first."""
    lines = []
    for version in stored_versions(run.folder):
        decided = scan_decisions(run.folder, version.number).filter(pl.col("problem") == name).collect()
        lines += [{"version": version, **row} for row in decided.iter_rows(named=True)]
    return lines


def _problem(request: Request) -> Response:
    shown, run = curation_run(request)
    name = find_id(run, request.path_params["problem"])
    steps = steps_of(run, name)
    row = next(row for step in steps for row in step.rows)
    evidence = [text for step in steps for text in step.evidence]
    final = next((row for step in reversed(steps) for row in step.rows if row.get("raw_statement")), None)
    return show(
        request,
        "problem.html",
        run=shown,
        tab="rows",
        name=name,
        row=row,
        steps=steps,
        marked=[word for text in evidence for word in deciding_words(text, row["statement"])],
        marked_answer=[word for text in evidence for word in deciding_words(text, row["answer"])],
        rewritten=differences(final["raw_statement"], final["statement"]) if final is not None else None,
        raw_answer=final["raw_answer"] if final is not None else None,
        final=final,
        translations=translations_of(run, row) if row["statement"] else [],
        versions=version_lines(run, name),
        stages=attempts_at(run, name),
    )


ROUTES = [Route("/r/{run}/rows/{problem}", _problem)]
