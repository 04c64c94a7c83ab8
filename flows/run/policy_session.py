"""Start each model once per run, within `keep_open`.

Invariants: one local model runs at a time, as two may not fit on a GPU. Equal tables are one model. No stored response
is asked for again; later runs retry refused requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from curation.config import ModelSettings, RecordedModel, TorchModel, VllmModel
from curation.difficulty.sampling import ResponseTally
from curation.policies.failure_budget import FailureBudget
from curation.prompts import Prompt
from curation.records import ATTEMPT, Completion, Policy, PromptRequest, RequestRefused
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, StageFolder
from flows.run import retries
from flows.run.policies import open_policy, refuse_offline, response_advice
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.stage import StageResult, StageRun

Result = TypeVar("Result")


class OpenModels:
    """The running models and their event loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._running: dict[str, Policy] = {}
        self._local: set[str] = set()

    def running(self, settings: ModelSettings, folder: Path) -> Any:
        """Return a model's running policy, or None."""
        return self._running.get(model_key(settings, folder))

    def start(self, settings: ModelSettings, folder: Path, policy: Policy) -> None:
        """Start a model's policy; a local one ends other local ones."""
        name = model_key(settings, folder)
        if isinstance(settings, VllmModel | TorchModel):
            self.end_local()
            self._local.add(name)
        self.run(policy.__aenter__())
        self._running[name] = policy

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the models' event loop."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def end_except(self, names: Collection[str]) -> None:
        """End all models but these."""
        for name in [name for name in self._running if name not in names]:
            self.run(self._running.pop(name).__aexit__(None, None, None))

    def end_local(self) -> None:
        """End this machine's models, to free its GPUs."""
        self.end_except([name for name in self._running if name not in self._local])

    def close(self) -> None:
        """End all models and their event loop."""
        try:
            self.end_except(())
        finally:
            runner, self._runner = self._runner, None
            if runner is not None:
                runner.close()


class ModelSession:
    """A model with one prompt; `open` may replace ``policy``."""

    def __init__(self, models: OpenModels, settings: ModelSettings, folder: Path, prompt: Prompt | None) -> None:
        self._models, self._settings, self._folder, self._prompt = models, settings, folder, prompt
        self._started: Any = models.running(settings, folder)
        self.policy: Policy = self._started.asking(prompt) if self._started else open_policy(settings, folder, prompt)

    def open(self) -> None:
        """Start the model unless it runs; refuse if no model may be asked."""
        if not isinstance(self._settings, RecordedModel):
            refuse_offline(f"this needs answers of {self.policy.key.policy}")
        running = self._models.running(self._settings, self._folder)
        if running is None:
            if self._started is not None:  # it has ended since
                self.policy = open_policy(self._settings, self._folder, self._prompt)
            self._models.start(self._settings, self._folder, self.policy)
            self._started = self.policy
        elif running is not self._started:
            self._started, self.policy = running, running.asking(self._prompt)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the model's event loop."""
        return self._models.run(work)


def model_key(settings: ModelSettings, folder: Path) -> str:
    """Return a key that is equal for equal tables."""
    return f"{settings.digest()} {folder}"


_KEPT: ContextVar[OpenModels | None] = ContextVar("kept_models", default=None)


@contextmanager
def keep_open() -> Iterator[OpenModels]:
    """Keep models open through the outermost such block."""
    outer = _KEPT.get()
    if outer is not None:
        yield outer
        return
    models = OpenModels()
    token = _KEPT.set(models)
    try:
        yield models
    finally:
        _KEPT.reset(token)
        models.close()


def kept_models() -> OpenModels | None:
    """Return the current `keep_open` models, or None."""
    return _KEPT.get()


@contextmanager
def model_session(settings: ModelSettings, folder: Path, prompt: Prompt | None = None) -> Iterator[ModelSession]:
    """Yield a model's session; outside of `keep_open`, the model ends with it."""
    with keep_open() as models:
        yield ModelSession(models, settings, folder, prompt)


class ResponseWatch:
    """Warns once per stage if most responses are useless.

    Args:
        is_readable: returns whether a response has the wanted answer.
    """

    def __init__(self, run: Run, stage: str, model: str, is_readable: Callable[[str], bool]) -> None:
        self._run, self._stage, self._model = run, stage, model
        self._is_readable = is_readable
        self._responses = ResponseTally()
        self._examples: dict[str, str] = {}  # by kind
        self._has_warned = False

    def add(self, problem: str, index: int, completion: Completion) -> None:
        """Count a response; warn once most are useless."""
        if self._has_warned:
            return
        text = completion.text or ""
        has_answer = self._is_readable(text)
        is_cut_off = completion.finish == "length" and not has_answer  # a verdict of one token is whole
        useless = self._responses.add(problem, index, has_answer=has_answer, is_cut_off=is_cut_off)
        if useless is not None:
            self._examples[useless] = text
        if self._responses.is_alarming:
            self._warn()

    def close(self) -> None:
        """Warn if most responses were useless, unless warned before."""
        if not self._has_warned and self._responses.most_are_useless:
            self._warn()

    def _warn(self) -> None:
        self._has_warned = True
        example = self._examples[self._responses.main_kind]
        warn_of_responses(self._run, self._stage, self._model, self._responses, example)


def failure_budget(run: Run, problems: int) -> FailureBudget:
    """Return stage 1's budget, for work without its own."""
    return FailureBudget(run.recipe.stage1.sampling.max_failed, problems, "stage1.sampling.max_failed")


def warn_of_responses(run: Run, stage: str, model: str, responses: ResponseTally, example: str | None) -> None:
    """Warn of useless responses, with the setting to check."""
    advice = response_advice(responses.main_kind, run.recipe.models[model].kind, model)
    warn(run.folder, stage, responses.sentence(advice, example))


class PolicySession:
    """Ask a policy one prompt, and store its responses in the run.

    The policy starts once a response is missing.

    Args:
        work: the asking stage or command, for warnings.
        prompt: by default the model's.
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
        self.refused: set[str] = set()
        """The refused requests since the caller last cleared them."""
        self._stack = ExitStack()
        self._session = self._stack.enter_context(model_session(run.recipe.models[model], run.recipe_folder, prompt))
        self._store = AttemptStore(run.folder / "attempts", self.policy.key, self.policy.about)

    @property
    def policy(self) -> Policy:
        """Return the asked policy."""
        return self._session.policy

    def __enter__(self) -> PolicySession:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._watch.close()
                self._store.compact()
        finally:
            self._store.close()
            self._stack.close()

    def shard_by_shard(self, job: StageRun, folder: StageFolder, work: Callable[[int], Shard]) -> StageResult:
        """Compute the stage, and note refused requests, which later runs retry."""

        def noting(index: int) -> Shard:
            self.refused.clear()
            shard = work(index)
            round_number = retries.last_round(folder.folder)
            notes = retries.failure_notes(len(self.refused), round_number, retries.REFUSED)
            return replace(shard, notes={**shard.notes, **notes})

        return job.shard_by_shard(folder, noting)

    def ask(self, requests: Sequence[PromptRequest], each: int) -> pl.DataFrame:
        """Return `ATTEMPT` rows of indices below ``each``; fewer if the policy has fewer.

        Args:
            requests: with distinct ids.
        """
        names = [request.id for request in requests]
        missing = self._store.missing_indices(names, each)
        if missing:
            questions = [(request, index) for request in requests for index in missing.get(request.id, ())]
            self._session.open()
            self._session.run(self._answer(questions))
            self._store.compact([names])
        return self._store.read(names, tuple(ATTEMPT)).filter(pl.col("index") < each)

    async def _answer(self, questions: Sequence[tuple[PromptRequest, int]]) -> None:
        waiting = iter(questions)

        async def work() -> None:
            for request, index in waiting:
                try:
                    completion = await self.policy.answer(request, index)
                except RequestRefused as refused:
                    self.refused.add(request.id)
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
