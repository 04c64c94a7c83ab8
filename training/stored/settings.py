"""Settings of training on attempts that are stored."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class StoredSettings(Settings):
    """Training on attempts that are stored: at first on these alone, then together with those that the run samples."""

    runs: tuple[str, ...] = ()
    """Run folders, relative to the recipe's; those that made the sets of `data` if missing."""
    epochs: float = Field(1.0, ge=0)
    """Passes over them at the start. Paper: 4 in its cold start."""
    only: bool = False
    """End the run after these passes."""
    share: float = Field(0.25, ge=0, lt=1)
    """Share of stored groups in each later batch."""
    half_life: float | None = Field(None, gt=0)
    """Steps after which that share halves; never if missing."""
    max_distance: float | None = Field(None, gt=0)
    """Max distance to the reference in log-probability, nats per token; needs `soft`."""
    after_step: int = Field(0, ge=0)
    """Leave out attempts of training before this step. Paper: early thoughts are short."""
    per_problem: int | None = Field(None, ge=1)
    """Max attempts per problem; all if missing. The paper has a cap."""
    hardness: float = Field(0.0, ge=0)
    """Draw problems in proportion to (1 - pass rate) ** hardness."""
    general: str | None = None
    """For `sft`: file of instruction data (`messages`, or `prompt` and `response`) for 10 % of each batch, as in the
    paper."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.only and self.epochs == 0:
            raise ValueError("only = true with epochs = 0 would train on nothing; raise epochs")
        return self
