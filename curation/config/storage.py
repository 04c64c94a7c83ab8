"""Where copies of a run's results go."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings, Url


class StorageSettings(Settings):
    """Copies elsewhere of what a run publishes and logs. The run folder itself stays on this machine."""

    mirror: Url | None = Field(
        None,
        description="Folder or URL (`s3://bucket/runs/small`) to which published sets, checkpoints and logs are "
        "copied.",
    )
