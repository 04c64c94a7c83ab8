"""The deployments of a served recipe, named FLOW/RECIPE in Prefect.

    curate-math/NAME, or curate-code/NAME   by the recipe's cron
    train-stage/NAME   on the event `goldilocks.curated` of the set, if the recipe names a trainer
    refresh/NAME       on the event `goldilocks.checkpoint` of its trainer

Prefect retries a failed run; `flows.serve.runner` restarts a killed one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from prefect.events import DeploymentEventTrigger
from prefect.flows import Flow
from prefect.schedules import Cron
from prefect.types.entrypoint import EntrypointType

from curation.config import Recipe
from flows.loop import CURATION
from flows.refresh import refresh
from flows.run.recipe import load_recipe
from flows.serve.flow_runs import CHECKPOINT, CURATED, resource, version_name
from flows.serve.pins import Pins, pinned
from flows.serve.unfinished import trainer_of
from flows.train import train_stage

Deployment = tuple[Flow[Any, Any], dict[str, Any]]
"""A pinned flow, and its arguments of Prefect's `to_deployment`."""


def set_folder(recipe: Recipe, out: Path | None) -> Path:
    """Return a served recipe's run folder: ``out``, or runs/NAME."""
    return (out or Path("runs") / recipe.name).absolute()


def deployments(path: Path, out: Path | None = None) -> list[Deployment]:
    """Return the deployments of a recipe, whose run folder is ``out`` or runs/NAME."""
    recipe = load_recipe(path)
    folder, schedule = set_folder(recipe, out), recipe.schedule

    def deployment(flow: Flow[Any, Any], pins: Pins, **starts: Any) -> Deployment:
        return pinned(flow, pins, partial(version_name, recipe.name, folder)), {
            "name": recipe.name,
            "description": recipe.description or None,
            "tags": ["goldilocks", recipe.name],
            "parameters": pins.defaults(),
            "entrypoint_type": EntrypointType.MODULE_PATH,
            **starts,
        }

    cron = Cron(schedule.cron, timezone="UTC") if schedule.cron is not None else None
    pins = Pins({"recipe": path.absolute(), "out": folder, "overrides": None})
    made = [deployment(CURATION[recipe.flow], pins, schedule=cron)]
    if (trainer := trainer_of(path, schedule, folder)) is not None:
        pins = Pins({"folder": folder, "recipe": trainer, "rounds": schedule.rounds}, version_of=folder)
        trigger = _trigger(train_stage, recipe, CURATED, "set", "folder", "version")
        made.append(deployment(train_stage, pins, triggers=[trigger]))
    pins = Pins({"folder": folder, "accept": False}, dict.fromkeys(("policy", "attempts"), folder / "training"))
    trigger = _trigger(refresh, recipe, CHECKPOINT, "checkpoint", "folder", "policy", "attempts")
    return [*made, deployment(refresh, pins, triggers=[trigger])]


def _trigger(
    flow: Flow[Any, Any], recipe: Recipe, event: str, kind: str, *event_parameters: str
) -> DeploymentEventTrigger:
    """Return what starts a flow on an event of the recipe, with parameters of the event's payload."""
    templates = {name: f"{{{{ event.payload.{name} | tojson }}}}" for name in event_parameters}
    return DeploymentEventTrigger(
        name=f"{flow.name} of {recipe.name}",
        expect={event},
        match={"prefect.resource.id": resource(kind, recipe.name)["prefect.resource.id"]},
        parameters={
            name: {"__prefect_kind": "json", "value": {"__prefect_kind": "jinja", "template": template}}
            for name, template in templates.items()
        },
    )


def start_phrase(starts: dict[str, Any]) -> str:
    """Return what starts a deployment, in words."""
    events = [event for trigger in starts.get("triggers", ()) for event in trigger.expect]
    if (cron := starts.get("schedule")) is not None:
        return f"cron {cron.cron}"
    return f"on {', '.join(events)}" if events else "when it is asked for"
