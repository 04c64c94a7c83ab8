"""Which problems of a curated set are judged again when a new checkpoint comes. The paper refreshes by hand."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings


class RefreshSettings(Settings):
    """What `goldilocks refresh` judges again; all other problems keep their pass rates."""

    max_pass_rate: float = Field(
        0.99,
        ge=0,
        le=1,
        description="Highest pass rate that stays in the set at a refresh, if the band's is lower; 0: the "
        "band's. Paper: 1.",
    )
    error_rate: float = Field(
        0.025,
        gt=0,
        le=0.2,
        description="Share of all decisions that may differ from those of judging every problem again.",
    )
    change_probability: float = Field(
        0.1,
        gt=0,
        le=1,
        description="In sets too small for an anchor: judge a problem again if its decision would change with "
        "this probability.",
    )
