"""Where a run is shown, and where its results are copied."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings, Url


class StorageSettings(Settings):
    """Copies elsewhere of what a run publishes and logs. The run folder itself stays on this machine."""

    mirror: Url | None = Field(
        None,
        description="Folder or URL (`s3://bucket/runs/small`) for copies of published sets, checkpoints and logs.",
    )


class MonitorSettings(Settings):
    """Where a run's numbers are shown other than in its folder (and TensorBoard, of a training run)."""

    wandb: str | None = Field(
        None, min_length=1, description="Project of Weights & Biases; install its package yourself."
    )
