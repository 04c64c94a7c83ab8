"""Translations as rows: none that the set has already, with the pass rates of the originals."""

from collections import Counter

import polars as pl

from curation.config import TranslationSettings
from curation.questions.proposals import refused_rows
from curation.records import PROBLEM, DropReason, problem_id
from curation.translation.questions import RESULT
from curation.translation.rows import chosen, translated_rows, with_decisions, without_repeated
from tests.curation.tables import frame

ENGLISH = ("What is 1 + 2?", "Work out 1 + 2.", "Add 1 and 2.")
GERMAN = ("Was ist 1 + 2?", "Was ist 1 + 2?", "Addiere 1 und 2.")
NAMED = [{"id": name, "group": name, "statement": text} for name, text in zip("pqr", ENGLISH, strict=True)]
ORIGINALS = frame(PROBLEM, *NAMED, domain="math", answer="3", lang="en", meta='{"a": 1}')
TRANSLATED = [{"at": at, "id": "pqr"[at], "new_statement": text} for at, text in enumerate(GERMAN)]
PROPOSAL = pl.Schema(
    {"at": pl.UInt32, "id": pl.String, "target": pl.String, "tries": pl.Int32, "accepted": pl.Boolean, "why": pl.String}
)
PROPOSALS = frame(pl.Schema({**PROPOSAL, **RESULT}), *TRANSLATED, target="de", tries=1, accepted=True, new_answer="3")


def test_a_text_that_the_set_has_is_not_added_twice() -> None:
    rows, proposals = without_repeated(translated_rows(ORIGINALS, PROPOSALS, "m@1", None), PROPOSALS, {"p", "q", "r"})
    assert rows["translation_of"].to_list() == ["p", "r"]
    assert rows["id"].to_list() == [problem_id(GERMAN[0]), problem_id(GERMAN[2])]
    dropped = refused_rows(ORIGINALS, proposals, "translation", DropReason.UNTRANSLATED)
    evidence = [("q", "untranslated", "repeated: the set has this text already")]
    assert dropped.select("id", "reason", "evidence").rows() == evidence
    rows, _ = without_repeated(rows, proposals, {problem_id(GERMAN[2])})
    assert rows["translation_of"].to_list() == ["p"]


def test_what_a_row_has_of_its_original() -> None:
    row = translated_rows(ORIGINALS, PROPOSALS, "m@1", "r@1").row(0, named=True)
    assert (row["raw_statement"], row["raw_answer"], row["group"], row["lang"]) == ("What is 1 + 2?", None, "p", "de")
    assert row["meta"] == '{"a": 1, "translation": {"of": "p", "tries": 1, "by": "m@1", "read_by": "r@1"}}'


def test_pass_rates_are_copied_unless_they_were_measured() -> None:
    rows = translated_rows(ORIGINALS, PROPOSALS, "m@1", None)[[0, 2]]
    measured = rows.with_columns(pass_rate_of=pl.Series([None, "r"]))
    decisions = pl.DataFrame({"problem": ["p", "q", "r"], "pass_rate": [0.1, 0.2, 0.3]})
    assert with_decisions(decisions, rows).rows()[3:] == [(rows["id"][0], 0.1), (rows["id"][1], 0.3)]
    assert with_decisions(decisions, measured).rows()[3:] == [(rows["id"][1], 0.3)]


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
