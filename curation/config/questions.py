"""Questions to a model other than solving: one table for all of them, `[questions.NAME]`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from curation.config.base import Settings
from curation.config.policies import ModelName


class QuestionSettings(Settings):
    """A question to a model: who answers it, what decides, and when to stop."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = Field(None, description="The model to ask; the question is skipped if missing.")
    use: str | None = Field(
        None,
        description="A `Vote` of your own: `my_file.py:NAME` or `package.module:NAME`.",
    )
    threshold: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of the readable votes that decides; the question's own if missing.",
    )
    max_votes: int | None = Field(
        None,
        ge=1,
        description="Max votes of a stage; no limit if missing.",
    )
