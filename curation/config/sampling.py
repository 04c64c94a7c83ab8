"""How attempts are sampled: when to stop."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings


class SamplingSettings(Settings):
    """How many of a band's attempts are made. The paper makes all of them."""

    early_stopping: bool = Field(
        True,
        description="Make no further attempt at a problem once none could change its decision. The decisions are "
        "the same as without. Recorded attempts cost nothing and all count. Not in the paper.",
    )
    error_rate: float = Field(
        0.0,
        ge=0,
        le=0.2,
        description="Stop earlier, once the decision is foreseen with probability 1 - `error_rate`; needs "
        "`early_stopping`. 0 switches it off. Not in the paper.",
    )
    ahead: bool = Field(
        False,
        description="Where requests would lie idle, also launch attempts that may not be needed, and abort them when "
        "they are not: sooner done, more tokens. Not in the paper.",
    )
    open_problems: int | None = Field(
        None, ge=1, description="Problems under way at once; four times the requests in flight where absent."
    )
