"""The code pipeline, and the columns of sources of code problems."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from curation.config.base import Settings


class TestColumns(Settings):
    """The column of one part of a source's tests."""

    __test__ = False  # not a test class, whatever pytest thinks

    path: str | None = Field(
        None,
        description="Dotted path of a list of {input, output} objects, of an object with a list of inputs and one of "
        "outputs, both also as JSON text or packed as LiveCodeBench's, of a list of asserts, or of a test program; the "
        "row itself if missing.",
    )
    inputs: str = Field("input", description="Name of the input in each object, or of the list of inputs.")
    outputs: str = Field("output", description="Name of the expected output, or of the list of expected outputs.")
    origin: str = Field("given", description="What this part is called: public, private or official.")


class SolutionColumns(Settings):
    """The columns of one part of a source's solutions."""

    path: str = Field(
        description="Dotted path of a program, a list of programs, of objects, or an object of lists, also as JSON."
    )
    code: str | None = Field(None, description="Name of the program in each object, or of the list of programs.")
    language: str | None = Field(
        None, description="Name of its language there, which `languages` translates; Python if missing."
    )
    languages: dict[str, Literal["python", "cpp"]] = Field(
        {},
        description='Names of the source for the languages that are run, as in `3 = "python"`; others are left out.',
    )
    right: bool | None = Field(True, description="Whether all programs of this part are right.")
    verdict: str | None = Field(None, description="Name of the source's verdict in each object, instead of `right`.")
    limit: int | None = Field(None, ge=1, description="Max programs of this part for a problem.")


class CodeColumns(Settings):
    """The columns of a code source, after those of the statement."""

    parts: dict[str, str] = Field(
        {}, description="Further parts of the statement: heading = path, appended in order if not empty."
    )
    examples: TestColumns | None = Field(None, description="Examples shown in the statement, appended to it.")
    tests: tuple[TestColumns, ...] = Field(strict=False, min_length=1, description="Columns of tests.")
    solutions: tuple[SolutionColumns, ...] = Field((), strict=False, description="Columns of solutions.")
    time_limit: str | None = Field(
        None, description="Path of the time limit: seconds, text such as `2 seconds`, or {seconds, nanos}."
    )
    memory_limit: str | None = Field(None, description="Path of the memory limit: a number, or text with its unit.")
    memory_unit: Literal["bytes", "kb", "mb"] = Field("mb", description="Unit of a memory limit that is a number.")
    checker: str | None = Field(None, description="Path of a checker program (Python).")
    function: str | None = Field(
        None,
        description="Path of the name of a function to write, also inside JSON text: `input_output.fn_name`; that of "
        "the asserts if missing.",
    )
    starter: str | None = Field(
        None, description="Path of the code that a solution begins with, or that its asserts use."
    )
    interactive: str | None = Field(None, description="Path that is not empty if the problem is interactive.")
    input_file: tuple[str, ...] = Field(
        (), description="Paths that name a file, or a mode other than `stdio`, if files are read or written."
    )
    pictures: str | None = Field(None, description="Path of the number of pictures in the statement.")


class CodeSettings(Settings):
    """The code pipeline: solutions are run on tests, tests that they agree on are kept, missing ones are made."""

    time_s: float = Field(
        4.0,
        gt=0,
        description="CPU seconds of one test if the source names no limit and no solution shows one; paper: 4.",
    )
    memory_mb: int = Field(300, ge=16, description="Memory of one test if the source names none, MiB; paper: 300.")
    min_tests: int = Field(5, ge=1, description="Tests that a problem needs.")
    make_tests: bool = Field(True, description="Whether missing tests are made.")
    languages: tuple[Literal["python", "cpp"], ...] = Field(
        ("python", "cpp"), min_length=1, description="Languages that problems are asked for in; paper: both."
    )
