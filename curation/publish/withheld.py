"""Withhold texts that a set may not carry, with pointers (`WITHHELD`) that restore them from their sources.

What was made here stays. Rows and tests whose text is not in their source leave the set and are counted.

Invariant: a restored text has the recorded digest, or it stays null and is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.licenses import UNKNOWN
from curation.programs.language_variants import LANGUAGE

TEXTS = ("statement", "answer", "choices", "solution", "raw_statement", "raw_answer", "meta")
"""Columns of a set's rows that hold texts of the source."""

NEEDED = ("statement", "answer")
"""Those without which a row is of no use."""

WITHHELD = pl.Schema(
    {
        "table": pl.String(),  # data or dropped; of code tests or judging
        "source": pl.String(),
        "row": pl.Int64(),
        "id": pl.String(),  # of the problem: a hash of the source's statement and options
        "column": pl.String(),  # one of `TEXTS`; of code also `input 3` and the like
        "base": pl.String(),  # which text of the source's row it is in, named likewise
        "begin": pl.Int64(),  # characters
        "end": pl.Int64(),
        "before": pl.String(),  # words of ours
        "after": pl.String(),
        "digest": pl.String(),  # of the text, 128 bits of BLAKE2b
    }
)
"""One row a withheld text."""

KEY = ["source", "row", "id"]

OURS_AT_MOST = 0.5
"""Share of a text's characters that may be ours."""

_BASES = ("statement", "answer", "solution", "choices", "meta")
_OWN = {"raw_statement": "statement", "raw_answer": "answer"}

TESTS, JUDGING = "tests", "judging"
"""Tables next to the rows, by which `WITHHELD` rows name them."""

MADE = ("mutation", "model")
"""Origins of tests that were made here."""

_BESIDE = {TESTS: ("input", "output"), JUDGING: ("checker", "validator", "function", "starter")}
"""Columns of these tables that may hold texts of the source."""

OWN_META = (LANGUAGE, "solved_in_it")
"""Keys of a variant's `meta` that are ours; a withheld row keeps them."""

Pointer = tuple[str, int, int, str, str, str]
"""The columns of a `WITHHELD` row from ``base`` on."""


@dataclass(frozen=True, slots=True)
class WithheldSet:
    """A table without withheld texts, the rows that restore them, and how many rows left."""

    rows: pl.DataFrame
    withheld: pl.DataFrame
    left_out: int


def is_withheld(rows: pl.DataFrame, licenses: Collection[str]) -> pl.Series:
    """Return which rows have a withheld licence, their own or a merged copy's."""
    named = [name.lower() for name in licenses]
    own = pl.col("license").fill_null(UNKNOWN).str.to_lowercase().is_in(named)
    if "also_from" not in rows.columns:
        return rows.select(own.alias("withheld"))["withheld"]
    copies = pl.col("also_from").list.eval(
        pl.element().struct.field("license").fill_null(UNKNOWN).str.to_lowercase().is_in(named)
    )
    return rows.select((own | copies.list.any().fill_null(False)).alias("withheld"))["withheld"]


def withhold_texts(table: str, rows: pl.DataFrame, withheld: pl.Series, sources: pl.DataFrame) -> WithheldSet:
    """Withhold the texts of some rows.

    Args:
        withheld: from `is_withheld`.
        sources: the rows in their sources (`PROBLEM`).
    """
    texts = [name for name in TEXTS if name in rows.columns]
    hidden = rows.filter(withheld).select(*KEY, *texts)
    bases: dict[tuple[object, ...], dict[str, str]] = {}
    for *place, base, text in _source_texts(sources.join(hidden, on=KEY, how="semi")).iter_rows():
        bases.setdefault(tuple(place), {})[base] = text
    lines, leaving = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for row in hidden.iter_rows(named=True):
        key, found = tuple(row[name] for name in KEY), dict[str, Pointer]()
        for name in texts:
            if row[name] is not None:
                pointer = pointer_to(_as_text(row[name]), _OWN.get(name, name), bases.get(key, {}))
                found |= {name: pointer} if pointer is not None else {}
        if any(row[name] is not None and name not in found for name in NEEDED):
            leaving.append(key)
        else:
            lines += [(table, *key, name, *pointer) for name, pointer in found.items()]
    empty = [pl.when(withheld).then(None).otherwise(pl.col(name)).alias(name) for name in [*texts, "evidence"]]
    kept = rows.with_columns([column for column in empty if column.meta.output_name() in rows.columns])
    if "accepted" in rows.columns:  # they show the answer, and the source does not have them
        none = pl.lit([], rows.schema["accepted"])
        kept = kept.with_columns(accepted=pl.when(withheld).then(none).otherwise("accepted"))
    gone = pl.DataFrame(leaving, schema=[(name, rows.schema[name]) for name in KEY], orient="row")
    kept = kept.join(gone, on=KEY, how="anti", maintain_order="left")
    return WithheldSet(kept, pl.DataFrame(lines, schema=WITHHELD, orient="row"), rows.height - kept.height)


def pointer_to(text: str, own: str, bases: Mapping[str, str]) -> Pointer | None:
    """Return a text's position in its source's row, or the source's whole text, or None.

    Args:
        own: the source's text to search first.

    Example: ``pointer_to("What is 2?", "statement", {"statement": "3. What is 2?"})[:3] == ("statement", 3, 13)``
    """
    digest = digest_of(text)
    for name in dict.fromkeys((own, *bases)):
        if text and name in bases and (begin := bases[name].find(text)) >= 0:
            return name, begin, begin + len(text), "", "", digest
    base = bases.get(own, "")
    if not base or base not in text or len(text) - len(base) > OURS_AT_MOST * len(text):
        return None
    before, _, after = text.partition(base)
    return own, 0, len(base), before, after, digest


def restore_texts(
    table: str, rows: pl.DataFrame, withheld: pl.DataFrame, sources: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows with their texts, and the `WITHHELD` rows whose text changed or is missing.

    Args:
        sources: the sources' current rows (`PROBLEM`).
    """
    found, missing = _restored(withheld.filter(pl.col("table") == table), _source_texts(sources))
    for name in TEXTS:
        texts = found.filter(pl.col("column") == name).select(*KEY, _text="text").unique(KEY)
        if texts.height:
            text = pl.col("_text").str.json_decode(pl.List(pl.String)) if name == "choices" else pl.col("_text")
            filled = rows.join(texts, on=KEY, how="left", maintain_order="left")
            rows = filled.with_columns(pl.coalesce(text, name).alias(name)).drop("_text")
    return rows, missing


def _source_texts(sources: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of `PROBLEM` rows: ``KEY``, base, text."""
    choices = [None if options is None else _as_text(options) for options in sources["choices"].to_list()]
    plain = sources.with_columns(pl.Series("choices", choices, pl.String)).select(*KEY, *_BASES)
    return plain.unpivot(index=KEY, variable_name="base", value_name="text").drop_nulls("text")


def _restored(notes: pl.DataFrame, texts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return restored `WITHHELD` rows with ``text``, and the remaining ones."""
    by = [*KEY, "base"]
    part = pl.col("text").str.slice(pl.col("begin"), pl.col("end") - pl.col("begin"))
    joined = notes.join(texts.unique(by, keep="first"), on=by, how="left", maintain_order="left")
    joined = joined.with_columns(text=pl.concat_str("before", part, "after"))
    pairs = joined.select("text", "digest").iter_rows()
    is_same = pl.Series([text is not None and digest_of(text) == digest for text, digest in pairs], dtype=pl.Boolean)
    return joined.filter(is_same), notes.filter(~is_same)


def digest_of(text: str) -> str:
    """Return a text's digest."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def with_own_meta(rows: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Restore our own keys of a withheld `meta`."""
    ours = {name: _own_meta(meta) for name, meta in before.select("id", "meta").iter_rows()}
    metas = [
        json.dumps(ours[name], ensure_ascii=False) if meta is None and ours.get(name) else meta
        for name, meta in rows.select("id", "meta").iter_rows()
    ]
    return rows.with_columns(pl.Series("meta", metas, pl.String))


def sources_of_variants(rows: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Return the sources' rows under the ids of a set's rows, with our keys in `meta`.

    Args:
        rows: the set's; those whose group has no source are left out.
    """
    named = rows.select(*KEY, "group", pl.col("meta").alias("own_meta")).unique(subset=KEY, maintain_order=True)
    joined = named.rename({"id": "variant", "group": "id"}).join(sources, on=KEY, how="inner")
    metas = [
        json.dumps({**json.loads(meta or "{}"), **_own_meta(own)}, ensure_ascii=False) if meta or own else None
        for meta, own in joined.select("meta", "own_meta").iter_rows()
    ]
    renamed = joined.drop("id", "own_meta").rename({"variant": "id"})
    return renamed.with_columns(pl.Series("meta", metas, pl.String)).select(sources.columns)


def withhold_tests(tests: pl.DataFrame, hidden: pl.DataFrame, given: pl.DataFrame) -> WithheldSet:
    """Withhold the texts of given tests.

    Args:
        hidden: ``KEY`` and ``group`` of withheld rows.
        given: the sources' tests, by group.
    """
    rows = {row["id"]: row for row in hidden.iter_rows(named=True)}
    places: dict[tuple[str, str], dict[str, Any]] = {}
    for test in given.iter_rows(named=True):
        places.setdefault((test["problem"], test["input"].strip()), test)
    kept, notes, left_out = [], list[tuple[object, ...]](), 0
    for test in tests.iter_rows(named=True):
        row = rows.get(test["problem"])
        if row is not None and test["origin"] not in MADE:
            place = places.get((row["group"], test["input"].strip()))
            pointers = None if place is None else _test_pointers(test, place)
            if pointers is None:
                left_out += 1
                continue
            for column, pointer in pointers.items():
                notes.append((TESTS, *(row[name] for name in KEY), f"{column} {test['index']}", *pointer))
                test[column] = None
        kept.append(test)
    table = pl.DataFrame(kept, schema=tests.schema, orient="row")
    return WithheldSet(table, pl.DataFrame(notes, schema=WITHHELD, orient="row"), left_out)


def _test_pointers(test: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Pointer] | None:
    """Return a test's pointers by column; None if its source has other texts.

    Outputs that solutions voted for are ours and have none.
    """
    found = {}
    for column in _BESIDE[TESTS]:
        text, base = test[column], given[column]
        if text is None or base is None or (column == "output" and text.split() != base.split()):
            continue
        if (begin := base.find(text)) < 0:
            return None
        found[column] = (f"{column} {given['index']}", begin, begin + len(text), "", "", digest_of(text))
    return found


def withhold_judging(judging: pl.DataFrame, hidden: pl.DataFrame, given: pl.DataFrame) -> WithheldSet:
    """Withhold checkers and the like in a `JUDGING` table; see `withhold_tests`."""
    rows = {row["id"]: row for row in hidden.iter_rows(named=True)}
    bases = {row["problem"]: row for row in given.iter_rows(named=True)}
    kept, notes = [], list[tuple[object, ...]]()
    for line in judging.iter_rows(named=True):
        row = rows.get(line["problem"])
        base = bases.get(row["group"], {}) if row is not None else {}
        for column in _BESIDE[JUDGING]:
            text = line[column]
            if row is not None and text and base.get(column) == text:
                pointer: Pointer = (column, 0, len(text), "", "", digest_of(text))
                notes.append((JUDGING, *(row[name] for name in KEY), column, *pointer))
                line[column] = None
        kept.append(line)
    table = pl.DataFrame(kept, schema=judging.schema, orient="row")
    return WithheldSet(table, pl.DataFrame(notes, schema=WITHHELD, orient="row"), 0)


def restore_beside(
    table: str, rows: pl.DataFrame, notes: pl.DataFrame, members: pl.DataFrame, given: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return tests or judging with their texts, and the `WITHHELD` rows whose text changed.

    Args:
        table: `TESTS` or `JUDGING`.
        members: ``KEY`` and ``group`` of the set's rows.
        given: the sources' current rows, by group.
    """

    def named(column: str) -> pl.Expr:
        return pl.format(f"{column} {{}}", "index") if table == TESTS else pl.lit(column)

    columns = _BESIDE[table]
    owned = members.select(*KEY, problem="group").unique().join(given, on="problem")
    texts = pl.concat(owned.select(*KEY, base=named(column), text=column) for column in columns).drop_nulls("text")
    own = notes.filter((pl.col("table") == table) & pl.col("id").is_in(rows["problem"].unique().implode()))
    found, missing = _restored(own, texts)
    found = found.select(problem="id", _column="column", _text="text")
    for column in columns:
        filled = rows.with_columns(_column=named(column)).join(
            found, on=["problem", "_column"], how="left", maintain_order="left"
        )
        rows = filled.with_columns(pl.coalesce(column, "_text").alias(column)).drop("_column", "_text")
    return rows, missing


def _own_meta(meta: str | None) -> dict[str, Any]:
    table = json.loads(meta or "{}")
    return {name: table[name] for name in OWN_META if name in table}
