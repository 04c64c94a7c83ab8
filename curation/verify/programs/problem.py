"""The data types of judging programs.

    CodeProblem + Submission → CaseRun per test → ProgramResult → Outcome

Verdicts:
  AC  right output and exit code 0
  WA  wrong answer
  TLE CPU seconds (or, much later, wall seconds) over the limit
  MLE memory over the limit
  RTE signal or another exit code
  OLE too much output
  CE  does not compile
  NA  no program in the requested form or language
  BROKEN the judge failed
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from curation.records import Outcome
from curation.verify.programs.comparison import TOKENS, Comparison

CPU_S = 4.0
"""Default CPU seconds per test (the recipe's limit)."""
MEMORY_MB = 300
"""Default MiB per test (the recipe's limit)."""
TESTS_A_GROUP = 20
"""Tests per group of responses (the recipe's number)."""

SCRIPT_FILE = "checker_script.py"
"""Name of a checker's script."""


class CodeLang(StrEnum):
    """Judged languages."""

    PYTHON = "python"
    CPP = "cpp"


class CodeVerdict(StrEnum):
    """The verdict on a test or program."""

    AC = "AC"
    WA = "WA"
    TLE = "TLE"
    MLE = "MLE"
    RTE = "RTE"
    OLE = "OLE"
    CE = "CE"
    NA = "NA"
    BROKEN = "BROKEN"


OUTCOME_OF = dict.fromkeys(CodeVerdict, Outcome.WRONG) | {
    CodeVerdict.AC: Outcome.CORRECT,
    CodeVerdict.NA: Outcome.NO_ANSWER,
    CodeVerdict.BROKEN: Outcome.BROKEN,
}
"""A slow or crashing program is wrong; a broken judge is not."""


@dataclass(frozen=True, slots=True)
class CodeTest:
    """A program's input and expected output."""

    input: bytes
    output: bytes
    name: str = ""


class CheckerKind(StrEnum):
    """How a checker is called and answers."""

    KATTIS = "kattis"  # checker input answer feedback_dir [flags] < output; exit 42 right, 43 wrong
    TESTLIB = "testlib"  # checker input output answer; exit 0 right, 1 wrong, 2 presentation, else its own failure


@dataclass(frozen=True, slots=True)
class Checker:
    """A sandboxed program that judges outputs; ``main`` names the ``sources`` to compile or run."""

    kind: CheckerKind
    lang: CodeLang
    sources: Mapping[str, str]
    main: tuple[str, ...]
    args: tuple[str, ...] = ()


class ValidatorLang(StrEnum):
    """An input validator's language."""

    PYTHON = "python"
    CPP = "cpp"
    CHECKTESTDATA = "checktestdata"  # DOMjudge's grammar of inputs: a .ctd file
    OTHER = "other"  # not run; its source states why


@dataclass(frozen=True, slots=True)
class Validator:
    """A program that exits with ``accepts`` for allowed inputs; files as in `Checker`."""

    lang: ValidatorLang
    sources: Mapping[str, str]
    main: tuple[str, ...]
    args: tuple[str, ...] = ()
    accepts: int = 42


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Arguments and expected value, as Python literals or JSON."""

    args: tuple[object, ...]
    expected: object
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """Tests of a function ``entry``, or of ``Class.method`` on new objects.

    They are ``calls`` or a test ``program``, after ``setup`` (imports, helpers, declarations).
    """

    entry: str
    calls: tuple[FunctionCall, ...] = ()
    program: str | None = None
    setup: str = ""
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A problem for the judge, with limits per test.

    ``lang`` None allows any language; ``id`` seeds the draw of tests, so variants share it; ``refused`` is a reason
    that makes every submission BROKEN; ``processes`` allows child processes.
    """

    id: str
    tests: tuple[CodeTest, ...] = ()
    cpu_s: float = CPU_S
    memory_mb: int = MEMORY_MB
    comparison: Comparison = TOKENS
    checker: Checker | None = None
    function: FunctionTests | None = None
    refused: str | None = None
    lang: CodeLang | None = None
    processes: bool = False

    @property
    def test_count(self) -> int:
        """Return the number of tests or calls; a test program counts once."""
        if self.function is None:
            return len(self.tests)
        return len(self.function.calls) if self.function.program is None else 1


@dataclass(frozen=True, slots=True)
class Submission:
    """A program in a judged language."""

    lang: CodeLang
    code: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Unready:
    """Why a program cannot run: NA, CE, or BROKEN."""

    verdict: CodeVerdict
    how: str


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The run on test ``index``, in seconds and MB."""

    index: int
    verdict: CodeVerdict
    cpu_s: float
    wall_s: float
    memory_mb: float
    how: str = ""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The verdict on a program: AC, or its first failed test's.

    ``first_failed`` indexes the problem's tests; ``how`` describes the failure.
    """

    verdict: CodeVerdict
    first_failed: int | None
    tests: tuple[CaseRun, ...]
    how: str = ""

    @property
    def outcome(self) -> Outcome:
        """Return the attempt's outcome."""
        return OUTCOME_OF[self.verdict]


def draw_tests(problem: CodeProblem, seed: int, count: int | None = TESTS_A_GROUP) -> tuple[int, ...]:
    """Return ``count`` ordered test indices, by problem and seed; None draws all."""
    total = problem.test_count
    if count is None or total <= count:
        return tuple(range(total))
    digest = hashlib.blake2b(f"{problem.id}\x1f{seed}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return tuple(sorted(random.Random(int.from_bytes(digest, "big")).sample(range(total), count)))
