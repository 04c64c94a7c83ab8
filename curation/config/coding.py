"""The code pipeline, and columns of code problems' sources."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from curation.config.base import Settings


class TestColumns(Settings):
    """The column of one part of a source's tests."""

    __test__ = False  # not a test class, whatever pytest thinks

    path: str | None = None
    """Path of a list of {input, output} objects, of an object with lists of inputs and outputs (also as JSON text or
    packed as in LiveCodeBench), of a list of asserts, or of a test program; the row itself if missing."""
    inputs: str = "input"
    """Name of the input in each object, or of their list."""
    outputs: str = "output"
    """Name of the expected output, or of their list."""
    origin: str = "given"
    """Name of this part: public, private or official."""


class SolutionColumns(Settings):
    """The columns of one part of a source's solutions."""

    path: str
    """Path of a program, a list of programs or objects, or an object of lists, also as JSON
    (`no_solution`)."""
    code: str | None = None
    """Name of the program in each object, or of their list."""
    language: str | None = None
    """Name of its language there; Python if missing."""
    languages: dict[str, Literal["python", "cpp"]] = Field({})
    """The source's names of languages, as in `3 = "python"`; others are left out."""
    right: bool | None = True
    """Whether all programs of this part are right."""
    verdict: str | None = None
    """Name of the verdict in each object, instead of `right`."""
    limit: int | None = Field(None, ge=1)
    """Max programs per problem."""


class CodeColumns(Settings):
    """The columns of a code source, after those of the statement."""

    parts: dict[str, str] = Field({})
    """Further parts of the statement, heading = path, appended in order."""
    examples: TestColumns | None = None
    """Examples, appended to the statement."""
    tests: tuple[TestColumns, ...] = Field(strict=False, min_length=1)
    """Columns of tests."""
    solutions: tuple[SolutionColumns, ...] = Field((), strict=False)
    """Columns of solutions."""
    time_limit: str | None = None
    """Path of the time limit: seconds, text such as `2 seconds`, or {seconds, nanos}."""
    memory_limit: str | None = None
    """Path of the memory limit: a number, or text with its unit."""
    memory_unit: Literal["bytes", "kb", "mb"] = "mb"
    """Unit of a memory limit that is a number."""
    checker: str | None = None
    """Path of a checker program (Python; `several_outputs`)."""
    function: str | None = None
    """Path of the function's name, also inside JSON text: `input_output.fn_name`; by the asserts if missing."""
    starter: str | None = None
    """Path of code that a solution begins with or its asserts use."""
    interactive: str | None = None
    """Path that is not empty if the problem is interactive."""
    input_file: tuple[str, ...] = ()
    """Paths that are set if a program reads or writes files."""
    pictures: str | None = None
    """Path of the number of pictures in the statement."""


class CodeSettings(Settings):
    """The code pipeline: solutions are run on tests, tests that they agree on are kept, missing ones are made."""

    time_s: ClassVar[float] = 4.0
    """CPU seconds per test, if the source gives none; paper: 4."""
    memory_mb: int = Field(300, ge=16)
    """MiB per test, if the source gives none; paper: 300."""
    min_tests: int = Field(5, ge=1)
    """Min tests of a problem (`too_few_tests`)."""
    make_tests: bool = True
    """Make missing tests."""
    languages: tuple[Literal["python", "cpp"], ...] = Field(("python", "cpp"), min_length=1)
    """Languages of the solutions; paper: both."""
