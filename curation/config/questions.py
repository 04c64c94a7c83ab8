"""Questions to a model beside solving: one table for all of them, `[questions.NAME]`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from curation.config.base import Settings
from curation.config.policies import ModelName
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed


class QuestionSettings(Settings):
    """A question to a model: who answers it, how often, and what decides."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model", "max_failed"})

    model: ModelName | None = Field(None, description="The model that is asked; the question is skipped if missing.")
    use: str | None = Field(
        None,
        description="A question of your own, a `Vote` over rows: `my_file.py:NAME`, a file in the recipe's folder, or "
        "`package.module:NAME`. The name of its table must not be one of Goldilocks' questions.",
    )
    votes: int | None = Field(
        None, ge=1, description="Votes on each row, or proposals for it; the question's own number if it is missing."
    )
    threshold: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of the readable votes that decides; the question's own if it is missing. With half of the "
        "votes unreadable nothing is decided. Another threshold asks no model again.",
    )
    max_votes: int | None = Field(
        None,
        ge=1,
        description="Most votes of a stage; questions beyond are not asked, but counted. No limit if missing.",
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
