"""What of a code set may not be handed on next to its statements: given tests, checkers, validators, starters.

A language variant has an id of its own; its texts are those of the source's row under its group. Tests that were made
here, and expected outputs that the solutions voted for in the place of wrong ones, are ours and stay.

Invariants: as in `curation.publish.withheld`: pure functions over frames; what comes back has the digest that was
written down. A given test that cannot be found in its source leaves the set: nothing could be told of it.

Not here: statements (`curation.publish.withheld`), where frames lie (the flow).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from curation.programs.language_variants import LANGUAGE
from curation.publish.withheld import KEY, WITHHELD, WithheldSet, digest_of, put_together

TESTS, JUDGING = "tests", "judging"
"""Tables next to the rows, by which `WITHHELD` rows name them."""

MADE = ("mutation", "model")
"""Origins of tests that were made here."""

JUDGED_BY = ("checker", "validator", "function", "starter")
"""Columns of `judging` that may hold texts of the source."""

OWN_META = (LANGUAGE, "solved_in_it")
"""Keys of a variant's `meta` that are ours; a withheld row keeps them."""


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
        told = None if place is None else _told_test(row, test, *place)
        if told is None:
            left_out += 1
            continue
        notes += told[1]
        kept.append(told[0])
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
    bases = _texts(table, given)
    found: dict[tuple[str, str], str] = {}
    missing = []
    for place, note in enumerate(here.iter_rows(named=True)):
        text = put_together(note["parts"], bases.get(groups.get(note["id"], ""), {}))
        if text is None or digest_of(text) != note["digest"]:
            missing.append(place)
        else:
            found[note["id"], note["column"]] = text
    filled = []
    for line in rows.iter_rows(named=True):
        for column in ("input", "output") if table == TESTS else JUDGED_BY:
            name = _test_text(column, line["index"]) if table == TESTS else column
            if line[column] is None:
                line[column] = found.get((line["problem"], name))
        filled.append(line)
    return pl.DataFrame(filled, schema=rows.schema, orient="row"), here[missing]


def _told_test(
    row: Mapping[str, Any], test: dict[str, Any], place: int, given: str, expected: str | None
) -> tuple[dict[str, Any], list[tuple[object, ...]]] | None:
    """Return a test without what its source says, and the rows that tell where that stands; None: nowhere."""
    begin = given.find(test["input"])
    if begin < 0:
        return None
    name, text = _test_text("input", place), test["input"]
    index = test["index"]
    notes = [_note(TESTS, row, _test_text("input", index), text, [[name, begin, begin + len(text)]])]
    output, kept = test["output"], None
    if output is not None and expected is not None and (at := expected.find(output)) >= 0:
        parts: list[list[str | int]] = [[_test_text("output", place), at, at + len(output)]]
        notes.append(_note(TESTS, row, _test_text("output", index), output, parts))
    elif output is not None and expected is not None and output.split() == expected.split():
        return None
    else:
        kept = output  # the solutions voted for it: it is ours
    return {**test, "input": None, "output": kept}, notes


def _note(
    table: str, row: Mapping[str, Any], column: str, text: str, parts: list[list[str | int]]
) -> tuple[object, ...]:
    said = json.dumps(parts, ensure_ascii=False)
    return (table, row["source"], row["row"], row["id"], column, digest_of(text), said)


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
