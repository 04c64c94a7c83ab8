"""Texts that a set may not carry: taken out, with a pointer to each in its source, by which it is restored.

A withheld text becomes null. A `WITHHELD` row next to the set has its digest and its place in a text of the source's
row; words of ours before or after the source's text are written down, too. A row whose statement is not in its source
like that leaves the public set, since nothing could be known of it.

Of a code set, given tests, checkers, validators and starters are withheld as well. A language variant has an id of its
own; its texts are those of the source's row under its group. Tests that were made here, and expected outputs that the
solutions voted for, are ours and stay. A given test that is not in its source as it is leaves the set.

Invariants: pure functions over frames; what is restored has the digest that was written down, or it stays null and is
named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.licenses import UNKNOWN
from curation.programs.language_variants import LANGUAGE

TEXTS = ("statement", "answer", "choices", "solution", "raw_statement", "raw_answer", "meta")
"""Columns of a set's rows that hold texts of the source."""

WITHHELD = pl.Schema(
    {
        "table": pl.String(),  # data or dropped; of code tests or judging
        "source": pl.String(),
        "row": pl.Int64(),
        "id": pl.String(),  # of the problem: a hash of the source's statement and options
        "column": pl.String(),  # one of `TEXTS`; of code also `input 3` and the like
        "digest": pl.String(),  # of the text, 128 bits of BLAKE2b
        "parts": pl.String(),  # JSON list: ours as text, the source's as [column, begin, end]
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

JUDGED_BY = ("checker", "validator", "function", "starter")
"""Columns of `judging` that may hold texts of the source."""

OWN_META = (LANGUAGE, "solved_in_it")
"""Keys of a variant's `meta` that are ours; a withheld row keeps them."""

Parts = list[str | list[str | int]]
"""A text: words of ours, and places in the source as [column, begin, end]."""


@dataclass(frozen=True, slots=True)
class WithheldSet:
    """A table without its withheld texts, the rows that put them back, and how many rows had to leave."""

    rows: pl.DataFrame
    withheld: pl.DataFrame
    left_out: int


def is_withheld(rows: pl.DataFrame, licenses: Collection[str]) -> pl.Series:
    """Return which rows may not carry their texts: their own licence, or that of a merged copy, is among these."""
    named = [name.lower() for name in licenses]
    own = pl.col("license").fill_null(UNKNOWN).str.to_lowercase().is_in(named)
    if "also_from" not in rows.columns:
        return rows.select(own.alias("withheld"))["withheld"]
    copies = pl.col("also_from").list.eval(
        pl.element().struct.field("license").fill_null(UNKNOWN).str.to_lowercase().is_in(named)
    )
    return rows.select((own | copies.list.any().fill_null(False)).alias("withheld"))["withheld"]


def withhold_texts(table: str, rows: pl.DataFrame, withheld: pl.Series, sources: pl.DataFrame) -> WithheldSet:
    """Take the texts of some rows out.

    Args:
        table: the name of the rows' table.
        withheld: which rows, as `is_withheld` returns.
        sources: the same rows as their source has them, in the `PROBLEM` schema; further rows are passed over.
    """
    texts = [name for name in TEXTS if name in rows.columns]
    bases = _by_key(sources.join(rows.filter(withheld).select(KEY), on=KEY, how="semi"), _BASES)
    lines: list[tuple[object, ...]] = []
    leaving: list[tuple[object, ...]] = []
    for row in rows.filter(withheld).select(*KEY, *texts).iter_rows(named=True):
        key = tuple(row[name] for name in KEY)
        notes = list(_pointers(table, row, bases.get(key, {})))
        lines += notes
        if row.get("statement") is not None and not any(note[4] == "statement" for note in notes):
            leaving.append(key)
    empty = [pl.when(withheld).then(None).otherwise(pl.col(name)).alias(name) for name in [*texts, "evidence"]]
    kept = rows.with_columns([column for column in empty if column.meta.output_name() in rows.columns])
    if "accepted" in rows.columns:  # they show the answer, and the source does not have them
        none = pl.lit([], rows.schema["accepted"])
        kept = kept.with_columns(accepted=pl.when(withheld).then(none).otherwise("accepted"))
    gone = pl.DataFrame(leaving, schema=[(name, rows.schema[name]) for name in KEY], orient="row")
    kept = kept.join(gone, on=KEY, how="anti", maintain_order="left")
    pointers = pl.DataFrame(lines, schema=WITHHELD, orient="row")
    pointers = pointers.join(gone, on=KEY, how="anti", maintain_order="left")
    return WithheldSet(kept, pointers, rows.height - kept.height)


def restore_texts(
    table: str, rows: pl.DataFrame, withheld: pl.DataFrame, sources: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows with their texts, and the `WITHHELD` rows whose text is not what it was, or not there.

    Args:
        rows: of the table, in which the texts are null.
        sources: rows as their source has them today, in the `PROBLEM` schema. One whose id differs is another problem.
    """
    wanted = withheld.filter(pl.col("table") == table)
    bases = _by_key(sources.join(wanted.select(KEY).unique(), on=KEY, how="semi"), _BASES)
    found, missing = _found(wanted, lambda note: tuple(note[name] for name in KEY), bases)
    texts: dict[str, dict[Hashable, str]] = {}
    for (key, column), text in found.items():
        texts.setdefault(column, {})[key] = text
    keys = list(rows.select(KEY).iter_rows())
    filled = rows
    for name, by_key in texts.items():
        values = pl.Series(name, [_value(name, by_key.get(key)) for key in keys], rows.schema[name])
        filled = filled.with_columns(pl.coalesce(values, pl.col(name)).alias(name))
    return filled, missing


def _found(
    notes: pl.DataFrame, key_of: Callable[[Mapping[str, Any]], Hashable], bases: Mapping[Any, Mapping[str, str]]
) -> tuple[dict[tuple[Hashable, str], str], pl.DataFrame]:
    """Return the texts that are as they were, by key and column, and the `WITHHELD` rows of the others.

    Args:
        bases: texts of the source by key.
    """
    found, missing = dict[tuple[Hashable, str], str](), list[int]()
    for place, note in enumerate(notes.iter_rows(named=True)):
        key = key_of(note)
        text = _put_together(note["parts"], bases.get(key, {}))
        if text is None or digest_of(text) != note["digest"]:
            missing.append(place)
        else:
            found[key, note["column"]] = text
    return found, notes[missing]


def digest_of(text: str) -> str:
    """Return the digest by which a text is recognised."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _by_key(frame: pl.DataFrame, columns: Collection[str]) -> dict[tuple[object, ...], dict[str, str]]:
    """Return the texts of rows by source, row and id; null ones are left out."""
    return {
        tuple(row[name] for name in KEY): {name: _as_text(row[name]) for name in columns if row[name] is not None}
        for row in frame.select(*KEY, *columns).iter_rows(named=True)
    }


def _pointers(table: str, row: Mapping[str, Any], bases: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    """Yield the `WITHHELD` rows of one row's texts that are in its source."""
    for name in TEXTS:
        if row.get(name) is None:
            continue
        text = _as_text(row[name])
        parts = parts_of(text, _OWN.get(name, name), bases)
        if sum(len(part) for part in parts if isinstance(part, str)) <= OURS_AT_MOST * len(text):
            yield _note(table, row, name, text, parts)


def parts_of(text: str, own: str, bases: Mapping[str, str]) -> Parts:
    """Return a text as a place in the source's row, or as the source's whole text between words of ours.

    Example: ``parts_of("What is 2 + 2?", "statement", {"statement": "3. What is 2 + 2?"}) == [["statement", 3, 17]]``
    """
    for name in dict.fromkeys((own, *bases)):
        if text and name in bases and (begin := bases[name].find(text)) >= 0:
            return [[name, begin, begin + len(text)]]
    base = bases.get(own, "")
    if not base or (begin := text.find(base)) < 0:
        return [text]
    parts: Parts = [text[:begin], [own, 0, len(base)], text[begin + len(base) :]]
    return [part for part in parts if part]


def _put_together(parts: str, bases: Mapping[str, str]) -> str | None:
    """Return a text from its parts, as a `WITHHELD` row has them; None if the source's row lacks one."""
    texts = []
    for part in json.loads(parts):
        if isinstance(part, str):
            texts.append(part)
            continue
        name, begin, end = part
        if name not in bases:
            return None
        texts.append(bases[name][begin:end])
    return "".join(texts)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(column: str, text: str | None) -> object:
    return json.loads(text) if column == "choices" and text is not None else text


def with_own_meta(rows: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Give rows whose `meta` was withheld the keys of it that are ours.

    Args:
        before: the same rows, and others, with all their texts.
    """
    ours = {name: _own_meta(meta) for name, meta in before.select("id", "meta").iter_rows()}
    metas = [
        json.dumps(ours[name], ensure_ascii=False) if meta is None and ours.get(name) else meta
        for name, meta in rows.select("id", "meta").iter_rows()
    ]
    return rows.with_columns(pl.Series("meta", metas, pl.String))


def sources_of_variants(rows: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Return the sources' rows under the ids of a set's rows, with what is ours in their `meta`.

    Args:
        rows: of the set; those whose group is not in ``sources`` are left out.
        sources: rows as their source has them, in the `PROBLEM` schema.
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
    """Take given tests' texts out of a table of tests.

    Args:
        tests: in the `TEST` schema, by the ids of the set's rows.
        hidden: ``KEY`` and ``group`` of the rows whose texts are withheld.
        given: the same problems' tests as their source has them, by group.
    """
    rows = {row["id"]: row for row in hidden.iter_rows(named=True)}
    places = _places(given)
    kept, notes, left_out = [], [], 0
    for test in tests.iter_rows(named=True):
        row = rows.get(test["problem"])
        if row is None or test["origin"] in MADE:
            kept.append(test)
            continue
        place = places.get((row["group"], test["input"].strip()))
        withheld = None if place is None else _withheld_test(row, test, *place)
        if withheld is None:
            left_out += 1
            continue
        notes += withheld[1]
        kept.append(withheld[0])
    table = pl.DataFrame(kept, schema=tests.schema, orient="row")
    return WithheldSet(table, pl.DataFrame(notes, schema=WITHHELD, orient="row"), left_out)


def withhold_judging(judging: pl.DataFrame, hidden: pl.DataFrame, given: pl.DataFrame) -> WithheldSet:
    """Take checkers and the like out of a table in the `JUDGING` schema; arguments as of `withhold_tests`."""
    rows = {row["id"]: row for row in hidden.iter_rows(named=True)}
    bases = {row["problem"]: row for row in given.iter_rows(named=True)}
    kept, notes = [], []
    for line in judging.iter_rows(named=True):
        row = rows.get(line["problem"])
        base = bases.get(row["group"], {}) if row is not None else {}
        for column in JUDGED_BY:
            if row is not None and line[column] and base.get(column) == line[column]:
                notes.append(_note(JUDGING, row, column, line[column], [[column, 0, len(line[column])]]))
                line[column] = None
        kept.append(line)
    table = pl.DataFrame(kept, schema=judging.schema, orient="row")
    return WithheldSet(table, pl.DataFrame(notes, schema=WITHHELD, orient="row"), 0)


def restore_beside(
    table: str, rows: pl.DataFrame, notes: pl.DataFrame, groups: Mapping[str, str], given: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return tests or judging with their texts, and the `WITHHELD` rows whose text is not what it was.

    Args:
        table: `TESTS` or `JUDGING`.
        notes: `WITHHELD` rows; those of other tables and problems are passed over.
        groups: of the set's rows, by id.
        given: tests or judging as their source has them today, by group.
    """
    here = notes.filter((pl.col("table") == table) & pl.col("id").is_in(rows["problem"].unique().to_list()))
    by_group = _texts(table, given)
    bases = {name: by_group.get(group, {}) for name, group in groups.items()}
    found, missing = _found(here, lambda note: note["id"], bases)
    filled = []
    for line in rows.iter_rows(named=True):
        for column in ("input", "output") if table == TESTS else JUDGED_BY:
            name = _test_text(column, line["index"]) if table == TESTS else column
            if line[column] is None:
                line[column] = found.get((line["problem"], name))
        filled.append(line)
    return pl.DataFrame(filled, schema=rows.schema, orient="row"), missing


def _withheld_test(
    row: Mapping[str, Any], test: dict[str, Any], place: int, given: str, expected: str | None
) -> tuple[dict[str, Any], list[tuple[object, ...]]] | None:
    """Return a test without its source's texts, and their `WITHHELD` rows; None if the source has no such input."""
    begin, index, text = given.find(test["input"]), test["index"], test["input"]
    if begin < 0:
        return None
    parts: Parts = [[_test_text("input", place), begin, begin + len(text)]]
    notes = [_note(TESTS, row, _test_text("input", index), text, parts)]
    output, kept = test["output"], None
    if output is not None and expected is not None and (at := expected.find(output)) >= 0:
        parts = [[_test_text("output", place), at, at + len(output)]]
        notes.append(_note(TESTS, row, _test_text("output", index), output, parts))
    elif output is not None and expected is not None and output.split() == expected.split():
        return None
    else:
        kept = output  # the solutions voted for it: it is ours
    return {**test, "input": None, "output": kept}, notes


def _note(table: str, row: Mapping[str, Any], column: str, text: str, parts: Parts) -> tuple[object, ...]:
    written = json.dumps(parts, ensure_ascii=False)
    return (table, row["source"], row["row"], row["id"], column, digest_of(text), written)


def _places(given: pl.DataFrame) -> dict[tuple[str, str], tuple[int, str, str | None]]:
    """Return index, input and output of the source's tests by group and stripped input; the first of equal ones."""
    found: dict[tuple[str, str], tuple[int, str, str | None]] = {}
    for problem, index, text, output in given.select("problem", "index", "input", "output").iter_rows():
        found.setdefault((problem, text.strip()), (index, text, output))
    return found


def _texts(table: str, given: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Return the source's texts by group and by the name that parts give them."""
    texts: dict[str, dict[str, str]] = {}
    for row in given.iter_rows(named=True):
        named = dict(_named(table, row))
        texts.setdefault(row["problem"], {}).update(named)
    return texts


def _named(table: str, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for column in ("input", "output") if table == TESTS else JUDGED_BY:
        if row[column] is not None:
            yield (_test_text(column, row["index"]) if table == TESTS else column), row[column]


def _test_text(column: str, index: int) -> str:
    return f"{column} {index}"


def _own_meta(meta: str | None) -> dict[str, Any]:
    table = json.loads(meta or "{}")
    return {name: table[name] for name in OWN_META if name in table}
