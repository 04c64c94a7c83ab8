"""A policy that answers one prompt, for a stage other than the attempts or for a command.

Its responses are in the run's attempt store under the version of the prompt: a killed run requests nothing twice, and a
new threshold requests nothing. If most responses are useless, the run warns once, with an example.

Of a request that the servers refuse the store keeps why; later runs ask it again, and too many of them end the run
(`curation.policies.failure_budget`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType

import polars as pl

from curation.difficulty.unanswered import ResponseTally
from curation.policies.failure_budget import FailureBudget
from curation.prompts import Prompt
from curation.records import ATTEMPT, Completion, Policy, PromptRequest, RequestRefused
from curation.storage import attempts
from curation.storage.stages import Shard, StageFolder
from flows.run import retries
from flows.run.policy_session import model_session
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.sampling_session import response_advice
from flows.run.stage import StageResult, StageRun


class ResponseWatch:
    """Warns once in a stage that most responses of its policy are of no use.

    Args:
        model: the name of the model that answers.
        is_readable: says whether a response holds what the stage asks for.
    """

    def __init__(self, run: Run, stage: str, model: str, is_readable: Callable[[str], bool]) -> None:
        self._run, self._stage, self._model = run, stage, model
        self._kind = run.recipe.models[model].kind
        self._is_readable = is_readable
        self._responses = ResponseTally()
        self._examples: dict[tuple[str, int], str] = {}
        self._has_warned = False

    def add(self, problem: str, index: int, completion: Completion) -> None:
        """Count a response; warn if it is now certain that most are useless."""
        if self._has_warned:
            return
        text = completion.text or ""
        has_answer = self._is_readable(text)
        is_cut_off = completion.finish == "length" and not has_answer  # a verdict of one token is whole
        self._responses.add(problem, index, has_answer=has_answer, is_cut_off=is_cut_off)
        if (problem, index) in self._responses.examples.values():
            self._examples = {name: self._examples.get(name, text) for name in self._responses.examples.values()}
        if self._responses.is_alarming:
            self._warn()

    def close(self) -> None:
        """Warn if more than half of all responses were useless, and there was no warning yet."""
        if not self._has_warned and self._responses.most_are_useless:
            self._warn()

    def _warn(self) -> None:
        self._has_warned = True
        responses = self._responses
        alarm = responses.alarm(self._examples[responses.examples[responses.main_kind]])
        advice = response_advice(alarm.kind, self._kind, self._model)
        warn(self._run.folder, self._stage, alarm.sentence(advice))


class PolicySession:
    """A policy that answers one prompt; its responses are kept in the run's attempt store. A context manager.

    The policy is entered with the first request that the store cannot answer; leaving ends it and closes the store.

    Args:
        work: the stage or the command that asks, as warnings name it.
        prompt: what is asked; None for that of the model's settings.
        is_readable: returns whether a response holds what is asked for.
    """

    def __init__(
        self,
        run: Run,
        work: str,
        model: str,
        budget: FailureBudget,
        prompt: Prompt | None,
        is_readable: Callable[[str], bool],
    ) -> None:
        self._watch = ResponseWatch(run, work, model, is_readable)
        self._budget = budget
        self._refused: set[str] = set()
        self._stack = ExitStack()
        self._session = self._stack.enter_context(model_session(run.recipe.models[model], run.recipe_folder, prompt))
        self._store = attempts.AttemptStore(run.folder / "attempts", self.policy.key, self.policy.about)

    @property
    def policy(self) -> Policy:
        """Return what is asked."""
        return self._session.policy

    @property
    def refused(self) -> set[str]:
        """Return the requests that were refused since the caller emptied it."""
        return self._refused

    @classmethod
    def of_stage(
        cls,
        job: StageRun,
        model: str | None,
        prompt: Prompt,
        is_readable: Callable[[str], bool],
    ) -> PolicySession:
        """Return the session of a stage, with the failure budget of stage 1."""
        max_failed = job.recipe.stage1.sampling.max_failed
        budget = FailureBudget(max_failed, job.problems.manifest.kept, "stage1.sampling.max_failed")
        assert model is not None, job.stage.name
        return cls(job.run, job.stage.name, model, budget, prompt, is_readable)

    def __enter__(self) -> PolicySession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._watch.close()
                self._store.compact()
        finally:
            self._store.close()
            self._stack.__exit__(kind, error, trace)

    def shard_by_shard(self, job: StageRun, folder: StageFolder, work: Callable[[int], Shard]) -> StageResult:
        """Compute the stage, and again the shards in which requests were refused, where a round of retries is due."""

        def noting(round_number: int, index: int) -> Shard:
            self._refused.clear()
            shard = work(index)
            notes = retries.failure_notes(len(self._refused), round_number, retries.REFUSED)
            return replace(shard, notes={**shard.notes, **notes})

        @contextmanager
        def again(round_number: int) -> Iterator[Callable[[int], Shard]]:
            yield partial(noting, round_number)

        return retries.retry_failed(job, folder, partial(job.shard_by_shard, folder, partial(noting, 0)), again)

    def ask(self, requests: Sequence[PromptRequest], each: int) -> pl.DataFrame:
        """Return `ATTEMPT` rows of indices below ``each``, by problem and index; fewer where the policy has fewer.

        Args:
            requests: the prompts to answer, each id once.
        """
        names = [request.id for request in requests]
        missing = self._store.missing_indices(names, each)
        if missing:
            questions = [(request, index) for request in requests for index in missing.get(request.id, ())]
            self._session.open()
            self._session.run(self._answer(questions))
            self._store.compact(names)
        return self._store.read(names, tuple(ATTEMPT)).filter(pl.col("index") < each)

    async def _answer(self, questions: Sequence[tuple[PromptRequest, int]]) -> None:
        waiting = iter(questions)

        async def work() -> None:
            for request, index in waiting:
                try:
                    completion = await self.policy.answer(request, index)
                except RequestRefused as refused:
                    self._refused.add(request.id)
                    self._store.add_refusals([(request.id, index, refused)])
                    self._budget.count_refusal(request.id, refused)
                    continue
                if completion is not None:
                    self._budget.count_answer()
                    self._store.add([(request.id, index, completion)])
                    self._watch.add(request.id, index, completion)

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(self.policy.in_flight, len(questions))))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
