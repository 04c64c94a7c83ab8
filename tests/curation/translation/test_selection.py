"""Which problems are translated: by hash, so that nothing moves when something else joins or leaves."""

from __future__ import annotations

from collections import Counter

import polars as pl

from curation.config import TranslationSettings
from curation.translation.rows import chosen

SETTINGS = TranslationSettings(model="m")


def rows(count: int) -> pl.DataFrame:
    named = [(f"p{number}", f"g{number}", "en") for number in range(count)]
    return pl.DataFrame(named, schema=["id", "group", "lang"], orient="row")


def test_about_a_tenth_in_languages_about_evenly() -> None:
    targets = chosen(rows(6000), SETTINGS, 0)
    assert 520 < len(targets) < 680
    counts = Counter(targets.values())
    assert set(counts) == {"fr", "es", "it", "de", "ru", "zh"}
    assert min(counts.values()) > 70


def test_a_problem_that_leaves_moves_no_other() -> None:
    whole, fewer = chosen(rows(1000), SETTINGS, 0), chosen(rows(1000)[::2], SETTINGS, 0)
    assert fewer == {name: lang for name, lang in whole.items() if int(name[1:]) % 2 == 0}
    assert chosen(rows(1000).reverse(), SETTINGS, 0) == whole
    assert chosen(rows(1000), SETTINGS, 1) != whole


def test_a_group_is_translated_once_and_not_where_it_has_a_translation() -> None:
    settings = SETTINGS.model_copy(update={"share": 1.0})
    twice = pl.concat([rows(3), rows(1).with_columns(id=pl.lit("q"))])
    assert sorted(chosen(twice, settings, 0)) == ["p0", "p1", "p2"]
    german = pl.concat([rows(3), rows(1).with_columns(id=pl.lit("q"), lang=pl.lit("de"))])
    assert sorted(chosen(german, settings, 0)) == ["p1", "p2"]
