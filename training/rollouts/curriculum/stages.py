"""Stages of a run (paper, section 5.2): in order, each with its length and sizes, until a plateau or a step.

    stage 1   16k   8,192   until the reward is flat
    stage 2   24k   4,096   until the length is flat
    stage 3   32k   2,048

A stage changes only what it names; all else stays as the stage before left it. Pure functions of recorded curves.

Not here: applying a change (`training.rollouts.curriculum.controller`, and the loop for the sizes).
"""

from __future__ import annotations

from training.rollouts.curriculum.settings import StageSettings
from training.rollouts.curriculum.triggers import TrainingCurves, length_binds, length_plateau, reward_plateau


def stage_end(stage: StageSettings, taken: int, curves: TrainingCurves, floor: float, *, grows: bool) -> str | None:
    """Return why the stage ends now, or None while it goes on.

    A plateau ends a stage before one with more length only if the limit binds; `steps` ends it in any case.

    Args:
        taken: steps taken in this stage.
        curves: since it began.
        floor: the pass rate that a plateau of the reward must exceed.
        grows: whether the next stage allows longer responses.
    """
    if stage.steps is not None and taken >= stage.steps:
        return f"{taken} steps"
    if grows and curves.limited and not length_binds(curves):
        return None
    if stage.until == "reward" and (fit := reward_plateau(curves, floor)) is not None:
        return f"reward flat at {fit.mean:.3f} over {fit.window} steps"
    if stage.until == "length" and (fit := length_plateau(curves)) is not None:
        return f"length flat at {fit.mean:.0f} over {fit.window} steps"
    return None
