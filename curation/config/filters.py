"""What is dropped before any attempt is made: the format filter and how answers are judged."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from curation.config.base import Settings


class StatementSettings(Settings):
    """The format filter: which rules run, and on what."""

    disabled: tuple[str, ...] = Field(
        (), description="Names of rules that do not run: those of `statements.RULES`, and `choices` for the rewriting."
    )
    languages: tuple[str, ...] = Field(
        (), description="ISO 639-1 codes that are kept; empty means every language. A row without one is kept."
    )
    min_letters: int = Field(
        8,
        ge=1,
        description="Fewest letters, digits and signs that make a statement; spaces do not count, Chinese characters "
        "count double.",
    )
    clean: bool = Field(
        True, description="Remove LaTeX and HTML debris from statement and answer before any rule looks at them."
    )


class VerifySettings(Settings):
    """How answers are judged."""

    engine: Literal["goldilocks", "math-verify"] = Field(
        "goldilocks", description="Whose comparison counts: our own, or Math-Verify's, for comparison."
    )
    limit_s: float = Field(2.0, gt=0, description="Seconds for one comparison; then the worker is killed.")
    memory_mb: int = Field(2048, ge=256, description="Memory of one worker, MiB.")
