"""Groups attempts at a problem by answer."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, PythonLexer

from curation.records import ATTEMPT, Domain
from curation.thinking import split_response
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.find_problem import attempt_ids_of
from flows.pipelines.run_tables import verifier_of
from flows.run.lookup import rows_of
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, open_run
from flows.stages.attempts import attempt_store, attempts_of, part_title
from flows.stages.decisions import decisions_of
from flows.stages.judging import VariantProblems
from flows.stages.questions import final_verdicts

SHOWN_BYTES = 2000
"""Of a test's input and expected output."""

_PROGRAM = re.compile(r"\A```(\w+)\n(.*?)\n?```\s*\Z", re.DOTALL)
_FAILED = re.compile(r"on test (\d+)")
_PRINTED = re.compile(r"it printed ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="p-")


@dataclass(frozen=True, slots=True)
class FailedTest:
    """The first failed test; ``printed`` is None if unknown."""

    index: int
    input: str
    expected: str
    printed: str | None


@dataclass(frozen=True, slots=True)
class ShownAttempt:
    """An attempt with separate thoughts and highlighted program."""

    index: int
    outcome: str
    method: str
    answer: str | None
    tokens: int | None
    finish: str | None
    thoughts: str
    text: str | None
    program: Markup | None
    failed: FailedTest | None


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Attempts with one answer; ``answer_class`` is 0 for the reference."""

    answer_class: int | None
    answer: str | None
    outcome: str
    method: str
    attempts: tuple[ShownAttempt, ...]


@dataclass(frozen=True, slots=True)
class StageAttempts:
    """A stage's attempts at a problem by answer, the reference first."""

    title: str
    problem: str
    decision: dict[str, Any] | None
    groups: tuple[AnswerGroup, ...]

    @property
    def attempts(self) -> int:
        """Return the number of attempts."""
        return sum(len(group.attempts) for group in self.groups)


def attempts_at(run: Run, name: str) -> list[StageAttempts]:
    """Return the attempts at a problem by stage and id; of a refresh, if it measured the problem."""
    verifier, stages = verifier_of(run), []
    for part in run.parts:
        for attempt_id in attempt_ids_of(run, name):
            told = _stage_attempts(run, part, verifier, attempt_id)
            if told is None and run.version_folder is not None:
                told = _stage_attempts(open_run(run.folder), part, verifier, attempt_id)
            if told is not None:
                stages.append(told)
    return stages


def _stage_attempts(run: Run, part: str, verifier: str, name: str) -> StageAttempts | None:
    verdicts = rows_of(final_verdicts(run, part).folder_in(run, verifier), "verdicts", name, "problem")
    result = read_result(attempts_of(part), run, verifier)
    if verdicts.is_empty():
        return None
    stored = attempt_store(run, result).read([name]) if result is not None else pl.DataFrame(schema=ATTEMPT)
    attempts = {row["index"]: row for row in stored.iter_rows(named=True)}
    problems = VariantProblems(run) if pipeline_of(run.recipe).domain is Domain.CODE else None
    groups: dict[tuple[int | None, str | None], list[tuple[dict[str, Any], ShownAttempt]]] = {}
    for verdict in verdicts.iter_rows(named=True):
        key = verdict["answer_class"], None if verdict["answer_class"] is not None else _unclassed(verdict)
        groups.setdefault(key, []).append((verdict, _shown(verdict, attempts.get(verdict["index"]), problems)))
    ordered = sorted(groups.items(), key=lambda item: (item[0][0] != 0, item[0][0] is None, -len(item[1])))
    decisions = rows_of(decisions_of(part).folder_in(run, verifier), "decisions", name, "problem")
    return StageAttempts(
        part_title(part),
        name,
        decisions.row(0, named=True) if decisions.height else None,
        tuple(_group(answer_class, members) for (answer_class, _), members in ordered),
    )


def _unclassed(verdict: dict[str, Any]) -> str:
    return f"{verdict['outcome']} {verdict['method'].partition(' ')[0] if verdict['answer'] is not None else ''}"


def _group(answer_class: int | None, members: list[tuple[dict[str, Any], ShownAttempt]]) -> AnswerGroup:
    outcomes = Counter(verdict["outcome"] for verdict, _ in members)
    methods = Counter(verdict["method"] for verdict, _ in members)
    first = members[0][1]
    answer = first.answer if answer_class is not None and first.program is None else None
    told = ", ".join(method for method, _ in methods.most_common(3))
    return AnswerGroup(answer_class, answer, outcomes.most_common(1)[0][0], told, tuple(shown for _, shown in members))


def _shown(verdict: dict[str, Any], attempt: dict[str, Any] | None, problems: VariantProblems | None) -> ShownAttempt:
    text = attempt["text"] if attempt is not None else None
    parts = split_response(text) if text else None
    program = _program(verdict["answer"])
    failed = _failed_test(verdict, problems) if problems is not None and verdict["outcome"] == "wrong" else None
    return ShownAttempt(
        verdict["index"],
        verdict["outcome"],
        verdict["method"],
        verdict["answer"],
        attempt["tokens"] if attempt is not None else None,
        attempt["finish"] if attempt is not None else None,
        parts.thoughts if parts is not None else "",
        parts.answer if parts is not None else None,
        program,
        failed,
    )


def _program(answer: str | None) -> Markup | None:
    match = _PROGRAM.match(answer or "")
    if match is None:
        return None
    lexer = CppLexer() if match[1] in ("cpp", "c++") else PythonLexer()
    return Markup(highlight(match[2], lexer, _FORMATTER))


def _failed_test(verdict: dict[str, Any], problems: VariantProblems) -> FailedTest | None:
    match, printed = _FAILED.search(verdict["method"]), _PRINTED.search(verdict["method"])
    if match is None:
        return None
    tests = problems(verdict["problem"]).tests
    index = int(match[1])
    if index >= len(tests):
        return None
    shown = (tests[index].input, tests[index].output)
    given, expected = (content[:SHOWN_BYTES].decode("utf-8", "replace") for content in shown)
    return FailedTest(index, given, expected, ast.literal_eval(printed[1]) if printed is not None else None)
