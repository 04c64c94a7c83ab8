"""Defines the data types of judging programs.

    CodeProblem + Submission → CaseRun per test → ProgramResult → Outcome

Verdicts:
  AC  accepted: ended by itself with exit code 0 and the right output
  WA  wrong answer
  TLE CPU seconds (or, much later, wall seconds) over the limit
  MLE memory over the limit
  RTE ended by a signal or another exit code
  OLE more output than allowed
  CE  does not compile
  NA  no program in the form or language asked for
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
from curation.verify.programs.extraction import CodeLang

CPU_S = 4.0
"""CPU seconds of one test unless the problem sets it (the recipe's limit)."""
MEMORY_MB = 300
"""Memory of one test unless the problem sets it (the recipe's limit)."""
TESTS_A_GROUP = 20
"""Tests drawn at random for one group of responses (the recipe's number)."""

SCRIPT_FILE = "checker_script.py"
"""Among a checker's sources: a script that is given three files and prints 1 or 0, with the program that calls it."""


class CodeVerdict(StrEnum):
    """The verdict on a program, for one test or all."""

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
"""What a program's verdict means for the attempt. A slow or crashing program is wrong; a broken judge is not."""


@dataclass(frozen=True, slots=True)
class CodeTest:
    r"""What a program reads and what is expected of it.

    Example: ``CodeTest(b"1 2\n", b"3\n", "sample/1")``
    """

    input: bytes
    output: bytes
    name: str = ""


class CheckerKind(StrEnum):
    """How a checker is called and how it answers."""

    KATTIS = "kattis"  # checker input answer feedback_dir [flags] < output; exit 42 right, 43 wrong
    TESTLIB = "testlib"  # checker input output answer; exit 0 right, 1 wrong, 2 presentation, else its own failure


@dataclass(frozen=True, slots=True)
class Checker:
    """A program, run in the sandbox, that decides whether an output is right.

    ``sources`` are its files by name; ``main`` those that are compiled or run.

    Example: ``Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"validate.py": "…"}, ("validate.py",))``
    """

    kind: CheckerKind
    lang: CodeLang
    sources: Mapping[str, str]
    main: tuple[str, ...]
    args: tuple[str, ...] = ()


class ValidatorLang(StrEnum):
    """The language of an input validator."""

    PYTHON = "python"
    CPP = "cpp"
    CHECKTESTDATA = "checktestdata"  # DOMjudge's grammar of inputs: a .ctd file
    OTHER = "other"  # one that is not run here: its source says why


@dataclass(frozen=True, slots=True)
class Validator:
    """A program that exits with ``accepts`` if the statement allows an input.

    ``sources`` and ``main`` are those of a `Checker`; checktestdata has one source.

    Example: ``Validator(ValidatorLang.CHECKTESTDATA, {"n.ctd": "INT(1, 9) NEWLINE EOF"}, ("n.ctd",))``
    """

    lang: ValidatorLang
    sources: Mapping[str, str]
    main: tuple[str, ...]
    args: tuple[str, ...] = ()
    accepts: int = 42


class FunctionStyle(StrEnum):
    """Where the tests of a function problem are."""

    CALLS = "calls"  # arguments and expected values as data
    ASSERTIONS = "assertions"  # a test program that asserts


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Arguments and expected value, as Python literals or JSON values.

    Example: ``FunctionCall(([2, 7, 11, 15], 9), [0, 1])``
    """

    args: tuple[object, ...]
    expected: object
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionTests:
    r"""The tests of a function ``entry``, or of ``Class.method`` on a new object per call.

    They are ``calls``, or a test ``program`` (HumanEval, MBPP, HumanEval-X's C++ ``main``) in a box of its own, which
    may also use ``setup``: imports, helpers, in C++ the declaration.

    Example: ``FunctionTests("add", program="def check(candidate):\n    assert candidate(1, 2) == 3\n")``
    """

    entry: str
    calls: tuple[FunctionCall, ...] = ()
    program: str | None = None
    setup: str = ""
    tolerance: float | None = None

    @property
    def style(self) -> FunctionStyle:
        """Return whether the tests are calls or a program."""
        return FunctionStyle.CALLS if self.program is None else FunctionStyle.ASSERTIONS


@dataclass(frozen=True, slots=True)
class CodeProblem:
    r"""A problem as the judge needs it, without statement.

    ``cpu_s`` and ``memory_mb`` are per test; ``lang`` None allows any judged language; ``id`` seeds the draw of tests,
    so variants share it; ``refused`` makes every submission BROKEN with that reason; ``processes`` allows programs to
    start processes, all of which count.

    Example: ``CodeProblem("two-sum", (CodeTest(b"1 2\n", b"3\n"),))``
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
        """Return the number of tests: each call counts one, a test program one."""
        if self.function is None:
            return len(self.tests)
        return len(self.function.calls) if self.function.style is FunctionStyle.CALLS else 1


@dataclass(frozen=True, slots=True)
class Submission:
    """A program in a judged language.

    Example: ``Submission(CodeLang.PYTHON, "print(sum(map(int, input().split())))")``
    """

    lang: CodeLang
    code: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The run on the test of this ``index``, in seconds and MB."""

    index: int
    verdict: CodeVerdict
    cpu_s: float
    wall_s: float
    memory_mb: float
    how: str = ""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The verdict on a program: AC, or that of its first failed test.

    ``first_failed`` is an index into the problem's tests; ``tests`` are the runs in order, up to the first failure
    unless all were requested; ``how`` describes the failure.
    """

    verdict: CodeVerdict
    first_failed: int | None
    tests: tuple[CaseRun, ...]
    how: str = ""

    @property
    def outcome(self) -> Outcome:
        """Return what the verdict means for the attempt."""
        return OUTCOME_OF[self.verdict]


def draw_tests(problem: CodeProblem, seed: int, count: int | None = TESTS_A_GROUP) -> tuple[int, ...]:
    """Return the indices of ``count`` distinct tests for a group of responses; None for all.

    Problem and seed determine them in every process; they keep the problem's order.
    """
    total = problem.test_count
    if count is None or total <= count:
        return tuple(range(total))
    digest = hashlib.blake2b(f"{problem.id}\x1f{seed}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return tuple(sorted(random.Random(int.from_bytes(digest, "big")).sample(range(total), count)))
