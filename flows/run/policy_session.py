"""Start each model once per run, within `keep_open`.

Invariants: one local model runs at a time, as two may not fit on a GPU. No stored response is asked for again; later
runs retry refused requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from curation.config import ModelSettings, RecordedModel, TorchModel, VllmModel
from curation.difficulty.sampling import CUT_OFF, ResponseTally
from curation.policies.failure_budget import FailureBudget
from curation.prompts import Prompt
from curation.records import ATTEMPT, Completion, Policy, PromptRequest, RequestRefused
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, StageFolder
from flows.run import retries
from flows.run.policies import open_policy, refuse_offline
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.stage import StageResult, StageRun

Result = TypeVar("Result")


class OpenModels:
    """The opened models and their event loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._opened: dict[str, Any] = {}
        self._running: dict[str, bool] = {}  # whether it is a local one

    def policy(self, settings: ModelSettings, folder: Path) -> Any:
        """Return a model's policy, which may run already; equal tables are one model."""
        key = f"{settings.digest()} {folder}"
        if key not in self._opened:
            self._opened[key] = open_policy(settings, folder)
        return self._opened[key]

    def start(self, settings: ModelSettings, folder: Path) -> Any:
        """Return a model's running policy; the start of a local one ends other local ones."""
        key, policy = f"{settings.digest()} {folder}", self.policy(settings, folder)
        if key not in self._running:
            is_local = isinstance(settings, VllmModel | TorchModel)
            if is_local:
                self.end_local()
            self.run(policy.__aenter__())
            self._running[key] = is_local
        return policy

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the models' event loop."""
        return self._runner.run(work)

    def end_local(self) -> None:
        """End this machine's models, to free its GPUs."""
        self._end([key for key, is_local in self._running.items() if is_local])

    def close(self) -> None:
        """End all models and their event loop."""
        try:
            self._end(list(self._running))
        finally:
            self._runner.close()

    def _end(self, keys: Sequence[str]) -> None:
        for key in keys:
            del self._running[key]
            self.run(self._opened.pop(key).__aexit__(None, None, None))


class ModelSession:
    """A model with one prompt; `open` may replace ``policy``."""

    def __init__(self, models: OpenModels, settings: ModelSettings, folder: Path, prompt: Prompt | None) -> None:
        self._models, self._settings, self._folder, self._prompt = models, settings, folder, prompt
        self._started: Any = None
        self.policy: Policy = models.policy(settings, folder).asking(prompt)

    def open(self) -> None:
        """Start the model unless it runs; refuse if no model may be asked."""
        if not isinstance(self._settings, RecordedModel):
            refuse_offline(f"this needs answers of {self.policy.key.policy}")
        started = self._models.start(self._settings, self._folder)
        if started is not self._started:
            self._started, self.policy = started, started.asking(self._prompt)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the model's event loop."""
        return self._models.run(work)


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
    if run.recipe.models[model].kind == "recorded":
        advice = f"look at `models.{model}.columns`, which name the file's columns of text and answer"
    elif responses.main_kind == CUT_OFF:
        advice = f"raise `models.{model}.decoding.max_tokens`, or change `models.{model}.prompt` for shorter answers"
    else:
        advice = (
            f"look at `models.{model}.prompt` and at the model's chat template: answers are not in the form asked for"
        )
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
