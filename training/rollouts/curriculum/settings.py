"""Settings of the curriculum. The paper moves these by hand and prints few of the numbers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class StageSettings(Settings):
    """One stage of a run. What it does not name stays as the stage before left it."""

    until: Literal["steps", "reward", "length"] = Field(
        "steps",
        description="The stage ends when the reward is flat, when the length is flat because of its "
        "limit, or after `steps`. Paper: by eye.",
    )
    steps: int | None = Field(None, ge=1, description="Max steps of the stage.")
    lengths: int | None = Field(
        None,
        ge=1,
        description="Tokens without a penalty, l_max - l_cache; raised only if the limit binds. Paper: 16k, 24k, 32k.",
    )
    n_batch: int | None = Field(None, ge=1, description="Rollouts per batch. Paper: 8k, 4k, 2k.")
    n_async: int | None = Field(None, ge=1, description="Rollouts generated at once. Paper: lowered with memory.")
    hard: bool = Field(False, description="Activate all deferred problems, as in the paper.")

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.n_batch is not None and self.n_async is not None and self.n_async > 2 * self.n_batch:
            raise ValueError(
                f"a stage with n_async = {self.n_async} and n_batch = {self.n_batch}: the paper saw training suffer "
                "where the first is more than twice the second; lower n_async"
            )
        return self


class CurriculumSettings(Settings):
    """What changes while training goes on, and when."""

    stages: tuple[StageSettings, ...] = Field((), strict=False, description="Stages, in order.")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if any(stage.until == "steps" and stage.steps is None for stage in self.stages[:-1]):
            raise ValueError('a stage before the last never ends; give it steps, or until = "reward" or "length"')
        return self
