"""Models that run, each started once per run however many stages ask it, in one event loop.

`model_session` returns a session of a model; it starts the model when it is first asked. Inside `keep_open` the
sessions of one model share it: the second stage that asks it starts no engine. Two names of one table are one model.

Invariants: at most one model runs on this machine at a time, as two may not fit on a GPU; remote servers do not count.
A model ends when no later stage asks it (`OpenModels.end_except`), and all end with the block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from curation.config import ModelSettings, RecordedModel, TorchModel, VllmModel
from curation.prompts import Prompt
from curation.records import Policy
from flows.run.offline import refuse_offline
from flows.run.policies import open_policy

Result = TypeVar("Result")


class OpenModels:
    """The models that run, and the event loop that they live in."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._running: dict[str, Policy] = {}
        self._local: set[str] = set()

    def running(self, name: str) -> Policy | None:
        """Return the policy that started a model; None if it does not run."""
        return self._running.get(name)

    def start(self, name: str, policy: Policy, *, is_local: bool) -> None:
        """Start a model; one that runs on this machine ends the others that do."""
        if is_local:
            self.end_local()
            self._local.add(name)
        self.run(_enter(policy))
        self._running[name] = policy

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of work in the models' event loop."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def end_except(self, names: Collection[str]) -> None:
        """End the models of all names but these."""
        for name in [name for name in self._running if name not in names]:
            self.run(_leave(self._running.pop(name)))

    def end_local(self) -> None:
        """End the models that run on this machine: training, for one, needs its GPUs."""
        self.end_except([name for name in self._running if name not in self._local])

    def close(self) -> None:
        """End all models and their event loop."""
        try:
            self.end_except(())
        finally:
            runner, self._runner = self._runner, None
            if runner is not None:
                runner.close()


async def _enter(policy: Policy) -> None:
    await policy.__aenter__()


async def _leave(policy: Policy) -> None:
    await policy.__aexit__(None, None, None)


class ModelSession:
    """A model that is asked one prompt, in an event loop.

    Attributes:
        policy: what is asked; it answers once the session is open. A new one after `open`, if the model was shared or
            had ended.
    """

    def __init__(self, models: OpenModels, settings: ModelSettings, folder: Path, prompt: Prompt | None) -> None:
        self._models, self._is_local = models, isinstance(settings, VllmModel | TorchModel)
        self._opens = settings, folder, prompt
        self._name = model_key(settings, folder)
        self._started: Policy | None = None
        self.policy: Policy
        if not self._join():
            self.policy = open_policy(*self._opens)

    @property
    def is_open(self) -> bool:
        """Return whether the model runs, and this session's policy is what asks it."""
        return self._started is not None and self._models.running(self._name) is self._started

    def open(self) -> None:
        """Start the model, unless it runs. Another model on this machine may have ended it since it was asked last.

        Raises:
            ConfigError: no model may be asked.
        """
        if not isinstance(self._opens[0], RecordedModel):
            refuse_offline(f"this needs answers of {self.policy.key.policy}")
        if self.is_open or self._join():
            return
        if self._started is not None:
            self.policy = open_policy(*self._opens)
        self._models.start(self._name, self.policy, is_local=self._is_local)
        self._started = self.policy

    def _join(self) -> bool:
        """Ask the running model with this session's prompt; return whether it runs."""
        running: Any = self._models.running(self._name)
        if running is not None:
            self._started, self.policy = running, running.asking(self._opens[2])
        return running is not None

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of work in the model's event loop."""
        return self._models.run(work)


def model_key(settings: ModelSettings, folder: Path) -> str:
    """Return what distinguishes models: what is in their tables, not their names."""
    return f"{settings.digest()} {folder}"


_KEPT: ContextVar[OpenModels | None] = ContextVar("kept_models", default=None)


@contextmanager
def keep_open() -> Iterator[OpenModels]:
    """Keep models open from their first stage in this block to the end of it; an outer block counts."""
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
    """Return the models of the block that is in force; None outside of `keep_open`."""
    return _KEPT.get()


@contextmanager
def model_session(settings: ModelSettings, folder: Path, prompt: Prompt | None = None) -> Iterator[ModelSession]:
    """Yield a session of a model, which ends with it outside of `keep_open`.

    Args:
        folder: what paths in the settings are relative to.
        prompt: what is asked, if it is not the prompt of the settings.
    """
    with keep_open() as models:
        yield ModelSession(models, settings, folder, prompt)
