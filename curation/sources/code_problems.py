"""Rows of code sources into problems with their tests, solutions and limits, by the column map of the recipe.

Beside the `PROBLEM` rows that `curation.sources.problems` makes of the same rows stand three tables, `TEST`, `SOLUTION`
and `JUDGING`, joined to them by the problem's id. Sources differ in how they pack tests and solutions (lists of
objects, objects of lists, JSON as text); `TestColumns` and `SolutionColumns` say where things stand, and this module
unpacks.

Invariants:
  - a test or a solution belongs to one problem, and positions count from 0 in the source's order;
  - a value that is not packed as the recipe says is one `BadRowError` naming the row, the path and the value;
  - programs in languages that are not run are left out and counted, nothing else is.

Problem packages of the Kattis format (`curation.sources.kattis`) become the same tables, a package a row.

Nothing is run and nothing is judged here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from curation.config.coding import CodeColumns, SolutionColumns, TestColumns
from curation.records import JUDGING, SOLUTION, TEST, SourceError
from curation.sources.kattis import Package, find_packages, read_package
from curation.sources.packed import unpack_text
from curation.sources.rows import BadRowError, Row, value_at
from curation.verify.programs.tables import checker_text, comparison_text, validators_text

VERSION = "code_sources@5"

ACCEPTED = ("OK", "AC", "accepted")
"""Verdicts of sources that mean accepted."""

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3}
_MEGABYTES = {"bytes": 1 / (1 << 20), "b": 1 / (1 << 20), "kb": 1 / 1024, "kilobytes": 1 / 1024}
_MEGABYTES |= {"mb": 1.0, "mib": 1.0, "megabytes": 1.0, "gb": 1024.0, "gib": 1024.0, "gigabytes": 1024.0}
_STANDARD_STREAMS = (None, "", "stdio", "stdin", "stdout", "standard")


@dataclass(slots=True)
class CodeTables:
    """The tables beside some `PROBLEM` rows. ``other_languages`` counts the programs that were left out."""

    tests: pl.DataFrame
    solutions: pl.DataFrame
    judging: pl.DataFrame
    other_languages: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0  # tests that are not UTF-8, which tables of text cannot hold


class RefusedPackage(NamedTuple):
    """A package that cannot be read, and why. Example: ``RefusedPackage(Path("p/hello"), "… is no mapping")``"""

    path: Path
    reason: str


PACKAGE_BYTES = 64 << 20
"""Packages are handed on together until their tests hold this many bytes."""


def read_packages(
    folder: Path, place: str, rows: int, limit: int | None = None, refused: list[RefusedPackage] | None = None
) -> Iterator[list[Package]]:
    """Yield the packages of a folder in batches of up to ``rows`` and about `PACKAGE_BYTES`.

    Args:
        refused: takes the packages that cannot be read, before the batch that the next one is in.

    Raises:
        SourceError: there is no such folder, or no package in it; without ``refused``, one cannot be read.
    """
    if not folder.is_dir():
        raise SourceError(f"{place}: there is no folder {folder}.")
    batch: list[Package] = []
    batch_bytes = count = 0
    for path in find_packages(folder):
        if limit is not None and count >= limit:
            break
        count += 1
        try:
            package = read_package(path)
        except SourceError as error:
            if refused is None:
                raise
            refused.append(RefusedPackage(path, str(error)))
            continue
        batch.append(package)
        batch_bytes += sum(len(test.input) + len(test.output) for test in package.problem.tests)
        if len(batch) >= rows or batch_bytes >= PACKAGE_BYTES:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch
    if not count:
        raise SourceError(f"{place}: {folder} holds no problem package (a folder with problem.yaml and data/).")


def package_row(package: Package) -> Row:
    """Return a package as a row: statement, name, title, license, source and not_usable (words, or null)."""
    return {
        "statement": f"# {package.title}\n\n{package.statement}" if package.statement else None,
        "name": package.name,
        "title": package.title,
        "license": package.license,
        "source": package.source,
        "not_usable": dict(package.reasons) or None,
    }


def format_samples(package: Package) -> str:
    """Return the package's sample tests, as its statement does not hold them, under Markdown headings."""
    blocks = []
    for number, test in enumerate(package.problem.tests[: package.samples], start=1):
        test_input, expected = (text.decode("utf-8", "replace").rstrip() for text in (test.input, test.output))
        blocks.append(f"## Example {number}\n\nInput:\n```\n{test_input}\n```\nOutput:\n```\n{expected}\n```")
    return "\n\n".join(blocks)


def package_tables(ids: Sequence[str], packages: Sequence[Package], processes: bool = False) -> CodeTables:
    """Return the tests, solutions and limits of some packages; a repeated statement counts once.

    ``processes``: their programs may start processes of their own. ``judging`` has one more column, ``not_usable``:
    why outputs of the package cannot be judged here, or null.
    """
    tests: list[tuple[Any, ...]] = []
    solutions: list[tuple[Any, ...]] = []
    judging: list[tuple[Any, ...]] = []
    others: Counter[str] = Counter()
    unreadable = 0
    seen_ids: set[str] = set()
    for name, package in zip(ids, packages, strict=True):
        if name in seen_ids:
            continue
        seen_ids.add(name)
        for index, test in enumerate(package.problem.tests):
            try:
                pair = test.input.decode(), test.output.decode()
            except UnicodeDecodeError:
                unreadable += 1
                continue
            tests.append((name, index, *pair, "sample" if index < package.samples else "secret"))
        for index, submission in enumerate(package.submissions):
            if submission.lang is None:
                others[submission.skipped or "unknown"] += 1
            else:
                right = True if submission.accepted else False if submission.rejected else None
                code = submission.code.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                solutions.append((name, index, submission.lang.value, code, right, submission.name.partition("/")[0]))
        words = [f"{word}: {package.reasons[word]}" for word in ("checker", "scoring") if word in package.reasons]
        judging.append((name, *_judging_of_package(package), processes, "; ".join(words) or None))
    return CodeTables(
        pl.DataFrame(tests, schema=TEST, orient="row"),
        pl.DataFrame(solutions, schema=SOLUTION, orient="row"),
        pl.DataFrame(judging, schema={**JUDGING, "not_usable": pl.String}, orient="row"),
        others,
        unreadable,
    )


def _judging_of_package(package: Package) -> tuple[Any, ...]:
    problem, checker = package.problem, package.problem.checker
    return (
        problem.cpu_s if package.has_time_limit else None,
        problem.memory_mb,
        comparison_text(problem.comparison),
        checker_text(checker) if checker is not None else None,
        checker.lang.value if checker is not None else None,
        checker.kind.value if checker is not None else None,
        validators_text(package.validators),
        ", ".join(validator.lang.value for validator in package.validators) or None,
        None,
        None,
        "interactive" in package.reasons or "multi_pass" in package.reasons,
        False,
        "image" in package.reasons,
    )


def code_tables(
    ids: Sequence[str],
    rows: Sequence[Row],
    columns: CodeColumns,
    place: str,
    positions: Sequence[int] | None = None,
    processes: bool = False,
) -> CodeTables:
    """Return the tests, solutions and limits of some rows.

    Args:
        ids: the problems' ids, one a row.
        place, positions: what errors name: the source, and the positions of the rows in it; from 0 where absent.
        processes: programs may start processes of their own.
    """
    tests: list[tuple[Any, ...]] = []
    solutions: list[tuple[Any, ...]] = []
    judging: list[tuple[Any, ...]] = []
    others: Counter[str] = Counter()
    seen_ids: set[str] = set()
    for number, name, row in zip(positions or range(len(rows)), ids, rows, strict=True):
        if name in seen_ids:
            continue  # the same statement twice in one shard: the duplicates stage drops the second row
        seen_ids.add(name)
        where = f"{place}, row {number}"
        sourced_tests = [(pair, part.origin) for part in columns.tests for pair in parse_tests(row, part, where)]
        tests += [(name, index, *pair, origin) for index, (pair, origin) in enumerate(sourced_tests)]
        programs = [solution for part in columns.solutions for solution in _solutions_of(row, part, where, others)]
        solutions += [(name, index, *program) for index, program in enumerate(programs)]
        judging.append((name, *_judging_of(row, columns, where), processes))
    return CodeTables(
        pl.DataFrame(tests, schema=TEST, orient="row"),
        pl.DataFrame(solutions, schema=SOLUTION, orient="row"),
        pl.DataFrame(judging, schema=JUDGING, orient="row"),
        others,
    )


def whole_statement(statement: str | None, row: Row, columns: CodeColumns, where: str) -> str | None:
    """Return the statement with its further parts and its examples, under Markdown headings."""
    if statement is None:
        return None
    blocks = [statement.strip()]
    for heading, path in columns.parts.items():
        text = value_at(row, path)
        if isinstance(text, str) and text.strip():
            blocks.append(f"## {heading}\n\n{text.strip()}")
    if columns.examples is not None:
        for number, (sample_input, sample_output) in enumerate(parse_tests(row, columns.examples, where), start=1):
            example = f"Input:\n```\n{sample_input.rstrip()}\n```\nOutput:\n```\n{(sample_output or '').rstrip()}\n```"
            blocks.append(f"## Example {number}\n\n{example}")
    return "\n\n".join(blocks)


def parse_tests(row: Row, part: TestColumns, where: str) -> list[tuple[str, str | None]]:
    """Return the (input, expected output) pairs of one part of a row's tests.

    Arguments of a function that stand as JSON values are written as JSON, one value a line.
    """
    packed = _unpacked(row, part.path, where, part.packed) if part.path is not None else row
    if packed is None or packed == "":
        return []
    if isinstance(packed, Mapping):
        inputs, outputs = packed.get(part.inputs), packed.get(part.outputs)
        if inputs is None and outputs is None:
            return []
        if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
            raise BadRowError(
                f"{where}: `{part.path}` should hold as many `{part.inputs}` as `{part.outputs}`, but holds "
                f"{_shape(inputs)} and {_shape(outputs)}."
            )
        pairs = list(zip(inputs, outputs, strict=True))
    elif isinstance(packed, list) and all(isinstance(item, Mapping) for item in packed):
        pairs = [(item.get(part.inputs), item.get(part.outputs)) for item in packed]
    else:
        raise BadRowError(
            f"{where}: `{part.path}` is neither a list of objects nor an object of lists: {packed!r:.80}."
        )
    return [(_as_input(test_input), _as_output(expected)) for test_input, expected in pairs]


def _as_input(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):  # arguments of a function, or lines of an input
        return "\n".join(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in value)
    return json.dumps(value, ensure_ascii=False)


def _as_output(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _solutions_of(
    row: Row, part: SolutionColumns, where: str, others: Counter[str]
) -> list[tuple[str, str, bool | None, str | None]]:
    """Return (lang, code, right, label) of each program in one part of a row's solutions."""
    solutions: list[tuple[str, str, bool | None, str | None]] = []
    for program in _programs(row, part, where):
        code, language, verdict = (program.get(name) for name in ("code", "language", "verdict"))
        if not isinstance(code, str) or not code.strip():
            continue
        lang = "python" if part.language is None else part.languages.get(str(language))
        if lang is None:
            others[str(language)] += 1
            continue
        right = part.right if part.verdict is None else str(verdict) in ACCEPTED
        solutions.append((lang, code, right, None if verdict is None else str(verdict)))
    return solutions[: part.limit]


def _programs(row: Row, part: SolutionColumns, where: str) -> list[Mapping[str, Any]]:
    packed = _unpacked(row, part.path, where)
    names = {"code": part.code, "language": part.language, "verdict": part.verdict}
    if packed is None or packed == "":
        return []
    if isinstance(packed, list) and part.code is None:
        return [{"code": item} for item in packed]
    if isinstance(packed, list) and all(isinstance(item, Mapping) for item in packed):
        return [{key: item.get(name) for key, name in names.items() if name is not None} for item in packed]
    if isinstance(packed, Mapping) and part.code is not None:
        lists = {key: packed.get(name) for key, name in names.items() if name is not None}
        if (
            all(isinstance(values, list) for values in lists.values())
            and len({len(v) for v in lists.values() if v}) <= 1
        ):
            keys = list(lists)
            return [dict(zip(keys, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    raise BadRowError(f"{where}: `{part.path}` does not hold programs as the recipe says: {packed!r:.80}.")


def _judging_of(row: Row, columns: CodeColumns, where: str) -> tuple[Any, ...]:
    checker = _text(row, columns.checker, where)
    return (
        _seconds(row, columns.time_limit, where),
        _megabytes(row, columns, where),
        None,
        checker,
        "python" if checker else None,
        "script" if checker else None,
        None,
        None,
        _text(row, columns.function, where),
        _text(row, columns.starter, where),
        columns.interactive is not None and bool(value_at(row, columns.interactive)),
        any(value_at(row, path) not in _STANDARD_STREAMS for path in columns.input_file),
        columns.pictures is not None and str(value_at(row, columns.pictures) or "0") not in ("0", "0.0"),
    )


def _text(row: Row, path: str | None, where: str) -> str | None:
    """Return the text at a path, which may lead into a column of JSON text; None where it is empty."""
    if path is None:
        return None
    value = value_at(row, path)
    head, _, rest = path.partition(".")
    if value is None and rest and isinstance(row.get(head), str):
        packed = _unpacked(row, head, where)
        value = value_at(packed, rest) if isinstance(packed, Mapping) else None
    return value if isinstance(value, str) and value.strip() else None


def _unpacked(row: Row, path: str, where: str, packed: str = "json") -> Any:
    """Return the value at a path; text is read as JSON, after it was unpacked where it is packed."""
    value = value_at(row, path)
    if not isinstance(value, str) or not value.strip():
        return value
    if packed == "zlib" and value.lstrip()[0] not in "[{":
        try:
            value = unpack_text(value)
            value.encode()
        except ValueError as error:
            raise BadRowError(f"{where}: `{path}` is not packed as `zlib` ({error}): {value!r:.80}.") from error
    try:
        content = json.loads(value)
        if "\\ud" in value.lower():
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except (ValueError, RecursionError) as error:
        raise BadRowError(f"{where}: `{path}` is text, but not JSON ({error}): {value!r:.80}.") from error


def _seconds(row: Row, path: str | None, where: str) -> float | None:
    value = value_at(row, path) if path is not None else None
    if isinstance(value, Mapping):
        value = (value.get("seconds") or 0) + (value.get("nanos") or 0) / 1e9
    if value is None or value == "" or value == 0:
        return None
    return _quantity(value, _SECONDS, "", f"{where}: `{path}`")


def _megabytes(row: Row, columns: CodeColumns, where: str) -> int | None:
    value = value_at(row, columns.memory_limit) if columns.memory_limit is not None else None
    if value is None or value == "" or value == 0:
        return None
    return max(1, round(_quantity(value, _MEGABYTES, columns.memory_unit, f"{where}: `{columns.memory_limit}`")))


def _quantity(value: Any, units: Mapping[str, float], unit: str, where: str) -> float:
    match = _QUANTITY.match(str(value))
    if match is None or (match[2].lower() or unit) not in units:
        raise BadRowError(f"{where} is not a number with a unit of {', '.join(filter(None, units))}: {value!r:.60}.")
    return float(match[1]) * units[match[2].lower() or unit]


def _shape(value: Any) -> str:
    return f"{len(value)}" if isinstance(value, list) else type(value).__name__
