"""The code pipeline: which tests are believed, how many are enough, and how tests are made where they lack."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.policies import ModelName
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed


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
    origin: str = Field("given", description="What this part is called: public, private or official.")
    packed: Literal["json", "zlib"] = Field(
        "json",
        description="How text at `path` is packed: `json`, or `zlib`: JSON that was pickled, compressed and written in "
        "base64, as LiveCodeBench's private tests are; nothing but text is unpickled.",
    )


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


class ValidationSettings(Settings):
    """When an input validator is believed. The paper has none."""

    max_refused: float = Field(
        0.4,
        ge=0,
        lt=1,
        description="A validator that refuses more than this share of the given inputs, and more than one if it is the "
        "package's, is itself taken to be broken and set aside; else what it refuses is dropped. Not in the paper.",
    )
    min_spoiled_refused: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Least share of spoiled inputs, made of given ones, that a package's validator must refuse. Not in "
        "the paper.",
    )
    min_spoiled_refused_model: float = Field(
        0.8,
        ge=0,
        le=1,
        description="The same of a validator that a model wrote. Not in the paper.",
    )


class ExecutionMatrixSettings(Settings):
    """How solutions are run on tests, and what one run may use."""

    time_s: float = Field(
        4.0,
        gt=0,
        description="CPU seconds of one test where neither the source names a limit nor a right solution shows one. "
        "4 in the paper.",
    )
    memory_mb: int = Field(
        300, ge=16, description="Memory of one test, MiB, where the source names none. 300 in paper."
    )
    multiplier: float = Field(
        5.0,
        ge=1,
        description="Where the source names no time limit: the slowest right solution's worst test times this, in "
        "whole seconds, as the Kattis format has it. Not in the paper.",
    )
    measure_s: float = Field(
        10.0, gt=0, description="Most CPU seconds of one test while a limit is measured. Not in the paper."
    )
    slack: float = Field(
        2.0,
        ge=1,
        description="Solutions not known to be wrong may take so many times the problem's limit while they vote, for "
        "this machine may be slower than the source's. Not in the paper.",
    )
    give_up: int = Field(
        3,
        ge=1,
        description="A solution that ran out of its time or memory on so many tests is not run on the others; there it "
        "counts as failing. Not in the paper.",
    )
    right_solutions: int = Field(
        8, ge=1, description="At most so many solutions of each language that may vote. Not in the paper."
    )
    wrong_solutions: int = Field(
        8, ge=0, description="At most so many solutions of each language that are known to be wrong. Not in the paper."
    )
    tests: int = Field(200, ge=1, description="At most so many tests of a problem, from the front. Not in the paper.")


class TestGenerationSettings(Settings):
    """Tests made where they lack: by changing existing inputs, and by programs that a model wrote."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    enabled: bool = Field(True, description="Whether tests are made. In the paper, without details.")
    enough: int = Field(
        10,
        ge=1,
        description="Tests are made for problems with fewer tests than this, and for those that a known wrong solution "
        "passes. The paper says `enough`; not printed.",
    )
    batch: int = Field(16, ge=1, description="Inputs tried in one round. Not in the paper.")
    rounds: int = Field(8, ge=1, description="Most rounds for one problem. Not in the paper.")
    max_failed: MaxFailed = DEFAULT_MAX_FAILED
    patience: int = Field(
        2,
        ge=1,
        description="With enough tests, stop after so many rounds in which no new test told solutions apart. Not in "
        "the paper.",
    )
    mutants: int = Field(
        8,
        ge=0,
        description="Voting solutions with one mistake put in that pass the given tests, so many of a problem: inputs "
        "on which they fail are hunted as those of known wrong solutions. 0: none. Not in the paper.",
    )
    hunted: int = Field(
        8,
        ge=0,
        description="Inputs of a round beyond `batch` that are chosen, of six times as many small ones and more in the "
        "first two rounds: those on which known wrong solutions and mutants answer otherwise than a voting one, and "
        "those with rare answers. 0: none. Not in the paper.",
    )
    min_votes: int = Field(
        2,
        ge=1,
        description="Solutions that must run through and agree on a generated test: all that vote, and at least so "
        "many. Not in the paper.",
    )
    min_votes_unvalidated: int = Field(
        3,
        ge=1,
        description="The same where no validator is believed and neither statement nor given inputs tell what an input "
        "holds: only agreement says that one of a model's programs is allowed. Not in the paper.",
    )
    keep: int = Field(
        64,
        ge=1,
        description="Of the sound inputs at most so many are kept, or as many as `enough` asks for: first those that "
        "tell wrong solutions apart, then others of every kind. Not in the paper.",
    )
    max_time_share: float = Field(
        0.7,
        gt=0,
        le=1,
        description="A generated test on which a voting solution takes more than this share of its language's time "
        "limit is not kept: other right programs could exceed it. Not in the paper.",
    )
    max_input_kb: int = Field(
        4096,
        ge=1,
        description="Larger inputs are not made, in KB. Statements' limits often ask for a few MB. Not in the paper.",
    )
    keep_large: int = Field(
        3,
        ge=0,
        description="Of the sound inputs of more than 256 KB at most so many are kept, those first that fail most "
        "wrong solutions; they ask for speed. Not in the paper.",
    )
    model: ModelName | None = Field(None, description="The model that writes generator programs; off if missing.")
    responses: int = Field(2, ge=1, description="Responses asked for per problem. Not in the paper.")
    designed: int = Field(
        24, ge=1, description="Inputs that each generator of a model is asked to design one by one. Not in the paper."
    )
    generator_s: float = Field(10.0, gt=0, description="CPU seconds of one generator or validator run. Not in paper.")


class LanguageVariantSettings(Settings):
    """In which languages each problem is asked for. Python and C++ in the paper."""

    languages: tuple[Literal["python", "cpp"], ...] = Field(
        ("python", "cpp"), min_length=1, description="Languages that problems are asked for in."
    )
    python_factor: float = Field(
        3.0, ge=1, description="Time limit of programs in Python, as a multiple of the problem's. Not in the paper."
    )
    cpp_factor: float = Field(
        1.0, ge=1, description="Time limit of programs in C++, as a multiple of the problem's. Not in the paper."
    )
    slowdown: float = Field(
        25.0,
        ge=1,
        description="How much slower Python is taken to be where only C++ solutions are at hand: the Python "
        "variant is asked for where their slowest test times this fits its limit. Not in the paper.",
    )


class CodeSettings(Settings):
    """The code pipeline."""

    execution_matrix: ExecutionMatrixSettings = Field(
        default_factory=ExecutionMatrixSettings, description="Solutions run on tests."
    )
    agreement: AgreementSettings = Field(default_factory=AgreementSettings, description="Which tests are believed.")
    validation: ValidationSettings = Field(
        default_factory=ValidationSettings, description="Which input validators are believed."
    )
    test_generation: TestGenerationSettings = Field(
        default_factory=TestGenerationSettings, description="Tests made where they lack."
    )
    language_variants: LanguageVariantSettings = Field(
        default_factory=LanguageVariantSettings, description="Languages asked for."
    )
    group_tests: int = Field(
        20,
        ge=1,
        description="Tests, drawn by the recipe's seed, that attempts at a problem are judged by. 20 in paper.",
    )
