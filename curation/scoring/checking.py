"""Checks problems by their records: the reference must earn 1, an empty answer and near misses 0.

Near misses of anything but plain numbers may be right: a problem fails if all are rewarded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from curation.publish.export_formats.rows import ExportedProblem
from curation.publish.export_formats.writing import exported_problems
from curation.response_formats import CHOICE, CUE, HASHES, TAG
from curation.scoring.record import read_record
from curation.scoring.scorer import ScoringSettings, shared_scorer

Rewards = Sequence[float | None]

CHECKED_AT_ONCE = 200
"""Problems that are checked together."""

MUTANTS = 4
"""Mutants of a solution."""

_NUMBER = re.compile(r"\d+")
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?")


def failing_rows(curated: Path) -> dict[str, str]:
    """Return why problems of a set fail, by id; programs that no format carries are skipped.

    Raises:
        SourceError: there is no set, or a judge is missing.
    """
    failing: dict[str, str] = {}
    judged = (
        problem for problem in exported_problems(curated) if problem.program is None or problem.program.refused is None
    )
    while batch := list(islice(judged, CHECKED_AT_ONCE)):
        failed = zip(batch, _check_rows(batch), strict=True)
        failing |= {str(problem.row["id"]): why for problem, why in failed if why is not None}
    return failing


def _check_rows(problems: Sequence[ExportedProblem]) -> list[str | None]:
    pairs: list[tuple[str, str]] = []
    texts: list[tuple[list[str], list[str], bool]] = []
    for problem in problems:
        record = problem.record
        right, wrong, strict = _program_texts(problem) if problem.program is not None else _answer_texts(problem)
        texts.append((right, wrong, strict))
        pairs += [(record, text) for text in (*right, "", *wrong)]
    rewards = (score.reward for score in shared_scorer(ScoringSettings()).score(pairs))
    return [
        _failure([next(rewards) for _ in right], next(rewards), [next(rewards) for _ in wrong], strict)
        for right, wrong, strict in texts
    ]


def _failure(right: Rewards, empty: float | None, wrong: Rewards, strict: bool) -> str | None:
    if any(reward != 1 for reward in right):
        return f"its reference earns {right[0]}"
    if empty:
        return f"an empty answer earns {empty}"
    accepted = [reward for reward in wrong if reward]
    if accepted and (strict or len(accepted) == len(wrong)):
        return f"a near miss earns {accepted[0]}"
    return None


def _answer_texts(problem: ExportedProblem) -> tuple[list[str], list[str], bool]:
    """Return right and wrong responses, and whether every wrong one must earn 0."""
    form = str(read_record(problem.record).get("response_format", ""))
    near = near_misses(problem.answer)
    is_plain = _PLAIN.fullmatch(problem.answer) is not None
    return [_response(problem.answer, form)], [_response(miss, form) for miss in near], is_plain


def near_misses(answer: str) -> list[str]:
    """Return two near answers, as `4/5` and `5/5` for `3/4`."""
    number = _NUMBER.search(answer)
    if number is None:
        return [f"{answer}+1", f"2({answer})+3"]
    rest = _NUMBER.sub(lambda match: str(int(match[0]) + 1), answer[number.end() :])
    return [f"{answer[: number.start()]}{int(number[0]) + by}{rest}" for by in (1, 2)]


def _response(answer: str, form: str) -> str:
    if form == HASHES:
        return f"#### {answer}"
    if form == CUE:
        return f"The answer is {answer}"
    if form == CHOICE:
        return f"Choice_{answer}"
    tag = TAG.fullmatch(form)
    return f"<{tag[1]}>{answer}</{tag[1]}>" if tag is not None else f"\\boxed{{{answer}}}"


def _program_texts(problem: ExportedProblem) -> tuple[list[str], list[str], bool]:
    """Return right and wrong programs; only mutants may be right."""
    from curation.programs.mutants import mutants_of
    from curation.verify.programs.extraction import extract_code, fenced
    from curation.verify.programs.problem import CodeLang, Submission

    assert problem.program is not None
    lang = problem.program.lang or CodeLang.PYTHON
    nothing = fenced(lang, "pass" if lang is CodeLang.PYTHON else "int main() { return 0; }")
    solution = problem.row.get("solution")
    extracted = extract_code(solution, lang) if solution else None
    code = extracted.code if isinstance(extracted, Submission) else solution or None
    if code is None:
        return [], [nothing], True
    mutants = [mutant.code for mutant in mutants_of(code, str(lang), MUTANTS, problem.row["id"])]
    return [fenced(lang, code)], [fenced(lang, mutant) for mutant in mutants] or [nothing], False
