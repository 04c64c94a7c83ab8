"""Difficulty: which pass rates are neither too easy nor too hard."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName
from curation.config.sampling import SamplingSettings

ATTEMPTS = 32
"""Attempts of a band that names no number."""


class Band(Settings):
    """Which pass rates are neither too easy nor too hard, and when a label is not believed.

    The paper prints none of these numbers: it removes problems "never solved" or solved "with a high success rate".
    """

    attempts: int = Field(
        ATTEMPTS,
        ge=1,
        description="Attempts per problem, at most. 16 in the paper; 32 that stop at an `error_rate` are fewer and "
        "decide better (docs/explanation/difficulty.md).",
    )
    min_correct: int = Field(
        ATTEMPTS // 16,
        ge=0,
        description="Fewer correct attempts: never_solved. One in 16 of `attempts`, at least 1, where absent. Not in "
        "the paper.",
    )
    max_pass_rate: float = Field(0.75, ge=0, le=1, description="Higher: too_easy. Not in the paper; 24 of 32 here.")
    min_judged: int | None = Field(
        None,
        ge=1,
        description="Fewer attempts that the verifier could judge: too_few_attempts. Half of `attempts`, rounded up, "
        "where absent. Not in the paper.",
    )
    wrong_label_share: float = Field(
        0.5,
        ge=0.5,
        le=1,
        description="suspected_wrong_label where more than this share of the judged attempts agree on one answer "
        "that is not the reference. 1 switches the rule off. The paper says `majority`.",
    )
    wrong_label_votes: int = Field(3, ge=2, description="… and at least so many attempts do. Not in the paper.")

    @property
    def least_judged(self) -> int:
        """Return `min_judged`, or its default."""
        return self.min_judged if self.min_judged is not None else (self.attempts + 1) // 2

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if "min_correct" not in self.model_fields_set:  # set past the frozen model, so that it stays a default
            self.__dict__["min_correct"] = max(1, self.attempts // 16)
        most = int(self.max_pass_rate * self.attempts + 1e-9)
        if self.min_correct > most:
            raise ValueError(
                f"impossible band: min_correct = {self.min_correct}, but max_pass_rate = {self.max_pass_rate} of "
                f"attempts = {self.attempts} allows at most {most} correct; lower min_correct or raise max_pass_rate"
            )
        if self.least_judged > self.attempts:
            raise ValueError(f"impossible band: min_judged = {self.min_judged} is more than attempts = {self.attempts}")
        return self


class DifficultyStage(Settings):
    """One pass of difficulty filtering: a model and its band."""

    model: ModelName = Field(description="The model that answers: the NAME of a table `[models.NAME]`.")
    band: Band = Field(default_factory=Band, description="What is kept.")
    sampling: SamplingSettings = Field(default_factory=SamplingSettings, description="When to stop.")


class SecondBand(Band):
    """The band of stage 2."""

    max_pass_rate: float = Field(0.875, ge=0, le=1, description="Higher: too_easy. Not in the paper; 28 of 32 here.")


class SecondStage(DifficultyStage):
    """Stage 2: a stronger model re-grades the entire original set (paper, section 4.1)."""

    band: SecondBand = Field(default_factory=SecondBand, description="What is kept; stage 1's settings if missing.")


class LabelSettings(Settings):
    """When a reference is not believed: by votes of a stage, or by the probability that it is wrong.

    That probability comes from the answers of all stages' policies, with reliabilities that are learnt
    (`curation.difficulty.label_trust`). Programs have tests and no reference; there votes decide.
    """

    undigested: ClassVar[frozenset[str]] = frozenset({"reviewers"})

    rule: Literal["auto", "votes", "posterior"] = Field(
        "auto",
        description="`votes`: a majority of a stage's attempts agrees on another answer, as in the paper "
        "(`wrong_label_share` and `wrong_label_votes` of a stage's band). `posterior`: by the probability that the "
        "reference is wrong, from the answers of all policies so far; the rule of votes is off. `auto`: by the one "
        "that finds wrong references better that are planted in the run's own votes; by votes where too few problems "
        "were judged to tell. Not in the paper.",
    )
    drop_above: float = Field(
        0.5,
        gt=0,
        le=1,
        description="suspected_wrong_label where the reference is wrong with at least this probability. One policy's "
        "word alone does not reach 0.5 while wrong labels are rare; 0.8 asks for more than two. Not in the paper.",
    )
    queue_above: float = Field(
        0.2,
        gt=0,
        le=1,
        description="Queued for people's review where the reference is wrong with at least this probability, kept or "
        "not. Not in the paper.",
    )
    reviewers: int = Field(
        1,
        ge=1,
        description="How many people must say the same of a disputed label before their verdict counts; with 1 the "
        "last word counts. Not in the paper.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.queue_above > self.drop_above:
            raise ValueError(
                f"queue_above = {self.queue_above} is above drop_above = {self.drop_above}; what is dropped is queued "
                "too: lower queue_above"
            )
        return self
