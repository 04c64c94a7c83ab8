"""The deployments of a recipe that `goldilocks serve` registers in Prefect, named FLOW/RECIPE.

    curate-math/NAME, or curate-code/NAME   by the recipe's cron, and on the event `goldilocks.exhausted` of the set
    train-stage/NAME   on the event `goldilocks.curated` of the set, if the recipe names a trainer
    refresh/NAME       on the event `goldilocks.checkpoint` of its trainer

A failed run is tried again by Prefect; one that was killed is run again by `flows.serve.runner`, and resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from prefect.events import DeploymentEventTrigger
from prefect.flows import Flow
from prefect.schedules import Cron, Schedule
from prefect.types.entrypoint import EntrypointType

from curation.config import Recipe
from curation.records import ConfigError
from flows.loop import CURATION
from flows.refresh import refresh
from flows.run.recipe import load_recipe
from flows.run.training import check_train_recipe
from flows.serve.flow_runs import CHECKPOINT, CURATED, EXHAUSTED, resource, version_name
from flows.serve.pins import Pins, pinned
from flows.train import train_stage, training_data


@dataclass(frozen=True)
class Served:
    """A pinned flow, the arguments of its deployment as `prefect.Flow.to_deployment` takes them, and what starts it."""

    flow: Flow[Any, Any]
    arguments: Mapping[str, Any]
    starts: str


def set_folder(recipe: Recipe, out: Path | None) -> Path:
    """Return the run folder of a recipe that is served: ``out``, or runs/NAME."""
    return (out or Path("runs") / recipe.name).absolute()


def deployments(path: Path, out: Path | None = None) -> list[Served]:
    """Return the deployments of a recipe.

    Args:
        out: the run folder; runs/NAME if missing.

    Raises:
        ConfigError: the recipe is not valid, or its trainer's recipe is missing or not valid.
    """
    recipe = load_recipe(path)
    folder, schedule = set_folder(recipe, out), recipe.schedule
    pins = Pins({"recipe": path.absolute(), "out": folder, "overrides": None})
    cron = Cron(schedule.cron, timezone="UTC") if schedule.cron is not None else None
    starts = [f"cron {schedule.cron}"] if cron is not None else []
    served = [_served(CURATION[recipe.flow], recipe, folder, pins, (EXHAUSTED, "set"), starts, schedule=cron)]
    if schedule.train is not None:
        trainer = (path.parent / schedule.train).absolute()
        if not trainer.is_file():
            raise ConfigError(f"recipe {path}: schedule.train = {schedule.train!r}: there is no file {trainer}.")
        check_train_recipe(trainer, [training_data(folder)])
        pins = Pins({"folder": folder, "recipe": trainer, "rounds": schedule.rounds}, version_of=folder)
        served.append(_served(train_stage, recipe, folder, pins, (CURATED, "set"), from_event=("folder", "version")))
    pins = Pins({"folder": folder, "accept": False}, dict.fromkeys(("policy", "attempts"), folder / "training"))
    names = ("folder", "policy", "attempts")
    return [*served, _served(refresh, recipe, folder, pins, (CHECKPOINT, "checkpoint"), from_event=names)]


def _served(
    flow: Flow[Any, Any],
    recipe: Recipe,
    folder: Path,
    pins: Pins,
    on: tuple[str, str],
    starts: Sequence[str] = (),
    *,
    schedule: Schedule | None = None,
    from_event: Sequence[str] = (),
) -> Served:
    """Return a deployment that runs on an event.

    Args:
        on: the event, and the kind of its resource.
        from_event: parameters that are read from the event's payload.
    """
    event, kind = on
    values = {
        name: {
            "__prefect_kind": "json",
            "value": {"__prefect_kind": "jinja", "template": f"{{{{ event.payload.{name} | tojson }}}}"},
        }
        for name in from_event
    }
    trigger = DeploymentEventTrigger(
        name=f"{flow.name} of {recipe.name}",
        expect={event},
        match={"prefect.resource.id": resource(kind, recipe.name)["prefect.resource.id"]},
        parameters=values,
    )
    arguments = {
        "name": recipe.name,
        "parameters": pins.defaults(),
        "schedule": schedule,
        "triggers": [trigger],
        "description": (flow.__doc__ or "").partition("\n")[0],
        "tags": ["goldilocks", recipe.name],
        "entrypoint_type": EntrypointType.MODULE_PATH,
    }
    own = pinned(flow, pins, partial(version_name, recipe.name, folder))
    return Served(own, arguments, ", ".join([*starts, f"on {event}"]))
