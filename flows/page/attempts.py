"""Groups attempts at a problem by answer, as the templates read them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, PythonLexer

from curation.records import Domain
from curation.thinking import split_response
from flows.pipelines.run_tables import attempt_ids_of, judged_attempts, verifier_of
from flows.run.run_folder import Run, open_run
from flows.run.stage import rows_of
from flows.stages.attempts import part_title
from flows.stages.decisions import decisions_of
from flows.stages.judging import VariantProblems

SHOWN_BYTES = 2000
"""Of a test's input and expected output."""

_PROGRAM = re.compile(r"\A```(\w+)\n(.*?)\n?```\s*\Z", re.DOTALL)
_FAILED = re.compile(r"on test (\d+)")
_PRINTED = re.compile(r"it printed ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")


def attempts_at(run: Run, name: str) -> list[dict[str, Any]]:
    """Return the attempts at a problem by stage and id; of a refresh, if it measured the problem."""
    verifier, stages = verifier_of(run), []
    for part in run.parts:
        for attempt_id in attempt_ids_of(run, name):
            found = _stage_attempts(run, part, verifier, attempt_id)
            if found is None and run.version_folder is not None:
                found = _stage_attempts(open_run(run.folder), part, verifier, attempt_id)
            if found is not None:
                stages.append(found)
    return stages


def _stage_attempts(run: Run, part: str, verifier: str, name: str) -> dict[str, Any] | None:
    judged = judged_attempts(run, part, verifier, name)
    if not judged:
        return None
    problems = VariantProblems(run) if run.recipe.domain == Domain.CODE else None
    groups: dict[tuple[int | None, str | None], list[dict[str, Any]]] = {}
    for verdict, attempt in judged:
        key = verdict["answer_class"], None if verdict["answer_class"] is not None else _unclassed(verdict)
        groups.setdefault(key, []).append(_shown(verdict, attempt or {}, problems))
    ordered = sorted(groups.items(), key=lambda item: (item[0][0] != 0, item[0][0] is None, -len(item[1])))
    decisions = rows_of(decisions_of(part).folder_in(run, verifier), "decisions", name, "problem")
    return {
        "title": part_title(part),
        "problem": name,
        "attempts": len(judged),
        "decision": decisions.row(0, named=True) if decisions.height else None,
        "groups": [_group(answer_class, attempts) for (answer_class, _), attempts in ordered],
    }


def _unclassed(verdict: dict[str, Any]) -> str:
    return f"{verdict['outcome']} {verdict['method'].partition(' ')[0] if verdict['answer'] is not None else ''}"


def _group(answer_class: int | None, attempts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return attempts with one answer; class 0 is the reference's."""
    methods = Counter(attempt["method"] for attempt in attempts)
    first = attempts[0]
    return {
        "answer_class": answer_class,
        "answer": first["answer"] if answer_class is not None and first["program"] is None else None,
        "outcome": Counter(attempt["outcome"] for attempt in attempts).most_common(1)[0][0],
        "method": ", ".join(method for method, _ in methods.most_common(3)),
        "attempts": attempts,
    }


def _shown(verdict: dict[str, Any], attempt: dict[str, Any], problems: VariantProblems | None) -> dict[str, Any]:
    parts = split_response(attempt["text"]) if attempt.get("text") else None
    return {
        **verdict,
        "tokens": attempt.get("tokens"),
        "finish": attempt.get("finish"),
        "thoughts": parts.thoughts if parts is not None else "",
        "text": parts.answer if parts is not None else None,
        "program": _program(verdict["answer"]),
        "failed": _failed_test(verdict, problems) if problems is not None and verdict["outcome"] == "wrong" else None,
    }


def _program(answer: str | None) -> Markup | None:
    match = _PROGRAM.match(answer or "")
    if match is None:
        return None
    lexer = CppLexer() if match[1] in ("cpp", "c++") else PythonLexer()
    return Markup(highlight(match[2], lexer, _FORMATTER))


def _failed_test(verdict: dict[str, Any], problems: VariantProblems) -> dict[str, Any] | None:
    """Return the first failed test; ``printed`` is None if unknown."""
    match, printed = _FAILED.search(verdict["method"]), _PRINTED.search(verdict["method"])
    tests = problems(verdict["problem"]).tests if match is not None else ()
    if match is None or int(match[1]) >= len(tests):
        return None
    test = tests[int(match[1])]
    given, expected = (content[:SHOWN_BYTES].decode("utf-8", "replace") for content in (test.input, test.output))
    out = ast.literal_eval(printed[1]) if printed is not None else None
    return {"index": int(match[1]), "input": given, "expected": expected, "printed": out}
