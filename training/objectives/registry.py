"""Find a recipe's objective by its `kind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from curation.config.mistakes import sentences
from curation.plugins import PluginRef
from curation.records import ConfigError, GoldilocksError
from training.config import ObjectiveSettings
from training.objectives.aipo import AIPO
from training.objectives.base import (
    CreditInputs,
    GroupCredit,
    GroupWeights,
    ObjectiveInputs,
    ObjectiveNeeds,
    ScoredGroups,
    Statistic,
)
from training.objectives.credit import AnyObjective, Objective
from training.objectives.distil import DISTIL
from training.objectives.dppo import DPPO
from training.objectives.grpo import GRPO
from training.objectives.jepo import JEPO
from training.objectives.sft import SFT
from training.objectives.soft import SOFT
from training.own_rewards import pinned_plugin
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

OBJECTIVES: dict[str, AnyObjective] = {
    objective.kind: objective for objective in (AIPO, DISTIL, DPPO, GRPO, JEPO, SFT, SOFT)
}

OWN: dict[str, AnyObjective] = {}
"""The user's loaded objectives, by kind@digest."""


def own_settings(table: Mapping[str, Any], folder: Path) -> ObjectiveSettings:
    """Return the settings of a user's objective; the kind includes its file's digest."""
    kind = table["kind"]
    if kind not in OWN:
        plugin = pinned_plugin(kind, folder, "objective.kind", Objective, "an Objective")
        kind = f"{plugin.name}@{plugin.digest}"
        OWN[kind] = _checked(plugin)
    objective, table = OWN[kind], {**table, "kind": kind}
    try:
        settings: ObjectiveSettings = objective.settings.model_validate(table)
    except ValidationError as error:
        raise ConfigError(
            f"objective {kind.partition('@')[0]}: " + "\n  ".join(sentences(objective.settings, table, error))
        ) from error
    try_objective(objective, settings)
    return settings


def try_objective(objective: AnyObjective, settings: ObjectiveSettings) -> None:
    """Try a user's objective on two synthetic groups of 16 rollouts.

    Raises:
        ObjectiveError: a function fails, returns another shape, or the loss has no gradient.
    """
    rewards = [Reward(format=0.1, correctness=0.9 * right, correct=right) for right in (True, False) * 16]
    objective.decide(rewards[:16], settings)
    if objective.needs(settings).scores_answers:
        return  # synthetic rollouts have no reference texts
    lengths, groups = torch.tensor([2, 1] * 16), torch.arange(2).repeat_interleave(16)
    credit = objective.credit(
        CreditInputs(rewards, lengths, groups, ["4", None] * 16, [False] * 32, [0.5] * 32, 8), settings
    )
    if objective.second_pass is not None:
        values = torch.full((32,), 0.5, dtype=torch.float64)
        objective.second_pass(ScoredGroups(credit.advantages.double(), -values, groups, values), settings)
    logits = torch.linspace(-1, 1, 192).view(48, 4).requires_grad_()
    distribution = logits.log_softmax(-1)
    drawn = distribution[:, 0].detach()
    inputs = ObjectiveInputs(
        distribution[:, 0],
        drawn - 0.1,
        torch.arange(32).repeat_interleave(lengths),
        credit.advantages.float(),
        credit.token_weights.float(),
        torch.ones(48, dtype=torch.bool),
        -(distribution.exp() * distribution).sum(-1),
        reference_logprobs=drawn,
        on_policy=torch.ones(48, dtype=torch.bool),
        rewards=torch.tensor([reward.total for reward in rewards]),
        teacher_logprobs=drawn,
    )
    objective.loss(inputs, settings)[0].backward()  # type: ignore[no-untyped-call]


class ObjectiveError(GoldilocksError):
    """A user's own objective failed, or returned another shape."""


def _checked(ref: PluginRef) -> AnyObjective:
    """Return a user's objective with errors that name its file and line."""
    plugin = ref.load()
    own: AnyObjective = plugin.value

    def call(name: str, *arguments: Any) -> Any:
        try:
            return getattr(own, name)(*arguments)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise ObjectiveError(f"objective.kind: {plugin.failure(error)} (in `{name}`).") from error

    def made_by(name: str, kind: type, *arguments: Any) -> Any:
        made = call(name, *arguments)
        if not isinstance(made, kind):
            raise ObjectiveError(f"objective.kind: {ref.label}: `{name}` returns {made!r:.80}; return {kind.__name__}.")
        return made

    def require(what: str, value: Any, shape: tuple[int, ...]) -> None:
        if not isinstance(value, Tensor) or tuple(value.shape) != shape:
            actual = f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else repr(value)[:80]
            expected = f"shape {list(shape)}, a number per sequence" if shape else "one number, as a tensor"
            raise ObjectiveError(f"objective.kind: {ref.label}: {what} is {actual}; return {expected}.")

    def credit(inputs: CreditInputs, settings: Any) -> GroupCredit:
        result: GroupCredit = made_by("credit", GroupCredit, inputs, settings)
        require("`advantages` of `credit`", result.advantages, (len(inputs.rewards),))
        require("`token_weights` of `credit`", result.token_weights, (len(inputs.rewards),))
        return result

    def loss(inputs: ObjectiveInputs, settings: Any) -> tuple[Tensor, Mapping[str, Statistic]]:
        made = call("loss", inputs, settings)
        if not isinstance(made, tuple) or len(made) != 2:
            raise ObjectiveError(
                f"objective.kind: {ref.label}: `loss` returns {made!r:.80}; return (loss, statistics)."
            )
        value, statistics = made
        require("the first result of `loss`", value, ())
        if inputs.logprobs.requires_grad and not value.requires_grad:
            raise ObjectiveError(
                f"objective.kind: {ref.label}: `loss` has no gradient; it must use `inputs.logprobs`, not detached."
            )
        return value, statistics

    def decide(rewards: Sequence[Reward], settings: Any) -> GroupDecision:
        made = call("decide", rewards, settings)
        if not isinstance(made, GroupDecision) or len(made.exclusion_reasons) != len(rewards):
            raise ObjectiveError(
                f"objective.kind: {ref.label}: `decide` returns {made!r:.80}; return a GroupDecision with a reason or "
                "None for each rollout."
            )
        return made

    def second_pass(scored: ScoredGroups, settings: Any) -> GroupWeights:
        made: GroupWeights = made_by("second_pass", GroupWeights, scored, settings)
        require("`advantages` of `second_pass`", made.advantages, (len(scored.advantages),))
        if made.answer_weights is not None:
            require("`answer_weights` of `second_pass`", made.answer_weights, (len(scored.advantages),))
        return made

    return replace(
        own,
        credit=credit,
        loss=loss,
        decide=decide,
        needs=partial(made_by, "needs", ObjectiveNeeds),
        second_pass=None if own.second_pass is None else second_pass,
    )


def objective_of(settings: ObjectiveSettings) -> AnyObjective:
    return OBJECTIVES[settings.kind] if settings.kind in OBJECTIVES else OWN[settings.kind]


def needs_of(settings: ObjectiveSettings) -> ObjectiveNeeds:
    return objective_of(settings).needs(settings)
