"""A `where`: a SQL expression over a table's own columns, asked of rows a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from polars.exceptions import ColumnNotFoundError, PolarsError

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
            raise SourceError(f"{self.where} is no SQL expression ({_first_line(error)[:200]}).") from error
        if not self.columns:
            raise SourceError(f"{self.where} names no column.")
        if not _asks_each_row(self._expression):
            raise SourceError(
                f"{self.where} says one thing of all rows together, not of each; rows are read a batch at a time."
            )
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
                require_path(rows, name, f"{self.where}{self._quoted(name)}")
                self._seen.add(name)
        try:
            frame = pl.DataFrame([_series(name, rows) for name in self.columns])
        except (PolarsError, TypeError, ValueError) as error:
            raise SourceError(f"{self.where} cannot be asked of its rows ({_first_line(error)}).") from error
        try:
            verdicts = frame.select(self._expression.alias("kept"))["kept"]
        except PolarsError as error:
            raise SourceError(
                f"{self.where} cannot be asked of its rows ({_first_line(error)}); its columns are: "
                f"{', '.join(_described(series) for series in frame)}."
            ) from error
        if verdicts.dtype not in (pl.Boolean, pl.Null):
            raise SourceError(f"{self.where} is {verdicts.dtype}, not true or false; compare it with something.")
        return [bool(verdict) for verdict in verdicts]

    def _quoted(self, name: str) -> str:
        return f" (text stands in 'single quotes': \"{name}\" is a column)" if f'"{name}"' in self.text else ""


def _asks_each_row(expression: pl.Expr) -> bool:
    """Return whether nothing in an expression needs other rows than its own, as an aggregate and a window do."""
    meta = expression.meta
    if meta.is_literal():
        return True
    try:
        is_separable = meta.is_row_separable()
    except ColumnNotFoundError:  # of which polars cannot say it without the columns' types: arithmetic
        is_separable = True
    return is_separable and all(map(_asks_each_row, meta.pop()))


def _described(series: pl.Series) -> str:
    """Return a column and its type; of nested ones the paths that an expression may name."""
    if isinstance(series.dtype, pl.Struct):
        return ", ".join(f"{series.name}.{field.name} {field.dtype}" for field in series.dtype.fields)
    return f"{series.name} {series.dtype}"


def _series(name: str, rows: Sequence[Row]) -> pl.Series:
    return pl.Series(name, [row.get(name) for row in rows], strict=False)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
