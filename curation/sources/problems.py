"""Rows of files and data sets into Problems, by the column map of the recipe.

Reads .jsonl (also .gz and .zst), .parquet, .csv, and Hugging Face data sets by hub name, local folder or
saved-to-disk folder, a batch at a time: memory does not grow with the source.

Invariants:
  - every row of the source becomes a row of `PROBLEM`; a missing statement or answer stays null and is dropped,
    with its reason, by the format filter;
  - a path, column or type that is not as the recipe says is one `SourceError` that lists what was there instead.

Not here: any judgement of the rows; rows that are set aside since they cannot be read (`curation.sources.quarantine`).
"""

from __future__ import annotations

import glob
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Column, Pick, Source
from curation.licenses import checked_license
from curation.records import PROBLEM, SourceError, problem_id
from curation.sources.rows import (
    BadRowError,
    RawRow,
    Row,
    last_boxed,
    numbered_rows,
    parse_options,
    raw_rows,
    read_csv,
    read_jsonl,
    read_parquet,
    require_path,
    value_at,
)
from curation.storage.stages import file_digest

VERSION = "sources@2"

_META = json.JSONEncoder(default=str, ensure_ascii=False)

FIRST_ROWS = 1000
"""Rows in which a column must appear at least once; later rows may lack it."""


def source_digest(source: Source, folder: Path) -> str:
    """Return a hash of what the source holds: file contents, or the fingerprint of the data set."""
    if source.kind == "dataset":
        return str(_load_dataset(source, folder)._fingerprint)
    return "-".join(file_digest(path) for path in source_files(source, folder))


def read_source(source: Source, folder: Path, batch_rows: int) -> Iterator[pl.DataFrame]:
    """Yield the source's rows as frames in the `PROBLEM` schema, ``batch_rows`` rows each, in the source's order.

    Args:
        folder: what relative paths are relative to.
    """
    for start, batch in read_batches(source, folder, batch_rows):
        yield problem_rows(source, batch, start)


def read_batches(source: Source, folder: Path, batch_rows: int) -> Iterator[tuple[int, list[Row]]]:
    """Yield the source's rows as they are, ``batch_rows`` at a time, each batch with the position of its first row.

    The first rows are checked for the columns of the map before any is handed out.
    """
    rows = itertools.islice(_rows(source, folder, batch_rows), source.limit)
    first = list(itertools.islice(rows, FIRST_ROWS))
    if not first:
        raise SourceError(f"source {source.name}: {source.path} holds no rows.")
    check_columns(source, first)
    start = 0
    for batch in _batches(itertools.chain(first, rows), batch_rows):
        yield start, batch
        start += len(batch)


def check_source(source: Source, folder: Path) -> None:
    """Read the first rows of a source, and refuse one that is not there, is empty, or lacks a column.

    Raises:
        SourceError: what is wrong, and what is there instead.
    """
    limit = min(source.limit or FIRST_ROWS, FIRST_ROWS)
    next(read_source(source.model_copy(update={"limit": limit}), folder, limit))


def check_columns(source: Source, rows: Sequence[Row]) -> None:
    """Refuse rows of which none has a column that the column map names.

    Raises:
        SourceError: which one, and what there is instead.
    """
    columns = source.columns
    where = f"source {source.name} ({source.path})"
    for column in (columns.statement, columns.answer, columns.choices, columns.solution, columns.lang, columns.license):
        path = column.path if isinstance(column, Pick) else column
        if path is not None:
            require_path(rows, path, where)
    for path in columns.meta:
        require_path(rows, path, where)


def problem_rows(
    source: Source, rows: Sequence[Row], start: int, statements: Sequence[str | None] | None = None
) -> pl.DataFrame:
    """Return rows of a source in the `PROBLEM` schema.

    Args:
        start: position of the first row in the source.
        statements: the statements where they are not simply what the column map names.
    """
    columns = source.columns
    place = f"source {source.name} ({source.path})"
    if statements is None:
        statements = read_texts(columns.statement, rows, place, start)
    choices = read_choices(columns.choices, rows, place, start)
    ids = [problem_id(text or "", options, source.domain) for text, options in zip(statements, choices, strict=True)]
    height = len(rows)
    return pl.DataFrame(
        {
            "id": ids,
            "group": ids,
            "domain": [source.domain] * height,
            "statement": statements,
            "answer": read_texts(columns.answer, rows, place, start),
            "choices": choices,
            "solution": read_texts(columns.solution, rows, place, start),
            "lang": [lang or "en" for lang in read_texts(columns.lang, rows, place, start)],
            "source": [source.name] * height,
            "row": range(start, start + height),
            "license": _licenses(source, rows, place, start),
            "weight": [source.weight] * height,
            "raw_statement": [None] * height,
            "raw_answer": [None] * height,
            "meta": [_meta(columns.meta, row) for row in rows],
        },
        schema=PROBLEM,
    )


def read_texts(column: Column | None, rows: Sequence[Row], place: str, start: int = 0) -> list[str | None]:
    """Return one column of the rows as text. Numbers become their usual writing; lists and objects are refused.

    Args:
        place, start: what errors name: the source, and the position of the first row in it.
    """
    pick = column if isinstance(column, Pick) else Pick(path=column) if column is not None else Pick(value="")
    if pick.path is None:
        return [pick.value or None] * len(rows)
    texts: list[str | None] = []
    for number, row in enumerate(rows, start):
        value = value_at(row, pick.path)
        if value is not None and type(value) is not str:
            value = _as_text(value, pick.path, f"{place}, row {number}")
        texts.append(_take(pick.take, value) if value is not None else None)
    return texts


def _licenses(source: Source, rows: Sequence[Row], place: str, start: int) -> list[str]:
    """Return the licence of each row: its own, or the source's.

    Raises:
        BadRowError: a row's is no SPDX expression.
    """
    licenses = [source.license] * len(rows)
    if source.columns.license is None:
        return licenses
    for at, text in enumerate(read_texts(source.columns.license, rows, place, start)):
        if text is not None and text.strip():
            try:
                licenses[at] = checked_license(text.strip())
            except ValueError as error:
                raise BadRowError(f"{place}, row {start + at}: {error}.") from error
    return licenses


def read_choices(column: Column | None, rows: Sequence[Row], place: str, start: int = 0) -> list[list[str] | None]:
    """Return one column of the rows as lists of options."""
    path = column.path if isinstance(column, Pick) else column
    if path is None:
        return [None] * len(rows)
    return [
        parse_options(value_at(row, path), f"{place}, row {number}: `{path}`") for number, row in enumerate(rows, start)
    ]


def _as_text(value: Any, path: str, where: str) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    kind = "a list; name one of its items" if isinstance(value, list) else type(value).__name__
    hint = f", as in `{path}.0`" if isinstance(value, list) else ""
    raise BadRowError(f"{where}: `{path}` should be text, but is {kind}{hint}: {str(value)[:80]!r}.")


def _take(take: str, text: str) -> str | None:
    if take == "hash":
        _, mark, answer = text.rpartition("####")
        return answer.strip() if mark else None
    if take == "boxed":
        return last_boxed(text)
    return text


def _meta(paths: Sequence[str], row: Row) -> str | None:
    return _META.encode({path: value_at(row, path) for path in paths}) if paths else None


def _batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while batch := list(itertools.islice(rows, size)):
        yield batch


def _rows(source: Source, folder: Path, batch_rows: int) -> Iterator[Row]:
    if source.kind == "dataset":
        for raw in _dataset_rows(source, folder, batch_rows):
            if raw.row is None:
                raise BadRowError(f"{raw.path}, row {raw.line}: {raw.reason}.", raw.reason)
            yield raw.row
        return
    for path in source_files(source, folder):
        if source.kind == "jsonl":
            yield from read_jsonl(path)
        elif source.kind == "csv":
            yield from read_csv(path)
        else:
            yield from read_parquet(path, batch_rows)


def read_raw(source: Source, folder: Path, batch_rows: int) -> Iterator[RawRow]:
    """Yield the source's rows beside the bytes that they were, in order, those that cannot be read too."""
    if source.kind == "dataset":
        yield from _dataset_rows(source, folder, batch_rows)
        return
    for path in source_files(source, folder):
        yield from raw_rows(path, source.kind, batch_rows)


def _dataset_rows(source: Source, folder: Path, batch_rows: int) -> Iterator[RawRow]:
    """Yield the rows of a data set; one that holds bytes that are no text, as its files may, without its content."""
    path, start = Path(source.path), 1
    dataset = _load_dataset(source, folder).with_format("arrow")
    for table in dataset.iter(batch_size=batch_rows):
        try:
            yield from numbered_rows(path, table.to_pylist(), start)
        except UnicodeDecodeError:
            for at in range(table.num_rows):
                yield _dataset_row(path, start + at, table.take([at]))
        start += table.num_rows


def _dataset_row(path: Path, number: int, table: Any) -> RawRow:
    try:
        (raw,) = numbered_rows(path, table.to_pylist(), number)
    except UnicodeDecodeError as error:
        return RawRow(path, number, b"".join(map(_column_bytes, table.columns)), None, f"not UTF-8 ({error})")
    return raw


def _column_bytes(column: Any) -> bytes:
    """Return the bytes that a column of one row holds, of whatever type."""
    return b"".join(bytes(buffer) for chunk in column.chunks for buffer in chunk.buffers()[-1:] if buffer is not None)


def source_files(source: Source, folder: Path) -> list[Path]:
    """Return the files that a source's path names, in order.

    Raises:
        SourceError: there are none.
    """
    pattern = Path(source.path).expanduser()
    pattern = pattern if pattern.is_absolute() else folder / pattern
    if pattern.is_file():
        return [pattern]
    paths = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True) if Path(name).is_file())
    if not paths:
        raise SourceError(f"source {source.name}: no file at {pattern}; {_neighbours(pattern)}.")
    return paths


def _neighbours(path: Path) -> str:
    parent = path.parent
    while not parent.is_dir():
        parent = parent.parent
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in parent.iterdir())
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{parent} holds {listed or 'nothing'}"


def _load_dataset(source: Source, folder: Path) -> Any:
    import datasets

    local = folder / source.path
    where = f"source {source.name}: data set {source.path}"
    datasets.disable_progress_bars()
    try:
        if (local / "dataset_info.json").exists() or (local / "dataset_dict.json").exists():
            dataset = datasets.load_from_disk(str(local))
        else:
            name = str(local) if local.exists() else source.path
            dataset = datasets.load_dataset(name, source.subset, revision=source.revision)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise SourceError(f"{where} cannot be loaded: {type(error).__name__}: {str(error).splitlines()[0]}") from error
    if isinstance(dataset, datasets.DatasetDict):
        if source.split not in dataset:
            raise SourceError(f"{where} has no split `{source.split}`; it has: {', '.join(dataset)}.")
        dataset = dataset[source.split]
    return dataset
