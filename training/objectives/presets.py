"""Objectives of other papers by `objective.preset`; a recipe's own settings take precedence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from training.config import ObjectiveSettings

Normalisation = Literal["minibatch", "group", "mean", "components", "none"]
Diversity = Literal["reward", "correctness", "none"]
LossAggregation = Literal["group", "batch", "sequence", "constant"]


@dataclass(frozen=True, slots=True)
class Variant:
    """Values that only a preset changes.

    Args:
        advantage_normalisation: the divisor of group-centred advantages.
        loss_aggregation: see `token_weights`; `group` is the paper's.
        group_filter: see `filter_group`. The paper's formula has `reward`, its prose `correctness`.
        mask_truncated: truncated rollouts weigh nothing, but count in their group's mean.
        ratio_level: `sequence`: the geometric mean of a sequence's ratios.
        eps_low: ratios below 1 - `eps_low` are clipped.
        max_log_ratio: log-ratios are clamped to this; if A < 0, tokens beyond it have no gradient.
    """

    advantage_normalisation: Normalisation = "minibatch"
    loss_aggregation: LossAggregation = "group"
    group_filter: Diversity = "reward"
    mask_truncated: bool = False
    ratio_level: Literal["token", "sequence"] = "token"
    eps_low: float = 0.2
    max_log_ratio: float = 10.0


GRPO_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    # arXiv 2503.20783: no division by deviation or length; token sums are divided by a rollout's max tokens
    "dr_grpo": {"advantage_normalisation": "none", "loss_aggregation": "constant", "eps_high": 0.2},
    # arXiv 2503.14476: clip-higher, dynamic sampling, token-level loss, overlong filtering
    "dapo": {
        "advantage_normalisation": "group",
        "loss_aggregation": "batch",
        "group_filter": "correctness",
        "eps_high": 0.28,
        "mask_truncated": True,
    },
    # arXiv 2507.18071
    "gspo": {
        "ratio_level": "sequence",
        "advantage_normalisation": "group",
        "loss_aggregation": "sequence",
        "eps_low": 3e-4,
        "eps_high": 4e-4,
    },
    "dual_clip": {"max_log_ratio": math.log(3)},  # arXiv 1912.09729: c = 3
    "maxrl": {"advantage_normalisation": "mean"},  # arXiv 2602.02710
    # arXiv 2601.05242: each reward normalised in its group, the sum normalised over the batch
    "gdpo": {"advantage_normalisation": "components"},
}

AIPO_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "llama_rl": {"advantage_normalisation": "none"},  # arXiv 2505.24034
    # MiniMax-M1, arXiv 2506.13585: no lower bound; its upper one is not printed, so that of `llama_rl` stays
    "cispo": {"advantage_normalisation": "group"},
}


class GroupCreditSettings(ObjectiveSettings):
    """Credit within groups."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Values of other settings and of `variant`, by `preset`."""

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "preset" not in cls.model_fields:
            return values
        name = values.get("preset", cls.model_fields["preset"].default)
        preset = cls.presets.get(name, {}) if isinstance(name, str) else {}
        return {key: value for key, value in preset.items() if key in cls.model_fields} | values

    @property
    def variant(self) -> Variant:
        """Return the preset's `Variant`, with settings of the same name."""
        values = {**self.presets.get(getattr(self, "preset", ""), {}), **vars(self)}
        return Variant(**{field.name: values[field.name] for field in fields(Variant) if field.name in values})
