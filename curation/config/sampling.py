"""How attempts are sampled: when to stop."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curation.config.base import Settings

MaxFailed = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Share of the problems that the model's servers may refuse (400, 5xx at every try, longer than its "
        "context, a content filter) before the run ends; one may be, however few there are, unless it is 0. Refused "
        "ones are set aside, and asked again by later runs. Not in the paper.",
    ),
]
"""A failure budget. Its default is left out of what is written, so that digests stay."""

DEFAULT_MAX_FAILED = 0.01


class SamplingSettings(Settings):
    """How many of a band's attempts are made. The paper makes all of them."""

    early_stopping: bool = Field(
        True,
        description="Make no further attempt at a problem once none could change its decision. With an `error_rate` "
        "of 0 the decisions are the same as without. Recorded attempts cost nothing and all count. Not in the paper.",
    )
    error_rate: float = Field(
        0.1,
        ge=0,
        le=0.2,
        description="Stop earlier, once the decision is foreseen with probability 1 - `error_rate`; needs "
        "`early_stopping`. 0 switches it off: decisions are those of all attempts. Not in the paper "
        "(docs/explanation/difficulty.md).",
    )
    prior: Literal["jeffreys", "model"] = Field(
        "model",
        description="What a decision is foreseen by, with `error_rate`, before a problem's own attempts: `jeffreys`, "
        "Beta(1/2, 1/2), or a `model` of all attempts of all policies, learnt from the anchor and refused where the "
        "anchor does not bear it out. Not in the paper.",
    )
    anchor_share: float = Field(
        0.05,
        gt=0,
        le=0.5,
        description="Share of the problems that are sampled first and in full, to learn the `model` from. Not in the "
        "paper.",
    )
    anchor_least: int = Field(
        100,
        ge=20,
        description="At least so many problems are the anchor; where they are more than half of all, nothing is "
        "learnt. Not in the paper.",
    )
    ahead: bool = Field(
        False,
        description="Where requests would lie idle, also launch attempts that may not be needed, and abort them when "
        "they are not: sooner done, more tokens. Not in the paper.",
    )
    open_problems: int | None = Field(
        None, ge=1, description="Problems under way at once; four times the requests in flight where absent."
    )

    max_failed: MaxFailed = DEFAULT_MAX_FAILED
    retry_failed: int = Field(
        2,
        ge=0,
        description="How many later runs ask again for problems that the model's servers refused. Not in the paper.",
    )

    @property
    def foreseen_by(self) -> str:
        """Return as text what decisions are foreseen by, besides `error_rate`; empty for Jeffreys' prior."""
        return f" model {self.anchor_share} {self.anchor_least}" if self.prior == "model" else ""
