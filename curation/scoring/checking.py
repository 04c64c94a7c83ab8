"""Checks exported rows by the trainer's call: the reference must earn 1, an empty answer and near misses 0.

Near misses of anything but plain numbers may be right: a row fails if all are rewarded.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from curation.publish.export_formats.rows import ExportedProblem, record_path
from curation.response_formats import CHOICE, CUE, HASHES, TAG
from curation.scoring.record import MARK, read_record
from curation.scoring.scorer import ScoringSettings, shared_scorer
from curation.scoring.trainers import areal_reward, slime_reward, trl_reward, verifiers_reward, verl_score, without_end

Row = Mapping[str, Any]
Asked = Sequence[tuple[Row, str]]
Rewards = Sequence[float | None]

MUTANTS = 4
"""Mutants of a solution that are tried."""

_NUMBER = re.compile(r"\d+")
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?")


def check_rows(form: str, rows: Sequence[tuple[ExportedProblem, Row]]) -> list[str | None]:
    """Return why each row fails, or None.

    Raises:
        SourceError: a record or judge is missing.
    """
    asked: list[tuple[Row, str]] = []
    parts: list[tuple[list[str], list[str], bool]] = []
    for problem, row in rows:
        right, wrong, strict = _program_texts(problem) if problem.program is not None else _answer_texts(problem)
        parts.append((right, wrong, strict))
        asked += [(row, text) for text in (*right, "", *wrong)]
    rewards = iter((_FUNCTIONS.get(form) or _by_record(form))(asked))
    return [
        _failure([next(rewards) for _ in right], next(rewards), [next(rewards) for _ in wrong], strict)
        for right, wrong, strict in parts
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
    return [_response(problem.answer, form)], [_response(one, form) for one in near], is_plain


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
    given = problem.row.get("solution")
    found = extract_code(given, lang) if given else None
    code = found.code if isinstance(found, Submission) else given or None
    if code is None:
        return [], [nothing], True
    mutants = [one.code for one in mutants_of(code, str(lang), MUTANTS, problem.row["id"])]
    return [fenced(lang, code)], [fenced(lang, one) for one in mutants] or [nothing], False


def _each(asked: Asked, reward: Callable[[Row, str], float | None]) -> Rewards:
    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(lambda pair: reward(*pair), asked))


def _verl(asked: Asked) -> Rewards:
    def reward(row: Row, text: str) -> float | None:
        score = verl_score(row["data_source"], text, row["reward_model"]["ground_truth"], row["extra_info"])
        return None if score["excluded"] else float(score["score"])

    return _each(asked, reward)


def _trl(asked: Asked) -> Rewards:
    return trl_reward([[{"role": "assistant", "content": text}] for _, text in asked], [row[MARK] for row, _ in asked])


def _areal(asked: Asked) -> Rewards:
    return _each(asked, lambda row, text: areal_reward("", text, [], [], **row))


def _slime(asked: Asked) -> Rewards:
    rewards = asyncio.run(slime_reward(None, [SimpleNamespace(metadata=r["metadata"], response=t) for r, t in asked]))
    assert isinstance(rewards, list)
    return rewards


def _verifiers(asked: Asked) -> Rewards:
    async def judged() -> list[float]:
        return await asyncio.gather(*(verifiers_reward(text, json.loads(row["info"])) for row, text in asked))

    return asyncio.run(judged())


def _by_record(form: str) -> Callable[[Asked], Rewards]:
    path = record_path(form)

    def record(row: Any) -> Any:
        for key in path:
            row = row[key]
        return row

    def call(asked: Asked) -> Rewards:
        pairs = [(record(row), without_end(text)) for row, text in asked]
        return [score.reward for score in shared_scorer(ScoringSettings()).score(pairs)]

    return call


_FUNCTIONS: Mapping[str, Callable[[Asked], Rewards]] = {
    "verl": _verl,
    "trl": _trl,
    "open-r1": _trl,
    "verifiers": _verifiers,
    "areal": _areal,
    "slime": _slime,
}
"""The calls of trainers with a reward function; others score a row's record in a class of ours."""
