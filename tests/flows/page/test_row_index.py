"""All rows of a run as one table: each once, found by what it is asked for."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from curation.records import ConfigError
from flows.page.row_index import CURATED, SORTS, RowIndex, RowQuery, made_from, read_query
from flows.pipelines.run_tables import status_table
from flows.publish.versions import newest_run
from tests.flows.conftest import STAGES, Tiny


@pytest.fixture(scope="session")
def index(tiny_run: Tiny) -> RowIndex:
    return RowIndex(newest_run(tiny_run.folder))


def statements(index: RowIndex, **query: object) -> list[str]:
    found = index.find(RowQuery(**query))  # type: ignore[arg-type]
    return [str(row["statement"]) for row in index.rows(found, 0, 50)]


def test_every_row_stands_there_once_and_the_funnel_agrees(tiny_run: Tiny, index: RowIndex) -> None:
    stages = {stage["name"]: stage for stage in status_table(tiny_run.folder)["stages"]}
    assert index.table.height == stages["sources"]["in"]
    ended = dict(index.find(RowQuery()).facets["stage"])
    assert ended.pop(CURATED) == stages["export"]["kept"]
    assert ended == {
        name: stage["dropped"] for name, stage in stages.items() if stage["dropped"] and name != "stage1.decisions"
    }


def test_a_bar_of_the_funnel_leads_to_its_rows(tiny_run: Tiny, index: RowIndex) -> None:
    for stage in status_table(tiny_run.folder)["stages"]:
        for reason, rows in stage["reasons"].items():
            assert len(statements(index, stage=stage["name"], reason=reason)) == rows, (stage["name"], reason)
        if stage["name"] not in ("stage1.attempts", "stage2.attempts"):
            assert len(statements(index, passed=stage["name"])) == stage["kept"], stage["name"]


def test_a_query_finds_what_counting_by_hand_finds(index: RowIndex) -> None:
    rows = index.table.to_dicts()
    for sort, words, reason in product(SORTS, ("", "what", "is what 17"), ("", "proof", "never_solved", "no")):
        answer = index.find(RowQuery(sort=sort, words=words, reason=reason))
        found = [
            row
            for row in rows
            if all(word in row["statement"].lower() for word in words.split()) and reason in ("", row["reason"])
        ]
        assert sorted(row["row"] for row in found) == sorted(index.table["row"][answer.places].to_list())
        assert dict(answer.facets["lang"]) == Counter(row["lang"] for row in found)


def test_words_are_no_expression(index: RowIndex) -> None:
    assert statements(index, words=".*") == []
    assert len(statements(index, words="[bold]12[/bold]")) <= 1
    assert statements(index, words="é(") == []


def test_an_address_is_read_without_trust() -> None:
    assert read_query({"low": " 0.25", "high": "", "sort": "easiest", "nothing": "1"}) == RowQuery(
        low=0.25, sort="easiest"
    )
    for name, value in (("low", "x"), ("high", "7"), ("low", "nan"), ("words", "a" * 900)):
        with pytest.raises(ConfigError, match=f"asks for no rows: {name}"):
            read_query({name: value})


def test_a_run_that_changed_is_read_again(tiny_copy: Tiny) -> None:
    before = made_from(newest_run(tiny_copy.folder))
    (STAGES["export"].folder_in(newest_run(tiny_copy.folder)) / "DONE.json").unlink()
    assert made_from(newest_run(tiny_copy.folder)) != before
