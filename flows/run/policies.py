"""Read, open and check models; `POLICIES` lists their kinds.

A command's model is `FILE.toml` or `FILE.toml:NAME`, from tables `[models.NAME]`. Within `offline` no model is asked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any

from curation.config import EndpointModel, ModelFile, ModelSettings, Recipe, RecordedModel
from curation.config.loading import parse_settings, read_toml
from curation.config.mistakes import did_you_mean
from curation.config.recipe import GRADER
from curation.policies.recorded import Recorded
from curation.records import ConfigError, GoldilocksError, Policy
from flows.run.run_folder import Run
from training.embedded_model import EMBEDDED, WEIGHTS

POLICIES = {
    "recorded": "curation.policies.recorded:Recorded",
    "vllm": "curation.policies.vllm:Vllm",
    "endpoint": "curation.policies.endpoint:Endpoint",
    "torch": "training.generation.torch_policy:TorchPolicy",
}
"""Module and class by kind, called with `open_policy`'s arguments."""


def open_policy(settings: ModelSettings, recipe_folder: Path) -> Policy:
    """Return a model's policy, which starts when entered; `embedded` is the shipped model.

    Raises:
        SourceError, PolicyError: a file or model is missing.
    """
    if settings.kind != "recorded" and settings.loads_folder and settings.model == EMBEDDED:
        settings, recipe_folder = settings.model_copy(update={"model": WEIGHTS.name}), WEIGHTS.parent
    module, _, name = POLICIES[settings.kind].partition(":")
    policy: Policy = getattr(import_module(module), name)(settings, recipe_folder)
    return policy


def check_models(run: Run, models: Collection[str] | None = None) -> None:
    """Refuse models that cannot be asked.

    Servers' failures are warnings if the run has attempts.

    Args:
        models: names, whose failures are all errors; by default the run's.
    """
    may_ask_nothing = models is None and any((run.folder / "attempts").glob("*"))
    names = dict.fromkeys(run.recipe.asked.values() if models is None else models)
    for name in [name for name in names if not (run.recipe.grader and name == GRADER)]:  # trained in the run
        if name not in run.recipe.models:
            defined = ", ".join(run.recipe.models)
            raise ConfigError(f"{name!r}: the recipe has no table [models.{name}]; defined: {defined}")
        settings = run.recipe.models[name]
        try:
            policy = open_policy(settings, run.recipe_folder)
            if isinstance(policy, Recorded):
                policy.check()
            elif isinstance(settings, EndpointModel):
                asyncio.run(_greet(policy))
        except GoldilocksError as error:
            if not (may_ask_nothing and isinstance(settings, EndpointModel)):
                error.args = (f"models.{name}: {error}",)
                raise
            print(f"warning: models.{name}: {error}", file=sys.stderr)


async def _greet(policy: Policy) -> None:
    async with policy:
        pass


def model_title(recipe: Recipe, name: str | None) -> str:
    """Return a model's name for the terminal."""
    return policy_name(recipe.models[name]) if name is not None else "no model"


def policy_name(settings: ModelSettings) -> str:
    """Return a policy's name in the recipe, without revision."""
    return settings.name if isinstance(settings, RecordedModel) else settings.model


_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Ask no model in this block."""
    token = _OFFLINE.set(True)
    try:
        yield
    finally:
        _OFFLINE.reset(token)


def is_offline() -> bool:
    """Return whether no model may be asked."""
    return _OFFLINE.get()


def refuse_offline(needs: str) -> None:
    """Refuse work that needs a model, as in `the model small answers 40 questions`."""
    if is_offline():
        raise ConfigError(f"--offline asks no model, and {needs}; run the recipe without --offline.")


def load_model(spec: str | Path, option: str = "--policy") -> tuple[ModelSettings, Path]:
    """Return an option's model, and the base of its paths."""
    subject = f"{option} {spec}"
    path, name = Path(spec).expanduser(), ""
    if not path.exists() and ":" in str(spec):
        before, _, name = str(spec).rpartition(":")
        path = Path(before).expanduser()
    table = read_toml(path, subject)
    if not isinstance(table.get("models"), Mapping):
        raise ConfigError(f"{subject}: the file has no table [models.NAME]; write one as in a recipe.")
    folder = path.absolute().parent
    models = parse_settings(ModelFile, {"models": table["models"]}, subject, folder=folder).models
    if not name and len(models) > 1:
        raise ConfigError(f"{subject}: the file has several models; write {path}:NAME with one of {', '.join(models)}.")
    name = name or next(iter(models))
    if name not in models:
        near = did_you_mean(name, models) or ";"
        raise ConfigError(f"{subject}: there is no table [models.{name}]{near} defined: {', '.join(models)}.")
    return models[name], folder


def parse_model(table: Mapping[str, Any], subject: str) -> ModelSettings:
    """Return a table's model; ``subject`` begins error messages."""
    return parse_settings(ModelFile, {"models": {"model": table}}, subject, folder=Path()).models["model"]
