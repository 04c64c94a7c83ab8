"""Objectives: pure functions of named inputs. `grpo` is the paper's; `advantages` says what a group's rewards mean."""

from training.objectives.advantages import advantages, centre, group_fate, moments
from training.objectives.grpo import GrpoInputs, GrpoStats, grpo, token_weights

__all__ = ["GrpoInputs", "GrpoStats", "advantages", "centre", "group_fate", "grpo", "moments", "token_weights"]
