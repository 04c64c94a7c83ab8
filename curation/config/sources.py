"""Where rows come from: sources and their column maps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from curation.config.base import Names, Settings, names
from curation.config.coding import CodeColumns
from curation.licenses import UNKNOWN, checked_license
from curation.storage.remote import is_url

License = Annotated[str, AfterValidator(checked_license)]
"""A licence as `curation.licenses` knows them."""


class Pick(Settings):
    """Where one column comes from, when a plain dotted path does not say enough."""

    path: str | None = Field(None, description="Dotted path into the row: `meta.level`, `messages.0.content`.")
    value: str | None = Field(None, description="A constant instead of a path.")
    take: Literal["all", "hash", "boxed"] = Field(
        "all",
        description="`hash`: what stands behind the last `####` (GSM8K); `boxed`: inside the last \\boxed{}.",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.value is None):
            raise ValueError("give either `path` or `value`")
        return self


Column = Annotated[str | Pick, Field(union_mode="left_to_right")]


class ProblemColumns(Settings):
    """Which column of the source is what."""

    statement: Column = Field("problem", description="The problem's text.")
    answer: Column | None = Field(None, description="The reference answer.")
    choices: Column | None = Field(None, description="A list of options, where they are not in the statement.")
    solution: Column | None = Field(None, description="A worked solution.")
    lang: Column | None = Field(None, description="ISO 639-1 code; `en` where absent.")
    license: Column | None = Field(
        None,
        description="Licence of each row, an SPDX expression; the source's `license` where a row names none. Not in "
        "the paper.",
    )
    meta: tuple[str, ...] = Field((), description="Dotted paths kept as they are in the `meta` column.")


class SolveRate(Settings):
    """How often a model solved a problem, as its source says."""

    path: str = Field(description="Where it stands: one of the paths of `columns.meta`. A share from 0 to 1.")
    policy: str = Field(min_length=1, description="Whose it is; one name for one model in all sources.")
    attempts: int = Field(8, ge=1, description="Attempts that it counts. Not in the paper.")


class Quota(Settings):
    """Which rows of a source are drawn, at random by their positions; the same ones in every run."""

    share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="So large a share of the rows is drawn, row by row. Not in the paper.",
    )
    rows: int | None = Field(None, ge=1, description="At most so many rows are drawn, of the share. Not in the paper.")
    by: str | None = Field(
        None,
        description="Dotted path of a column whose values have quotas of their own. Not in the paper.",
    )
    each: dict[str, Annotated[int, Field(ge=0)]] = Field(
        {},
        description="Rows of each value of that column: value = rows; 0 leaves them out. Not in the paper.",
    )
    others: int | None = Field(
        None,
        ge=0,
        description="Rows of each value that `each` does not name; all where absent. Not in the paper.",
    )
    seed: int = Field(0, ge=0, description="Seed of the draw. Not in the paper.")

    @model_validator(mode="after")
    def _something_is_drawn(self) -> Self:
        if self.by is None and (self.each or self.others is not None):
            raise ValueError("`each` and `others` are quotas by a column: name it as `by`")
        if self.by is not None and not self.each and self.others is None:
            raise ValueError("`by` needs quotas: give `each`, `others` or both")
        if self.share is None and self.rows is None and self.by is None:
            raise ValueError("give `share`, `rows` or `by`")
        return self

    @property
    def needs_two_passes(self) -> bool:
        """Return whether rows must be counted before any is drawn."""
        return self.rows is not None or self.by is not None


def with_kind(table: Any) -> Any:
    """Return a table of rows with its `kind`: by the ending of `path` if it names none, else a data set."""
    if not isinstance(table, Mapping) or "kind" in table or not isinstance(path := table.get("path"), str):
        return table
    endings = {suffix.lower() for suffix in PurePosixPath(path).suffixes}
    return {**table, "kind": next((kind for kind, own in KINDS.items() if endings & own), "dataset")}


KINDS = {"jsonl": {".jsonl", ".ndjson", ".json"}, "parquet": {".parquet"}, "csv": {".csv"}}
"""Endings of files by the kind of their rows."""

OfFiles = Annotated[
    Literal["jsonl", "parquet", "csv", "dataset"],
    Field(
        description="`jsonl` (also a .json list; .gz, .zst, .bz2, .xz), `parquet`, `csv`, or `dataset` (Hugging Face: "
        "hub name or folder); by the ending of `path` if missing."
    ),
]


class Join(Settings):
    """A second table whose rows are put beside a source's; it is held in memory."""

    kind: OfFiles = "dataset"
    path: str = Field(
        description="File, glob, folder or hub name; relative to the recipe's folder. Of files also a URL that fsspec "
        "knows, as in `s3://bucket/rows-*.jsonl`."
    )
    subset: Names | None = Field(None, description="Configuration of a Hugging Face data set, or a list of them.")
    split: Names = Field("train", description="Split of a Hugging Face data set, or a list of them.")
    revision: str | None = Field(None, description="Commit of a hub data set, or a branch; as a source's.")
    files: Names | None = Field(None, description="Files of a Hugging Face data set; as a source's.")
    where: str | None = Field(None, description="SQL expression over the table's own columns.")
    on: Names = Field(description="Dotted path of the source's key, or a list of paths.")
    key: Names | None = Field(
        None, description="Path of the same key in the second table, or a list; as `on` where absent."
    )
    columns: tuple[str, ...] = Field(
        (), description="Columns that are taken; all where empty. Dotted paths keep their last name."
    )
    into: str | None = Field(
        None,
        description="Name of a new column: a list of an object for each matching row. Absent: the columns of the one "
        "matching row stand beside the source's own.",
    )
    most: int | None = Field(None, ge=1, description="At most so many matching rows for a row, the first ones.")
    unmatched: Literal["keep", "drop"] = Field(
        "keep", description="What becomes of rows without a match: `keep` them, with nothing beside, or `drop`."
    )

    _kind = model_validator(mode="before")(with_kind)

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        if self.key is not None and len(names(self.on)) != len(names(self.key)):
            raise ValueError("`on` and `key` name as many columns")
        if self.files is not None and self.kind != "dataset":
            raise ValueError("`files` belongs to the kind `dataset`; elsewhere `path` names them")
        _require_files(self.kind, self.path)
        return self


def _require_files(kind: str, path: str) -> None:
    """Refuse a URL where a folder or a name of the hub is wanted."""
    if kind in ("dataset", "kattis") and is_url(path):
        raise ValueError(
            f"path = {path!r} is a URL, which kinds `jsonl`, `parquet` and `csv` read; copy a folder of kind `{kind}` "
            "to this machine, or name a hub set as in `owner/name`"
        )


class Source(Settings):
    """One place that rows come from."""

    undigested = frozenset({"solve_rates"})

    name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._/-]+$",
        description="The source's name in funnels, ids and cards; the file of `path` if missing.",
    )
    kind: Literal["jsonl", "parquet", "csv", "dataset", "kattis"] = Field(
        "dataset",
        description="`jsonl` (also a .json list; .gz, .zst, .bz2, .xz), `parquet`, `csv`, `dataset` (Hugging Face: "
        "hub name or folder), or `kattis` (a folder of problem packages; code only). By the ending of `path` if "
        "missing, else `dataset`.",
    )
    path: str = Field(
        description="File, glob, folder or hub name; relative to the recipe's folder. Of files also a URL that fsspec "
        "knows, as in `s3://bucket/rows-*.jsonl`."
    )
    subset: Names | None = Field(
        None, description="Configuration of a Hugging Face data set, or a list of them, read one after another."
    )
    split: Names = Field("train", description="Split of a Hugging Face data set, or a list of them.")
    revision: str | None = Field(
        None,
        description="Commit of a hub data set; pin it for a run that can be repeated. Also a branch or a tag, as in "
        "`refs/convert/parquet`, the hub's own conversion of sets with a script; the card names its commit.",
    )
    files: Names | None = Field(
        None,
        description="Files of a Hugging Face data set, a glob or a list, where no configuration names them, as in "
        "`all/train/*.parquet` of a conversion; `subset` is not given then. Not in the paper.",
    )
    where: str | None = Field(
        None,
        description="SQL expression over the source's own columns, as in `problem_is_valid = 'Yes'`: other rows are "
        "not read, and counted. Not in the paper.",
    )
    quota: Quota | None = Field(None, description="Which of these rows are drawn; all where absent. Not in the paper.")
    join: Join | None = Field(
        None,
        description="A second table whose rows are put beside the source's. Not in the paper.",
    )
    license: License = Field(
        UNKNOWN, description="Licence of the source as its publisher states it: an SPDX expression, or `unknown`."
    )
    url: str | None = Field(None, description="Where the source is published; shown on the card.")
    limit: int | None = Field(None, ge=1, description="Read at most so many rows, from the front.")
    weight: float = Field(
        1.0, gt=0, description="Mixing weight: the source's relative share where `export.size` bites."
    )
    on_bad_row: Literal["stop", "quarantine"] = Field(
        "stop",
        description="What a row does that cannot be read, or holds another type than the column map wants: `stop` the "
        "run, or go to `stages/01-sources/quarantine` with file, line, reason and bytes, counted; so does what a "
        "damaged file has left. Not in the paper.",
    )
    bad_rows: int = Field(
        100,
        ge=0,
        description="Most rows of the source that are set aside; one more ends the run. Not in the paper.",
    )
    columns: ProblemColumns = Field(default_factory=ProblemColumns, description="The column map.")
    solve_rates: tuple[SolveRate, ...] = Field(
        (),
        description="Solve rates that come with the rows: attempts of other policies, from which the difficulty model "
        "learns what to expect. They decide nothing by themselves. Not in the paper.",
    )
    code: CodeColumns | None = Field(None, description="Tests, solutions and limits of a source of code problems.")

    @model_validator(mode="before")
    @classmethod
    def _of_path(cls, table: Any) -> Any:
        """Give a source that has no name or kind those of its path."""
        table = with_kind(table)
        if not isinstance(table, Mapping) or "name" in table or not isinstance(path := table.get("path"), str):
            return table
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(path).name.partition(".")[0]).strip("-")
        return {**table, "name": stem or "source"}

    @property
    def domain(self) -> Literal["math", "code"]:
        """Return which verifier judges its attempts."""
        return "code" if self.kind == "kattis" or self.code is not None else "math"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.kind == "kattis" and self.code is not None:
            raise ValueError("a source of kind `kattis` has no `code` table: a package describes its own tests")
        if self.kind == "kattis" and (self.where or self.quota or self.join):
            raise ValueError("a source of kind `kattis` has no rows for `where`, `quota` or `join`")
        if self.files is not None and (self.kind != "dataset" or self.subset is not None):
            raise ValueError("`files` belongs to the kind `dataset`, without a `subset`; elsewhere `path` names them")
        _require_files(self.kind, self.path)
        missing = [rate.path for rate in self.solve_rates if rate.path not in self.columns.meta]
        if missing:
            raise ValueError(f"`solve_rates.path` = {missing[0]!r} is not kept: name it in `columns.meta` too")
        return self
