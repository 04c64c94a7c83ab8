"""Where a run's numbers are shown besides its own folder."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings


class MonitorSettings(Settings):
    """Where a run's numbers are shown besides its folder (and TensorBoard, of a training run). Not in the paper."""

    wandb: bool = Field(False, description="Show the run in Weights & Biases; its package is yours to install.")
    trackio: bool = Field(False, description="Show the run in trackio, locally; its package is yours to install.")
    project: str = Field("goldilocks", min_length=1, description="The project there.")
