"""The code line: which tests are believed, how many are enough, and how tests are made where they lack."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class AgreementSettings(Settings):
    """When a test is believed. The paper says "sufficient agreement" and "enough tests" and prints no number."""

    min_agreement: float = Field(
        0.75,
        gt=0.5,
        le=1,
        description="Least share of the valid runs of a test that must give one output; else the test is discarded. "
        "Not in the paper.",
    )
    min_votes: int = Field(
        2,
        ge=1,
        description="Valid runs that a test needs where its expected output is not what every one of them gives. "
        "Not in the paper.",
    )
    votes_to_correct: int = Field(
        3,
        ge=2,
        description="Runs that must share one output, none giving the expected one, before that output takes its "
        "place; with fewer the test is discarded. Not in the paper.",
    )
    max_failing_share: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="A solution that crashes or runs out of its limits on more than this share of the tests is set "
        "aside: it does not vote. Not in the paper.",
    )
    max_deviating_share: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="A solution whose output differs from the most frequent one on more than this share of the tests "
        "is set aside, provided that three or more others vote. Not in the paper.",
    )
    max_split_share: float = Field(
        0.3,
        gt=0,
        le=1,
        description="Share of tests without agreement from which on the problem itself is taken to have several valid "
        "outputs: dropped, unless it has a checker. Not in the paper.",
    )
    min_solutions: int = Field(1, ge=1, description="Voting solutions that a problem needs. Not in the paper.")
    min_tests: int = Field(5, ge=1, description="Tests that must stay. The paper says `enough`; not printed.")

    @model_validator(mode="after")
    def _votes(self) -> Self:
        if self.votes_to_correct < self.min_votes:
            raise ValueError(
                f"votes_to_correct = {self.votes_to_correct} is below min_votes = {self.min_votes}; "
                "to change an expected output must take at least as many votes as to doubt it"
            )
        return self
