"""Texts in another language than their tag says; on the shared translations, tags as they are and shuffled."""

from __future__ import annotations

import json

import polars as pl
import pytest

from curation.filters.statements.filtering import classify
from curation.filters.statements.rules import another_language
from curation.records import DropReason
from tests.places import SHARED_DATA

DATA = SHARED_DATA / "math"
LATIN = ("en", "fr", "es", "it", "de")

TEXTS = {
    "en": "A shop sells 12 pens on Monday and 30 pens on Friday. How many pens does it sell in all?",
    "fr": "Un magasin vend 12 stylos le lundi et 30 stylos le vendredi. Combien de stylos vend-il en tout ?",
    "es": "Una tienda vende 12 lápices el lunes y 30 lápices el viernes. ¿Cuántos lápices vende en total?",
    "it": "Un negozio vende 12 penne il lunedì e 30 penne il venerdì. Quante penne vende in tutto?",
    "de": "Ein Laden verkauft am Montag 12 Stifte und am Freitag 30 Stifte. Wie viele Stifte verkauft er insgesamt?",
    "zh": "一家商店星期一卖了12支笔，星期五卖了30支笔。一共卖了多少支笔？",
    "ru": "Магазин продал в понедельник 12 ручек и в пятницу 30 ручек. Сколько ручек он продал всего?",
    "nl": "Een winkel verkoopt op maandag 12 pennen en op vrijdag 30 pennen. Hoeveel pennen zijn dat samen?",
    "uk": "Магазин продав у понеділок 12 ручок і в п'ятницю 30 ручок. Скільки ручок він продав усього?",
}


def verdict(text: str, tag: str | None) -> tuple[str | None, str | None]:
    rows = pl.DataFrame({"statement": [text], "answer": ["42"], "lang": [tag]}, schema_overrides={"lang": pl.String})
    reason, evidence = classify(rows).select("reason", "evidence").row(0)
    return reason, evidence


def test_a_true_tag_stays_and_another_language_is_named() -> None:
    pairs = [(tag, lang) for tag in (*LATIN, "zh", "ru") for lang in TEXTS if tag in LATIN or tag == lang]
    frame = pl.DataFrame({"statement": [TEXTS[lang] for _, lang in pairs], "lang": [tag for tag, _ in pairs]})
    for (tag, lang), (reason, evidence) in zip(
        pairs, classify(frame.with_columns(answer=pl.lit("42"))).select("reason", "evidence").iter_rows(), strict=True
    ):
        assert reason == (None if tag == lang else DropReason.WRONG_LANGUAGE), (tag, lang)
        assert lang in ("zh", "ru", "uk", tag) or evidence.startswith(f"tag {tag}, text {lang} ("), (tag, lang)
    assert verdict(TEXTS["uk"], "ru")[0] == DropReason.WRONG_LANGUAGE


def test_too_few_words_are_no_evidence_and_other_tags_are_left_alone() -> None:
    assert verdict("Calcule $2^{10}$.", "de")[0] != DropReason.WRONG_LANGUAGE
    assert verdict(TEXTS["fr"], None)[0] is None
    assert verdict(TEXTS["fr"], "nl")[0] is None


def shared(name: str) -> pl.DataFrame:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no labelled data at {path}; set GOLDILOCKS_DATA to the folder that holds math/")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    frame = pl.DataFrame({"statement": [row["problem"] for row in rows], "lang": [row["lang"] for row in rows]})
    return frame.filter(pl.col("lang").is_in([*LATIN, "zh", "ru"]))


@pytest.mark.parametrize("name", ["mgsm", "polymath"])
def test_true_tags_of_the_shared_sets_stay(name: str) -> None:
    rows = shared(name)
    assert rows.filter(another_language().is_not_null()).height <= 0.002 * rows.height
