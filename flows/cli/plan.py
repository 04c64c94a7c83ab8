"""Plans a recipe's cost, by a pilot or by the recipe's figures.

`goldilocks run` reuses the filters' stages and the pilot's attempts.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.table import Table

from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.planning import ESTIMATES, StagePlan, plan_stage, short_number
from curation.difficulty.sampling import Sampler
from curation.policies.failure_budget import FailureBudget
from curation.policies.vllm.engine import policy_gpus, visible_gpus
from curation.public_urls import public_text
from curation.records import ConfigError
from curation.storage.attempts import AttemptStore
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write, read_table
from flows.cli.as_json import print_json
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.run_tables import PLAN, stored_plan
from flows.run.pipeline import run_pipeline
from flows.run.policies import open_policy, policy_name
from flows.run.recipe import recipe_warnings
from flows.run.run_folder import PARTS, Run, difficulty_stage, new_run, stage_model
from flows.run.sampling_session import sampling_requests
from flows.run.terminal import SafeConsole
from flows.run.training import load_train_recipe, training_warnings
from flows.stages.judging import open_judge

STATED = "computed from the recipe's [costs]; nothing was measured."


def show_plan(
    path: Path, overrides: Sequence[str], out: Path | None, pilot: int, *, stated: bool, as_json: bool
) -> None:
    """Print the plan of a curation recipe."""
    plans = stated_plan(path, overrides) if stated else plan_recipe(path, out, overrides, pilot)
    if as_json:
        print_json({"stages": [asdict(plan) for plan in plans]})
        return
    run = new_run(path, overrides, out)
    rows = [
        [plan.stage, plan.policy, f"{plan.problems:,}", *(str(getattr(plan, name) or "unknown") for name in ESTIMATES)]
        for plan in plans
    ]
    lines = [*_stated_lines(run, plans)] if stated else []
    for stage in pipeline_of(run.recipe).stages_of(run):
        if stage.asks.partition(".")[0] not in ("", *PARTS):
            lines += [f"not counted: {public_text(line)}" for line in stage.describe(run)]
    trained = [run.recipe.grader.recipe if run.recipe.grader is not None else None, run.recipe.schedule.train]
    for name in filter(None, trained):
        lines += [f"{name}: warning: {text}" for text in training_warnings(path.parent / name)]
    _print(("stage", "policy", "problems", "attempts", "tokens", "GPU hours", "price"), rows, lines)


def plan_recipe(
    recipe: Path, out: Path | None = None, overrides: Sequence[str] = (), pilot: int = 64
) -> list[StagePlan]:
    """Run the filters and each stage's pilot; return the plans, also written to the run folder.

    Args:
        pilot: problems, at even distances among those kept.

    Raises:
        ConfigError: the filters keep no problem.
    """
    run = new_run(recipe, list(overrides), out)
    run.check_owner()
    with lock_folder(run.folder):
        run.save()
        stages = [stage for stage in pipeline_of(run.recipe).before_attempts(run) if stage.is_planned]
        problems = run_pipeline(run, stages).problems
        if not problems.manifest.kept:
            raise ConfigError(f"{recipe}: the filters keep no problem, so there is nothing to plan.")
        plans = list[StagePlan]()
        for part in run.parts:
            if plans and run.recipe.grader is not None:  # it has no policy yet: stage 1's figures for its band
                first, attempts = plans[0], [difficulty_stage(run.recipe, name).band.attempts for name in run.parts]
                costs = {name: getattr(first, name) for name in ESTIMATES}
                scaled = {name: cost and cost.scaled(attempts[1] / attempts[0]) for name, cost in costs.items()}
                plans.append(replace(first, stage=part, policy=f"grader, by the pilot of {first.stage}", **scaled))
            else:
                plans.append(asyncio.run(_by_pilot(run, part, problems.folder, pilot)))
        atomic_write(run.folder / PLAN, json.dumps([asdict(plan) for plan in plans], indent=1) + "\n")
    return plans


async def _by_pilot(run: Run, part: str, folder: Path, pilot: int) -> StagePlan:
    """Plan a stage by a pilot; learned priors may save more."""
    asked, before = stage_model(run.recipe, part), stored_plan(run).get(part)
    policy, kept = open_policy(asked, run.recipe_folder), read_table(folder, "kept")
    settings, count = difficulty_stage(run.recipe, part), min(pilot, kept.height)
    chosen = kept[[number * kept.height // count for number in range(count)]]
    rule = StoppingRule(settings.band, early_stopping=settings.sampling.early_stopping)
    budget = FailureBudget(settings.sampling.max_failed, count, f"{part}.sampling.max_failed")
    store = AttemptStore(run.folder / "attempts", policy.key, policy.about)
    try:
        with open_judge(run) as judge:
            async with policy:
                sampler = Sampler(policy, store, judge, rule, total=count, budget=budget)
                requests = sampling_requests(chosen, store, settings.band.attempts, judge)
                sampled = [problem async for problem in sampler.run(requests) if problem.refused is None]
        rows = store.read([item.problem for item in sampled], ["problem", "index", "tokens"]).iter_rows()
        store.compact()
    finally:
        store.close()
    tokens = {(problem, index): length or 0 for problem, index, length in rows}
    speed, prompt_tokens = sampler.progress.tokens_per_s or None, getattr(policy, "prompt_tokens", None)
    if speed is None and before is not None:  # nothing had to be sampled: the pilot was made earlier
        speed, prompt_tokens = before.tokens_per_s, before.prompt_tokens
    return plan_stage(
        part,
        policy.key.policy,
        kept.height,
        [
            (len(problem.verdicts), sum(tokens.get((problem.problem, index), 0) for index in problem.verdicts))
            for problem in sampled
        ],
        tokens_per_s=speed,
        devices=policy_gpus(asked, len(visible_gpus())),
        prices=getattr(asked, "prices", None),
        prompt_tokens=prompt_tokens,
    )


def stated_plan(path: Path, overrides: Sequence[str] = ()) -> list[StagePlan]:
    """Plan each stage by ``[costs]``; empty if every policy is recorded attempts.

    Raises:
        ConfigError: the recipe states no costs, or not for each stage.
    """
    run = new_run(path, overrides, None)
    costs, count = run.recipe.costs, len(run.parts)
    if costs is None:
        if all(stage_model(run.recipe, part).kind == "recorded" for part in run.parts):
            return []
        raise ConfigError(f"recipe {path}: it states no costs; add a table [costs], or run a pilot.")
    plans = []
    for number, part in enumerate(run.parts):
        names = ("tokens_per_s", "tokens_per_attempt", "attempts_share")
        speed, tokens, share = (costs.of_stage(name, number, f"recipe {path}", count) for name in names)
        settings, model = difficulty_stage(run.recipe, part), stage_model(run.recipe, part)
        gpus = policy_gpus(model, costs.gpus)
        attempts = settings.band.attempts * (share if settings.sampling.early_stopping else 1)
        about = part, policy_name(model), costs.problems, [(attempts, attempts * tokens)]
        prices = getattr(model, "prices", None)
        plans.append(replace(plan_stage(*about, tokens_per_s=gpus * speed, devices=gpus, prices=prices), pilot=0))
    return plans


def _stated_lines(run: Run, plans: Sequence[StagePlan]) -> Iterator[str]:
    if not plans:
        yield "0 GPU hours: every policy is recorded attempts, so nothing is sampled."
        return
    hours = [(plan.devices, plan.hours.mean) for plan in plans if plan.hours is not None]
    clock = sum(of_stage / devices for devices, of_stage in hours)
    gpus = " and ".join(
        f"{count} GPU{'s' if count > 1 else ''}" for count in dict.fromkeys(count for count, _ in hours)
    )
    yield f"{_hours(sum(of_stage for _, of_stage in hours))} GPU hours: {_hours(clock)} hours on {gpus}, {STATED}"
    for plan in plans:
        if plan.price is not None:
            yield f"{plan.stage}: the price excludes prompts, whose tokens [costs] does not state."
    yield from (f"warning: {line}" for line in recipe_warnings(run.recipe, run.recipe_folder))


def show_training_plan(path: Path, overrides: Sequence[str], *, stated: bool, as_json: bool) -> None:
    """Print a training recipe's stages, GPU hours and tokens.

    Raises:
        ConfigError: it is not ``stated``: training has no pilot; or the recipe is invalid, or states no costs.
    """
    from training.engines.placement import stated_gpus
    from training.workload import workload

    if not stated:
        raise ConfigError(f"recipe {path}: it trains, so there is no pilot to run; plan it with --stated.")
    recipe = load_train_recipe(path, overrides)
    if recipe.costs is None:
        raise ConfigError(f"recipe {path}: it states no costs; add a table [costs].")
    trainers, generators, in_turns = stated_gpus(recipe, path.parent.absolute())
    work, waits = workload(recipe, recipe.costs, f"recipe {path}"), in_turns or recipe.synchronous
    hours = work.hours(trainers, generators, waits=waits)
    if as_json:
        placed = {"trainers": trainers, "generators": generators, "taking_turns": in_turns, "hours": hours}
        print_json({**asdict(work), **placed})
        return
    rows = []
    for number, stage in enumerate(work.stages, 1):
        counts = [f"{count:,}" for count in (number, stage.steps, stage.n_batch, stage.sampled, stage.trained)]
        own = stage.hours(trainers, generators, waits=waits)
        rows.append([*counts, short_number(stage.sampled_tokens), f"{own:,.3g}"])
    gpus = trainers if in_turns else trainers + generators
    shared = "in turns" if in_turns else f"{trainers} train, {generators} generate"
    clock = f"{_hours(gpus * hours)} GPU hours: {_hours(hours)} hours on {gpus} GPUs, {shared}"
    if not gpus:
        unit = "hours" if hours >= 1 else "minutes" if hours >= 1 / 60 else "s"
        clock = f"no GPU: {hours * {'hours': 1, 'minutes': 60, 's': 3600}[unit]:,.0f} {unit} on one machine"
    evaluated = work.evaluated_tokens
    held = f"{short_number(evaluated)} of them in evaluations" if evaluated else "no evaluation"
    if evaluated is None:
        held = "evaluations not counted: state evaluation.problems"
    tokens = sum(stage.sampled_tokens for stage in work.stages) + (evaluated or 0.0)
    sampled, trained = (sum(getattr(stage, name) for stage in work.stages) for name in ("sampled", "trained"))
    counted = (
        f"{short_number(tokens)} tokens sampled, {held}; {sampled:,} rollouts, of which {trained:,} are trained on"
    )
    warnings = [f"warning: {text}" for text in training_warnings(path, overrides)]
    titles = ("stage", "steps", "n_batch", "sampled", "trained", "tokens", "hours")
    _print(titles, rows, [clock, counted, STATED[0].upper() + STATED[1:], *warnings])


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.2g}"


def _print(titles: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]) -> None:
    console = SafeConsole()
    if rows:
        table = Table(box=None, pad_edge=False)
        for title in titles:
            table.add_column(title, overflow="fold", justify="left" if title in ("stage", "policy") else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for line in lines:
        console.print(line)
