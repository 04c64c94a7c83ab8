"""Makes a `CodeProblem` from tables.

Columns of `JUDGING`:
  comparison  a JSON object of `Comparison`; null: tokens with case, unlike Kattis
  checker     a program instead of a comparison (`checker_of`)
  function    a Python function's name (in Solution if ``starter`` has that class), with a JSON argument per line and
              expected JSON values in tests; or an object of `function_text`
  interactive, files   refused: each attempt is BROKEN
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.records import JUDGING, TEST, SourceError
from curation.verify.programs.comparison import TOKENS, Comparison
from curation.verify.programs.problem import (
    CPU_S,
    MEMORY_MB,
    SCRIPT_FILE,
    Checker,
    CheckerKind,
    CodeLang,
    CodeProblem,
    CodeTest,
    FunctionCall,
    FunctionTests,
    Validator,
    ValidatorLang,
)

_SCRIPT = """\
import contextlib, io, runpy, sys
given, answer = sys.argv[1], sys.argv[2]
output = "/tmp/output"
with open(output, "wb") as file:
    file.write(sys.stdin.buffer.read())
sys.argv = ["checker_script.py", given, answer, output]
printed = io.StringIO()
code = 0
with contextlib.redirect_stdout(printed):
    try:
        runpy.run_path("checker_script.py", run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
lines = printed.getvalue().split()
if code or not lines:
    sys.exit(f"the script ended with {code} and printed {printed.getvalue()[:100]!r}")
try:
    points = float(lines[-1])
except ValueError:
    sys.exit(f"the script printed {printed.getvalue()[:100]!r}, no number")
sys.exit(42 if points > 0 else 43)
"""
"""Runs a checker script on files (input, expected, output), whose last word is 1 or 0."""


def build_problem(
    name: str,
    tests: Iterable[tuple[str, str | None]],
    judging: Mapping[str, Any],
    time_s: float = CPU_S,
    memory_mb: int = MEMORY_MB,
    factor: float = 1.0,
    *,
    lang: CodeLang | None = None,
) -> CodeProblem:
    """Return a problem for the judge.

    Args:
        name: seeds the draw of tests; the variants' group.
        tests: (input, expected output or None).
        time_s, memory_mb: default limits.
        factor: multiplies the time limit.

    Raises:
        SourceError: a column is invalid.
    """
    pairs = [(test_input, expected or "") for test_input, expected in tests]
    try:
        function = function_of(judging, pairs)
        comparison, checker = comparison_of(judging["comparison"]), checker_of(judging)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(f"problem {name!r} has an invalid column: {error!r}") from error
    cases = [] if function is not None else pairs
    return CodeProblem(
        name,
        tuple(CodeTest(_bytes(test_input), _bytes(expected), str(i)) for i, (test_input, expected) in enumerate(cases)),
        cpu_s=(judging["time_limit_s"] or time_s) * factor,
        memory_mb=judging["memory_mb"] or memory_mb,
        comparison=comparison,
        checker=checker,
        function=function,
        refused=_refused(judging),
        lang=lang,
        processes=bool(judging["processes"]),
    )


def set_problems(folder: Path, languages: Mapping[str, tuple[str, CodeLang]]) -> dict[str, CodeProblem]:
    """Return a curated set's programs with tests, by id.

    Args:
        languages: (group, language) by id.

    Raises:
        SourceError: a table or row is invalid.
    """
    rules = {
        row["problem"]: row
        for file in sorted((folder / "judging").glob("*.parquet"))
        for row in _read(file, JUDGING).iter_rows(named=True)
        if row["problem"] in languages
    }
    tests: dict[str, list[tuple[int, str, str]]] = {}
    for file in sorted((folder / "tests").glob("*.parquet")):
        columns = _read(file, TEST).select("problem", "index", "input", "output")
        for name, index, test_input, expected in columns.iter_rows():
            if name not in languages:
                continue
            if test_input is None or expected is None:
                raise SourceError(f"{file}: test {index} of problem {name} has no input or no output")
            tests.setdefault(name, []).append((index, test_input, expected))
    no_rules = dict.fromkeys(JUDGING)
    problems = {}
    for name, (group, lang) in languages.items():
        pairs = [(test_input, expected) for _, test_input, expected in sorted(tests.get(name, ()))]
        try:
            problem = build_problem(group, pairs, rules.get(name, no_rules), lang=lang)
        except SourceError as error:
            raise SourceError(f"{folder}, problem {name}: {error}") from error
        if problem.test_count:
            problems[name] = problem
    return problems


def _read(file: Path, schema: pl.Schema) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, columns=schema.names(), glob=False)
    except (pl.exceptions.ColumnNotFoundError, pl.exceptions.ComputeError) as error:
        raise SourceError(f"{file}: no table of a curated set ({error}); publish the set again.") from error


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison as `JUDGING` holds it."""
    return json.dumps(dataclasses.asdict(comparison))


def comparison_of(text: str | None) -> Comparison:
    """Return the comparison in `JUDGING`."""
    return TOKENS if text is None else Comparison(**json.loads(text))


def checker_text(checker: Checker) -> str:
    """Return a checker as `JUDGING` holds it."""
    return json.dumps({"sources": dict(checker.sources), "main": list(checker.main), "args": list(checker.args)})


def checker_of(judging: Mapping[str, Any]) -> Checker | None:
    """Return a `JUDGING` row's checker."""
    text = judging["checker"]
    if text is None:
        return None
    if judging["checker_kind"] == "script":
        sources = {"checker_main.py": _SCRIPT, SCRIPT_FILE: text}
        return Checker(CheckerKind.KATTIS, CodeLang.PYTHON, sources, ("checker_main.py",))
    kind, lang = CheckerKind(judging["checker_kind"]), CodeLang(judging["checker_lang"])
    if not text.lstrip().startswith('{"sources"'):
        name = "checker.py" if lang is CodeLang.PYTHON else "checker.cpp"
        return Checker(kind, lang, {name: text}, (name,))
    return unpacked_checker(kind, lang, json.loads(text))


def unpacked_checker(kind: CheckerKind, lang: CodeLang, packed: Mapping[str, Any]) -> Checker:
    """Return the checker of an object with sources, main and args."""
    main = tuple(packed["main"])
    missing = [name for name in main if name not in packed["sources"]]
    if missing or not main:
        raise ValueError(f"the checker's main file {''.join(missing[:1])!r} is not among its sources")
    return Checker(kind, lang, packed["sources"], main, tuple(packed["args"]))


def validators_text(validators: Sequence[Validator]) -> str | None:
    """Return validators as `JUDGING` holds them."""
    packed = [dataclasses.asdict(validator) for validator in validators]
    return json.dumps(packed) if packed else None


def validators_of(judging: Mapping[str, Any]) -> tuple[Validator, ...]:
    """Return a `JUDGING` row's validators, which must all accept."""
    return tuple(
        Validator(
            ValidatorLang(packed["lang"]),
            packed["sources"],
            tuple(packed["main"]),
            tuple(packed["args"]),
            packed["accepts"],
        )
        for packed in json.loads(judging["validator"] or "[]")
    )


def function_text(function: FunctionTests) -> str:
    """Return function tests with JSON values as `JUDGING` holds them."""
    calls = [
        {"args": list(call.args), "kwargs": dict(call.kwargs), "expected": call.expected} for call in function.calls
    ]
    body = {"calls": calls} if function.program is None else {"program": function.program}
    return json.dumps({"entry": function.entry, **body, "setup": function.setup, "tolerance": function.tolerance})


def function_of(judging: Mapping[str, Any], tests: Sequence[tuple[str, str]]) -> FunctionTests | None:
    """Return a `JUDGING` row's function tests."""
    text = judging["function"]
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        inside = "class Solution" in (judging["starter"] or "") and "." not in text
        return FunctionTests(f"Solution.{text}" if inside else text, tuple(_call(*test) for test in tests))
    return unpacked_function(json.loads(text))


def unpacked_function(packed: Mapping[str, Any]) -> FunctionTests:
    """Return the function tests of an object of `function_text`."""
    calls = tuple(
        FunctionCall(tuple(call.get("args") or ()), call["expected"], dict(call.get("kwargs") or {}))
        for call in packed.get("calls") or ()
    )
    program = packed.get("program")
    if (program is None) == (not calls):
        raise ValueError("a function has either calls or a program")
    return FunctionTests(packed["entry"], calls, program, packed.get("setup") or "", packed.get("tolerance"))


def _call(arguments: str, expected: str) -> FunctionCall:
    return FunctionCall(tuple(json.loads(line) for line in arguments.split("\n") if line.strip()), json.loads(expected))


def _refused(judging: Mapping[str, Any]) -> str | None:
    if judging["interactive"]:
        return "it is interactive"
    return "it reads or writes files" if judging["files"] else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
