"""Adjudication of disputed labels: who argues for which answer, who judges, and whether that decides anything."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed


class AdjudicationSettings(Settings):
    """Evidence on disputed labels from a debate before a judge; off where nobody judges (arXiv 2407.04622)."""

    protocol: Literal["debate", "consultancy", "direct"] = Field(
        "debate",
        description="`debate`: one speaker for each answer, both at once in every round; `consultancy`: one speaker, "
        "for each answer in turn; `direct`: the judge reads the problem and the two answers alone.",
    )
    rounds: int = Field(3, ge=1, le=8, description="Rounds of speeches.")
    debater: ModelName | None = Field(None, description="The model that argues; `direct` needs none.")
    judge: ModelName | None = Field(
        None, description="The model that judges, a weaker one than the debater in the paper; off if missing."
    )
    judge_answers: Literal["verdict", "letter"] = Field(
        "verdict",
        description="`verdict`: reasons, then a verdict; each is a vote. `letter`: nothing but the letter of an "
        "answer; with that model's `keep_tokens` its log-probability counts, not the vote.",
    )
    votes: int = Field(
        1,
        ge=1,
        description="Votes on each of a dispute's four views: both letters, both orders. Not in the paper.",
    )
    decide_at: float | None = Field(
        None,
        gt=0.5,
        le=1,
        description="Least probability from which an answer is accepted as if a reviewer had said so; the next run "
        "applies it, and a person's word counts more. Off where absent: evidence for people, which decides nothing.",
    )
    max_disputes: int | None = Field(
        None, ge=1, description="At most so many disputes, the likeliest wrong labels first; all where absent."
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED

    @model_validator(mode="after")
    def _somebody_argues(self) -> Self:
        if self.judge is not None and self.debater is None and self.protocol != "direct":
            raise ValueError(f'debater: `protocol = "{self.protocol}"` needs one; only `direct` has none')
        return self
