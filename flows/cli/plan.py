"""What a recipe's sampling will cost: its filters run, then a pilot through each stage's policy.

The run folder is that of the run itself: the filters' stages and the pilot's attempts are not made again by
`goldilocks run`. The plan is kept in ``plan.json`` there, so that planned and actual figures can be set side by side.
Prompt tokens count in the price alone, where servers tell their number and the recipe states ``price_in``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.open_problems import SampledProblem
from curation.difficulty.planning import (
    CostRates,
    ForeseenSampling,
    PilotProblem,
    StagePlan,
    plan_stage,
)
from curation.difficulty.priors import as_priors
from curation.difficulty.sampling import Sampler
from curation.policies.failure_budget import FailureBudget
from curation.policies.vllm.placement import policy_gpus, visible_gpus
from curation.records import ConfigError, Policy
from curation.storage.attempts import AttemptStore
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write, read_table
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.planned_costs import PLAN, estimate_text, stored_plan
from flows.run.pipeline import read_result, run_pipeline
from flows.run.policies import open_policy
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run, difficulty_stage, new_run, stage_model
from flows.run.sampling_session import sampling_requests
from flows.run.stage import StageResult
from flows.run.stage_priors import PriorLearner
from flows.run.training import training_warnings
from flows.stages.attempts import stage_learner, stopping_rule
from flows.stages.decisions import decisions_of
from flows.stages.judging import open_judge
from flows.stages.translation import translation_lines

PILOT = 64


def plan_recipe(
    recipe: Path, out: Path | None = None, overrides: Sequence[str] = (), pilot: int = PILOT
) -> list[StagePlan]:
    """Run the filters and a pilot of every stage; return the plans and write them to the run folder.

    Args:
        pilot: problems of the pilot, taken at even distances from those that the filters keep.

    Raises:
        ConfigError: the filters keep no problem, or the pilot has none.
    """
    if pilot < 1:
        raise ConfigError(f"a pilot of {pilot} problems says nothing; give at least 1.")
    run = new_run(recipe, list(overrides), out)
    run.check_owner()
    with lock_folder(run.folder):
        run.save()
        problems = _run_filters(run)
        if not problems.manifest.kept:
            raise ConfigError(f"{recipe}: the filters keep no problem, so there is nothing to plan.")
        kept = read_table(problems.folder, "kept")
        if run.recipe.grader is None:
            plans = [_plan(run, part, problems.folder, kept, pilot) for part in run.parts]
        else:
            first_plan = _plan(run, run.parts[0], problems.folder, kept, pilot)
            plans = [first_plan, *(_as_piloted(run, part, first_plan) for part in run.parts[1:])]
        atomic_write(run.folder / PLAN, json.dumps([plan.row() for plan in plans], indent=1) + "\n")
    return plans


def _run_filters(run: Run) -> StageResult:
    """Run the stages before any attempt, as the flow does, except those that plans leave out."""
    stages = pipeline_of(run.recipe).before_attempts(run)
    return run_pipeline(run, [stage for stage in stages if stage.is_planned]).problems


def _plan(run: Run, part: str, folder: Path, kept: pl.DataFrame, pilot: int) -> StagePlan:
    """Return the plan of a stage from a pilot of so many problems.

    Where the stage will learn priors from an anchor, the pilot are problems of that anchor, sampled as the run samples
    them; what earlier stages and sources say of the others comes in as it does there.

    Args:
        folder, kept: the problems that the filters keep.
    """
    settings = difficulty_stage(run.recipe, part)
    asked = stage_model(run.recipe, part)
    policy = open_policy(asked, run.recipe_folder)
    rule = stopping_rule(settings)
    problems = kept.height
    learner = stage_learner(run, part, folder, _decided(run, part), rule, policy.key.policy)
    if learner is not None:
        kept = kept.filter(pl.col("id").is_in(list(learner.anchor)))
        rule = learner.exact
    count = min(pilot, kept.height)
    pilot_problems = kept[[number * kept.height // count for number in range(count)]]
    store = AttemptStore(run.folder / "attempts", policy.key, policy.about)
    try:
        sampled, speed = asyncio.run(_pilot(run, part, pilot_problems, policy, store, rule))
        tokens = _tokens_by_attempt(store, sampled)
        store.compact()
    finally:
        store.close()
    prompt_tokens = getattr(policy, "prompt_tokens", None)
    earlier_plans = stored_plan(run)
    if speed is None and part in earlier_plans:  # nothing had to be sampled: the pilot was made earlier
        speed, prompt_tokens = earlier_plans[part].tokens_per_s, earlier_plans[part].prompt_tokens
    rates = CostRates(
        speed,
        policy_gpus(asked, len(visible_gpus())),
        getattr(asked, "price_out", None),
        getattr(asked, "price_in", None),
        prompt_tokens,
    )
    pilots = [PilotProblem(len(item.verdicts), sum(tokens[item.problem].values())) for item in sampled]
    foreseen = _foreseen(learner, sampled, tokens) if learner is not None else None
    return plan_stage(part, policy.key.policy, problems, settings.band.attempts, pilots, rates, foreseen=foreseen)


def _decided(run: Run, part: str) -> list[StageResult]:
    """Return the decisions of the stages before, as far as this run folder has them by today's verifier."""
    with open_judge(run) as judge:
        found = (
            read_result(decisions_of(earlier), run, judge.version) for earlier in run.parts[: run.parts.index(part)]
        )
        return [result for result in found if result is not None]


def _foreseen(
    learner: PriorLearner, sampled: Sequence[SampledProblem], tokens: Mapping[str, Mapping[int, int]]
) -> ForeseenSampling:
    """Return how the stage will stop by what the pilot and all earlier attempts tell of its problems."""
    learnt = learner.learn(sampled)
    others = learnt.table.filter(~pl.col("problem").is_in(list(learner.anchor)))["problem"]
    rule = learner.rule
    if learnt.hold:
        rule = rule.given(as_priors(pl.concat([learnt.of_anchor, learnt.table])))
    stopped = []
    for item in sampled:
        requested = rule.of(item.problem).stopping_point(learner.outcomes(item.verdicts)).requested
        made = [index for index in item.verdicts if index < requested]
        stopped.append(PilotProblem(len(made), sum(tokens[item.problem].get(index, 0) for index in made)))
    expected = tuple(rule.of(item.problem).expectation().attempts for item in sampled)
    total = sum(rule.of(name).expectation().attempts for name in others)
    return ForeseenSampling(len(learner.anchor), tuple(stopped), expected, total, learnt.sentence)


def _as_piloted(run: Run, part: str, first: StagePlan) -> StagePlan:
    """Return the plan of a stage whose policy is still to be trained: figures of stage 1's pilot, n of its own band.

    The trained grader will be right more often and may write at another length; `goldilocks status` sets what the stage
    took beside this.
    """
    share = difficulty_stage(run.recipe, part).band.attempts / difficulty_stage(run.recipe, first.stage).band.attempts
    return replace(
        first,
        stage=part,
        policy=f"grader, by the pilot of {first.stage}",
        expected=first.expected.scaled(share),
        without_early_stopping=first.without_early_stopping.scaled(share),
    )


async def _pilot(
    run: Run, part: str, pilot_problems: pl.DataFrame, policy: Policy, store: AttemptStore, rule: StoppingRule
) -> tuple[list[SampledProblem], float | None]:
    """Sample the pilot; return its problems, and its tokens per second: None where no token was made."""
    settings = difficulty_stage(run.recipe, part)
    with open_judge(run) as judge:
        async with policy:
            budget = FailureBudget(settings.sampling.max_failed, pilot_problems.height, f"{part}.sampling.max_failed")
            sampler = Sampler(policy, store, judge, rule, total=pilot_problems.height, budget=budget)
            requests = sampling_requests(pilot_problems, store, settings.band.attempts, judge)
            sampled = [problem async for problem in sampler.run(requests) if problem.refused is None]
    return sampled, sampler.progress.tokens_per_s or None


def _tokens_by_attempt(store: AttemptStore, sampled: Sequence[SampledProblem]) -> dict[str, dict[int, int]]:
    """Return, per problem and index, the tokens of the attempts that count."""
    tokens: dict[str, dict[int, int]] = {item.problem: {} for item in sampled}
    counted = {item.problem: item.verdicts for item in sampled}
    for problem, index, length in store.read(list(tokens), ["problem", "index", "tokens"]).iter_rows():
        if index in counted[problem]:
            tokens[problem][index] = length or 0
    return tokens


def print_plan(plans: Sequence[StagePlan]) -> None:
    """Print the plans as a table: expected means with their 95 % intervals, and the means without early stopping."""
    from rich.table import Table

    from flows.run.terminal import SafeConsole

    table = Table(box=None, pad_edge=False)
    for title in ("stage", "policy", "problems", "", "attempts", "tokens", "device hours", "price"):
        table.add_column(title, overflow="fold", justify="left" if title in ("stage", "policy", "") else "right")
    for plan in plans:
        for label, cost in (("as set", plan.expected), ("all attempts", plan.without_early_stopping)):
            cells = [estimate_text(estimate) for estimate in (cost.attempts, cost.tokens, cost.hours, cost.price)]
            table.add_row(plan.stage, plan.policy, f"{plan.problems:,}", label, *cells)
    console = SafeConsole(highlight=True, markup=True)
    console.print(table)
    for plan in plans:
        if plan.foreseen is not None:
            console.print(f"{plan.stage}, by its pilot: {plan.foreseen}", highlight=False, markup=False)


def print_translation(path: Path, overrides: Sequence[str] = ()) -> None:
    """Print what a recipe will ask for translations; a plan has no figures for it, as it comes after the decisions."""
    from flows.run.terminal import SafeConsole

    for line in translation_lines(load_recipe(path, overrides)):
        SafeConsole().print(line)


def print_training_warnings(path: Path, overrides: Sequence[str] = ()) -> None:
    """Print what is to be said before a run of the training recipes that a recipe names: its grader's, its schedule's.

    Raises:
        ConfigError: one of them is not there, or cannot be meant.
    """
    from flows.run.terminal import SafeConsole

    recipe = load_recipe(path, overrides)
    grader, scheduled = recipe.grader, recipe.schedule.train
    named = [(grader.recipe, grader.set)] if grader is not None else []
    named += [(scheduled, ())] if scheduled is not None else []
    console = SafeConsole()
    for name, changes in named:
        for warning in training_warnings(path.parent / name, changes):
            console.print(f"{name}: warning: {warning}")
