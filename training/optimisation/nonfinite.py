"""Explain a gradient that is not finite from the step's statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping

from training.objectives.step_statistics import Measure

_FAR = math.exp(10)
"""A ratio of probabilities that neither rounding nor a few versions of staleness explain."""


def nonfinite_gradient(step: int, norm: float, loss: float, statistics: Mapping[str, Measure]) -> str:
    """Return an error message with the likely cause; ``statistics`` must include `policy_statistics`."""
    begin = f"optimiser step {step}: the gradient's norm is {norm}"
    if not math.isfinite(statistics["kl_generator"].value):
        if step == 0:
            return (
                f"{begin}, because the model's own log-probabilities are no finite numbers before any step: look for "
                "NaN in its weights, or set compute.dtype = float32"
            )
        return (
            f"{begin}, because the model's own log-probabilities are no finite numbers: an earlier step broke the "
            "weights; resume from the last checkpoint with a lower optim.learning_rate"
        )
    largest = statistics["ratio_max"].value
    if largest >= _FAR:
        return (
            f"{begin}, and a token is {largest:.1e} times as likely for the trainer as for the generator: they do not "
            "compute the same model; look at policy/mismatch_max in metrics.jsonl, and resume from the last "
            'checkpoint with objective.preset = "dual_clip", whose ratios are clamped at 3'
        )
    if not math.isfinite(loss):
        return (
            f"{begin}, because the loss is {loss}, while all log-probabilities are finite: an advantage, a weight or a "
            "term of the objective is no number; look at policy/ and reward/ in metrics.jsonl, and at the objective's "
            "settings"
        )
    return (
        f"{begin}, while the log-probabilities are finite and close to the generator's: the backward pass overflows; "
        "resume from the last checkpoint with compute.dtype = float32 or a lower optim.learning_rate"
    )
