"""The grader: a model trained on the survivors of stage 1, which re-grades the entire original set in stage 2."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings
from curation.config.difficulty import Band


class GraderSettings(Settings):
    """How the grader is trained; stage 2 then runs with it (paper, section 4.1)."""

    recipe: str = Field(description="Training recipe, relative to this recipe's folder.")
    set: tuple[str, ...] = Field((), description="Settings of it that are changed, as `optim.learning_rate=1e-6`.")
    band: Band = Field(default_factory=Band, description="What stage 2 keeps.")
