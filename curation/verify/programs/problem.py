"""Code problems, submissions and their verdicts: the data types of judging programs.

    CodeProblem + Submission → CaseRun per test → ProgramResult → Outcome

A problem asks for a program in one language, or in any. It is judged either by its tests (standard input in, standard
output compared) or by a function's behaviour (`curation.verify.programs.functions`). Expected outputs stay in this
process: the box that runs a submission is given the test's input and nothing else.

Verdicts, as contest judges use them:
  AC  accepted: ended by itself with exit code 0 and the right output
  WA  wrong answer
  TLE CPU seconds (or, much later, wall seconds) over the limit
  MLE memory over the limit
  RTE ended by a signal or with another exit code than 0, whatever it printed
  OLE more output than allowed
  CE  the compiler, or Python's parser, rejects it
  NA  no answer: the response holds no program in the form asked for, or one in another language
  BROKEN the judge failed: reports nothing about the program

This module holds no logic beyond these tables; `curation.verify.programs.running` runs,
`curation.verify.programs.tables` makes a `CodeProblem`, `curation.verify.programs.judge` judges.
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
    """The verdict on a program: on one test, or as a whole."""

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
    """One run of a program: what it reads and what is expected of it.

    Example: ``CodeTest(b"1 2\\n", b"3\\n", "sample/1")``
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
    """A program that decides whether an output is right. It runs in the sandbox like any other program.

    ``sources`` are its files by name, headers it includes among them; ``main`` are those that are compiled or, in
    Python, the one that is run.

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
    """A program that reads an input and reports by its exit code whether the statement allows it.

    ``sources`` and ``main`` are those of a `Checker`; ``accepts`` is the exit code of an allowed input, 42 by Kattis'
    convention. What is written in checktestdata has one source.

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
    """Arguments and the value expected of them, as Python literals or JSON values.

    Example: ``FunctionCall(([2, 7, 11, 15], 9), [0, 1])``
    """

    args: tuple[object, ...]
    expected: object
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """The tests of a function.

    ``entry`` is the function's name, or ``Class.method`` for a method of an object made anew for each call. With
    ``calls`` the results are compared here. With ``program`` (HumanEval's ``check(candidate)``, MBPP's list of
    assertions, HumanEval-X's C++ ``main``) the test program runs in a box of its own, where calls of ``entry`` are
    answered with what the submission returned in another. ``setup`` is what the test program may use besides:
    imports, helper functions of the prompt; for C++ the declaration of the function.

    Example: ``FunctionTests("add", program="def check(candidate):\\n    assert candidate(1, 2) == 3\\n")``
    """

    entry: str
    calls: tuple[FunctionCall, ...] = ()
    program: str | None = None
    setup: str = ""
    tolerance: float | None = None

    @property
    def style(self) -> FunctionStyle:
        """Return whether the tests are calls as data, or a program of assertions."""
        return FunctionStyle.CALLS if self.program is None else FunctionStyle.ASSERTIONS


@dataclass(frozen=True, slots=True)
class CodeProblem:
    """A problem as the judge needs it: no statement, only what a program is measured by.

    ``cpu_s`` and ``memory_mb`` hold for each test. ``lang`` is the language asked for: a program in another one is no
    answer; None where any judged language will do. ``id`` seeds the draw of tests, so language variants share it. Where
    ``refused`` states why a problem cannot be judged (it is interactive, its checker is in a language that is not run),
    each submission is BROKEN with that reason. ``processes``: programs may start processes of their own, all of which
    count; a program's text gives no right.

    Example: ``CodeProblem("two-sum", (CodeTest(b"1 2\\n", b"3\\n"),))``
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
        """Return how many tests judge a program; the calls of a function count one each, a test program counts one."""
        if self.function is None:
            return len(self.tests)
        return len(self.function.calls) if self.function.style is FunctionStyle.CALLS else 1


@dataclass(frozen=True, slots=True)
class Submission:
    """A program in one of the judged languages.

    Example: ``Submission(CodeLang.PYTHON, "print(sum(map(int, input().split())))")``
    """

    lang: CodeLang
    code: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """What happened on the test of this ``index`` in the problem. ``cpu_s`` and ``wall_s`` in seconds, memory in MB."""

    index: int
    verdict: CodeVerdict
    cpu_s: float
    wall_s: float
    memory_mb: float
    how: str = ""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The verdict on a program: that of its first test that is not accepted, or AC.

    ``first_failed`` is an index into the problem's tests. ``tests`` holds the runs in order; it ends with the first
    failure unless every test was asked for. ``how`` states what failed, or names the compiler's first words.
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
    """Return indices of the tests that a whole group of responses is judged by: ``count`` of them, without repetition.

    The same problem and seed draw the same tests in every process. They come in the problem's order, samples first
    as the problem has them. None takes all.
    """
    total = problem.test_count
    if count is None or total <= count:
        return tuple(range(total))
    digest = hashlib.blake2b(f"{problem.id}\x1f{seed}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return tuple(sorted(random.Random(int.from_bytes(digest, "big")).sample(range(total), count)))
