"""Tables of which a part is in memory at a time: the parts are the table, and what is written is the same bytes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.storage import sorted_parts
from curation.storage.stages import write_parquet


def rows(count: int) -> pl.DataFrame:
    places = range(count)
    return pl.DataFrame(
        {
            "problem": [f"{(7 * at) % count:05x}" for at in places],
            "reason": [None if at % 3 else f"why {at}" for at in places],
            "rate": [at / count for at in places],
        }
    )


def in_files(table: pl.DataFrame, folder: Path, size: int) -> pl.LazyFrame:
    folder.mkdir()
    for number, part in enumerate(table.iter_slices(size)):
        part.write_parquet(folder / f"{number:05}.parquet")
    return sorted_parts.scan_table(folder.parent, folder.name)


def test_a_table_is_written_as_the_same_bytes_however_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(100)
    write_parquet(tmp_path / "whole.parquet", table)
    sorted_parts.write_scanned(tmp_path / "few.parquet", in_files(table, tmp_path / "few", 13))
    assert (tmp_path / "few.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    monkeypatch.setattr(sorted_parts, "ROWS_AT_ONCE", 30)
    written = []
    for number, lies in enumerate((in_files(table, tmp_path / "many", 7), table.lazy())):
        path = tmp_path / f"{number}.parquet"
        sorted_parts.write_scanned(path, lies)
        assert pl.read_parquet(path).equals(table)
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_what_cannot_be_written_leaves_the_file_before(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    sorted_parts.write_scanned(path, rows(5).lazy())
    before = path.read_bytes()
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        sorted_parts.write_scanned(path, rows(5).lazy().select("absent"))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["kept.parquet"]
