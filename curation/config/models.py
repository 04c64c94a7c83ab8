"""What a model may be asked for beside attempts: votes on premises, and rewriting of hard multiple choice."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import PolicySettings


class PremisesSettings(Settings):
    """Votes of a model on missing premises and contradictions."""

    policy: PolicySettings | None = Field(
        None, description="A model that is asked whether a problem can be answered as it stands; nobody where absent."
    )
    votes: int = Field(5, ge=1, description="Votes per problem. Not in the paper.")
    threshold: float = Field(
        0.6,
        gt=0,
        le=1,
        description="A problem is dropped where at least this share of its readable votes names a fault. Another "
        "threshold asks nobody again. Not in the paper.",
    )
    min_votes: int = Field(
        3, ge=1, description="Fewest readable votes for a decision; with fewer the problem is kept. Not in the paper."
    )

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.min_votes > self.votes:
            raise ValueError(f"least: {self.min_votes} readable votes can never come of {self.votes} votes")
        return self


class RewritingSettings(Settings):
    """Rewriting of the multiple choice that no rule can open."""

    policy: PolicySettings | None = Field(
        None, description="A model that rewrites multiple choice into open questions; nobody is asked where absent."
    )
