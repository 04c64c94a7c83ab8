"""Objectives of other papers that are `grpo` or `aipo` with some settings changed, by name.

`objective.preset` sets these; a key that the recipe names itself stays the recipe's. What a paper does outside the loss
(rewards, batches, sampling) is not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

GRPO_PRESETS: Mapping[str, Mapping[str, Any]] = {
    # arXiv 2503.20783: no division by deviation or length, one constant divides the token sums (`constant_tokens`)
    "dr_grpo": {"advantage_normalisation": "none", "loss_aggregation": "constant", "eps_high": 0.2},
    # arXiv 2503.14476: clip-higher, dynamic sampling, token-level loss, overlong filtering
    "dapo": {
        "advantage_normalisation": "group",
        "loss_aggregation": "batch",
        "group_filter": "correctness",
        "eps_low": 0.2,
        "eps_high": 0.28,
        "mask_truncated": True,
    },
    # arXiv 2507.18071, section 5.1
    "gspo": {
        "ratio_level": "sequence",
        "advantage_normalisation": "group",
        "loss_aggregation": "sequence",
        "eps_low": 3e-4,
        "eps_high": 4e-4,
    },
    # arXiv 1912.09729: c = 3
    "dual_clip": {"max_log_ratio": math.log(3)},
    # arXiv 2602.02710
    "maxrl": {"advantage_normalisation": "mean"},
}

AIPO_PRESETS: Mapping[str, Mapping[str, Any]] = {
    # MiniMax-M1, arXiv 2506.13585: no lower bound; its upper one is not printed, so `ratio_cap` stays
    "cispo": {"advantage_normalisation": "group", "loss_aggregation": "group"},
}


def with_preset(values: Any, presets: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the settings' table with those of its preset that it does not name itself."""
    if not isinstance(values, dict):
        return values
    name = values.get("preset")
    return {**presets[name], **values} if isinstance(name, str) and name in presets else values
