"""The code line: which tests are believed, how many are enough, and how tests are made where they lack."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class TestColumns(Settings):
    """Where one part of a source's tests stands."""

    __test__ = False  # not a test class, whatever pytest thinks

    path: str | None = Field(
        None,
        description="Dotted path of a list of {input, output} objects, or of an object with a list of inputs and one "
        "of outputs; text is read as JSON first. The row itself where absent.",
    )
    inputs: str = Field("input", description="Name of the input in each object, or of the list of inputs.")
    outputs: str = Field("output", description="Name of the expected output, or of the list of expected outputs.")
    origin: str = Field("given", description="What this part is called: public, private, generated, official …")


class SolutionColumns(Settings):
    """Where one part of a source's solutions stands."""

    path: str = Field(
        description="Dotted path of a list of programs, of a list of objects, or of an object of lists; text is read "
        "as JSON first."
    )
    code: str | None = Field(None, description="Name of the program in each object, or of the list of programs.")
    language: str | None = Field(None, description="Name of the language beside it; `languages` translates it.")
    languages: dict[str, Literal["python", "cpp"]] = Field(
        {},
        description='What the source calls the languages that are run, as in `3 = "python"`; others are left out.',
    )
    only: Literal["python", "cpp"] = Field("python", description="The language where no `language` is given.")
    right: bool | None = Field(True, description="Label of all programs of this part; absent: not known.")
    verdict: str | None = Field(None, description="Name of the source's verdict in each object, instead of `right`.")
    accepted: tuple[str, ...] = Field(("OK", "AC", "accepted"), description="Verdicts that mean accepted.")
    limit: int | None = Field(None, ge=1, description="At most so many programs of this part for a problem.")


class CodeColumns(Settings):
    """Which column of a code source is what, beside the statement's own map."""

    parts: dict[str, str] = Field(
        {}, description="Further parts of the statement: heading = path, appended in order where not empty."
    )
    examples: TestColumns | None = Field(None, description="Examples shown in the statement, appended to it.")
    tests: tuple[TestColumns, ...] = Field(strict=False, min_length=1, description="Where tests stand.")
    solutions: tuple[SolutionColumns, ...] = Field((), strict=False, description="Where solutions stand.")
    time_limit: str | None = Field(
        None, description="Path of the time limit: seconds, text such as `2 seconds`, or {seconds, nanos}."
    )
    memory_limit: str | None = Field(None, description="Path of the memory limit: a number, or text with its unit.")
    memory_unit: Literal["bytes", "kb", "mb"] = Field("mb", description="Unit of a memory limit that is a number.")
    checker: str | None = Field(None, description="Path of a checker program (Python).")
    function: str | None = Field(
        None,
        description="Path of the name of a function to write; JSON text is looked into: `input_output.fn_name`.",
    )
    starter: str | None = Field(None, description="Path of the code that a solution begins with.")
    interactive: str | None = Field(None, description="Path that is not empty where the problem is interactive.")
    input_file: tuple[str, ...] = Field(
        (), description="Paths that name a file, or another mode than `stdio`, where files are read or written."
    )
    pictures: str | None = Field(None, description="Path of the number of pictures in the statement.")


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
