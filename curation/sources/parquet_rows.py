"""Rows of parquet files, a batch in memory at once; of a damaged one those of its sound row groups.

Invariant: every row that the file's footer counts is one `RawRow`; a file without a readable footer is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.records import SourceError
from curation.sources.rows import RawRow, arrow_rows


def parquet_rows(path: Path, batch_rows: int) -> Iterator[RawRow]:
    """Yield every row of a file, those that cannot be read too.

    Raises:
        SourceError: there is no such file, or it may not be read.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except FileNotFoundError as error:
        raise SourceError(f"{path}: there is no such file.") from error
    except PermissionError as error:
        raise SourceError(f"{path}: cannot be opened ({error.strerror}).") from error
    except (pyarrow.ArrowException, OSError) as error:
        yield RawRow(path, 0, b"", None, f"not a readable parquet file ({_first_line(error)})")
        return
    with file:
        number = 1
        for group in range(file.num_row_groups):
            end = number + file.metadata.row_group(group).num_rows
            try:
                for batch in _batches(file, group, batch_rows):
                    yield from arrow_rows(path, batch, number)
                    number += batch.num_rows
            except (pyarrow.ArrowException, OSError) as error:
                reason = f"row group {group} of a parquet file cannot be read ({_first_line(error)})"
                yield from (RawRow(path, row, b"", None, reason) for row in range(number, end))
            number = end


def _batches(file: Any, group: int, batch_rows: int) -> Iterator[Any]:
    return iter(file.iter_batches(batch_size=batch_rows, row_groups=[group]))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
