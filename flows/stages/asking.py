"""A policy that answers one prompt for a stage other than the attempts.

Its responses lie in the run's attempt store under the version of the prompt: a killed run requests nothing twice, and a
new threshold requests nothing at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

import polars as pl

from curation.config import PolicySettings
from curation.prompts import Prompt
from curation.records import ATTEMPT, PromptRequest
from curation.storage import attempts
from flows.run.policies import open_policy
from flows.run.run_folder import Run


class PolicySession:
    """A policy that answers one prompt; its responses are kept in the run's attempt store. A context manager.

    The policy is entered with the first request that the store cannot answer; leaving ends it and closes the store.
    """

    def __init__(self, run: Run, settings: PolicySettings, prompt: Prompt) -> None:
        self.policy = open_policy(settings, run.recipe_folder, prompt)
        self._store = attempts.AttemptStore(run.folder / "attempts", self.policy.key, self.policy.about)
        self._runner: asyncio.Runner | None = None
        self._entered = False

    def __enter__(self) -> PolicySession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._runner is not None:
                if self._entered:
                    self._runner.run(self.policy.__aexit__(kind, error, trace))
                self._runner.close()
            if kind is None:
                self._store.compact()
        finally:
            self._store.close()

    def ask(self, requests: Sequence[PromptRequest], each: int) -> pl.DataFrame:
        """Return `ATTEMPT` rows of indices below ``each``, by problem and index; fewer where the policy has fewer.

        Args:
            requests: the prompts to answer, each id once.
        """
        names = [request.id for request in requests]
        missing = self._store.missing_indices(names, each)
        if missing:
            questions = [(request, index) for request in requests for index in missing.get(request.id, ())]
            if self._runner is None:
                self._runner = asyncio.Runner()
            self._runner.run(self._answer(questions))
            self._store.compact(names)
        return self._store.read(names, tuple(ATTEMPT)).filter(pl.col("index") < each)

    async def _answer(self, questions: Sequence[tuple[PromptRequest, int]]) -> None:
        if not self._entered:
            await self.policy.__aenter__()
            self._entered = True
        waiting = iter(questions)

        async def work() -> None:
            for request, index in waiting:
                completion = await self.policy.answer(request, index)
                if completion is not None:
                    self._store.add([(request.id, index, completion)])

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(self.policy.in_flight, len(questions))))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
