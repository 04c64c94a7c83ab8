"""When a recipe runs, where a run is shown and copied, and assumed costs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings, Url
from curation.records import ConfigError

CRON_FIELDS = 5


class ScheduleSettings(Settings):
    """What `goldilocks serve` does with the recipe."""

    cron: str | None = None
    """Cron expression in UTC: `0 3 * * *` is 3 a.m."""
    train: str | None = None
    """Training recipe, relative to this one; its checkpoints judge the set again."""
    rounds: int | None = Field(None, ge=1)
    """Max consecutive training stages; no limit if missing."""
    gpus: int = Field(1, ge=1)
    """Max runs on GPUs at once."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.cron is not None and len(self.cron.split()) != CRON_FIELDS:
            raise ValueError(
                f"cron = {self.cron!r} does not have {CRON_FIELDS} fields; write `0 3 * * *` for 3 at night"
            )
        return self


class StorageSettings(Settings):
    """Copies of what a run publishes and logs; the run folder stays on this machine."""

    mirror: Url | None = None
    """Folder or URL (`s3://bucket/runs/small`) for copies of published sets, checkpoints and logs."""


class MonitorSettings(Settings):
    """Where a run's figures are shown besides its folder, and besides TensorBoard in training."""

    wandb: str | None = Field(None, min_length=1)
    """Project of Weights & Biases; install its package yourself."""


Figures = tuple[Annotated[float, Field(gt=0)], ...]
"""Positive numbers: one for all stages, or one each."""


class StatedCosts(Settings):
    """What a run is assumed to cost; a figure has one value, or one for each stage."""

    gpus: int = Field(8, ge=1)
    """GPUs of a machine."""
    tokens_per_s: Figures = Field(min_length=1, strict=False)
    """Generated tokens per second and GPU."""
    tokens_per_attempt: Figures = Field(min_length=1, strict=False)
    """Mean tokens of an attempt."""

    def of_stage(self, name: str, number: int, subject: str, stages: int | None = None) -> float:
        """Return a stage's value of a figure.

        Args:
            subject: begins the error, as in ``recipe a.toml``.

        Raises:
            ConfigError: the figure has another number of values.
        """
        values: tuple[float, ...] = getattr(self, name)
        if len(values) != 1 and (number >= len(values) or stages not in (None, len(values))):
            raise ConfigError(f"{subject}: costs.{name} has {len(values)} values; give one, or one for each stage.")
        return values[min(number, len(values) - 1)]


class CurationCosts(StatedCosts):
    """What curation is assumed to cost."""

    problems: int = Field(ge=1)
    """Problems that the filters keep."""
    attempts_share: Figures = Field((1.0,), min_length=1, strict=False)
    """Share of attempts left after early stopping."""


class TrainingCosts(StatedCosts):
    """What training is assumed to cost."""

    gpu_gb: float = Field(80.0, gt=0)
    """GB of one GPU, of 10^9 bytes."""
    shape: Literal["embedded", "1.5B", "7B", "24B"] | None = None
    """The model's size; by its folder if missing."""
    sampled_per_trained: tuple[Annotated[float, Field(ge=1)], ...] = Field((1.0,), min_length=1, strict=False)
    """Rollouts sampled per rollout trained on."""
    trained_tokens_per_s: Figures = Field(min_length=1, strict=False)
    """Trained tokens per second and GPU."""
    stored_steps: int | None = Field(None, ge=0)
    """With `[stored]`: steps on stored attempts alone."""
