"""Compare the arms of an ablation with the base."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName, NamedModels
from training.evaluation.estimators import Estimate, crossed_interval, mean_interval
from training.evaluation.report import verdict, with_interval

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class AxisValue(Settings):
    """A named value of an axis, with the settings that it changes."""

    name: str = Field(pattern=NAME, description="Its name in the table.")
    set: tuple[str, ...] = Field((), description="Changes to the training recipe, as `--set` has them: `key=value`.")
    recipe: str | None = Field(None, description="Another training recipe in place of the ablation's.")
    after: str | None = Field(
        None,
        description="An earlier value of this axis: training starts from the model that it ended with, of the same "
        "seed; what that sampled counts as this one's cost too.",
    )


class Axis(Settings):
    """What is varied; the first value is the base."""

    name: str = Field(pattern=NAME, description="Its name in the table.")
    values: tuple[AxisValue, ...] = Field(min_length=2, strict=False, description="Its values, the base first.")


class Ablation(NamedModels):
    """An ablation: one training recipe, axes, seeds, and the benches that its models are evaluated on."""

    name: str = Field("ablation", pattern=NAME, description="Name of the ablation; its file's if missing.")
    description: str = Field("", description="What it asks, and what the paper saw.")
    recipe: str = Field(description="The training recipe, relative to this file.")
    set: tuple[str, ...] = Field((), description="Changes to it in every arm.")
    seeds: tuple[int, ...] = Field((1, 2, 3), min_length=1, description="Seeds of training.")
    benches: tuple[str, ...] = Field(
        min_length=1, description="Benches: ready ones by their names, or files relative to this one."
    )
    bench_set: tuple[str, ...] = Field((), description="Changes to every bench, as in `attempts=4`.")
    model: ModelName | None = Field(
        None, description="The model as which trained ones are asked (prompt, engine); the bench's if missing."
    )
    axes: tuple[Axis, ...] = Field(min_length=1, strict=False, description="What is varied; arms are all combinations.")

    @property
    def asked(self) -> dict[str, str]:
        return {"model": self.model} if self.model is not None else {}

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for axis in self.axes:
            names = [value.name for value in axis.values]
            if len(set(names)) < len(names):
                raise ValueError(f"axis {axis.name}: two values have the same name; rename one")
            for index, value in enumerate(axis.values):
                if value.after is not None and value.after not in names[:index]:
                    earlier = ", ".join(names[:index]) or "none"
                    raise ValueError(f"axis {axis.name}: after = {value.after} is no earlier value ({earlier})")
        if sum(any(value.after for value in axis.values) for axis in self.axes) > 1:
            raise ValueError("`after` is in two axes; leave it out of one, as a run starts from one other run")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds = {list(self.seeds)}: remove duplicates")
        return self

    def arms(self) -> list[Arm]:
        """Return all combinations of values, the base first."""
        combinations = itertools.product(*(axis.values for axis in self.axes))
        return [Arm("-".join(value.name for value in values), values) for values in combinations]


@dataclass(frozen=True, slots=True)
class Arm:
    """A combination of values."""

    name: str
    values: tuple[AxisValue, ...]

    @property
    def after(self) -> str | None:
        """Return the arm whose model it starts from, if any."""
        if all(value.after is None for value in self.values):
            return None
        return "-".join(value.after or value.name for value in self.values)

    def recipe(self, default: str) -> str:
        """Return the training recipe; the last value with one wins."""
        return next((value.recipe for value in reversed(self.values) if value.recipe is not None), default)

    def changes(self, shared: Sequence[str], seed: int) -> list[str]:
        """Return the recipe's changes; later axes win."""
        return [*shared, *(change for value in self.values for change in value.set), f"seed={seed}"]


@dataclass(frozen=True, slots=True)
class TrainedArm:
    """A trained arm of one seed, with pass rates by bench and problem."""

    rates: Mapping[str, Mapping[str, float]]
    sampled_tokens: float
    dropped_share: float  # of sampled groups, those not trained on


@dataclass(frozen=True, slots=True)
class ArmResult:
    """An arm on a bench over all seeds."""

    arm: str
    bench: str
    seeds: int
    pass_1: Estimate
    difference: Estimate | None
    verdict: str
    sampled_tokens: float
    dropped_share: float


def compare_arms(trained: Mapping[str, Mapping[int, TrainedArm]]) -> list[ArmResult]:
    """Return the results by bench; ``trained`` is by arm, the base first, and seed."""
    base, results = next(iter(trained)), []
    benches = dict.fromkeys(name for runs in trained.values() for run in runs.values() for name in run.rates)
    for bench, (arm, runs) in itertools.product(benches, trained.items()):
        if not runs:
            continue
        difference, seeds = None, [seed for seed in runs if arm != base and seed in trained[base]]
        if seeds:
            pairs = [(trained[base][seed].rates[bench], runs[seed].rates[bench]) for seed in seeds]
            shared = [name for name in pairs[0][0] if all(name in rates for pair in pairs for rates in pair)]
            difference = crossed_interval([[mine[name] - theirs[name] for name in shared] for theirs, mine in pairs])
        results.append(
            ArmResult(
                arm,
                bench,
                len(runs),
                mean_interval([statistics.fmean(run.rates[bench].values()) for run in runs.values()], 0.0, 1.0),
                difference,
                "" if difference is None else verdict(difference),
                statistics.fmean(run.sampled_tokens for run in runs.values()),
                statistics.fmean(run.dropped_share for run in runs.values()),
            )
        )
    return results


HEAD = ("arm", "seeds", "pass@1 (over seeds)", "to the base (over seeds and problems)", "", "tokens", "groups dropped")


def ablation_lines(ablation: Ablation, results: Sequence[ArmResult]) -> list[str]:
    """Return the results as Markdown, a table per bench."""
    rows: dict[str, list[str]] = {}
    for result in results:
        difference = "base" if result.difference is None else with_interval(result.difference, signed=True)
        figures = (with_interval(result.pass_1), difference, result.verdict, f"{result.sampled_tokens:,.0f}")
        cells = (result.arm, str(result.seeds), *figures, f"{result.dropped_share:.0%}")
        rows.setdefault(result.bench, []).append(f"| {' | '.join(cells)} |")
    lines = [f"# {ablation.name}", "", ablation.description]
    for bench, table in rows.items():
        lines += ["", f"## {bench}", "", f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD), *table]
    note = "There is a verdict only if the 95 % interval excludes 0. Tokens are those sampled for training, per seed."
    return [*lines, "", note]
