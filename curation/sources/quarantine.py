"""Rows that cannot be read, set aside: their neighbours go on, and nothing of them is lost.

`read_parts` yields a source's rows in batches, each with what was built of its sound rows, its bad rows as dropped ones
(reason ``bad_row``, the file and line as evidence), and the same with their bytes in the `QUARANTINE` schema.

Invariants:
  - sound + bad = rows of the batch, and a row's position counts both, so that it is that of the file;
  - a bad row is one that its file's reader refuses, or one that alone cannot be built: an error that no row makes by
    itself ends the run as ever;
  - more bad rows than the source's ``bad_rows`` end the run, those of its joined table with them;
  - a bad row of a joined table is no row of the source: it is in the `QUARANTINE` table of the first batch, and dropped
    nowhere; what it would have stood beside has no match in it;
  - a source of which no row can be read ends it too, whatever its budget.

Not here: how what cannot be read is told from what can (`curation.sources.files`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl

from curation.config import Source
from curation.records import DROPPED, DropReason, SourceError, problem_id
from curation.sources.problems import FIRST_ROWS, check_columns, taken_by
from curation.sources.rows import BadRowError, RawRow, Row, too_many
from curation.sources.selection import PlacedRow, SelectionCounts, selected_rows

Built = TypeVar("Built")

STAGE = "sources"
TABLE = "quarantine"
"""Of the stage's folder: ``quarantine/00000.parquet`` and on, a file a shard."""

QUARANTINE = pl.Schema(
    {
        "source": pl.String(),
        "row": pl.Int64(),  # position in the source, from 0; null of a row of its joined table
        "file": pl.String(),  # relative to the recipe's folder where it lies within; or a URL
        "line": pl.Int64(),  # from 1; of a parquet file or a data set, the row's number
        "reason": pl.String(),
        "raw": pl.Binary(),  # the line as it was, its first `MOST_KEPT` bytes; of what has no lines, the row as JSON
    }
)
MOST_KEPT = 1 << 20
"""Bytes of a bad row that are kept; the rest stands where its file and line say."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Built]):
    """A batch of a source's rows: what was built of the sound ones, and the others twice, as dropped and in full."""

    rows: int
    built: Built
    positions: list[int]
    """Of the sound rows, in the source."""
    dropped: pl.DataFrame
    quarantine: pl.DataFrame


Build = Callable[[list[Row], Sequence[int]], Built]
"""Makes something of rows and their positions in the source."""


def read_parts(
    source: Source, folder: Path, batch_rows: int, build: Build[Built], counts: SelectionCounts | None = None
) -> Iterator[Part[Built]]:
    """Yield the source's rows, ``batch_rows`` at a time, built by ``build``.

    Raises:
        SourceError: the source is empty or lacks a column, or more rows are bad than it may have, or all.
    """
    of_joined: list[RawRow] = []
    rows = selected_rows(source, folder, batch_rows, raw=True, counts=counts, of_joined=of_joined)
    first = list(itertools.islice(rows, FIRST_ROWS))
    if not first:
        raise SourceError(f"source {source.name}: {source.path} holds no rows{taken_by(source)}.")
    check_columns(source, [placed.row for placed in first if placed.row is not None])
    again = itertools.chain(first, rows)
    bad_rows, sound_rows = len(of_joined), 0
    beside = _table(source, folder, [(None, raw, raw.reason) for raw in of_joined])
    while batch := list(itertools.islice(again, batch_rows)):
        bad = {at: _raw(placed).reason for at, placed in enumerate(batch) if placed.row is None}
        built, sound = _build(batch, bad, build)
        bad_rows += len(bad)
        if bad_rows > source.bad_rows:
            raise too_many(source.name, source.bad_rows, _raw(batch[max(bad)]), bad[max(bad)])
        sound_rows += len(sound)
        table = _table(source, folder, [(batch[at].position, _raw(batch[at]), bad[at]) for at in sorted(bad)])
        dropped, aside = _dropped(source, table), pl.concat([beside, table])
        yield Part(len(batch), built, [batch[at].position for at in sound], dropped, aside)
        beside = beside.clear()
    if not sound_rows:
        evidence = _dropped(source, table)["evidence"][-1]
        raise SourceError(
            f"source {source.name}: no row of it can be read (the last one: {evidence}); mend the source."
        )


def _raw(placed: PlacedRow) -> RawRow:
    assert placed.raw is not None
    return placed.raw


def _build(batch: Sequence[PlacedRow], bad: dict[int, str], build: Build[Built]) -> tuple[Built, list[int]]:
    """Build the sound rows of a batch; return the result and their places, and add the others to ``bad``."""
    sound = {at: placed.row for at, placed in enumerate(batch) if placed.row is not None}
    try:
        return build(list(sound.values()), [batch[at].position for at in sound]), list(sound)
    except BadRowError:
        for at, row in sound.items():
            try:
                build([row], [batch[at].position])
            except BadRowError as error:
                bad[at] = error.reason
    kept = {at: row for at, row in sound.items() if at not in bad}
    return build(list(kept.values()), [batch[at].position for at in kept]), list(kept)


def refused_packages(
    source: Source, folder: Path, refused: Sequence[tuple[Path, str]], start: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the packages of a source that cannot be read, as dropped rows and in the `QUARANTINE` schema.

    Args:
        refused: the folder of each, and why.
        start: position of the first; they stand behind the packages that can be read.

    The bytes are those of the package's problem.yaml; none where it has none.

    Raises:
        SourceError: they are more than the source may have.
    """
    rows: list[tuple[str, int, str, int, str, bytes]] = []
    for path, reason in refused:
        file = path / "problem.yaml"
        raw = RawRow(file, 1, file.read_bytes() if file.is_file() else b"", None, reason)
        if len(rows) == source.bad_rows:
            raise too_many(source.name, source.bad_rows, raw, reason)
        rows.append((source.name, start + len(rows), _place(file, folder), raw.line, raw.reason, raw.content))
    table = pl.DataFrame(rows, schema=QUARANTINE, orient="row")
    return _dropped(source, table), table


def _table(source: Source, folder: Path, bad: Sequence[tuple[int | None, RawRow, str]]) -> pl.DataFrame:
    """Return bad rows in the `QUARANTINE` schema, of their positions in the source, their bytes and the reasons."""
    rows = []
    for position, raw, reason in bad:
        content = raw.content
        if len(content) > MOST_KEPT:
            reason = f"{reason} (of its {len(content):,} bytes the first {MOST_KEPT:,} are kept)"
        rows.append((source.name, position, _place(raw.path, folder), raw.line, reason, content[:MOST_KEPT]))
    return pl.DataFrame(rows, schema=QUARANTINE, orient="row")


def _place(path: Path | str, folder: Path) -> str:
    return str(path.relative_to(folder) if isinstance(path, Path) and path.is_relative_to(folder) else path)


def _dropped(source: Source, quarantine: pl.DataFrame) -> pl.DataFrame:
    """Return the bad rows as dropped ones; with no statement, the id is that of their bytes, or place, as text."""
    absent = {name: pl.lit(None, dtype=kind) for name, kind in DROPPED.items()}
    ids = [
        problem_id(raw.decode("utf-8", "replace") or f"{file}, line {line}", None, source.domain)
        for raw, file, line in quarantine.select("raw", "file", "line").iter_rows()
    ]
    named: dict[str, pl.Expr | pl.Series] = {
        "id": pl.Series(ids, dtype=pl.String),
        "group": pl.Series(ids, dtype=pl.String),
        "domain": pl.lit(str(source.domain)),
        "source": pl.col("source"),
        "row": pl.col("row"),
        "license": pl.lit(source.license),
        "weight": pl.lit(source.weight),
        "stage": pl.lit(STAGE),
        "reason": pl.lit(str(DropReason.BAD_ROW)),
        "evidence": pl.when(pl.col("line") > 0)
        .then(pl.format("{}, line {}: {}", "file", "line", "reason"))
        .otherwise(pl.format("{}: {}", "file", "reason")),
    }
    return quarantine.select(**{**absent, **named}).cast(DROPPED)
