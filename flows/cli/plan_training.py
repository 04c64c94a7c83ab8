"""What a training recipe needs, by the figures that it states: printed by `goldilocks plan --stated`.

The formulas are `training.planning`'s. Nothing is read but the model's `config.json`, and nothing is started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curation.records import ConfigError
from flows.cli.as_json import print_json
from flows.pipelines.planned_costs import short_number
from flows.run.training import load_train_recipe, training_warnings
from training.optimisation.memory import GIB
from training.planning import TrainingPlan, plan_training

GB = 1e9


def plan_training_recipe(path: Path, overrides: Sequence[str], *, stated: bool, as_json: bool) -> None:
    """Print the plan of a training recipe.

    Raises:
        ConfigError: a pilot is asked for, which training has none of.
    """
    if not stated:
        raise ConfigError(f"recipe {path}: it trains, so there is no pilot to run; plan it with --stated.")
    if as_json:
        print_json(training_plan_row(stated_training_plan(path, overrides)))
    else:
        print_stated_training(path, overrides)


def stated_training_plan(path: Path, overrides: Sequence[str] = ()) -> TrainingPlan:
    """Return the plan of a training recipe.

    Raises:
        ConfigError: the recipe cannot be meant, or does not state what is needed.
    """
    recipe = load_train_recipe(path, overrides)
    return plan_training(recipe, path.parent.absolute(), f"recipe {path}")


def training_plan_row(plan: TrainingPlan) -> dict[str, Any]:
    """Return a plan for `--json`."""
    row = asdict(plan)
    return {**row, "gpus": plan.gpus, "hours": plan.hours, "tokens": plan.tokens}


def training_needs(plan: TrainingPlan) -> list[str]:
    """Return what a run needs, a line each: devices and hours, tokens, memory, disk."""
    return [_hours(plan), _tokens(plan), *_memory(plan), _disk(plan)]


def print_stated_training(path: Path, overrides: Sequence[str] = ()) -> None:
    """Print the stages as a table, what the run needs, and what is to be said of its sizes beforehand."""
    from rich.table import Table

    from flows.run.terminal import SafeConsole

    plan = stated_training_plan(path, overrides)
    table = Table(box=None, pad_edge=False)
    for title in ("stage", "steps", "n_batch", "l_max", "sampled", "tokens", "generating", "training", "hours"):
        table.add_column(title, overflow="fold", justify="right")
    for number, stage in enumerate(plan.stages, 1):
        counts = [f"{count:,}" for count in (stage.steps, stage.n_batch, stage.max_length)]
        rollouts = [short_number(count) for count in (stage.sampled, stage.sampled_tokens)]
        hours = [f"{took:,.3g}" for took in (stage.generating_hours, stage.training_hours, stage.hours)]
        table.add_row(str(number), *counts, *rollouts, *hours)
    console = SafeConsole()
    console.print(table)
    console.print("")
    for line in training_needs(plan):
        console.print(line)
    console.print("By the figures that the recipe states under [costs]; nothing was measured.")
    for warning in training_warnings(path, overrides):
        console.print(f"warning: {warning}")


def _hours(plan: TrainingPlan) -> str:
    if not plan.gpus:
        return f"no GPU: {_clock(plan.hours)} on one machine"
    parts = f"{plan.trainers} train, {plan.generators} generate"
    shared = (
        "all train and generate in turns" if plan.generators == plan.trainers else "all train, one generates in turns"
    )
    shared = shared if plan.taking_turns else parts
    return f"{plan.gpus * plan.hours:,.0f} GPU hours: {plan.hours:,.0f} hours on {plan.gpus} GPUs, {shared}"


def _tokens(plan: TrainingPlan) -> str:
    sampled, trained = (sum(getattr(stage, name) for stage in plan.stages) for name in ("sampled", "trained"))
    learnt = sum(stage.trained_tokens for stage in plan.stages)
    if plan.evaluated_tokens is None:
        held = "evaluations not counted: state evaluation.problems"
    elif plan.evaluated_tokens:
        held = f"{short_number(plan.evaluated_tokens)} of them in evaluations"
    else:
        held = "no evaluation"
    return (
        f"{short_number(plan.tokens)} tokens sampled, {held}; {sampled:,} rollouts, {trained:,} of them trained on, "
        f"{short_number(learnt)} tokens"
    )


def _memory(plan: TrainingPlan) -> list[str]:
    if plan.memory is None:
        return []
    return [
        f"{plan.memory.total / GIB:,.0f} GiB on each GPU that trains; weights take "
        f"{plan.generator_weights / GIB:,.0f} GiB on each that generates, the rest is its KV cache"
    ]


def _disk(plan: TrainingPlan) -> str:
    texts = f"texts {_gb(plan.text_bytes)} before compression" if plan.text_bytes else "no texts are kept"
    return f"{_gb(plan.disk_bytes)} of disk: a checkpoint {_gb(plan.checkpoint_bytes)}, {texts}"


def _gb(size: float) -> str:
    if size < 1e7:
        return f"{size / 1e6:,.1f} MB"
    return f"{size / 1e6:,.0f} MB" if size < GB else f"{size / GB:,.0f} GB"


def _clock(hours: float) -> str:
    """Return hours as one reads them: minutes below one hour."""
    if hours >= 1:
        return f"{hours:,.0f} hours"
    return f"{hours * 60:,.0f} minutes" if hours >= 1 / 60 else f"{hours * 3600:,.0f} s"
