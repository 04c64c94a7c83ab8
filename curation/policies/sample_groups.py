"""Attempts at one problem that are asked for at once go to the server as one request (``n``).

Contract: sample i of a request with seed s is what a request of its own with seed s + i draws. vLLM does so
(`vllm.v1.engine.parallel_sampling`: each child's seed is the parent's plus its index), so that attempts of consecutive
indices have consecutive seeds, and it does not matter which of them went together: a run that is killed and resumed
groups them otherwise and draws the same.

Invariants: a group holds consecutive indices, at most ``most`` of them; who waits for an attempt gets it or the error;
where nobody waits for any attempt of a group any longer, its request is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from curation.records import Completion, PromptRequest, RequestRefused

Sampled = Completion | RequestRefused
"""What became of one sample of a request."""

AskSamples = Callable[[PromptRequest, int, int], Awaitable[Sequence[Sampled]]]
"""From a problem, the first index and how many to the samples, in the order of their index."""


class SampleGroups:
    """Groups the attempts that are asked for in one turn of the event loop.

    Args:
        most: attempts of one request.
        ask: sends one request.
    """

    def __init__(self, most: int, ask: AskSamples) -> None:
        self._most, self._ask = most, ask
        self._waiting: dict[str, tuple[PromptRequest, dict[int, asyncio.Future[Completion]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def sample(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt.

        Raises:
            RequestRefused: this attempt, or the request of its group, was refused.
            PolicyError: no server can answer.
        """
        loop = asyncio.get_running_loop()
        if problem.id not in self._waiting:
            self._waiting[problem.id] = (problem, {})
            loop.call_soon(self._send, problem.id)
        future: asyncio.Future[Completion] = loop.create_future()
        self._waiting[problem.id][1][index] = future
        return await future

    def _send(self, name: str) -> None:
        problem, futures = self._waiting.pop(name)
        run: list[int] = []
        for index in sorted(futures):
            if run and (index != run[-1] + 1 or len(run) == self._most):
                self._start(problem, {one: futures[one] for one in run})
                run = []
            run.append(index)
        self._start(problem, {one: futures[one] for one in run})

    def _start(self, problem: PromptRequest, futures: dict[int, asyncio.Future[Completion]]) -> None:
        task = asyncio.ensure_future(self._answer(problem, futures))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def check(_: asyncio.Future[Completion]) -> None:
            if all(future.cancelled() for future in futures.values()):
                task.cancel()

        for future in futures.values():
            future.add_done_callback(check)

    async def _answer(self, problem: PromptRequest, futures: dict[int, asyncio.Future[Completion]]) -> None:
        indices = list(futures)
        asking = asyncio.ensure_future(self._ask(problem, indices[0], len(indices)))
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
        failure = asking.exception()
        for place, index in enumerate(indices):
            if futures[index].done():
                continue
            sampled = failure if failure is not None else asking.result()[place]
            if isinstance(sampled, Completion):
                futures[index].set_result(sampled)
            else:
                futures[index].set_exception(sampled)
