"""Settings of the curriculum. The paper moves these by hand and prints few of the numbers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class StageSettings(Settings):
    """One stage of a run. What it does not name stays as the stage before left it."""

    until: Literal["steps", "reward", "length"] = Field(
        "steps",
        description="`reward`, `length`: it ends when that curve, since its begin, is flat; `steps`: after `steps`. "
        "The last stage ends with the run. Paper: by eye.",
    )
    steps: int | None = Field(None, ge=1, description="It ends after this many steps at the latest.")
    lengths: int | None = Field(
        None, ge=1, description="Un-penalised length l_max - l_cache, in tokens. Paper: 16k, 24k, 32k."
    )
    n_batch: int | None = Field(
        None, ge=1, description="Rollouts between two updates, in one optimiser step. Paper: 8k, 4k, 2k."
    )
    n_async: int | None = Field(None, ge=1, description="Rollouts generated at once. Paper: lowered with memory.")
    eps_high: float | None = Field(
        None, gt=0, description="Upper clip, of an objective that has one. Paper: .26 to .28, .3 after a cold start."
    )
    hard: bool = Field(
        False, description="At its begin all deferred problems come in, as the paper adds data filtered out earlier."
    )

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

    stages: tuple[StageSettings, ...] = Field((), strict=False, description="Stages in order, each a table.")
    draw: Literal["uniform", "gaussian", "thompson"] = Field(
        "uniform",
        description="Which active problem comes next. `uniform`: each once in a turn; `gaussian`: by a normal density "
        "of the pass rate whose mean falls over the run (Nemotron 3 Nano, 3.2.2); `thompson`: by a draw from each "
        "problem's posterior, the nearest to 1/2 first.",
    )
    min_pass_rate: float = Field(0.05, ge=0, lt=1, description="Below: deferred, too hard for now; 1 of 16 is 0.06.")
    max_pass_rate: float = Field(0.875, gt=0, le=1, description="Above: retired, too easy by now; 14 of 16.")
    disputes: bool = Field(
        False,
        description="Problems leave training if another answer rises over the versions and the reference does not; "
        "they and the evidence are written to `disputed.jsonl`.",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.min_pass_rate >= self.max_pass_rate:
            raise ValueError(
                f"impossible band: min_pass_rate = {self.min_pass_rate} is not below max_pass_rate = "
                f"{self.max_pass_rate}"
            )
        if any(stage.until == "steps" and stage.steps is None for stage in self.stages[:-1]):
            raise ValueError('a stage before the last never ends; give it steps, or until = "reward" or "length"')
        return self

    @property
    def band(self) -> tuple[float, float]:
        """Return the pass rates between which a problem is active."""
        return self.min_pass_rate, self.max_pass_rate
