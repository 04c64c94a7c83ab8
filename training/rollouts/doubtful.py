"""Ask a model about doubtful verdicts while training.

Invariants: an answered pair of problem and answer is not asked again. A doubtful "wrong" becomes correct if more than
half the votes are readable and all of those are "same".
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from curation.questions.doubtful_verdicts import DOUBTFUL_VERDICTS, comparison_request
from curation.records import Outcome, Policy, PolicyError
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict
from training.rollouts.tasks import TrainingTask

FILE = "asked.jsonl"

MAX_QUESTIONS = 1000
"""Pairs that a run asks about."""

SAME, OTHER, FAILED, SPENT = "same", "other", "failed", "unasked"


class DoubtfulVerdicts:
    """The questions of a run; RUN/asked.jsonl keeps the answers."""

    def __init__(self, policy: Policy, max_questions: int, run: Path) -> None:
        self._policy, self._max = policy, max_questions
        self._file = run / FILE
        self._answers: dict[tuple[str, str], asyncio.Future[str]] = {}
        self._kept: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()
        if self._file.exists():
            whole, _, cut = self._file.read_bytes().rpartition(b"\n")
            if cut:  # by a kill
                self._file.write_bytes(whole + b"\n" if whole else b"")
            for line in whole.split(b"\n") if whole else ():
                row = json.loads(line)
                self._kept[row["problem"], row["answer"]] = row["decision"]

    async def decide(self, task: TrainingTask, verdict: Verdict) -> Verdict:
        """Return the verdict, correct if it was doubtful and the model accepts the answer."""
        if verdict.outcome is not Outcome.WRONG or not verdict.is_doubtful or verdict.answer is None:
            return verdict
        decision = await self._decision(task, verdict.answer)
        self._counts[decision] += 1
        if decision != SAME:
            return verdict
        method = f"{verdict.method.removesuffix(DOUBTFUL)} (by {DOUBTFUL_VERDICTS.number} votes: same)"
        return replace(verdict, outcome=Outcome.CORRECT, answer_class=0, method=method)

    def numbers(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        counts, self._counts = self._counts, Counter()
        return {
            "verify/doubtful": float(counts.total()),
            "verify/accepted": float(counts[SAME]),
            "verify/failed": float(counts[FAILED]),
            "verify/unasked": float(counts[SPENT]),
            "verify/questions": float(len(self._kept)),
        }

    async def _decision(self, task: TrainingTask, answer: str) -> str:
        pair = task.id, answer
        if pair in self._kept:
            return self._kept[pair]
        if pair not in self._answers:
            if len(self._kept) + len(self._answers) >= self._max:
                return SPENT
            self._answers[pair] = asyncio.ensure_future(self._ask(task, answer))
        try:
            return await asyncio.shield(self._answers[pair])
        finally:
            if pair in self._answers and self._answers[pair].done():
                del self._answers[pair]

    async def _ask(self, task: TrainingTask, answer: str) -> str:
        statement, lang = task.request.statement, task.request.lang
        request = comparison_request(statement, lang, task.reference_answer or "", answer)
        try:
            said = await asyncio.gather(
                *(self._policy.answer(request, index) for index in range(DOUBTFUL_VERDICTS.number))
            )
        except PolicyError:
            return FAILED
        votes = [DOUBTFUL_VERDICTS.read(one.text) for one in said if one is not None]
        readable = [vote for vote in votes if vote in DOUBTFUL_VERDICTS.words]
        is_same = len(readable) > DOUBTFUL_VERDICTS.number // 2 and set(readable) == {SAME}  # as in curation
        decision = SAME if is_same else OTHER
        row = {"problem": task.id, "reference": task.reference_answer, "answer": answer, "decision": decision}
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._kept[task.id, answer] = decision
        return decision
