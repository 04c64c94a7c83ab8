"""Withhold texts of a set, and restore them from their sources by digest.

Only a source's texts are withheld: columns, their cleaned form, language variants, tests and checkers.
Rows and tests with another text leave the set and are counted.

Invariant: a restored text has the recorded digest, or stays null and is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements import filtering as statements
from curation.licenses import UNKNOWN
from curation.programs.language_variants import FUNCTION_LINE, LINES, variant_meta, variant_statement

ROWS, TESTS, JUDGING = ("data", "dropped"), "tests", "judging"

_ROW = ("statement", "answer", "choices", "solution", "raw_statement", "raw_answer", "meta")
TEXTS = {
    **dict.fromkeys(ROWS, _ROW),
    TESTS: ("input", "output"),
    JUDGING: ("checker", "validator", "function", "starter"),
}
"""Columns with texts of the source, by table."""

_NEEDED = {**dict.fromkeys(ROWS, ("statement", "answer")), TESTS: ("input",), JUDGING: ()}

MADE = ("mutation", "model")

PLACE = ["source", "row"]
KEY = [*PLACE, "id", "index"]

WITHHELD = pl.Schema(
    {
        "table": pl.String(),
        "source": pl.String(),
        "row": pl.Int64(),
        "id": pl.String(),
        "index": pl.Int32(),  # of a test; else null
        "column": pl.String(),
        "digest": pl.String(),  # of the text, 128 bits of BLAKE2b
    }
)
"""A row per withheld text."""


def is_withheld(rows: pl.DataFrame, licenses: Collection[str]) -> pl.Series:
    """Return which rows have a withheld licence, copies' included."""
    named = [name.lower() for name in licenses]

    def is_named(license: pl.Expr) -> pl.Expr:
        return license.fill_null(UNKNOWN).str.to_lowercase().is_in(named)

    hidden = is_named(pl.col("license"))
    if "also_from" in rows.columns:
        copies = pl.col("also_from").list.eval(is_named(pl.element().struct.field("license")))
        hidden |= copies.list.any().fill_null(False)
    return rows.select(withheld=hidden)["withheld"]


def source_texts(
    rows: pl.DataFrame, settings: StatementSettings | None, code_tables: Sequence[pl.DataFrame]
) -> pl.DataFrame:
    """Return ``source``, ``row``, ``text`` and digests of source rows' texts.

    Args:
        settings: of the format filter, whose cleaned texts count too; None for programs.
        code_tables: the rows' tests and judging tables.
    """
    frames = [_unpivoted(rows, PLACE, _ROW)]
    if settings is not None:
        cleaned = statements.apply_rules(rows, settings).select("statement", "answer", "choices", "meta")
        frames.append(_unpivoted(rows.select(PLACE).hstack(cleaned), PLACE, cleaned.columns))
    else:
        frames.append(pl.DataFrame([*_variants(rows)], schema=frames[0].schema, orient="row"))
    origins = rows.select(*PLACE, problem="id").unique()
    for table in code_tables:
        names = [name for name in (*TEXTS[TESTS], *TEXTS[JUDGING]) if name in table.columns]
        texts = _unpivoted(table.join(origins, on="problem"), PLACE, names)
        frames += [texts, texts.with_columns(pl.col("text").str.strip_chars())]
    return _with_digests(pl.concat(frame.select(*PLACE, "text") for frame in frames).unique(maintain_order=True))


def _variants(rows: pl.DataFrame) -> Iterator[tuple[str, int, str, str]]:
    for source, row, statement, meta in rows.select(*PLACE, "statement", "meta").iter_rows():
        for line in (*LINES.values(), FUNCTION_LINE):
            yield source, row, "statement", variant_statement(statement or "", line)
        for language in LINES:
            for passed in (True, False):
                yield source, row, "meta", variant_meta(meta, language, passed=passed)


def _unpivoted(rows: pl.DataFrame, index: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    if "choices" in columns:
        options = [
            None if option is None else json.dumps(option, ensure_ascii=False) for option in rows["choices"].to_list()
        ]
        rows = rows.with_columns(pl.Series("choices", options, pl.String))
    return rows.unpivot(columns, index=index, variable_name="column", value_name="text").drop_nulls("text")


def _with_digests(texts: pl.DataFrame) -> pl.DataFrame:
    """Return texts with digests, and digests of their words whatever their spacing."""
    spaced = (digest_of(" ".join(text.split())) for text in texts["text"])
    return texts.with_columns(
        digest=pl.Series(map(digest_of, texts["text"]), dtype=pl.String), words=pl.Series(spaced, dtype=pl.String)
    )


def digest_of(text: str) -> str:
    """Return a text's digest."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def withhold_texts(
    table: str, rows: pl.DataFrame, hidden: pl.Series, texts: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a table without hidden rows' texts and without rows that cannot be restored, and `WITHHELD` rows.

    Args:
        rows: with ``source``, ``row`` and ``id``, and for tests ``index``.
    """
    columns, keys = ([name for name in names if name in rows.columns] for names in (TEXTS[table], KEY))
    rows = rows.with_row_index("_at")
    long = _with_digests(_unpivoted(rows.filter(hidden), ["_at", *keys], columns))
    restorable = long.join(texts, on=[*PLACE, "digest"], how="semi")
    unmatched = long.join(restorable, on=["_at", "column"], how="anti")
    reworded = unmatched.join(texts, on=[*PLACE, "words"], how="semi")
    lost = unmatched.filter(pl.col("column").is_in(_NEEDED[table]))
    lost_at = pl.concat([lost, reworded] if table == TESTS else [lost])["_at"].unique()
    if table in ROWS:  # accepted answers show the answer, evidence the text, and the source has neither
        empty = {**dict.fromkeys((*columns, "evidence"), pl.lit(None)), "accepted": pl.lit([], pl.List(pl.String))}
        gone = {name: hidden for name in empty if name in rows.columns}
    else:
        empty = dict.fromkeys(columns, pl.lit(None))
        known = pl.concat([restorable, reworded])
        gone = {name: rows["_at"].is_in(known.filter(column=name)["_at"].implode()) for name in columns}
    rows = rows.with_columns(
        pl.when(where).then(empty[name]).otherwise(name).alias(name) for name, where in gone.items()
    )
    is_lost = pl.col("_at").is_in(lost_at.implode())
    notes = restorable.filter(~is_lost).with_columns(table=pl.lit(table))
    notes = notes.match_to_schema(WITHHELD, missing_columns="insert", extra_columns="ignore")
    return rows.filter(~is_lost).drop("_at"), notes


def restore_texts(
    table: str, rows: pl.DataFrame, withheld: pl.DataFrame, texts: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a table's rows with their texts, and `WITHHELD` rows whose text changed or is missing.

    Args:
        rows: with ``id``; tests with ``index``, others with ``source`` and ``row`` if present.
    """
    keys = [name for name in KEY if name in rows.columns]
    own = withheld.filter(table=table).join(rows, on=keys, how="semi")
    by = [*PLACE, "digest"]
    matched = own.join(texts.select(*by, "text").unique(by), on=by, how="left", maintain_order="left")
    for name in TEXTS[table]:
        filling = matched.filter(column=name).drop_nulls("text").select(*keys, _text="text").unique(keys)
        if filling.height:
            text = pl.col("_text").str.json_decode(pl.List(pl.String)) if name == "choices" else pl.col("_text")
            filled = rows.join(filling, on=keys, how="left", maintain_order="left")
            rows = filled.with_columns(pl.coalesce(name, text).alias(name)).drop("_text")
    return rows, matched.filter(pl.col("text").is_null()).drop("text")
