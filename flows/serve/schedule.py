"""The deployments of a served recipe, named FLOW/RECIPE in Prefect.

    curate-math/NAME, or curate-code/NAME   by the recipe's cron
    train-stage/NAME   on the event `goldilocks.curated` of the set, if the recipe names a trainer
    refresh/NAME       on the event `goldilocks.checkpoint` of its trainer

Prefect retries a failed run; `flows.serve.runner` restarts a killed one.

Safety: each flow and its parameters are pinned when the service starts. The runner executes the flow in memory and
reads no code location from the API. A run with other parameters, or of a changed deployment, ends as cancelled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

from prefect import get_run_logger
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events import DeploymentEventTrigger
from prefect.flows import Flow
from prefect.runtime import deployment as current
from prefect.schedules import Cron
from prefect.states import Cancelled
from prefect.types.entrypoint import EntrypointType

from curation.config import Recipe
from flows.loop import CURATION
from flows.publish.versions import latest
from flows.refresh import refresh
from flows.run.recipe import load_recipe
from flows.serve.flow_runs import CHECKPOINT, CURATED, resource, version_name
from flows.serve.unfinished import trainer_of
from flows.train import train_stage

CODE = ("pull_steps", "storage_document_id", "infrastructure_document_id", "job_variables", "work_pool_name", "path")
"""Fields for code or its environment, empty in registered deployments."""


@dataclass(frozen=True, slots=True)
class Pins:
    """A deployment's allowed parameters.

    ``fixed`` have one value, ``inside`` are None or a path in a folder, ``version`` is one of run folder
    ``version_of``.
    """

    fixed: Mapping[str, Path | int | None]
    inside: Mapping[str, Path] = field(default_factory=dict)
    version_of: Path | None = None

    def defaults(self) -> dict[str, str | int]:
        """Return the fixed parameters in the API's form."""
        given = {name: value for name, value in self.fixed.items() if value is not None}
        return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}

    def refusal(self, parameters: Mapping[str, Any]) -> str | None:
        """Return why these parameters are refused, or None."""
        for name, value in parameters.items():
            if name in self.fixed:
                is_own = value == self.fixed[name]
            elif name in self.inside:
                is_own = value is None or Path(value).resolve().is_relative_to(self.inside[name].resolve())
            else:
                is_own = name == "version" and self.version_of is not None and _has_version(self.version_of, value)
            if not is_own:
                return f"{name} = {value}: this service was not started with it"
        return None


def pinned(flow: Flow[Any, Any], pins: Pins, run_name: Callable[[], str]) -> Flow[Any, Any]:
    """Return a flow that runs with pinned parameters only.

    Args:
        run_name: must not read parameters.
    """
    original = flow.fn
    entrypoint, signature = f"{original.__module__}.{original.__name__}", inspect.signature(original, eval_str=True)

    @wraps(original)
    def run(*arguments: Any, **named: Any) -> State[None] | None:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        why = pins.refusal(bound.arguments) or _changed_code(entrypoint)
        if why is not None:
            get_run_logger().error("refused: %s", why)
            return Cancelled(message=f"refused: {why}")
        original(*bound.args, **bound.kwargs)
        return None

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = inspect.get_annotations(original, eval_str=True)  # Prefect looks names up in this module
    return Flow(
        run,
        name=flow.name,
        flow_run_name=run_name,
        retries=flow.retries,
        retry_delay_seconds=flow.retry_delay_seconds,
        persist_result=flow.persist_result,
    )


def foreign_code(deployment: DeploymentResponse) -> list[str]:
    """Return fields that name code or an environment."""
    return [name for name in CODE if getattr(deployment, name, None)]


def _changed_code(entrypoint: str) -> str | None:
    with get_client(sync_client=True) as client:
        held = client.read_deployment(current.id)
    foreign = foreign_code(held) + (["entrypoint"] if held.entrypoint != entrypoint else [])
    return f"{', '.join(foreign)} of the deployment changed since this service registered it" if foreign else None


def _has_version(folder: Path, version: Any) -> bool:
    newest = latest(folder)
    return newest is not None and isinstance(version, int) and 1 <= version <= newest.number


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
