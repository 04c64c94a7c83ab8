"""Verifiers as the loop calls them: an attempt's text in, a verdict out, without holding up the event loop.

Invariants: a verifier's own failure is a verdict of its own (TIMEOUT, BROKEN), never "wrong"; all attempts of a group
are judged under the same seed, hence by the same tests.

Not here: how answers are compared or programs run (`curation.verify`), and what a verdict is worth
(`training.rewards`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from curation.records import Domain, Outcome
from curation.verify.judge import JudgeTask, MathJudge, Response
from curation.verify.programs.extraction import extract_code
from curation.verify.programs.judge import CodeJudge
from curation.verify.programs.problem import CodeVerdict, Submission
from training.config import RewardSettings
from training.tasks import Task


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier says of one attempt. ``passed`` is the share of a program's tests, where it was asked for.

    Example: ``Verdict(Outcome.CORRECT, "number")``
    """

    outcome: Outcome
    how: str
    passed: float | None = None


class Judge(Protocol):
    """A verifier of one domain."""

    async def judge(self, task: Task, text: str, seed: int) -> Verdict:
        """The verdict on one attempt; ``seed`` is that of its group."""
        ...


class MathVerifier:
    """`curation.verify.judge.MathJudge`: answers are extracted on a thread and compared by worker processes."""

    def __init__(self, judge: MathJudge, threads: ThreadPoolExecutor) -> None:
        self._judge, self._threads = judge, threads

    async def judge(self, task: Task, text: str, seed: int) -> Verdict:  # noqa: ARG002 - math has no tests to draw
        """See `Judge.judge`."""
        assert task.reference is not None
        wanted = JudgeTask(task.id, task.reference, task.asked.lang, (Response(text, None),))
        future = await asyncio.get_running_loop().run_in_executor(self._threads, self._judge.submit, wanted)
        (verdict,) = await asyncio.wrap_future(future)
        return Verdict(verdict.outcome, verdict.how)


class CodeVerifier:
    """`curation.verify.programs.judge.CodeJudge`; ``every`` runs all tests, for the proportional reward."""

    def __init__(self, judge: CodeJudge, threads: ThreadPoolExecutor, *, every: bool) -> None:
        self._judge, self._threads, self._every = judge, threads, every

    async def judge(self, task: Task, text: str, seed: int) -> Verdict:
        """See `Judge.judge`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, task, text, seed)

    def _run(self, task: Task, text: str, seed: int) -> Verdict:
        assert task.code is not None
        found = extract_code(text)
        if found.code is None or found.lang is None:
            return Verdict(Outcome.NO_ANSWER, found.why, 0.0)
        (result,) = self._judge.run([(task.code, Submission(found.lang, found.code))], every=self._every, seed=seed)
        share = None
        if self._every and result.tests:
            share = sum(run.verdict is CodeVerdict.AC for run in result.tests) / len(result.tests)
        elif self._every:
            share = 0.0
        return Verdict(result.outcome, result.how or result.verdict.value, share)


class Judges:
    """The verifiers that the tasks need, by domain. A context manager; the code verifier's boxes open on entering.

    Args:
        domains: which domains will be judged.
        workers: processes for each.
    """

    def __init__(self, domains: set[Domain], workers: int, rewards: RewardSettings) -> None:
        self._domains, self._workers, self._rewards = domains, workers, rewards
        self._held: Mapping[Domain, Judge] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor(self._workers, "verifier"))
            held: dict[Domain, Judge] = {}
            if Domain.MATH in self._domains:
                held[Domain.MATH] = MathVerifier(stack.enter_context(MathJudge(self._workers)), threads)
            if Domain.CODE in self._domains:
                code = stack.enter_context(CodeJudge(self._workers, tests=self._rewards.tests))
                held[Domain.CODE] = CodeVerifier(code, threads, every=self._rewards.code == "proportional")
            self._held, self._stack = held, stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    async def judge(self, task: Task, text: str, seed: int) -> Verdict:
        """See `Judge.judge`."""
        return await self._held[task.asked.domain].judge(task, text, seed)
