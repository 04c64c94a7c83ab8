"""How attempts are sampled: when to stop, and how many refusals end a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from curation.config.base import Settings

MaxFailed = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Share of the problems that servers may refuse before the run ends; later runs ask for them again.",
    ),
]
"""A failure budget. Its default is left out of what is written, so that digests stay."""

DEFAULT_MAX_FAILED = 0.01


class SamplingSettings(Settings):
    """How many of a band's attempts are made. The paper makes all of them."""

    early_stopping: bool = Field(
        True,
        description="Stop once no further attempt could change the decision.",
    )
    error_rate: float = Field(
        0.1,
        ge=0,
        le=0.2,
        description="Stop earlier, once the decision is foreseen with probability 1 - `error_rate`; 0: never "
        "(docs/explanation/difficulty.md).",
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
