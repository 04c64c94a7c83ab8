"""Shows a problem's way, attempts and translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flows.page.attempts import attempts_at
from flows.page.marking import deciding_words, differences
from flows.page.open_runs import curation_run
from flows.page.rendering import show
from flows.pipelines.run_tables import Rows, Step, filters_of, find_id, steps_of, version_rows
from flows.run.run_folder import Run
from flows.run.stage import Kind, rows_of


def shown_steps(run: Run, name: str) -> list[dict[str, Any]]:
    """Return a problem's way as the template reads it; ``state`` is kept, dropped, measured or not reached."""
    shown, before = [], Rows()
    for step in steps_of(run, name):
        if step.stage.kind in (Kind.MEASURE, Kind.ADDITION):
            if step.lines:
                shown.append(_shown(step, "measured"))
        elif step.stage.kind is Kind.DECISION:
            decision = step.decision_on(name)
            state = "not reached" if decision is None else "kept" if decision["keep"] else "dropped"
            shown.append(_shown(step, state, rows=[decision] if decision is not None else [], decision=decision))
        else:
            state = "kept" if step.kept else "dropped" if step.dropped else "not reached"
            change = _change(before, step.kept)
            shown.append(_shown(step, state, rows=[*step.kept, *step.dropped], change=change))
            before = step.kept or before
    return shown


def _shown(
    step: Step,
    state: str,
    rows: Sequence[dict[str, Any]] = (),
    decision: dict[str, Any] | None = None,
    change: tuple[Markup, Markup] | None = None,
) -> dict[str, Any]:
    dropped = [row for row in rows if row.get("reason")]
    return {
        "title": step.stage.title,
        "state": state,
        "reason": dropped[0]["reason"] if dropped else None,
        "evidence": [str(row["evidence"]) for row in (rows if decision is not None else dropped) if row["evidence"]],
        "lines": step.lines,
        "change": change,
        "rows": () if decision is not None else rows,
        "decision": decision,
    }


def _change(before: Rows, now: Rows) -> tuple[Markup, Markup] | None:
    """Return the texts of the first row that a stage has rewritten, if any, with the differences marked."""
    texts = {(row["source"], row["row"]): _text(row) for row in before}
    for row in now:
        text = texts.get((row["source"], row["row"]))
        if text is not None and text != _text(row):
            return differences(text, _text(row))
    return None


def _text(row: dict[str, Any]) -> str:
    return f"{row['statement'] or ''}\n\n→ {row['answer'] or '–'}" if row.get("answer") else str(row["statement"] or "")


def translations_of(run: Run, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a problem's published rows in other languages."""
    published = rows_of(run.folder / "curated", "data", row["group"], "group")
    return [other for other in published.iter_rows(named=True) if other["lang"] != row["lang"]]


def source_row(run: Run, name: str) -> dict[str, Any] | None:
    """Return a problem's source row, or None."""
    rows = rows_of(filters_of(run)[0].folder_in(run), "kept", name)
    return rows.row(0, named=True) if rows.height else None


def _problem(request: Request) -> Response:
    shown, run = curation_run(request)
    name = find_id(run, request.path_params["problem"])
    steps = shown_steps(run, name)
    row = next(row for step in steps for row in step["rows"])
    evidence = [text for step in steps for text in step["evidence"]]
    final = next((row for step in reversed(steps) for row in step["rows"] if row.get("raw_statement")), None)
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
        versions=version_rows(run, [name]),
        stages=attempts_at(run, name),
    )


ROUTES = [Route("/r/{run}/rows/{problem}", _problem)]
