"""Stages of a run (paper, section 5.2): in order, each with its length and sizes, until a plateau or a step.

    stage 1   16k   8,192   until the reward is flat
    stage 2   24k   4,096   until the length is flat
    stage 3   32k   2,048

A stage changes only what it names; all else stays as the stage before left it. Pure functions of recorded curves.

Not here: applying a change (`training.rollouts.curriculum.controller`, and the loop for the sizes).
"""

from __future__ import annotations

from collections.abc import Sequence

from training.rollouts.curriculum.settings import StageSettings
from training.rollouts.curriculum.triggers import length_plateau, reward_plateau


def stage_end(stage: StageSettings, taken: int, rewards: Sequence[float], lengths: Sequence[float]) -> str | None:
    """Return why the stage ends now, or None while it goes on.

    Args:
        taken: steps taken in this stage.
        rewards, lengths: the curves since it began, a value a step.
    """
    if stage.steps is not None and taken >= stage.steps:
        return f"{taken} steps"
    if stage.until == "reward" and (fit := reward_plateau(rewards)) is not None:
        return f"reward flat at {fit.mean:.3f} over {fit.window} steps"
    if stage.until == "length" and (fit := length_plateau(lengths)) is not None:
        return f"length flat at {fit.mean:.0f} over {fit.window} steps"
    return None
