"""Judge rollouts with the judges that measure difficulty, and ask a model about doubtful verdicts.

Invariants: a verifier's own failure is never "wrong"; a group has the same tests. A doubtful "wrong" becomes correct if
more than half the votes are readable, and these are all "same".
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from curation.options import option_letter
from curation.plugins import PluginRef
from curation.questions.doubtful_verdicts import DOUBTFUL_VERDICTS, comparison_request
from curation.records import Domain, Outcome, Policy, PolicyError, SourceError
from curation.response_formats import BOXED
from curation.verify.generator_scores import require_scorer
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Judge, JudgeTask, MathJudge, Response, Verdict
from curation.verify.own_judges import chosen_judges
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem
from training.config import RewardSettings
from training.rollouts.tasks import TrainingTask

TESTS_PER_GROUP = 20
"""Tests of a program (paper: 20)."""

_LONG = 8192
"""Characters from which a response is judged off the event loop."""

FILE = "asked.jsonl"

MAX_QUESTIONS = 1000
"""Max questions of a run."""

SAME, OTHER, FAILED, SPENT = "same", "other", "failed", "unasked"


def verifier_workers() -> int:
    """Return a quarter of the cores."""
    return max(1, (os.cpu_count() or 1) // 4)


class DoubtfulVerdicts:
    """The questions of a run, with answers in RUN/asked.jsonl."""

    def __init__(self, policy: Policy, max_questions: int, run: Path) -> None:
        self._policy, self._max = policy, max_questions
        self._file = run / FILE
        self._asked: dict[tuple[str, str], asyncio.Future[str]] = {}
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
        """Return the verdict, correct if the model accepts a doubtful answer."""
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
        if pair not in self._asked:
            if len(self._kept) + len(self._asked) >= self._max:
                return SPENT
            self._asked[pair] = asyncio.ensure_future(self._ask(task, answer))
            self._asked[pair].add_done_callback(lambda _: self._asked.pop(pair))
        return await asyncio.shield(self._asked[pair])

    async def _ask(self, task: TrainingTask, answer: str) -> str:
        statement, lang = task.request.statement, task.request.lang
        request = comparison_request(statement, lang, task.reference_answer or "", answer)
        try:
            answers = await asyncio.gather(
                *(self._policy.answer(request, index) for index in range(DOUBTFUL_VERDICTS.number))
            )
        except PolicyError:
            return FAILED
        votes = [DOUBTFUL_VERDICTS.read(completion.text) for completion in answers if completion is not None]
        readable = [vote for vote in votes if vote in DOUBTFUL_VERDICTS.words]
        is_same = len(readable) > DOUBTFUL_VERDICTS.number // 2 and set(readable) == {SAME}  # as in curation
        decision = SAME if is_same else OTHER
        row = {"problem": task.id, "reference": task.reference_answer, "answer": answer, "decision": decision}
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._kept[task.id, answer] = decision
        return decision


class Verifiers:
    """The verifiers of the tasks; entering the context opens the sandboxes."""

    def __init__(
        self, tasks: Iterable[TrainingTask], workers: int, rewards: RewardSettings, judges: Sequence[PluginRef] = ()
    ) -> None:
        self._programs: dict[str, CodeProblem] = {}
        self._own: dict[tuple[str, ...], tuple[PluginRef, ...]] = {}
        self._domains: set[Domain] = set()
        for task in tasks:
            self._domains.add(task.request.domain)
            if task.request.domain is Domain.MATH:
                self._own[task.judges] = chosen_judges(task.judges, judges, task.id)
            require_scorer(task.scorer, task.id)
            if (
                task.code_problem is not None
                and self._programs.setdefault(task.id, task.code_problem) != task.code_problem
            ):
                raise SourceError(f"problem {task.id} is trained on and held out under different tests; leave one out")
        self._workers, self._rewards = workers, rewards
        self._code: Judge | None = None
        self._math: dict[tuple[str, ...], Judge] = {}
        self.questions: DoubtfulVerdicts | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for labels, own in self._own.items():
                math = MathJudge(self._workers, response_format=BOXED, judges=own)
                self._math[labels] = stack.enter_context(math)
            if Domain.CODE in self._domains:
                all_tests = self._rewards.code == "proportional"
                programs = self._programs.__getitem__
                judge = ProgramJudge(programs, 0, self._workers, TESTS_PER_GROUP, every=all_tests)
                stack.enter_context(judge).runner.open()
                self._code = judge
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def version(self, domain: Domain) -> str:
        """Return name and version of a domain's verifier."""
        if domain is Domain.CODE:
            assert self._code is not None
            return self._code.version
        return "; ".join(judge.version for judge in self._math.values())

    async def verify(self, task: TrainingTask, text: str, seed: int, finish: str | None = None) -> Verdict:
        """Judge a response in the default tags; ``seed`` draws a program's tests."""
        request, reference = task.request, task.reference_answer or ""
        judge_task = JudgeTask(
            task.id,
            reference,
            request.lang,
            (Response(text, None, finish),),
            option_letter(task.raw_answer, reference),
            seed=seed,
            statement=request.statement,
            admissible=task.accepted,
            scorer=task.scorer,
        )
        judge = self._code if request.domain is Domain.CODE else self._math[task.judges]
        assert judge is not None
        if len(text) > _LONG:
            future = await asyncio.to_thread(judge.submit, judge_task)
        else:
            future = judge.submit(judge_task)
        (verdict,) = future.result() if future.done() else await asyncio.wrap_future(future)
        return await self.questions.decide(task, verdict) if self.questions is not None else verdict
