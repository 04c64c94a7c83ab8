"""Settings of the format filter.

One model, each field described once. It holds no logic and imports nothing of the house.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class StatementSettings(BaseModel):
    """Which format rules run, and on what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    disabled: tuple[str, ...] = Field(
        default=(),
        description="Names of rules that do not run: those in `statements.RULES`, and `choices`, the rewriting.",
    )
    languages: tuple[str, ...] = Field(
        default=(),
        description="ISO 639-1 tags that are kept; empty means every language. A row without a tag is kept.",
    )
    min_letters: int = Field(
        default=8,
        ge=1,
        description="Fewest letters, digits and signs (spaces not counted) that make a statement.",
    )
    clean: bool = Field(
        default=True,
        description="Remove LaTeX and HTML debris from statement and answer before any rule looks at them.",
    )
