"""Texts that a set may not carry: taken out, and how each is put together again from its source.

A withheld text becomes null. Next to the set stands one `WITHHELD` row for it: the digest of the text, and the parts
that it consists of: places in texts of the source's row, and the words that are ours.

Invariants: pure functions over frames; no part that is in the source is written down, but for pieces of up to
`SHORT` characters between two of ours; what `restore_texts` fills in has the digest that was written down, or it stays
null and is named. Not here: where frames lie, and what the source says today (the flow).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

import polars as pl

from curation.licenses import UNKNOWN

TEXTS = ("statement", "answer", "choices", "solution", "raw_statement", "raw_answer", "meta")
"""Columns of a set's rows that say what the source says."""

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

SHORT = 2
"""Characters of the source that are written down where a place in it would be longer."""

OURS_AT_MOST = 0.5
"""Share of a text's characters that may be ours; where more are, it cannot be told from a copy in other words."""

_BASES = ("statement", "answer", "solution", "choices", "meta")
_OWN = {"raw_statement": "statement", "raw_answer": "answer"}


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

    A row whose statement is mostly ours, such as a translation, leaves: nothing could be told of it without its text.

    Args:
        table: the name of the rows' table.
        withheld: which rows, as `is_withheld` says.
        sources: the same rows as their source has them, in the `PROBLEM` schema; others may stand there too.
    """
    texts = [name for name in TEXTS if name in rows.columns]
    bases = _by_key(sources.join(rows.filter(withheld).select(KEY), on=KEY, how="semi"), _BASES)
    lines: list[tuple[object, ...]] = []
    leaving: list[tuple[object, ...]] = []
    for row in rows.filter(withheld).select(*KEY, *texts).iter_rows(named=True):
        key = tuple(row[name] for name in KEY)
        told = list(_told(table, row, bases.get(key, {})))
        lines += told
        if row.get("statement") is not None and not any(line[4] == "statement" for line in told):
            leaving.append(key)
    empty = [pl.when(withheld).then(None).otherwise(pl.col(name)).alias(name) for name in [*texts, "evidence"]]
    kept = rows.with_columns([column for column in empty if column.meta.output_name() in rows.columns])
    if "accepted" in rows.columns:  # they show the answer, and the source does not have them
        none = pl.lit([], rows.schema["accepted"])
        kept = kept.with_columns(accepted=pl.when(withheld).then(none).otherwise("accepted"))
    gone = pl.DataFrame(leaving, schema=[(name, rows.schema[name]) for name in KEY], orient="row")
    kept = kept.join(gone, on=KEY, how="anti", maintain_order="left")
    notes = pl.DataFrame(lines, schema=WITHHELD, orient="row").join(gone, on=KEY, how="anti", maintain_order="left")
    return WithheldSet(kept, notes, rows.height - kept.height)


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
    texts: dict[str, dict[tuple[object, ...], str]] = {}
    missing = []
    for place, note in enumerate(wanted.iter_rows(named=True)):
        key = tuple(note[name] for name in KEY)
        text = put_together(note["parts"], bases.get(key, {}))
        if text is None or digest_of(text) != note["digest"]:
            missing.append(place)
        else:
            texts.setdefault(note["column"], {})[key] = text
    keys = list(rows.select(KEY).iter_rows())
    filled = rows
    for name, by_key in texts.items():
        found = [by_key.get(key) for key in keys]
        values = pl.Series(name, [_value(name, text) for text in found], rows.schema[name])
        filled = filled.with_columns(pl.coalesce(values, pl.col(name)).alias(name))
    return filled, wanted[missing]


def digest_of(text: str) -> str:
    """Return the digest by which a text is known again."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _by_key(frame: pl.DataFrame, columns: Collection[str]) -> dict[tuple[object, ...], dict[str, str]]:
    """Return the texts of rows by source, row and id; null ones are left out."""
    return {
        tuple(row[name] for name in KEY): {name: _as_text(row[name]) for name in columns if row[name] is not None}
        for row in frame.select(*KEY, *columns).iter_rows(named=True)
    }


def _told(table: str, row: Mapping[str, object], bases: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    """Yield the `WITHHELD` rows of one row's texts that can be put together again."""
    for name in TEXTS:
        if row.get(name) is None:
            continue
        text = _as_text(row[name])
        parts = parts_of(text, _OWN.get(name, name), bases)
        ours = sum(len(part) for part in parts if isinstance(part, str))
        if ours <= OURS_AT_MOST * len(text):
            said = json.dumps(parts, ensure_ascii=False)
            yield (table, row["source"], row["row"], row["id"], name, digest_of(text), said)


def parts_of(text: str, own: str, bases: Mapping[str, str]) -> list[str | list[str | int]]:
    """Return the parts of a text: places in the texts of the source's row, and what is in none of them.

    Example: ``parts_of("What is 2 + 2?", "statement", {"statement": "3. What is 2 + 2?"}) == [["statement", 3, 17]]``
    """
    for name in dict.fromkeys((own, *bases)):
        if text and name in bases and (begin := bases[name].find(text)) >= 0:
            return [[name, begin, begin + len(text)]]
    if own not in bases:
        return [text]
    was, now = _words(bases[own]), _words(text)
    places = [0]
    for word in was:
        places.append(places[-1] + len(word))
    parts: list[str | list[str | int]] = []
    for kind, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        piece = "".join(now[c:d])
        if kind == "equal" and len(piece) > SHORT:
            parts.append([own, places[a], places[b]])
        elif piece and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        elif piece:
            parts.append(piece)
    return parts


def put_together(parts: str, bases: Mapping[str, str]) -> str | None:
    """Return a text from its parts, as a `WITHHELD` row has them; None where the source's row lacks one."""
    pieces = []
    for part in json.loads(parts):
        if isinstance(part, str):
            pieces.append(part)
            continue
        name, begin, end = part
        if name not in bases:
            return None
        pieces.append(bases[name][begin:end])
    return "".join(pieces)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\W", text)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(column: str, text: str | None) -> object:
    return json.loads(text) if column == "choices" and text is not None else text
