"""Indexes a run's rows by words, stage, reason and pass rate.

Invariant: each row is here once, so rows = dropped + kept. Memory: about 0.9 kB a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation.publish.receipts import first_fault
from curation.records import ConfigError
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.run_tables import verifier_of
from flows.run.pipeline import read_result
from flows.run.run_folder import Run
from flows.run.stage import Kind, StageResult

CURATED, GOING = "curated set", "not decided yet"

_NO_REASON = "–"
_TEXTS = ("id", "source", "row", "lang", "statement", "answer")
_TYPES = {"row": pl.Int64(), "pass_rate": pl.Float64()}
"""Of columns that are no texts."""

SORTS: Mapping[str, tuple[str, bool]] = {
    "row": ("row", False),
    "easiest": ("pass_rate", True),
    "hardest": ("pass_rate", False),
    "longest": ("length", True),
    "shortest": ("length", False),
    "stage": ("place", False),
}
"""Columns to sort by; True: descending."""

FACETS = ("stage", "reason", "source", "lang")

_SMALL, _PLACE = "small_letters", "_place"


Rate = Annotated[float, Field(ge=0, le=1)] | None


class RowQuery(BaseModel):
    """Which rows are wanted, by default all.

    Example: ``RowQuery(words="train", stage="statements", low=0.2)``
    """

    model_config = ConfigDict(frozen=True, str_max_length=200)

    words: str = ""
    id: str = ""
    stage: str = ""
    reason: str = ""
    source: str = ""
    lang: str = ""
    passed: str = ""  # a stage that the row passed
    low: Rate = None  # pass rate
    high: Rate = None
    sort: str = "row"

    def without(self, name: str) -> dict[str, object]:
        """Return all settings except one, for links."""
        return self.model_dump(exclude={name})


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Found indices in order, and each facet's counts under the other filters."""

    places: pl.Series
    facets: Mapping[str, list[tuple[str, int]]]


class RowIndex:
    """A run's rows when it was read; thread-safe."""

    def __init__(self, run: Run) -> None:
        self.titles = {stage.name: stage.title for stage in pipeline_of(run.recipe).stages_of(run)}
        self.table = _table(run, list(self.titles))
        self._searched = self.table.with_columns(pl.col("statement").str.to_lowercase().alias(_SMALL))
        self._searched = self._searched.with_row_index(_PLACE).drop("statement", "answer", "evidence")
        self._order_of_stages = {name: number for number, name in enumerate(self.titles)}

    def find(self, query: RowQuery) -> FoundRows:
        """Find rows."""
        rows = self._searched.lazy()
        for condition in _conditions(query, self._order_of_stages):
            rows = rows.filter(condition)
        left, chosen, facets = rows.drop(_SMALL, "id").collect(), self._chosen(query), {}
        for facet in FACETS:
            others = [condition for name, condition in chosen.items() if name != facet]
            column = left.lazy().filter(others).select(facet).collect()[facet] if others else left[facet]
            counted = [(str(value), int(count)) for value, count in column.value_counts().iter_rows()]
            named = [item for item in counted if item[0] != _NO_REASON]
            facets[facet] = sorted(named, key=lambda item: (-item[1], item[0]))
        by, descending = SORTS.get(query.sort, SORTS["row"])
        found = left.lazy().filter(list(chosen.values())) if chosen else left.lazy()
        if by != "row":
            order = {"descending": descending, "nulls_last": True, "maintain_order": True}
            found = found.select(_PLACE, by).sort(by, **order)
        return FoundRows(found.select(_PLACE).collect()[_PLACE], facets)

    def rows(self, found: FoundRows, start: int, count: int) -> list[dict[str, object]]:
        """Return a page of found rows."""
        return self.table[found.places.slice(start, count)].to_dicts()

    def _chosen(self, query: RowQuery) -> dict[str, pl.Expr]:
        chosen = {name: pl.col(name) == value for name in FACETS if (value := getattr(query, name))}
        if query.stage.endswith(".decisions") and query.reason:
            del chosen["reason"]
            chosen["stage"] = pl.col(f"reason_{query.stage.partition('.')[0]}") == query.reason
        return chosen


def read_query(values: Mapping[str, str]) -> RowQuery:
    """Return an address's query.

    Raises:
        ConfigError: a value is too long, or no pass rate.
    """
    try:
        return RowQuery.model_validate({name: value.strip() for name, value in values.items() if value.strip()})
    except ValidationError as error:
        raise ConfigError(f"this address asks for no rows: {first_fault(error)}.") from error


def _conditions(query: RowQuery, order: Mapping[str, int]) -> Iterator[pl.Expr]:
    for word in query.words.lower().split():
        yield pl.col(_SMALL).str.contains(word, literal=True)
    if query.id:
        yield pl.col("id").str.starts_with(query.id)
    if query.passed in order:
        part, _, kind = query.passed.partition(".")
        if kind == "decisions":  # difficulty stages do not filter each other's rows
            yield pl.col(f"pass_rate_{part}").is_not_null() & pl.col(f"reason_{part}").is_null()
        else:
            yield pl.col("place") > order[query.passed]
    if query.low is not None:
        yield pl.col("pass_rate") >= query.low
    if query.high is not None:
        yield pl.col("pass_rate") <= query.high


def _scan(results: Sequence[StageResult], table: str, *columns: str) -> pl.LazyFrame:
    """Scan columns of a table of stages, with the stage's name in front, or no rows."""
    scanned = [pl.LazyFrame(schema={"stage": pl.String, **{name: _TYPES.get(name, pl.String) for name in columns}})]
    for result in results:
        if files := sorted((result.folder / table).glob("*.parquet")):
            scanned.append(pl.scan_parquet(files, glob=False).select(pl.lit(result.name).alias("stage"), *columns))
    return pl.concat(scanned)


def _table(run: Run, names: list[str]) -> pl.DataFrame:
    finished = _finished(run)
    filters, decisions, exports = (
        [result for result in finished if result.stage.kind is kind]
        for kind in (Kind.FILTER, Kind.DECISION, Kind.EXPORT)
    )
    dropped = _scan(filters, "dropped", *_TEXTS, "reason", "evidence")
    kept = _scan(filters[-1:], "kept", *_TEXTS).drop("stage")
    for result in decisions:
        rates = _scan([result], "decisions", "problem", "pass_rate", "reason").drop("stage")
        named = rates.rename({name: f"{name}_{result.stage.part}" for name in ("pass_rate", "reason")})
        kept = kept.join(named, left_on="id", right_on="problem", how="left", maintain_order="left")
    rates_of = [f"pass_rate_{result.stage.part}" for result in reversed(decisions)]
    is_decided = len(decisions) == len(run.parts)
    late = [  # where rows that passed the filters ended
        _scan(decisions[-1:] if is_decided else [], "decisions", "problem", "reason", "evidence").rename(
            {"problem": "id"}
        ),
        _scan(exports if is_decided else [], "dropped", "id", "reason", "evidence"),
    ]
    fates = pl.concat(late).filter(pl.col("reason").is_not_null()).unique("id", keep="last", maintain_order=True)
    kept = kept.with_columns(pass_rate=pl.coalesce([*rates_of, pl.lit(None, pl.Float64)])).join(
        fates, on="id", how="left", maintain_order="left"
    )
    end = CURATED if is_decided and exports else GOING
    place = {name: number for number, name in enumerate(names)} | {GOING: 254, CURATED: 255}
    return (
        pl.concat([dropped, kept.with_columns(pl.col("stage").fill_null(end))], how="diagonal")
        .with_columns(
            pl.col(*FACETS).fill_null(_NO_REASON),
            place=pl.col("stage").replace_strict(place, return_dtype=pl.UInt8),
            length=pl.col("statement").str.len_chars(),
        )
        .sort("source", "row", maintain_order=True)
        .with_columns(pl.col(*FACETS).cast(pl.Categorical))
        .collect()
    )


def made_from(run: Run) -> str:
    """Return the digests of a run's finished stages."""
    return " ".join(result.manifest.digest for result in _finished(run))


def _finished(run: Run) -> list[StageResult]:
    verifier = verifier_of(run)
    results = (read_result(stage, run, verifier) for stage in pipeline_of(run.recipe).stages_of(run))
    return [result for result in results if result is not None]
