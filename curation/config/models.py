"""What a model may be asked for beside attempts: votes on doubtful rows, overlaps, premises
and doubtful verdicts, rewriting.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed


class PremisesSettings(Settings):
    """Votes of a model on missing premises and contradictions."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = Field(
        None, description="The model that is asked whether a problem can be answered as it stands; off if missing."
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
    max_failed: MaxFailed = DEFAULT_MAX_FAILED

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.min_votes > self.votes:
            raise ValueError(f"least: {self.min_votes} readable votes can never come of {self.votes} votes")
        return self


class DoubtfulSettings(Settings):
    """Votes of a model on the rows that the format filter is in doubt about."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model", "threshold", "min_votes", "max_failed"})

    model: ModelName | None = Field(
        None,
        description="The model that is asked whether a doubtful row can be used as it stands; off if missing. Its "
        "votes then decide instead of the classifier's thresholds.",
    )
    ask_from: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Least score of the format filter's classifier from which a row is asked about; one in which a "
        "rule found something that is not trusted to drop it alone always is. Not in the paper.",
    )
    votes: int = Field(3, ge=1, description="Votes per row. Not in the paper.")
    threshold: float = Field(
        0.6,
        gt=0,
        le=1,
        description="A row is dropped where at least this share of its readable votes names a fault. Another "
        "threshold asks nobody again. Not in the paper.",
    )
    min_votes: int = Field(
        2,
        ge=1,
        description="Fewest readable votes for a decision; with fewer the classifier's thresholds decide. Not in the "
        "paper.",
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.min_votes > self.votes:
            raise ValueError(f"min_votes: {self.min_votes} readable votes can never come of {self.votes} votes")
        return self


class OverlapVotesSettings(Settings):
    """Votes of a model on problems that are near a benchmark's row, but not near enough to leave by their scores."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = Field(
        None,
        description="The model that is asked whether a problem is a benchmark's in other words; off if missing. It "
        "reads the problem and one such row.",
    )
    nearest: int = Field(
        2,
        ge=1,
        le=5,
        description="With how many of the nearest rows a problem is asked about, at most. Not in the paper.",
    )
    ask_from: float = Field(
        0.5,
        ge=0.35,
        le=1,
        description="Least score of a row with which a problem that stays by `decontamination` is asked about; of "
        "programs with what running both adds. Not in the paper.",
    )
    votes: int = Field(3, ge=1, description="Votes per problem. Not in the paper.")
    threshold: float = Field(
        0.6,
        gt=0,
        le=1,
        description="A problem is dropped where at least this share of its readable votes says that both are the "
        "same. Another threshold asks nobody again. Not in the paper.",
    )
    min_votes: int = Field(
        2, ge=1, description="Fewest readable votes for a decision; with fewer the problem is kept. Not in the paper."
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.min_votes > self.votes:
            raise ValueError(f"min_votes: {self.min_votes} readable votes can never come of {self.votes} votes")
        return self


class LlmJudgeSettings(Settings):
    """The last tier of the verifier: votes of a model on verdicts that stayed doubtful."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = Field(
        None,
        description="The model that is asked whether a doubtful answer is the reference; off if missing. It never "
        "overrules a verdict that is not doubtful.",
    )
    votes: int = Field(3, ge=1, description="Votes per comparison. Not in the paper.")
    agreement: float = Field(
        1.0,
        gt=0.5,
        le=1,
        description="Least share of the readable votes that must say the same; else the verdict stays doubtful. "
        "Another share asks nobody again. Not in the paper.",
    )
    min_votes: int = Field(2, ge=1, description="Fewest readable votes for a decision. Not in the paper.")
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
    max_calls: int | None = Field(
        None,
        ge=1,
        description="Budget of a difficulty stage in votes; the comparisons of most attempts come first, shard by "
        "shard. No limit where absent.",
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="The same in generated tokens: no comparison is begun once so many are spent. No limit where "
        "absent.",
    )

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.min_votes > self.votes:
            raise ValueError(f"min_votes: {self.min_votes} readable votes can never come of {self.votes} votes")
        return self


class RewritingSettings(Settings):
    """Rewriting of the multiple choice that no rule can open."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = Field(
        None, description="The model that rewrites multiple choice into open questions; off if missing."
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
