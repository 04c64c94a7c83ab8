"""Shows a problem's way, attempts and translations."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, PythonLexer
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curation.records import Domain
from curation.thinking import split_response
from flows.page.formulas import differences
from flows.page.open_runs import curation_run
from flows.page.rendering import show
from flows.pipelines.run_tables import (
    Rows,
    attempt_ids_of,
    find_id,
    judged_attempts,
    steps_of,
    verifier_of,
    version_rows,
)
from flows.run.run_folder import Run, open_run
from flows.run.stage import Kind, rows_of
from flows.stages.attempts import part_title
from flows.stages.decisions import decisions_of
from flows.stages.judging import VariantProblems

SHOWN_BYTES = 2000
"""Of a test's input and expected output."""

_PROGRAM = re.compile(r"\A```(\w+)\n(.*?)\n?```\s*\Z", re.DOTALL)
_FAILED = re.compile(r"on test (\d+)")
_PRINTED = re.compile(r"it printed ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")

Table = dict[str, Any]


def shown_steps(run: Run, name: str) -> list[Table]:
    """Return a problem's way as the template reads it; ``state`` is kept, dropped, measured or not reached."""
    shown, before = list[Table](), Rows()
    for step in steps_of(run, name):
        if step.stage.kind in (Kind.MEASURE, Kind.ADDITION) and not step.lines:
            continue
        about: Table = {"title": step.stage.title, "lines": step.lines, "rows": (), "change": None, "decision": None}
        rows, state = [*step.kept, *step.dropped], "kept" if step.kept else "dropped" if step.dropped else "not reached"
        if step.stage.kind in (Kind.MEASURE, Kind.ADDITION):
            rows, state = [], "measured"
        elif step.stage.kind is Kind.DECISION:
            decision = step.decision_on(name)
            rows = [decision] if decision is not None else []
            state = "not reached" if decision is None else "kept" if decision["keep"] else "dropped"
            about["decision"] = decision
        else:
            about |= {"rows": rows, "change": _change(before, step.kept)}
            before = step.kept or before
        dropped = [row for row in rows if row.get("reason")]
        about["reason"] = dropped[0]["reason"] if dropped else None
        evidence = [str(row["evidence"]) for row in (rows if about["decision"] else dropped) if row["evidence"]]
        shown.append({**about, "state": state, "evidence": evidence})
    return shown


def _change(before: Rows, now: Rows) -> tuple[Markup, Markup] | None:
    """Return the texts of the first row that a stage has rewritten, if any, with the differences marked."""

    def text_of(row: Table) -> str:
        statement = str(row["statement"] or "")
        return f"{statement}\n\n→ {row['answer']}" if row.get("answer") else statement

    texts = {(row["source"], row["row"]): text_of(row) for row in before}
    pairs = ((texts.get((row["source"], row["row"])), text_of(row)) for row in now)
    return next((differences(old, new) for old, new in pairs if old is not None and old != new), None)


def translations_of(run: Run, row: Table) -> list[Table]:
    """Return a problem's published rows in other languages."""
    published = rows_of(run.folder / "curated", "data", row["group"], "group")
    return [other for other in published.iter_rows(named=True) if other["lang"] != row["lang"]]


def _problem(request: Request) -> Response:
    shown, run = curation_run(request)
    name = find_id(run, request.path_params["problem"])
    steps = shown_steps(run, name)
    row = next(row for step in steps for row in step["rows"])
    return show(
        request,
        "problem.html",
        run=shown,
        tab="rows",
        name=name,
        row=row,
        steps=steps,
        translations=translations_of(run, row) if row["statement"] else [],
        versions=version_rows(run, [name]),
        stages=attempts_at(run, name),
    )


def attempts_at(run: Run, name: str) -> list[Table]:
    """Return the attempts at a problem by stage and id, as the templates read them; of a refresh, if it measured it."""
    verifier, stages = verifier_of(run), []
    for part in run.parts:
        for attempt_id in attempt_ids_of(run, name):
            found = _stage_attempts(run, part, verifier, attempt_id)
            if found is None and run.version_folder is not None:
                found = _stage_attempts(open_run(run.folder), part, verifier, attempt_id)
            if found is not None:
                stages.append(found)
    return stages


def _stage_attempts(run: Run, part: str, verifier: str, name: str) -> Table | None:
    judged = judged_attempts(run, part, verifier, name)
    if not judged:
        return None
    problems = VariantProblems(run) if run.recipe.domain == Domain.CODE else None
    groups: dict[tuple[int | None, str], list[Table]] = {}
    for verdict, attempt in judged:
        method = verdict["method"].partition(" ")[0] if verdict["answer"] is not None else ""
        unclassed = f"{verdict['outcome']} {method}" if verdict["answer_class"] is None else ""
        groups.setdefault((verdict["answer_class"], unclassed), []).append(_attempt(verdict, attempt or {}, problems))
    ordered = sorted(groups.items(), key=lambda item: (item[0][0] != 0, item[0][0] is None, -len(item[1])))
    decisions = rows_of(decisions_of(part).folder_in(run, verifier), "decisions", name, "problem")
    return {
        "title": part_title(part),
        "problem": name,
        "attempts": len(judged),
        "decision": decisions.row(0, named=True) if decisions.height else None,
        "groups": [  # class 0 is the reference's
            {
                "answer_class": answer_class,
                "answer": None if answer_class is None or attempts[0]["program"] is not None else attempts[0]["answer"],
                "outcome": Counter(attempt["outcome"] for attempt in attempts).most_common(1)[0][0],
                "method": ", ".join(
                    name for name, _ in Counter(attempt["method"] for attempt in attempts).most_common(3)
                ),
                "attempts": attempts,
            }
            for (answer_class, _), attempts in ordered
        ],
    }


def _attempt(verdict: Table, attempt: Table, problems: VariantProblems | None) -> Table:
    parts, program = split_response(attempt["text"]) if attempt.get("text") else None, None
    if (match := _PROGRAM.match(verdict["answer"] or "")) is not None:
        lexer = CppLexer() if match[1] in ("cpp", "c++") else PythonLexer()
        program = Markup(highlight(match[2], lexer, _FORMATTER))
    return {
        **verdict,
        "tokens": attempt.get("tokens"),
        "finish": attempt.get("finish"),
        "thoughts": parts.thoughts if parts is not None else "",
        "text": parts.answer if parts is not None else None,
        "program": program,
        "failed": _failed_test(verdict, problems) if problems is not None and verdict["outcome"] == "wrong" else None,
    }


def _failed_test(verdict: Table, problems: VariantProblems) -> Table | None:
    """Return the first failed test; ``printed`` is None if unknown."""
    match, printed = _FAILED.search(verdict["method"]), _PRINTED.search(verdict["method"])
    tests = problems(verdict["problem"]).tests if match is not None else ()
    if match is None or int(match[1]) >= len(tests):
        return None
    test = tests[int(match[1])]
    given, expected = (content[:SHOWN_BYTES].decode("utf-8", "replace") for content in (test.input, test.output))
    out = ast.literal_eval(printed[1]) if printed is not None else None
    return {"index": int(match[1]), "input": given, "expected": expected, "printed": out}


ROUTES = [Route("/r/{run}/rows/{problem}", _problem)]
