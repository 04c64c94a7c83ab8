"""Whether two tasks behave the same: programs and examples of a row and of a benchmark row, run on one another.

A rephrased task keeps what it computes. So for the benchmark rows that are near a row,

  the row's examples    (stated, or given as tests) are run on the benchmark's program, if it has one;
  the row's program     (a right solution, or one that the statement holds) is run on the examples of both, and must
                        return what the benchmark's program returns, or where there is none what its examples say.

What comes of it is a `Trial`: how many calls agreed, how many differed, and a word that `overlap` adds to the score.
Values are compared leniently (a port prints 1 for True), and a word needs agreement on two different values: that
``f(2)`` is true of both says little.

Invariants: programs run in the sandbox only, and a trial depends on the two rows alone; a call that fails or takes too
long says nothing, unless the row brings a program or tests, and then that the tasks differ. Programs are Python's.

Not here: how near the texts are (`overlap`); how examples are read (`examples`).
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from curation.filters.decontamination.examples import MOST, Example, as_data, read_examples
from curation.records import VerifierError
from curation.verify.programs.extraction import CodeLang, code_blocks
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits
from curation.verify.sandbox.inside.functions import trial

SAME, MOSTLY, OTHER = "same", "mostly", "other"

TRIAL_WORTH: Mapping[str, float] = {SAME: 0.32, MOSTLY: 0.17, OTHER: -0.08}
"""What adds to the score of a pair of programs that were run on one another, by the word of their trial."""

LIMITS = Limits(cpu_s=8.0, memory_mb=300, output_bytes=4 << 20)
"""Of all runs of one row."""

_LETTERS = 4000
"""Letters of a test's input and output that are run here; longer ones are left out."""
_READS = re.compile(r"(?<![\w.])input\s*\(|\bstdin\b|\bopen\(0\b")
"""What a program that reads standard input holds."""
_RICH = 4
"""Letters of a text, or twice the parts of a list, from which on one value counts as two: chance does not meet it."""


@dataclass(frozen=True, slots=True)
class Side:
    """What can be run of a task: its examples, and a program with the name of its function (empty: reads and prints).

    ``is_given``: the examples are tests that came with the row, or it has a program: they can speak against a pair.
    """

    examples: tuple[Example, ...] = ()
    program: tuple[str, str] | None = None
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """What running two tasks on one another came to.

    Example: ``Trial("same", 5, 5)``
    """

    word: str | None
    agreed: int
    calls: int


def side_of(
    statement: str | None, programs: Sequence[str] = (), problem: CodeProblem | None = None, tests: object = None
) -> Side:
    """Return what can be run of a row.

    Args:
        programs: right solutions in Python; the first that can be read counts. One without its head is read behind
            the statement, as HumanEval has them. Where absent, a program in the statement counts.
        problem: the tests that came with the row.
        tests: a text with assertions; or objects of an ``input`` and an ``output``; also as JSON, in lists.
    """
    text = statement or ""
    given = [*_tests_of(problem), *_read_tests(tests)]
    examples = (*given, *read_examples(text))[:MOST]
    function = problem.function.entry if problem is not None and problem.function is not None else None
    is_read = any(_is_read(example) for example in given)
    blocks = [block.code for block in code_blocks(text, finished=True)]
    for source in (*(form for code in programs for form in (code, text + code)), text, *blocks):
        names = _function_names(source)
        if names is None:
            continue
        if source in programs and (is_read or (function is None and _READS.search(source))):
            return Side(examples, (source, ""), True)
        if names:
            return Side(examples, (source, _entry(names, function, examples)), True)
    return Side(examples, None, bool(given))


def _read_tests(cell: object) -> list[Example]:
    """Return the tests of a cell as examples; what cannot be read as tests is none."""
    if isinstance(cell, str):
        if not cell.lstrip().startswith(("[", "{")):
            return read_examples(cell)
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return []
    if isinstance(cell, list):
        if cell and all(isinstance(part, str) for part in cell):
            return read_examples("\n".join(cell))
        return [example for part in cell for example in _read_tests(part)][:MOST]
    given, told = (cell.get("input"), cell.get("output")) if isinstance(cell, dict) else (None, None)
    is_pair = isinstance(given, str) and isinstance(told, str) and len(given) + len(told) <= _LETTERS
    return [Example("", (given,), told, True)] if is_pair else []


def _tests_of(problem: CodeProblem | None) -> list[Example]:
    """Return the tests of a row as examples."""
    if problem is None:
        return []
    if problem.function is None:
        pairs = [
            (test.input.decode("utf-8", "replace"), test.output.decode("utf-8", "replace")) for test in problem.tests
        ]
        return [Example("", (given,), told, True) for given, told in pairs if len(given) + len(told) <= _LETTERS][:MOST]
    if problem.function.program is not None:
        return read_examples(problem.function.program)
    name = problem.function.entry.rpartition(".")[2]
    calls = [call for call in problem.function.calls if not call.kwargs]
    return [Example(name, tuple(as_data(part) for part in call.args), as_data(call.expected), True) for call in calls][
        :MOST
    ]


def _function_names(source: str) -> list[str] | None:
    """Return the functions of a program that do something, those of ``Solution`` too; None where it cannot be read."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    names = [part.name for part in body if isinstance(part, ast.FunctionDef) and _does_something(part)]
    for part in body:
        if isinstance(part, ast.ClassDef) and part.name == "Solution":
            names += [f"Solution.{method.name}" for method in part.body if isinstance(method, ast.FunctionDef)]
    return names


def _does_something(function: ast.FunctionDef) -> bool:
    is_text = [isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in function.body]
    return any(not text and not isinstance(part, ast.Pass) for part, text in zip(function.body, is_text, strict=True))


def _entry(names: Sequence[str], function: str | None, examples: Sequence[Example]) -> str:
    """Return which function is asked for: the one that is named, that the examples call, or the last."""
    last = {name.rpartition(".")[2]: name for name in names}
    if function is not None and function.rpartition(".")[2] in last:
        return last[function.rpartition(".")[2]]
    called = Counter(example.name for example in examples if example.name in last)
    return last[called.most_common(1)[0][0]] if called else names[-1]


def try_pairs(runner: Runner, rows: Sequence[tuple[Side, Sequence[Side]]]) -> list[list[Trial]]:
    """Return what each row comes to with each of its benchmark rows, in order; a run a row.

    Raises:
        VerifierError: the sandbox failed.
    """
    return [list(trials) for trials in runner.threads.map(lambda row: _try_row(runner, *row), rows)]


@cache
def _boxed() -> str:
    return Path(trial.__file__).read_text("utf-8")


def _try_row(runner: Runner, row: Side, others: Sequence[Side]) -> Iterator[Trial]:
    examples: list[Example] = list(row.examples)
    own = range(len(examples))
    parts = []
    for other in others:
        parts.append(range(len(examples), len(examples) + len(other.examples)))
        examples += other.examples
    programs = [(*other.program, [*own, *part]) for other, part in zip(others, parts, strict=True) if other.program]
    if row.program is not None:
        programs.insert(0, (*row.program, list(range(len(examples)))))
    if not programs or not examples:
        return iter([Trial(None, 0, 0)] * len(others))
    lines = iter(_run(runner, programs, examples))
    mine = next(lines, None) if row.program is not None else None
    trials = []
    for other, part in zip(others, parts, strict=True):
        theirs = next(lines, None) if other.program is not None else None
        stated = [at for at in own if other.program is not None and bool(other.program[1]) != _is_read(examples[at])]
        trials.append(_weigh(row, examples, (stated, own, part), mine, theirs))
    return iter(trials)


def _run(
    runner: Runner, programs: Sequence[tuple[str, str, list[int]]], examples: Sequence[Example]
) -> list[dict[int, Any]]:
    """Return for each program what it made of its examples, by their places: ``[value]``; what failed is absent."""
    given = [example.args[0] if _is_read(example) else list(example.args) for example in examples]
    request = json.dumps({"programs": programs, "examples": given}).encode()
    program = Program(CodeLang.PYTHON, _boxed())
    with closing(runner.tools.run(program, [request], LIMITS)) as results:
        (ran,) = results
    if ran.ending is Ending.BROKEN:
        raise VerifierError(f"the sandbox failed while two tasks were compared: {ran.note}")
    lines: list[dict[int, Any]] = []
    for line, (_, _, places) in zip(ran.stdout.decode("utf-8", "replace").splitlines(), programs, strict=False):
        try:
            values = json.loads(line)
            lines.append({at: value[0] for at, value in zip(places, values, strict=True) if value is not None})
        except (ValueError, TypeError, KeyError, RecursionError):
            lines.append({})  # a foreign program wrote between the lines
    return lines


def _is_read(example: Example) -> bool:
    return not example.name and len(example.args) == 1 and isinstance(example.args[0], str)


def _weigh(
    row: Side,
    examples: Sequence[Example],
    parts: tuple[Sequence[int], Sequence[int], Sequence[int]],
    mine: dict[int, Any] | None,
    theirs: dict[int, Any] | None,
) -> Trial:
    """Return what the values of two tasks say of them.

    Args:
        parts: the places of the row's examples that the benchmark's program could take, of all, and of the other's.
        mine, theirs: the values of their programs by place; None where there is no program, or it was not run.
    """
    agreed = differed = failed = ran = 0
    values: set[str] = set()
    if theirs is not None:
        for at in parts[0]:
            if examples[at].is_told:
                is_same = _same(theirs[at], examples[at].expected) if at in theirs else None
                failed += at not in theirs
                agreed, differed = agreed + (is_same is True), differed + (is_same is False)
                values |= _counted(theirs[at]) if is_same else set()
    told_other = differed
    if mine is not None:
        known = theirs if theirs is not None else {at: examples[at].expected for at in parts[2] if examples[at].is_told}
        for at in (*parts[1], *parts[2]):
            if at in known:
                is_same = _same(mine[at], known[at]) if at in mine else False
                ran += is_same is not None
                agreed, differed = agreed + (is_same is True), differed + (is_same is False)
                values |= _counted(known[at]) if is_same else set()
    ran_other = differed - told_other
    word = None
    if ran >= 2 and not ran_other and len(values) >= 2:
        word = SAME
    elif ran < 2 and len(values) >= 2 and agreed >= failed and agreed > 2 * differed:
        word = SAME if not differed and agreed >= 2 else MOSTLY
    elif row.is_given and (against := differed + failed) >= 2 and against > 0.3 * (agreed + against):
        word = OTHER
    return Trial(word, agreed, agreed + differed + failed)


def _counted(value: Any) -> set[str]:
    """Return what a value counts for: itself, and a rich one twice."""
    text = json.dumps(value)
    parts = len(value) * 2 if isinstance(value, (list, dict)) else len(value) if isinstance(value, str) else 0
    return {text, f"{text} again"} if parts >= _RICH + isinstance(value, (list, dict)) else {text}


_NOTHING: tuple[object, ...] = (-1, "", "None", "null", "NULL", [])
"""How ports write None."""


def _same(left: Any, right: Any) -> bool | None:
    """Return whether two values are the same, as a port may write it; None where that cannot be said."""
    if (left is None) != (right is None) and (left in _NOTHING or right in _NOTHING):
        return None
    return _equal(left, right)


def _equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    left, right = (list(value.values()) if isinstance(value, dict) else value for value in (left, right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return _truth(left) is not None and _truth(left) == _truth(right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        try:
            return abs(left - right) <= 1e-4 * max(1.0, abs(left), abs(right))
        except OverflowError:
            return left == right
    if isinstance(left, str) and isinstance(right, str):
        return left.split() == right.split()
    return isinstance(left, (int, float, str)) and isinstance(right, (int, float, str)) and str(left) == str(right)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(value.lower())
    return bool(value) if isinstance(value, (bool, int, float)) and value in (0, 1) else None


def with_trial_worth() -> pl.Expr:
    """Return the score of a pair with what running both tasks on one another adds to it, or takes from it."""
    worth = pl.col("trial").replace_strict(TRIAL_WORTH, default=0.0, return_dtype=pl.Float64)
    return pl.col("score") + pl.when(pl.col("method") == "ngram").then(0.0).otherwise(worth)


def with_trials(
    scores: pl.DataFrame, rows: Sequence[Side], benchmarks: Mapping[tuple[str, int], Side], runner: Runner
) -> pl.DataFrame:
    """Return scores (`overlap.SCORE`) with ``trial``, ``agreed`` and ``calls`` of each pair.

    Args:
        rows: by the position in the frame that was scored.
        benchmarks: by the benchmark's name and the row's position there.

    Raises:
        VerifierError: the sandbox failed, or there is none.
    """
    keys = ["row", "benchmark", "benchmark_row"]
    pairs = scores.group_by("row", maintain_order=True).agg(
        pair=pl.struct("benchmark", "benchmark_row").unique(maintain_order=True)
    )
    work = [
        (row, [(str(pair["benchmark"]), int(pair["benchmark_row"])) for pair in near])
        for row, near in zip(pairs["row"], pairs["pair"].to_list(), strict=True)
    ]
    trials = try_pairs(runner, [(rows[row], [benchmarks[place] for place in near]) for row, near in work])
    found = [
        (row, *place, one.word, one.agreed, one.calls)
        for (row, near), line in zip(work, trials, strict=True)
        for place, one in zip(near, line, strict=True)
    ]
    columns = {name: scores.schema[name] for name in (*keys, "trial", "agreed", "calls")}
    frame = pl.DataFrame(found, columns, orient="row")
    joined = scores.drop("trial", "agreed", "calls").join(frame, on=keys, how="left", maintain_order="left")
    return joined.select(scores.columns)
