"""Rows of code sources and Kattis packages as tests, solutions and limits (`TEST`, `SOLUTION`, `JUDGING`).

Asserts that compare a call with a JSON literal become calls, others a test program.

Invariants: positions count from 0 in the source's order; an unexpected value is a `BadRowError`; programs in
unsupported languages are left out and counted; nothing is unpickled.
"""

from __future__ import annotations

import ast
import base64
import builtins
import json
import pickletools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import polars as pl

from curation.config.sources import CodeColumns, SolutionColumns, TestColumns
from curation.records import JUDGING, SOLUTION, TEST
from curation.sources.kattis import Package
from curation.sources.rows import BadRowError, Row, value_at
from curation.verify.programs.problem import FunctionTests
from curation.verify.programs.tables import checker_text, comparison_text, function_text, validators_text

VERSION = "code_sources@6"

ACCEPTED = ("OK", "AC", "accepted")
"""Verdicts of sources that mean accepted."""

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3}
_MEGABYTES = {"bytes": 1 / (1 << 20), "b": 1 / (1 << 20), "kb": 1 / 1024, "kilobytes": 1 / 1024}
_MEGABYTES |= {"mb": 1.0, "mib": 1.0, "megabytes": 1.0, "gb": 1024.0, "gib": 1024.0, "gigabytes": 1024.0}
MAX_MEMORY_MB = 1 << 20
"""A larger memory limit is in another unit than stated."""

_STANDARD_STREAMS = (None, "", "stdio", "stdin", "stdout", "standard")
_TEST_PROGRAM = re.compile(r"^(?:def check\(|assert )", re.MULTILINE)

MAX_UNPACKED = 1 << 29
"""Bytes that one text may unpack to."""
_TEXTS = frozenset("UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING BINSTRING SHORT_BINSTRING".split())
_IGNORED = frozenset("PROTO FRAME PUT BINPUT LONG_BINPUT MEMOIZE STOP".split())
"""Pickle instructions that push a text, or may surround it."""

Item = TypeVar("Item")
RowTail = tuple[Any, ...]
"""A table's row without its problem."""
Parsed = tuple[list[RowTail], list[RowTail], dict[str, Any]]
"""A problem's tests, solutions and judging."""


@dataclass(slots=True)
class CodeTables:
    """The tables of some `PROBLEM` rows."""

    tests: pl.DataFrame = field(default_factory=TEST.to_frame)
    solutions: pl.DataFrame = field(default_factory=SOLUTION.to_frame)
    judging: pl.DataFrame = field(default_factory=JUDGING.to_frame)
    other_languages: Counter[str] = field(default_factory=Counter)
    """Programs that were left out, by language."""
    unreadable: int = 0
    """Tests left out because they are not UTF-8."""


def package_row(package: Package) -> Row:
    """Return a package as a row; its statement ends in the sample tests."""
    samples = package.problem.tests[: package.samples]
    pairs = [(test.input.decode("utf-8", "replace"), test.output.decode("utf-8", "replace")) for test in samples]
    statement = "\n\n".join((f"# {package.title}", package.statement, *_examples(pairs)))
    return {
        "statement": statement if package.statement else None,
        "name": package.name,
        "title": package.title,
        "license": package.license,
        "source": package.source,
    }


def package_tables(ids: Sequence[str], packages: Sequence[Package], processes: bool = False) -> CodeTables:
    """Return packages' tests, solutions, limits, and reasons against judging (``not_usable``)."""
    schema = pl.Schema({**JUDGING, "not_usable": pl.String()})
    return _tables(ids, packages, _parsed_package, processes, schema)


def _parsed_package(package: Package, tables: CodeTables) -> Parsed:
    tests, solutions = list[RowTail](), list[RowTail]()
    for index, test in enumerate(package.problem.tests):
        try:
            texts = test.input.decode(), test.output.decode()
        except UnicodeDecodeError:
            tables.unreadable += 1
        else:
            tests.append((index, *texts, "sample" if index < package.samples else "secret"))
    for index, submission in enumerate(package.submissions):
        if submission.lang is None:
            tables.other_languages[submission.skipped or "unknown"] += 1
        else:
            right = True if submission.accepted else False if submission.rejected else None
            code = submission.code.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            solutions.append((index, submission.lang.value, code, right, submission.name.partition("/")[0]))
    problem, checker, reasons = package.problem, package.problem.checker, package.reasons
    judging = {
        "time_limit_s": problem.cpu_s if package.has_time_limit else None,
        "memory_mb": problem.memory_mb,
        "comparison": comparison_text(problem.comparison),
        "checker": checker_text(checker) if checker is not None else None,
        "checker_lang": checker.lang.value if checker is not None else None,
        "checker_kind": checker.kind.value if checker is not None else None,
        "validator": validators_text(package.validators),
        "validator_lang": ", ".join(validator.lang.value for validator in package.validators) or None,
        "interactive": "interactive" in reasons or "multi_pass" in reasons,
        "files": False,
        "figures": "image" in reasons,
        "not_usable": "; ".join(f"{word}: {reasons[word]}" for word in ("checker", "scoring") if word in reasons)
        or None,
    }
    return tests, solutions, judging


def _tables(
    ids: Sequence[str],
    items: Sequence[Item],
    parse: Callable[[Item, CodeTables], Parsed],
    processes: bool,
    judging_schema: pl.Schema = JUDGING,
) -> CodeTables:
    """Return the tables of each id's first item, as the duplicates stage keeps."""
    tables, parsed = CodeTables(), dict[str, Parsed]()
    for name, item in zip(ids, items, strict=True):
        if name not in parsed:
            parsed[name] = parse(item, tables)
    tests = [(name, *rest) for name, (own, _, _) in parsed.items() for rest in own]
    solutions = [(name, *rest) for name, (_, own, _) in parsed.items() for rest in own]
    judging = [{"problem": name, "processes": processes, **own} for name, (_, _, own) in parsed.items()]
    tables.tests = pl.DataFrame(tests, TEST, orient="row")
    tables.solutions = pl.DataFrame(solutions, SOLUTION, orient="row")
    tables.judging = pl.DataFrame(judging, judging_schema)
    return tables


def code_tables(ids: Sequence[str], rows: Sequence[Row], columns: CodeColumns, processes: bool = False) -> CodeTables:
    """Return rows' tests, solutions and limits; an id's first row counts.

    Args:
        processes: whether programs may start processes.

    Raises:
        BadRowError: a value has an unexpected form.
    """

    def parse(row: Row, tables: CodeTables) -> Parsed:
        function, starter = _function_of(row, columns), _text(row, columns.starter)
        if (function or "").startswith("{"):
            tests: list[RowTail] = [(0, function, "", columns.tests[0].origin)]  # its program counts as one test
        else:
            pairs = [(*pair, group.origin) for group in columns.tests for pair in parse_tests(row, group, function)]
            tests = [(index, *pair) for index, pair in enumerate(pairs)]
        skipped = tables.other_languages
        programs = [program for own in columns.solutions for program in _solutions_of(row, own, skipped, starter)]
        solutions: list[RowTail] = [(index, *program) for index, program in enumerate(programs)]
        return tests, solutions, {**_judging_of(row, columns), "function": function, "starter": starter}

    return _tables(ids, rows, parse, processes)


def whole_statement(statement: str | None, row: Row, columns: CodeColumns) -> str | None:
    """Return the statement with parts, examples, and the function if missing."""
    if statement is None:
        return None
    blocks = [statement.strip()]
    for heading, path in columns.parts.items():
        text = value_at(row, path)
        if isinstance(text, str) and text.strip():
            blocks.append(f"## {heading}\n\n{text.strip()}")
    if columns.examples is not None:
        blocks += _examples(parse_tests(row, columns.examples))
    first = _first_assert(row, columns)
    if first is not None and re.search(rf"\b{_first_call(first)}[(`]", statement) is None:
        blocks.append(f"The function is called as in `{first.strip()}`.")
    return "\n\n".join(blocks)


def _examples(pairs: Sequence[tuple[str, str | None]]) -> list[str]:
    return [
        f"## Example {number}\n\nInput:\n```\n{test_input.rstrip()}\n```\nOutput:\n```\n{(output or '').rstrip()}\n```"
        for number, (test_input, output) in enumerate(pairs, 1)
    ]


def parse_tests(row: Row, columns: TestColumns, function: str | None = None) -> list[tuple[str, str | None]]:
    """Return (input, expected output) pairs of a row's tests.

    Args:
        function: called by the tests; arguments become JSON lines.
    """
    packed = _unpacked(row, columns.path) if columns.path is not None else row
    if packed is None or packed == "":
        return []
    if _is_asserts(packed):
        return [(call[1], call[2]) for call in map(_call_of, packed) if call is not None]
    tests = _objects(packed, columns.path, {"input": columns.inputs, "output": columns.outputs})
    if tests is None:
        raise BadRowError(
            f"`{columns.path}` is neither a list of objects, nor an object of lists, nor asserts: {packed!r:.80}."
        )
    return [(_as_input(test["input"], function), _as_output(test["output"])) for test in tests]


def _objects(packed: Any, path: str | None, names: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return the objects of a list, or of an object of lists, under the keys of ``names``; else None."""
    if isinstance(packed, list) and all(isinstance(item, Mapping) for item in packed):
        return [{key: item.get(name) for key, name in names.items()} for item in packed]
    if not isinstance(packed, Mapping):
        return None
    lists = [packed.get(name) for name in names.values()]
    sizes = [len(values) if isinstance(values, list) else type(values).__name__ for values in lists]
    if all(values is None for values in lists):
        return []
    if type(sizes[0]) is not int or len(set(sizes)) > 1:
        expected, actual = " as ".join(f"`{name}`" for name in names.values()), " and ".join(map(str, sizes))
        raise BadRowError(f"`{path}` should hold as many {expected}, but holds {actual}.")
    return [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]


def _first_assert(row: Row, columns: CodeColumns) -> str | None:
    values = (value_at(row, tests.path) for tests in columns.tests if tests.path is not None)
    return next((str(value[0]) for value in values if value and _is_asserts(value)), None)


def _is_asserts(packed: Any) -> bool:
    return isinstance(packed, list) and all(
        isinstance(item, str) and item.strip().startswith("assert") for item in packed
    )


def _function_of(row: Row, columns: CodeColumns) -> str | None:
    """Return the requested function's name, or the asserts' test program."""
    name = _text(row, columns.function)
    values = [_unpacked(row, tests.path) for tests in columns.tests if tests.path is not None]
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    asserts = [text for value in values if value and _is_asserts(value) for text in value]
    if not texts and not asserts:
        return name
    calls = [_call_of(text) for text in asserts]
    functions = {call[0] for call in calls if call is not None}
    if not texts and None not in calls and len(functions) == 1 and name in (None, *functions):
        return functions.pop()
    program = "\n".join([*texts, *asserts])
    entry = name or _first_call(program)
    return function_text(FunctionTests(entry, program=program, setup=_text(row, columns.starter) or ""))


def _call_of(text: str) -> tuple[str, str, str] | None:
    """Return name, arguments and value of ``assert name(literals) == literal``, if JSON."""
    try:
        match ast.parse(text.strip()).body:
            case [ast.Assert(ast.Compare(ast.Call(ast.Name(name), args, []), [ast.Eq()], [right]), None)]:
                values = [ast.literal_eval(value) for value in (*args, right)]
                *arguments, expected = map(json.dumps, values)
            case _:
                return None
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    is_json = [json.loads(text) for text in (*arguments, expected)] == values  # no tuples, and no keys but texts
    return (name, "\n".join(arguments), expected) if is_json else None


def _first_call(text: str) -> str:
    try:
        calls = [node.func for node in ast.walk(ast.parse(text.strip())) if isinstance(node, ast.Call)]
    except SyntaxError as error:
        raise BadRowError(f"the asserts are no Python ({error}): {text!r:.80}.") from error
    names = [call.id for call in calls if isinstance(call, ast.Name)]
    names = [name for name in names if not hasattr(builtins, name)] or names  # MBPP has a problem named `sum`
    if not names:
        raise BadRowError(f"the asserts call no function: {text!r:.80}; name it as `code.function`.")
    return names[0]


def _as_input(value: Any, function: str | None) -> str:
    """Return a test's input; a list is a function's arguments, or lines."""
    if isinstance(value, list):
        return "\n".join(item if function is None and isinstance(item, str) else _as_json(item) for item in value)
    return value if isinstance(value, str) else _as_json(value)


def _as_output(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    is_lines = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return "\n".join(value) if is_lines else _as_json(value)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _solutions_of(
    row: Row, columns: SolutionColumns, skipped: Counter[str], starter: str | None
) -> list[tuple[str, str, bool | None, str | None]]:
    """Return (lang, code, right, label) of a row's programs."""
    solutions: list[tuple[str, str, bool | None, str | None]] = []
    for program in _programs(row, columns):
        code, language, verdict = (program.get(name) for name in ("code", "language", "verdict"))
        if not isinstance(code, str) or not code.strip():
            continue
        lang = "python" if columns.language is None else columns.languages.get(str(language))
        if lang is None:
            skipped[str(language)] += 1
            continue
        right = columns.right if columns.verdict is None else str(verdict) in ACCEPTED
        code = f"{starter}{code}" if starter is not None and code[0] in " \t" else code  # the body of a function alone
        solutions.append((lang, code, right, None if verdict is None else str(verdict)))
    return solutions[: columns.limit]


def _programs(row: Row, columns: SolutionColumns) -> Sequence[Mapping[str, Any]]:
    packed = value_at(row, columns.path)
    if isinstance(packed, str) and packed.strip() and packed.lstrip()[0] not in "[{":
        return [{"code": packed}]
    packed = _unpacked(row, columns.path)
    if packed is None or packed == "":
        return []
    if isinstance(packed, list) and columns.code is None:
        return [{"code": item} for item in packed]
    names = {"code": columns.code, "language": columns.language, "verdict": columns.verdict}
    programs = _objects(packed, columns.path, {key: name for key, name in names.items() if name is not None})
    if programs is None or columns.code is None or (isinstance(packed, Mapping) and packed.get(columns.code) is None):
        raise BadRowError(f"`{columns.path}` does not hold programs in the recipe's form: {packed!r:.80}.")
    return programs


def _judging_of(row: Row, columns: CodeColumns) -> dict[str, Any]:
    checker, memory = _text(row, columns.checker), _limit(row, columns.memory_limit, _MEGABYTES, columns.memory_unit)
    if memory is not None and memory > MAX_MEMORY_MB:
        raise BadRowError(f"`{columns.memory_limit}` is {memory:,.0f} MB; set `memory_unit` if it is in other units.")
    return {
        "time_limit_s": _limit(row, columns.time_limit, _SECONDS),
        "memory_mb": None if memory is None else max(1, round(memory)),
        "checker": checker,
        "checker_lang": "python" if checker else None,
        "checker_kind": "script" if checker else None,
        "interactive": columns.interactive is not None and bool(value_at(row, columns.interactive)),
        "files": any(value_at(row, path) not in _STANDARD_STREAMS for path in columns.input_file),
        "figures": columns.pictures is not None and str(value_at(row, columns.pictures) or "0") not in ("0", "0.0"),
    }


def _text(row: Row, path: str | None) -> str | None:
    """Return the text at a path, also in JSON; None if empty."""
    if path is None:
        return None
    value = value_at(row, path)
    head, _, rest = path.partition(".")
    if value is None and rest and isinstance(row.get(head), str):
        packed = _unpacked(row, head)
        value = value_at(packed, rest) if isinstance(packed, Mapping) else None
    return value if isinstance(value, str) and value.strip() else None


def _unpacked(row: Row, path: str) -> Any:
    """Return the value at a path; JSON, also packed, is parsed, test programs are not."""
    value = value_at(row, path)
    if not isinstance(value, str) or not value.strip() or _TEST_PROGRAM.search(value):
        return value
    if value.lstrip()[0] not in "[{":
        try:
            value = unpack_text(value)
            value.encode()
        except ValueError as error:
            raise BadRowError(
                f"`{path}` is text, but neither JSON nor packed JSON ({error}): {value!r:.80}."
            ) from error
    try:
        content = json.loads(value)
        if "\\ud" in value.lower():
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except (ValueError, RecursionError) as error:
        raise BadRowError(f"`{path}` is text, but not JSON ({error}): {value!r:.80}.") from error


def unpack_text(packed: str, limit: int = MAX_UNPACKED) -> str:
    """Return the text in base64 of a compressed pickle, as LiveCodeBench's private tests are.

    Raises:
        ValueError: it is packed differently, no text, or larger than ``limit``.
    """
    decompressor, texts = zlib.decompressobj(), list[str]()
    try:
        content = decompressor.decompress(base64.b64decode(packed, validate=True), limit)
        if decompressor.unconsumed_tail:
            raise ValueError(f"more than {limit:,} bytes unpacked")
        if not decompressor.eof:
            raise ValueError("cut off")
        for instruction, argument, _ in pickletools.genops(content):
            if instruction.name in _TEXTS:
                texts.append(str(argument))
            elif instruction.name not in _IGNORED:
                raise ValueError(f"holds {instruction.name}, not text")
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from error
    if len(texts) != 1:
        raise ValueError(f"holds {len(texts)} texts, not one")
    return texts[0]


def _limit(row: Row, path: str | None, units: Mapping[str, float], unit: str = "") -> float | None:
    """Return a limit by the unit in its text, or else ``unit``; None if it is missing or 0."""
    value = value_at(row, path) if path is not None else None
    if isinstance(value, Mapping) and units is _SECONDS:
        with suppress(TypeError, ValueError, OverflowError):
            value = float(value.get("seconds") or 0) + float(value.get("nanos") or 0) / 1e9
    if value in (None, "", 0):
        return None
    match = _QUANTITY.match(str(value))
    factor = units.get(match[2].lower() or unit) if match is not None else None
    if match is None or factor is None:
        raise BadRowError(f"`{path}` is not a number with a unit of {', '.join(filter(None, units))}: {value!r:.60}.")
    return float(match[1]) * factor
