"""The deployments of a served recipe, named FLOW/RECIPE in Prefect.

    curate-math/NAME, or curate-code/NAME   by the recipe's cron
    train-stage/NAME   on the event `goldilocks.curated` of the set, if the recipe names a trainer
    refresh/NAME       on the event `goldilocks.checkpoint` of its trainer

Prefect retries a failed run; `flows.serve.runner` restarts a killed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.events import DeploymentEventTrigger
from prefect.flows import Flow

from curation.config import Recipe
from flows.loop import CURATION
from flows.refresh import refresh
from flows.run.recipe import load_recipe
from flows.serve.flow_runs import CHECKPOINT, CURATED, resource, version_name
from flows.serve.pins import PinnedDeployment, Pins, pinned
from flows.serve.unfinished import trainer_of
from flows.train import train_stage

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment


def set_folder(recipe: Recipe, out: Path | None) -> Path:
    """Return a served recipe's run folder: ``out``, or runs/NAME."""
    return (out or Path("runs") / recipe.name).absolute()


def deployments(path: Path, out: Path | None = None) -> list[PinnedDeployment]:
    """Return the deployments of a recipe, whose run folder is ``out`` or runs/NAME.

    Raises:
        ConfigError: the recipe is invalid, or its trainer's is missing or invalid.
    """
    recipe = load_recipe(path)
    folder = set_folder(recipe, out)
    registered = [_cron_deployment(recipe, path, folder)]
    schedule = recipe.schedule
    if (trainer := trainer_of(path, schedule, folder)) is not None:
        pins = Pins({"folder": folder, "recipe": trainer, "rounds": schedule.rounds}, version_of=folder)
        registered.append(_event_deployment(train_stage, recipe, CURATED, "set", ("folder", "version"), pins))
    names = ("folder", "policy", "attempts")
    pins = Pins({"folder": folder, "accept": False}, dict.fromkeys(("policy", "attempts"), folder / "training"))
    registered.append(_event_deployment(refresh, recipe, CHECKPOINT, "checkpoint", names, pins))
    return registered


def _cron_deployment(recipe: Recipe, path: Path, folder: Path) -> PinnedDeployment:
    from prefect.schedules import Cron

    cron, pins = recipe.schedule.cron, Pins({"recipe": path.absolute(), "out": folder, "overrides": None})
    return PinnedDeployment(
        pinned(CURATION[recipe.flow], pins, partial(version_name, recipe.name, folder)),
        recipe.name,
        pins.defaults(),
        {
            "schedule": Cron(cron, timezone="UTC") if cron is not None else None,
            "description": recipe.description or f"The curated set {recipe.name}.",
            "tags": ["goldilocks", recipe.name],
        },
    )


def _event_deployment(
    scheduled_flow: Flow[Any, Any], recipe: Recipe, event: str, kind: str, event_parameters: Sequence[str], pins: Pins
) -> PinnedDeployment:
    folder = Path(str(pins.fixed["folder"]))
    values = {
        name: {
            "__prefect_kind": "json",
            "value": {"__prefect_kind": "jinja", "template": f"{{{{ event.payload.{name} | tojson }}}}"},
        }
        for name in event_parameters
    }
    trigger = DeploymentEventTrigger(
        name=f"{scheduled_flow.name} of {recipe.name}",
        expect={event},
        match={"prefect.resource.id": resource(kind, recipe.name)["prefect.resource.id"]},
        parameters=values,
    )
    return PinnedDeployment(
        pinned(scheduled_flow, pins, partial(version_name, recipe.name, folder)),
        recipe.name,
        pins.defaults(),
        {
            "triggers": [trigger],
            "description": (scheduled_flow.__doc__ or "").partition("\n")[0],
            "tags": ["goldilocks", recipe.name],
        },
    )


def schedule_phrase(deployment: RunnerDeployment) -> list[str]:
    """Return what starts a deployment, in words."""
    crons = [str(getattr(entry.schedule, "cron", entry.schedule)) for entry in deployment.schedules or ()]
    events = [", ".join(sorted(getattr(trigger, "expect", ()))) for trigger in deployment.triggers]
    return [f"cron {cron}" for cron in crons] + [f"on {event}" for event in events]
