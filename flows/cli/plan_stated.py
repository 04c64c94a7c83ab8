"""What a recipe's sampling will cost by the figures that its author states, where no pilot can be run.

Nothing is read and nothing is sampled: problems, tokens and speed are those of the recipe's table ``costs``. Each
stage samples all problems, for stage 2 judges the entire original set. Prompt tokens count in the price alone. GPUs are
those that a stage's policy really keeps busy, which may be fewer than the recipe states.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.config import Recipe, StatedCosts
from curation.config.policies import RecordedModel
from curation.difficulty.planning import Cost, CostEstimate, CostRates, StagePlan
from curation.policies.vllm.placement import policy_gpus
from curation.records import ConfigError
from flows.cli.plan import print_plan
from flows.run.policies import policy_name
from flows.run.recipe import load_recipe, unpinned_lines, unused_lines
from flows.run.run_folder import PARTS, difficulty_stage, stage_model, with_grader


def stated_plan(path: Path, overrides: Sequence[str] = ()) -> list[StagePlan]:
    """Return the plan of each stage of a recipe; ``pilot`` is 0 and the intervals are of no width.

    Raises:
        ConfigError: the recipe states no costs, or not for each stage.
    """
    recipe = _recipe(path, overrides)
    if recipe.costs is None:
        raise ConfigError(f"recipe {path}: it states no costs; add a table [costs], or run a pilot.")
    return [_stage(recipe, recipe.costs, part, number, path) for number, part in enumerate(_parts(recipe))]


def print_stated(path: Path, overrides: Sequence[str] = ()) -> None:
    """Print the plans as a table (`goldilocks plan --stated`), and the hours that they take on the stated GPUs."""
    from flows.run.terminal import SafeConsole

    recipe = _recipe(path, overrides)
    costs, console = recipe.costs, SafeConsole()
    if costs is None and all(isinstance(stage_model(recipe, part), RecordedModel) for part in _parts(recipe)):
        console.print("0 GPU hours: every policy is recorded attempts, so nothing is sampled.")
        return
    plans = stated_plan(path, overrides)
    print_plan(plans)
    assert costs is not None
    used = {plan.stage: policy_gpus(stage_model(recipe, plan.stage), costs.gpus) for plan in plans}
    hours = {plan.stage: plan.expected.hours.mean for plan in plans if plan.expected.hours is not None}
    lasting = sum(of_stage / used[stage] for stage, of_stage in hours.items())
    gpus = " and ".join(f"{count} GPU{'s' if count > 1 else ''}" for count in dict.fromkeys(used.values()))
    console.print(
        f"\n{_hours(sum(hours.values()))} GPU hours: {_hours(lasting)} hours on {gpus}, by the figures that the "
        "recipe states under [costs]; nothing was measured."
    )
    for stage, count in used.items():
        if count < costs.gpus:
            console.print(
                f"{stage}: its model keeps {count} of the {costs.gpus} stated GPUs busy; set "
                f"models.{difficulty_stage(recipe, stage).model}.data_parallel."
            )
    for line in [*unpinned_lines(recipe, path.parent), *unused_lines(recipe)]:
        console.print(f"warning: {line}")


def _parts(recipe: Recipe) -> Sequence[str]:
    return PARTS if recipe.stage2 is not None else PARTS[:1]


def _recipe(path: Path, overrides: Sequence[str]) -> Recipe:
    """Return the recipe, with the stage 2 that its grader adds; the grader's training is in no plan."""
    recipe = load_recipe(path, overrides)
    return with_grader(recipe, Path("runs") / recipe.name)


def _stage(recipe: Recipe, costs: StatedCosts, part: str, number: int, path: Path) -> StagePlan:
    settings = difficulty_stage(recipe, part)
    policy = stage_model(recipe, part)
    gpus = policy_gpus(policy, costs.gpus)
    share = (
        _stage_value(costs.attempts_share, number, "attempts_share", path) if settings.sampling.early_stopping else 1.0
    )
    tokens = _stage_value(costs.tokens_per_attempt, number, "tokens_per_attempt", path)
    speed = _stage_value(costs.tokens_per_s, number, "tokens_per_s", path)
    rates = CostRates(
        price_out=getattr(policy, "price_out", None),
        price_in=getattr(policy, "price_in", None),
        prompt_tokens=_stage_value(costs.prompt_tokens, number, "prompt_tokens", path),
    )
    all_attempts = float(costs.problems * settings.band.attempts)
    return StagePlan(
        stage=part,
        policy=policy_name(policy),
        problems=costs.problems,
        pilot=0,
        tokens_per_s=speed * gpus,
        expected=_cost(share * all_attempts, tokens, speed, rates),
        without_early_stopping=_cost(all_attempts, tokens, speed, rates),
        prompt_tokens=rates.prompt_tokens,
    )


def _cost(attempts: float, tokens_each: float, speed: float, rates: CostRates) -> Cost:
    """Return the cost; its hours are those of all GPUs together, as in `curation.difficulty.planning`."""
    tokens = attempts * tokens_each
    price = _exact(rates.price(attempts, tokens)) if rates.priced else None
    return Cost(_exact(attempts), _exact(tokens), _exact(tokens / speed / 3600), price)


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.2g}"


def _exact(value: float) -> CostEstimate:
    return CostEstimate(value, value, value)


def _stage_value(values: Sequence[float], number: int, name: str, path: Path) -> float:
    if number < len(values):
        return values[number]
    if len(values) == 1:
        return values[0]
    raise ConfigError(f"recipe {path}: costs.{name} has {len(values)} values; give one, or one for each stage.")
