"""Judge rollouts off the event loop, with the judges that measure difficulty.

Invariants: a verifier's own failure is never "wrong"; a group is judged by the same tests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from curation.option_letters import option_letter
from curation.plugins import PluginRef
from curation.records import Domain, SourceError
from curation.response_formats import BOXED
from curation.verify.generator_scores import require_scorer
from curation.verify.math_judge import Judge, JudgeTask, MathJudge, Response, Verdict
from curation.verify.own_judges import chosen_judges
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem
from training.config import RewardSettings
from training.rollouts.doubtful import DoubtfulVerdicts
from training.rollouts.tasks import TrainingTask

TESTS_PER_GROUP = 20
"""Tests of a program, the same for a group (paper: 20)."""


def verifier_workers() -> int:
    """Return a quarter of the cores."""
    return max(1, (os.cpu_count() or 1) // 4)


class Verifiers:
    """The verifiers that the tasks need; entering the context opens the sandboxes.

    Args:
        workers: processes per domain.

    Raises:
        SourceError: tasks of one id have different tests, or a task's judge is missing.
    """

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
            self._threads = stack.enter_context(ThreadPoolExecutor(self._workers, "verifier"))
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def version(self, domain: Domain) -> str:
        """Return name and version of a domain's verifier."""
        if domain is Domain.CODE:
            assert self._code is not None
            return self._code.version
        return "; ".join(judge.version for judge in self._math.values())

    async def verify(self, task: TrainingTask, text: str, seed: int, finish: str | None = None) -> Verdict:
        """Judge a rollout in the default tags; ``seed`` draws a program's tests."""
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
        # extracts the answer, which takes its time
        future = await asyncio.get_running_loop().run_in_executor(self._threads, judge.submit, judge_task)
        (verdict,) = await asyncio.wrap_future(future)
        return await self.questions.decide(task, verdict) if self.questions is not None else verdict
