"""A `where`: a SQL expression over a table's own columns, asked of rows a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from polars.exceptions import PolarsError

from curation.records import SourceError
from curation.sources.rows import Row, require_path


class RowFilter:
    """Says which rows an expression holds for, as in ``problem_is_valid = 'Yes' AND source != 'synthetic'``.

    A value that is absent or null makes a comparison null, and a row of which the expression is null is not kept, as in
    SQL. Columns have the types that their file gives them; those of a CSV file are text.

    Args:
        expression: as polars reads SQL.
        where: what errors name: the source.

    Raises:
        SourceError: it is no expression.
    """

    def __init__(self, expression: str, where: str) -> None:
        self.text = expression
        self.where = f'{where}: `where = "{expression}"`'
        try:
            self._expression = pl.sql_expr(expression)
            self.columns = tuple(dict.fromkeys(self._expression.meta.root_names()))
        except PolarsError as error:
            raise SourceError(f"{self.where} is no SQL expression ({_first_line(error)}).") from error
        if not self.columns:
            raise SourceError(f"{self.where} names no column.")
        self._seen: set[str] = set()

    def keep(self, rows: Sequence[Row]) -> list[bool]:
        """Return, for each row, whether the expression holds.

        Raises:
            SourceError: no row so far has a column of it, or it says nothing of a row.
        """
        if not rows:
            return []
        for name in self.columns:
            if name not in self._seen:
                require_path(rows, name, self.where)
                self._seen.add(name)
        try:
            frame = pl.DataFrame([_series(name, rows) for name in self.columns])
            verdicts = frame.select(self._expression.alias("kept"))["kept"]
        except (PolarsError, TypeError, ValueError) as error:
            raise SourceError(f"{self.where} cannot be asked of its rows ({_first_line(error)}).") from error
        if verdicts.dtype not in (pl.Boolean, pl.Null):
            raise SourceError(f"{self.where} is {verdicts.dtype}, not true or false; compare it with something.")
        if len(verdicts) != len(rows):
            raise SourceError(f"{self.where} says one thing of all rows together, not of each.")
        return [bool(verdict) for verdict in verdicts]


def _series(name: str, rows: Sequence[Row]) -> pl.Series:
    return pl.Series(name, [row.get(name) for row in rows], strict=False)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
