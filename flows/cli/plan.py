"""Plans a recipe's cost, by a pilot or by the recipe's figures.

`goldilocks run` reuses the filters' stages and the pilot's attempts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curation.config import Recipe
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.planning import ESTIMATES, StagePlan, plan_stage, short_number
from curation.difficulty.sampling import SampledProblem, Sampler
from curation.policies.failure_budget import FailureBudget
from curation.policies.vllm.placement import policy_gpus, visible_gpus
from curation.public_urls import public_text
from curation.records import ConfigError, Policy
from curation.storage.attempts import AttemptStore
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write, read_table
from flows.cli.as_json import print_json
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.run_tables import PLAN, stored_plan
from flows.run.pipeline import run_pipeline
from flows.run.policies import open_policy, policy_name
from flows.run.recipe import load_recipe, recipe_warnings
from flows.run.run_folder import PARTS, Run, difficulty_stage, new_run, stage_model, with_grader
from flows.run.sampling_session import sampling_requests
from flows.run.training import load_train_recipe, training_warnings
from flows.stages.judging import open_judge

if TYPE_CHECKING:
    from training.workload import Workload

PILOT = 64
STATED = "by the figures that the recipe states under [costs]; nothing was measured."


def show_plan(
    path: Path, overrides: Sequence[str], out: Path | None, pilot: int, *, stated: bool, as_json: bool
) -> None:
    """Print the plan of a curation recipe."""
    plans = stated_plan(path, overrides) if stated else plan_recipe(path, out, overrides, pilot)
    if as_json:
        print_json({"stages": [plan.row() for plan in plans]})
        return
    run = new_run(path, overrides, out)
    recipe = run.recipe
    titles = ("stage", "policy", "problems", "attempts", "tokens", "GPU hours", "price")
    rows = [
        [plan.stage, plan.policy, f"{plan.problems:,}", *(str(getattr(plan, name) or "unknown") for name in ESTIMATES)]
        for plan in plans
    ]
    lines = [*_stated_lines(path, recipe, plans)] if stated else []
    asking = [stage for stage in pipeline_of(recipe).stages_of(run) if stage.asks.partition(".")[0] not in ("", *PARTS)]
    lines += [f"not counted: {public_text(line)}" for stage in asking for line in stage.describe(run)]
    trained = [recipe.grader.recipe if recipe.grader is not None else None, recipe.schedule.train]
    for name in filter(None, trained):
        lines += [f"{name}: warning: {text}" for text in training_warnings(path.parent / name, ())]
    _print(titles, rows, lines)


def plan_recipe(
    recipe: Path, out: Path | None = None, overrides: Sequence[str] = (), pilot: int = PILOT
) -> list[StagePlan]:
    """Run the filters and each stage's pilot; return the plans, also written to the run folder.

    Args:
        pilot: problems, at even distances among those kept.

    Raises:
        ConfigError: the filters keep no problem, or the pilot has none.
    """
    if pilot < 1:
        raise ConfigError(f"a pilot of {pilot} problems shows nothing; give at least 1.")
    run = new_run(recipe, list(overrides), out)
    run.check_owner()
    with lock_folder(run.folder):
        run.save()
        stages = [stage for stage in pipeline_of(run.recipe).before_attempts(run) if stage.is_planned]
        problems = run_pipeline(run, stages).problems
        if not problems.manifest.kept:
            raise ConfigError(f"{recipe}: the filters keep no problem, so there is nothing to plan.")
        piloted = run.parts if run.recipe.grader is None else run.parts[:1]
        plans = [_by_pilot(run, part, problems.folder, pilot) for part in piloted]
        plans += [_as_piloted(run, part, plans[0]) for part in run.parts[len(piloted) :]]
        atomic_write(run.folder / PLAN, json.dumps([plan.row() for plan in plans], indent=1) + "\n")
    return plans


def _by_pilot(run: Run, part: str, folder: Path, pilot: int) -> StagePlan:
    """Plan a stage by a pilot; learned priors may save more."""
    asked, before = stage_model(run.recipe, part), stored_plan(run).get(part)
    policy, kept = open_policy(asked, run.recipe_folder), read_table(folder, "kept")
    count = min(pilot, kept.height)
    chosen = kept[[number * kept.height // count for number in range(count)]]
    store = AttemptStore(run.folder / "attempts", policy.key, policy.about)
    try:
        sampled, speed = asyncio.run(_sample(run, part, chosen, policy, store))
        rows = store.read([item.problem for item in sampled], ["problem", "index", "tokens"]).iter_rows()
        store.compact()
    finally:
        store.close()
    tokens = {(problem, index): length or 0 for problem, index, length in rows}
    prompt_tokens = getattr(policy, "prompt_tokens", None)
    if speed is None and before is not None:  # nothing had to be sampled: the pilot was made earlier
        speed, prompt_tokens = before.tokens_per_s, before.prompt_tokens
    return plan_stage(
        part,
        policy.key.policy,
        kept.height,
        [(len(one.verdicts), sum(tokens.get((one.problem, index), 0) for index in one.verdicts)) for one in sampled],
        tokens_per_s=speed,
        devices=policy_gpus(asked, len(visible_gpus())),
        prices=getattr(asked, "prices", None),
        prompt_tokens=prompt_tokens,
    )


async def _sample(
    run: Run, part: str, chosen: pl.DataFrame, policy: Policy, store: AttemptStore
) -> tuple[list[SampledProblem], float | None]:
    settings = difficulty_stage(run.recipe, part)
    rule = StoppingRule(settings.band, early_stopping=settings.sampling.early_stopping)
    budget = FailureBudget(settings.sampling.max_failed, chosen.height, f"{part}.sampling.max_failed")
    with open_judge(run) as judge:
        async with policy:
            sampler = Sampler(policy, store, judge, rule, total=chosen.height, budget=budget)
            requests = sampling_requests(chosen, store, settings.band.attempts, judge)
            sampled = [problem async for problem in sampler.run(requests) if problem.refused is None]
    return sampled, sampler.progress.tokens_per_s or None


def _as_piloted(run: Run, part: str, first: StagePlan) -> StagePlan:
    """Plan a stage without a policy yet, by stage 1's figures scaled to its band."""
    share = difficulty_stage(run.recipe, part).band.attempts / difficulty_stage(run.recipe, first.stage).band.attempts
    costs = {name: getattr(first, name) for name in ESTIMATES}
    changes = {name: estimate.scaled(share) for name, estimate in costs.items() if estimate is not None}
    return replace(first, stage=part, policy=f"grader, by the pilot of {first.stage}", **changes)


def stated_plan(path: Path, overrides: Sequence[str] = ()) -> list[StagePlan]:
    """Plan each stage by ``[costs]``; empty if every policy is recorded attempts.

    Raises:
        ConfigError: the recipe states no costs, or not for each stage.
    """
    recipe = load_recipe(path, overrides)
    recipe = with_grader(recipe, Path("runs") / recipe.name)
    parts = PARTS if recipe.stage2 is not None else PARTS[:1]
    costs = recipe.costs
    if costs is None:
        if all(stage_model(recipe, part).kind == "recorded" for part in parts):
            return []
        raise ConfigError(f"recipe {path}: it states no costs; add a table [costs], or run a pilot.")
    plans = []
    for number, part in enumerate(parts):
        names = ("tokens_per_s", "tokens_per_attempt", "attempts_share")
        speed, tokens, share = (costs.of_stage(name, number, f"recipe {path}", len(parts)) for name in names)
        settings, model = difficulty_stage(recipe, part), stage_model(recipe, part)
        gpus = policy_gpus(model, costs.gpus)
        attempts = settings.band.attempts * (share if settings.sampling.early_stopping else 1)
        plan = plan_stage(
            part,
            policy_name(model),
            costs.problems,
            [(attempts, attempts * tokens)],
            tokens_per_s=gpus * speed,
            devices=gpus,
            prices=getattr(model, "prices", None),
        )
        plans.append(replace(plan, pilot=0))
    return plans


def _stated_lines(path: Path, recipe: Recipe, plans: Sequence[StagePlan]) -> Iterator[str]:
    if not plans:
        yield "0 GPU hours: every policy is recorded attempts, so nothing is sampled."
        return
    hours = [(plan.devices, plan.hours.mean) for plan in plans if plan.hours is not None]
    clock = sum(of_stage / devices for devices, of_stage in hours)
    gpus = " and ".join(f"{count} GPU{'s' if count > 1 else ''}" for count in dict.fromkeys(one for one, _ in hours))
    yield f"{_hours(sum(one for _, one in hours))} GPU hours: {_hours(clock)} hours on {gpus}, {STATED}"
    for plan in plans:
        model = difficulty_stage(with_grader(recipe, Path()), plan.stage).model
        if plan.price is not None:
            yield f"{plan.stage}: prompts of models.{model} are not priced: their tokens are not stated."
        if recipe.costs is not None and plan.devices < recipe.costs.gpus:
            yield (
                f"{plan.stage}: its model keeps {plan.devices} of the {recipe.costs.gpus} stated GPUs busy; set "
                f"models.{model}.data_parallel."
            )
    for line in recipe_warnings(recipe, path.parent):
        yield f"warning: {line}"


def show_training_plan(path: Path, overrides: Sequence[str], *, stated: bool, as_json: bool) -> None:
    """Print a training recipe's stages, GPU hours and tokens.

    Raises:
        ConfigError: it is not ``stated``: training has no pilot.
    """
    if not stated:
        raise ConfigError(f"recipe {path}: it trains, so there is no pilot to run; plan it with --stated.")
    plan = training_plan(path, overrides)
    if as_json:
        placed = {"trainers": plan.trainers, "generators": plan.generators, "taking_turns": plan.takes_turns}
        print_json({**asdict(plan.work), **placed, "hours": plan.hours})
        return
    titles = ("stage", "steps", "n_batch", "sampled", "trained", "tokens", "hours")
    rows = []
    for number, stage in enumerate(plan.work.stages, 1):
        counts = [f"{count:,}" for count in (number, stage.steps, stage.n_batch, stage.sampled, stage.trained)]
        hours = stage.hours(plan.trainers, plan.generators, waits=plan.waits)
        rows.append((*counts, short_number(stage.sampled_tokens), f"{hours:,.3g}"))
    warnings = [f"warning: {text}" for text in training_warnings(path, overrides)]
    _print(titles, rows, [*plan.lines(), STATED[0].upper() + STATED[1:], *warnings])


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A training run's work and GPUs; ``waits``: generation and training alternate."""

    work: Workload
    trainers: int
    generators: int
    takes_turns: bool
    waits: bool

    @property
    def hours(self) -> float:
        """Return the hours by the clock."""
        return self.work.hours(self.trainers, self.generators, waits=self.waits)

    def lines(self) -> tuple[str, str]:
        """Return a sentence on GPU hours, and one on tokens."""
        stages, evaluated = self.work.stages, self.work.evaluated_tokens
        held = "evaluations not counted: state evaluation.problems"
        if evaluated is not None:
            held = f"{short_number(evaluated)} of them in evaluations" if evaluated else "no evaluation"
        tokens = short_number(sum(stage.sampled_tokens for stage in stages) + (evaluated or 0.0))
        sampled, trained = (sum(getattr(stage, name) for stage in stages) for name in ("sampled", "trained"))
        counts = f"{tokens} tokens sampled, {held}; {sampled:,} rollouts, {trained:,} of them trained on"
        gpus = self.trainers if self.takes_turns else self.trainers + self.generators
        if not gpus:
            return f"no GPU: {_clock(self.hours)} on one machine", counts
        shared = "in turns" if self.takes_turns else f"{self.trainers} train, {self.generators} generate"
        return f"{_hours(gpus * self.hours)} GPU hours: {_hours(self.hours)} hours on {gpus} GPUs, {shared}", counts


def training_plan(path: Path, overrides: Sequence[str] = ()) -> TrainingPlan:
    """Return a training recipe's work and GPUs.

    Raises:
        ConfigError: the recipe is invalid, or states no costs.
    """
    from training.engines.placement import stated_gpus
    from training.workload import workload

    recipe = load_train_recipe(path, overrides)
    if recipe.costs is None:
        raise ConfigError(f"recipe {path}: it states no costs; add a table [costs].")
    trainers, generators, turns = stated_gpus(recipe, path.parent.absolute())
    work = workload(recipe, recipe.costs, f"recipe {path}")
    return TrainingPlan(work, trainers, generators, turns, waits=turns or recipe.synchronous)


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.2g}"


def _clock(hours: float) -> str:
    if hours >= 1:
        return f"{hours:,.0f} hours"
    return f"{hours * 60:,.0f} minutes" if hours >= 1 / 60 else f"{hours * 3600:,.0f} s"


def _print(titles: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]) -> None:
    from rich.table import Table

    from flows.run.terminal import SafeConsole

    console = SafeConsole(highlight=False)
    if rows:
        table = Table(box=None, pad_edge=False)
        for title in titles:
            table.add_column(title, overflow="fold", justify="left" if title in ("stage", "policy") else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for line in lines:
        console.print(line)
