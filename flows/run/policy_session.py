"""Start each model once per run, in one event loop, within a `keep_open` block.

Invariants: one local model runs at a time, as two may not fit on a GPU. Models end after their last stage. Equal
tables are one model.
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
    """The running models and their event loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._running: dict[str, Policy] = {}
        self._local: set[str] = set()

    def running(self, name: str) -> Policy | None:
        """Return a model's running policy, or None."""
        return self._running.get(name)

    def start(self, name: str, policy: Policy, *, is_local: bool) -> None:
        """Start a model; a local one ends other local ones."""
        if is_local:
            self.end_local()
            self._local.add(name)
        self.run(_enter(policy))
        self._running[name] = policy

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the models' event loop."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def end_except(self, names: Collection[str]) -> None:
        """End all models but these."""
        for name in [name for name in self._running if name not in names]:
            self.run(_leave(self._running.pop(name)))

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


async def _enter(policy: Policy) -> None:
    await policy.__aenter__()


async def _leave(policy: Policy) -> None:
    await policy.__aexit__(None, None, None)


class ModelSession:
    """A model with one prompt; `open` may replace ``policy``."""

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
        """Return whether the session's model runs."""
        return self._started is not None and self._models.running(self._name) is self._started

    def open(self) -> None:
        """Start the model unless it runs.

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
        """Use the running model, if any; return whether it runs."""
        running: Any = self._models.running(self._name)
        if running is not None:
            self._started, self.policy = running, running.asking(self._opens[2])
        return running is not None

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the model's event loop."""
        return self._models.run(work)


def model_key(settings: ModelSettings, folder: Path) -> str:
    """Return a model's key: its table, without its name."""
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
    """Yield a model's session; outside of `keep_open`, the model ends with it.

    Args:
        folder: base of relative paths.
    """
    with keep_open() as models:
        yield ModelSession(models, settings, folder, prompt)
