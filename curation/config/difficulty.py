"""Difficulty: sampling, bands of pass rates, models, and refreshes."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName

ATTEMPTS = 32
"""Default attempts of a band."""

CHANGES_PER_ERROR = 4
"""Without an anchor, no share of errors can be forecast: a problem is judged again if another decision is this many
times likelier than the `error_rate`.
"""

QUEUE_ABOVE = 0.2
"""Probability of a wrong reference that queues it for review."""

SECOND_MAX_PASS_RATE = 0.875
"""Default `max_pass_rate` of a second stage: 28 of 32."""


class Band(Settings):
    """Which pass rates are neither too easy nor too hard, and when a label is not believed.

    The paper removes problems "never solved" or solved "with a high success rate", and prints no number.
    """

    attempts: int = Field(ATTEMPTS, ge=1)
    """Max attempts per problem. Paper: 16 (docs/explanation/difficulty.md)."""
    min_correct: int = Field(ATTEMPTS // 16, ge=0)
    """Fewer correct attempts: `never_solved`. A 16th of `attempts`, at least 1, if missing."""
    max_pass_rate: float = Field(0.75, ge=0, le=1)
    """Higher: `too_easy`. 0.875 in stage 2 if missing."""
    min_judged: int | None = Field(None, ge=1)
    """Fewer judged attempts: `too_few_attempts`. Half of `attempts` if missing."""
    wrong_label_share: float = Field(0.5, ge=0.5, le=1)
    """`suspected_wrong_label` if a larger share of the judged attempts (at least 3) agree on another answer; 1: off.
    Paper: a majority."""

    @property
    def required_judged(self) -> int:
        """Return `min_judged`, or its default."""
        return self.min_judged if self.min_judged is not None else (self.attempts + 1) // 2

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if "min_correct" not in self.model_fields_set:  # set despite the frozen model: it stays a default
            self.__dict__["min_correct"] = max(1, self.attempts // 16)
        max_correct = int(self.max_pass_rate * self.attempts + 1e-9)
        if self.min_correct > max_correct:
            raise ValueError(
                f"impossible band: min_correct = {self.min_correct}, but max_pass_rate = {self.max_pass_rate} of "
                f"attempts = {self.attempts} allows at most {max_correct} correct; lower min_correct or "
                "raise max_pass_rate"
            )
        if self.required_judged > self.attempts:
            raise ValueError(f"impossible band: min_judged = {self.min_judged} is more than attempts = {self.attempts}")
        return self


class SamplingSettings(Settings):
    """How many of a band's attempts are made. The paper makes all of them."""

    early_stopping: bool = True
    """Stop once no further attempt can change the decision."""
    error_rate: float = Field(0.1, ge=0, le=0.2)
    """Stop earlier, once the decision is predicted with probability 1 - `error_rate`; 0: never
    (docs/explanation/difficulty.md)."""
    max_failed: float = Field(0.01, ge=0, le=1)
    """Max share of problems that servers may refuse (`sampling_failed`); later runs try them again."""


class DifficultyStage(Settings):
    """One pass of difficulty filtering: a model and its band (paper, section 4.1)."""

    model: ModelName
    """Name of a model."""
    band: Band = Band()
    """The pass rates that are kept."""
    sampling: SamplingSettings = SamplingSettings()
    """When to stop."""


class GraderSettings(Settings):
    """How the grader is trained; stage 2 then runs with it (paper, section 4.1)."""

    recipe: str
    """Training recipe, relative to this recipe's folder."""
    band: Band = Band()
    """The pass rates that stage 2 keeps."""


class LabelSettings(Settings):
    """When a reference is not believed: by votes of a stage, or by the probability that it is wrong.

    That probability is learnt from the answers of all models (`curation.difficulty.label_trust`). Programs have tests
    and no reference; votes decide there.
    """

    undigested: ClassVar[frozenset[str]] = frozenset({"reviewers"})

    rule: Literal["auto", "votes", "posterior"] = "auto"
    """What makes a `suspected_wrong_label`. `votes`: a majority of a stage's attempts agrees on another answer (paper);
    `posterior`: probability from the answers of all models; `auto`: the rule that finds planted ones better."""
    drop_above: float = Field(0.5, gt=0, le=1)
    """`suspected_wrong_label` if the reference is wrong with this probability or more."""
    reviewers: int = Field(1, ge=1)
    """People who must agree on a disputed label; 1: the last decision counts."""

    @property
    def queue_above(self) -> float:
        """Return the probability of a wrong reference that queues it for review."""
        return min(QUEUE_ABOVE, self.drop_above)


class RefreshSettings(Settings):
    """What `goldilocks refresh` judges again; all other problems keep their pass rates."""

    max_pass_rate: float = Field(0.99, ge=0, le=1)
    """Max pass rate after a refresh, if the band's is lower; 0: the band's. Paper: 1."""
    error_rate: float = Field(0.025, gt=0, le=0.2)
    """Share of decisions that may differ from those of judging every problem again."""

    @property
    def change_probability(self) -> float:
        """Return the chance of another decision from which problems are judged again."""
        return CHANGES_PER_ERROR * self.error_rate
