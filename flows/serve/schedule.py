"""Recipes that run by themselves: a curated set starts training, a checkpoint starts the refresh, and round it goes.

Each recipe gets deployments in Prefect, named FLOW/RECIPE:

    curate-math/NAME, or curate-code/NAME   by the recipe's cron
    train-stage/NAME   on the event `goldilocks.curated` of the set, where the recipe names a trainer
    refresh/NAME       on the event `goldilocks.checkpoint` of its trainer

A run emits `goldilocks.curated` only where it made a new version of the set, so a cron that finds nothing new starts
nothing; one that finds the folder in use is passed over. A version that a run published and was killed before it said
so is announced by the next run. Who may run is said by locks that end with their holder (the folder's, that of its
training, the machine's GPU slots), never by Prefect's own limits, which a killed holder keeps. A failed run is tried
again; one that was killed is started again by `flows.serve.runner`, and as every pipeline goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow, get_run_logger
from prefect.events import DeploymentEventTrigger, emit_event
from prefect.flows import Flow

from curation.config import Recipe
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.pipelines.by_recipe import check_inputs
from flows.pipelines.under_prefect import PrefectPage, curate
from flows.publish.versions import Version, latest, summary
from flows.run.observer import observed_by
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run, new_run, open_run, stage_model
from flows.run.spreading import spreading
from flows.run.training import check_train_recipe, start_from, train_apart
from flows.serve.gpu_slots import gpu_slot
from flows.serve.pins import PinnedDeployment, Pins, pinned
from flows.serve.unfinished import (
    ANNOUNCED,
    FIRST,
    REFRESHED,
    announced_version,
    checkpoint,
    no_more_rounds,
    trained_stages,
    training_folder,
)

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

CURATED, CHECKPOINT = "goldilocks.curated", "goldilocks.checkpoint"
"""Events: a set has a new version; a trainer has a new model."""

RETRIES, RETRY_S = 2, 30
PATIENT = 40
"""Retries of a refresh: it must wait while a run of the pipeline holds the folder, for nothing starts it again."""


@flow(name="curate-math", retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def scheduled_math(recipe: Path, out: Path | None = None) -> None:
    """Curate a math set by its recipe, and announce a new version of it.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; runs/NAME where absent.
    """
    _curate(recipe, out)


@flow(name="curate-code", retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def scheduled_code(recipe: Path, out: Path | None = None) -> None:
    """Curate a code set by its recipe, and announce a new version of it.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; runs/NAME where absent.
    """
    _curate(recipe, out)


@flow(name="train-stage", retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def scheduled_training(folder: Path, version: int, recipe: Path, rounds: int | None = None) -> None:
    """Train the next stage on a set's newest version, from the model of the stage before, and announce its model.

    Args:
        folder: the run folder of the set.
        version: of the set; the stage is named by it.
        recipe: the trainer's recipe.
        rounds: no stage is trained where so many have been.
    """
    log, out = get_run_logger(), training_folder(folder, version)
    if no_more_rounds(folder, version, rounds):
        log.info("%d stages were trained, and no more are asked for", len(trained_stages(folder)))
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(folder / "training"))
        except StoreError as busy:
            log.info("passed over: %s", busy)
            return
        stages, overrides = trained_stages(folder), [_training_data(folder)]
        if stages and stages[-1] != out:
            overrides.append(start_from(recipe, stages[-1] / "model"))
        if out not in stages:
            stack.enter_context(gpu_slot(open_run(folder).recipe.schedule.gpus, log.info))
            resumed = (out / "run.json").exists()
            train_apart(recipe, out, [] if resumed else overrides, resume=resumed)
    if (out / REFRESHED).exists():
        return
    emit_event(
        event=CHECKPOINT,
        resource=_resource("checkpoint", open_run(folder).recipe.name),
        payload=checkpoint(folder, version),
    )


@flow(name="refresh", retries=PATIENT, retry_delay_seconds=RETRY_S, persist_result=False)
def scheduled_refresh(folder: Path, policy: Path, attempts: Path | None = None) -> None:
    """Judge again what a new checkpoint made uncertain, and announce a new version of the set.

    Args:
        folder: the run folder of the set.
        policy: the checkpoint's folder, or a TOML file with a policy.
        attempts: the trainer's attempts, as evidence of what moved.
    """
    from flows.pipelines.refresh import refresh, summarise_refresh

    log, mark = get_run_logger(), policy.parent / REFRESHED
    if mark.exists():
        log.info("the set was judged again by %s before", policy)
        return
    slots = open_run(folder).recipe.schedule.gpus
    with gpu_slot(slots, log.info) if policy.is_dir() else nullcontext(), observed_by(PrefectPage()):
        result = refresh(folder, policy, attempts)
    for line in summarise_refresh(result):
        log.info(line)
    if result.is_new or result.is_repeated:  # the refresh that made it may have been killed before it said so
        _announce(open_run(folder), result.version)
    if policy.parent.parent == folder / "training":
        atomic_write(mark, f"{result.version.number}\n")


def _training_data(folder: Path) -> str:
    """Return the ``--set`` override that makes a run's curated set the data of a training recipe."""
    return f'data={{ kind = "curated", folders = [{json.dumps(str(folder / "curated"))}] }}'


def _curate(recipe: Path, out: Path | None) -> None:
    """Do what `goldilocks run` does, for a scheduled run, and announce a new version."""
    run = new_run(recipe, [], out)
    run.check_owner()
    check_inputs(run)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(run.folder))
        except StoreError as busy:
            get_run_logger().info("passed over: %s", busy)
            return
        _begin_announcing(run)
        run.save()
        slots, say = run.recipe.schedule.gpus, get_run_logger().info
        with gpu_slot(slots, say) if needs_gpus(run) else nullcontext(), spreading(run.recipe):
            curate(recipe, run.folder, [])
        newest = latest(run.folder)
    # Also what an earlier run published and was killed before it said so; what a refresh made is its own to announce.
    if newest is not None and newest.origin == "run" and _announce(run, newest):
        get_run_logger().info(summary(newest))


def needs_gpus(run: Run) -> bool:
    """Return whether a policy of the recipe runs on this machine."""
    policies = [stage_model(run.recipe, part) for part in run.parts]
    return any(policy.kind == "vllm" for policy in policies)


def _begin_announcing(run: Run) -> None:
    """Mark what was published before the folder's first scheduled run as announced: it starts nothing by itself."""
    if not (run.folder / ANNOUNCED).exists():
        newest = latest(run.folder)
        for mark in (FIRST, ANNOUNCED):
            atomic_write(run.folder / mark, f"{newest.number if newest is not None else 0}\n")


def _announce(run: Run, version: Version) -> bool:
    """Emit the event of a new version, once: a mark in the run folder holds the number of the last one announced.

    Return whether it was emitted now.
    """
    if announced_version(run.folder) >= version.number:
        return False
    payload = {"folder": str(run.folder), "version": version.number, "made_on": version.made_on}
    emit_event(event=CURATED, resource=_resource("set", run.recipe.name), payload=payload)
    atomic_write(run.folder / ANNOUNCED, f"{version.number}\n")
    return True


def _resource(kind: str, name: str) -> dict[str, str]:
    return {"prefect.resource.id": f"goldilocks.{kind}.{name}", "prefect.resource.name": name}


def set_folder(recipe: Recipe, out: Path | None) -> Path:
    """Return the run folder of a recipe that is served: ``out``, or runs/NAME."""
    return (out or Path("runs") / recipe.name).absolute()


def deployments(path: Path, out: Path | None = None) -> list[PinnedDeployment]:
    """Return the deployments of a recipe.

    Args:
        out: the run folder; runs/NAME where absent.

    Raises:
        ConfigError: the recipe cannot be meant, or its trainer's recipe is not there or cannot be.
    """
    recipe = load_recipe(path)
    folder = set_folder(recipe, out)
    registered = [_cron_deployment(recipe, path, folder)]
    schedule = recipe.schedule
    if schedule.train is not None:
        trainer = (path.parent / schedule.train).absolute()
        if not trainer.is_file():
            raise ConfigError(f"recipe {path}: schedule.train = {schedule.train!r}: there is no file {trainer}.")
        check_train_recipe(trainer, [_training_data(folder)])
        pins = Pins({"folder": folder, "recipe": trainer, "rounds": schedule.rounds}, version_of=folder)
        registered.append(_event_deployment(scheduled_training, recipe, CURATED, "set", ("folder", "version"), pins))
    names = ("folder", "policy", "attempts")
    pins = Pins({"folder": folder}, dict.fromkeys(("policy", "attempts"), folder / "training"))
    registered.append(_event_deployment(scheduled_refresh, recipe, CHECKPOINT, "checkpoint", names, pins))
    return registered


def _cron_deployment(recipe: Recipe, path: Path, folder: Path) -> PinnedDeployment:
    from prefect.schedules import Cron

    scheduled_flow = {"curate-math": scheduled_math, "curate-code": scheduled_code}[recipe.flow]
    cron, pins = recipe.schedule.cron, Pins({"recipe": path.absolute(), "out": folder})
    return PinnedDeployment(
        pinned(scheduled_flow, pins),
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
    """Return a deployment that runs on an event; ``event_parameters`` are filled from the event's payload."""
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
        match={"prefect.resource.id": _resource(kind, recipe.name)["prefect.resource.id"]},
        parameters=values,
    )
    return PinnedDeployment(
        pinned(scheduled_flow, pins),
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
