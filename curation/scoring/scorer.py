"""Rewards by the problem's judges: 1 for correct, else 0; None if the verifier failed."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from curation.plugins import PluginRef
from curation.records import Domain, Outcome, RequestRefused
from curation.response_formats import ANY
from curation.scoring.record import read_record
from curation.storage.attempts import without_surrogates
from curation.thinking import OPEN, ThinkingTags, response_text
from curation.verify.math_judge import JudgeTask, MathJudge, Response, Verdict, final_answer
from curation.verify.own_judges import VARIABLE, chosen_judges, judge_at
from curation.verify.programs.files import problem_of_row
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem

FAILURES = frozenset({Outcome.TIMEOUT, Outcome.BROKEN})
"""Failures of the verifier, without a verdict."""


@dataclass(frozen=True, slots=True)
class ScoringSettings:
    """How responses are read and judged.

    Args:
        thinking: a tag, as `<think>`, or `none`; None: the record's.
        response_format: None: the record's.
        workers: processes per domain; None: one per core.
        tests_run: max tests per program.
        all_tests: continue after a failure.
        judges: as `path/to/chem.py:FORMULA`; default: those of `GOLDILOCKS_JUDGES`.
    """

    thinking: str | tuple[str, str] | None = None
    response_format: str | None = None
    workers: int | None = None
    tests_run: int | None = None
    all_tests: bool = False
    judges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """A reward, None if the verifier failed, and its reason."""

    reward: float | None
    outcome: str
    answer: str | None
    method: str


class Scorer:
    """Scores responses by their problems' records; thread-safe."""

    def __init__(self, settings: ScoringSettings | None = None) -> None:
        self.settings = settings or ScoringSettings()
        if self.settings.thinking is not None:
            ThinkingTags.of(self.settings.thinking)  # an error before anything is judged
        self._programs: dict[str, CodeProblem] = {}
        named = self.settings.judges or tuple(filter(None, os.environ.get(VARIABLE, "").split(",")))
        self._own = [judge_at(name.strip()) for name in named]
        self._math: dict[tuple[PluginRef, ...], MathJudge] = {(): MathJudge(self.settings.workers)}
        self._code = ProgramJudge(
            self._programs.__getitem__,
            0,
            self.settings.workers,
            self.settings.tests_run,
            every=self.settings.all_tests,
        )
        self._lock = threading.Lock()
        self._code_is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        for judge in self._math.values():
            judge.__exit__(*error)
        if self._code_is_open:
            self._code.__exit__(*error)

    @property
    def versions(self) -> dict[str, str]:
        """Return the verifier's version by domain."""
        return {Domain.MATH: self._math[()].version, Domain.CODE: self._code.version}

    def score(self, responses: Sequence[tuple[str | Mapping[str, Any], Any]]) -> list[Score]:
        """Score (record, response) pairs.

        Raises:
            SourceError: a record is invalid, or its judge missing.
            VerifierError: programs cannot be run here.
        """
        futures = [self.submit(record, response) for record, response in responses]
        return [score_of(future.result()[0]) for future in futures]

    def submit(
        self, record: str | Mapping[str, Any], response: Any, *, seed: int = 0, finish: str | None = None
    ) -> Future[tuple[Verdict, ...]]:
        """Return a response's future verdict.

        Args:
            response: text, a chat message, or its parts.
            seed: draws a program's tests.
        """
        table = read_record(record)
        tags = ThinkingTags.of(self.settings.thinking or table.get("thinking", OPEN))
        name, statement = str(table["id"]), table.get("statement")
        try:
            text = response_text(response, tags, f"problem {name}")
        except RequestRefused as unread:
            verdict = Future[tuple[Verdict, ...]]()
            verdict.set_result((Verdict(Outcome.BROKEN, None, None, str(unread)),))
            return verdict
        answers = (Response(without_surrogates(text), None, finish),)
        lang = table.get("lang") or "en"
        if Domain(table["domain"]) is Domain.CODE:
            key = self._program_key(name, table["program"])
            return self._code.submit(JudgeTask(key, "", lang, answers, seed=seed, statement=statement))
        form = self.settings.response_format or table.get("response_format", ANY)
        accepted = tuple(table.get("accepted", ()))
        task = JudgeTask(
            name,
            table["answer"],
            lang,
            (),
            table.get("letter"),
            statement=statement,
            admissible=accepted,
            scorer=table.get("scorer"),
        )
        math = self._math_judge(chosen_judges(table.get("judges", ()), self._own, name))
        return math.submit(task, [final_answer(answers[0], form)])

    def _math_judge(self, judges: tuple[PluginRef, ...]) -> MathJudge:
        with self._lock:
            if judges not in self._math:
                self._math[judges] = MathJudge(self.settings.workers, judges=judges)
            return self._math[judges]

    def _program_key(self, name: str, program: Mapping[str, Any]) -> str:
        content = hashlib.blake2b(json.dumps(program, sort_keys=True).encode(), digest_size=16).hexdigest()
        key = f"{name}/{content}"
        with self._lock:
            if key not in self._programs:
                self._programs[key] = problem_of_row(program, f"the record of problem {name}")
            if not self._code_is_open:
                self._code.runner.open()
                self._code_is_open = True
        return key


def score_of(verdict: Verdict) -> Score:
    """Return a verdict's score."""
    outcome = verdict.outcome
    reward = None if outcome in FAILURES else float(outcome is Outcome.CORRECT)
    return Score(reward, outcome.value, verdict.answer, verdict.method)


@cache
def shared_scorer(settings: ScoringSettings) -> Scorer:
    """Return the process's scorer."""
    return Scorer(settings)
