"""Where a run's numbers are shown besides its own folder."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings


class MonitorSettings(Settings):
    """Where a run's numbers are shown besides its folder (and TensorBoard, of a training run)."""

    wandb: str | None = Field(
        None, min_length=1, description="Project of Weights & Biases; install its package yourself."
    )
