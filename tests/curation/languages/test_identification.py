"""The language of a text, and of a problem with its thoughts and answer."""

import json
from collections import Counter

import pytest

from curation.languages.identification import consistent, identify
from curation.languages.stripping import strip
from tests.curation.tables import check_table
from tests.places import SHARED_DATA

SEVEN = ("en", "fr", "es", "it", "de", "zh", "ru")


def test_what_every_language_shares_is_taken_away_and_words_inside_formulas_are_kept_on_request() -> None:
    check_table("stripped", strip)
    text = r"$f(x)=\text{wenn gerade}$"
    assert strip(text) == ""
    assert strip(text, inside_formulas=True) == "wenn gerade"
    assert identify(r"$\begin{cases}1 & \text{wenn die Zahl gerade ist}\end{cases}$").lang == "de"


def test_candidates_restrict_and_the_open_answer_is_there_too() -> None:
    found = identify("Quantas maçãs tem a Maria depois de comprar mais três na loja?", SEVEN)
    assert found.anywhere == "pt"
    assert found.anywhere_confidence > 0.8
    assert found.lang in (None, *SEVEN)
    assert identify("東京へ行くのは何曜日ですか", SEVEN).lang is None
    assert identify("東京へ行くのは何曜日ですか").lang == "ja"
    assert identify("Знайдіть усі дійсні корені рівняння", SEVEN).lang is None


def test_the_shared_sentences() -> None:
    path = SHARED_DATA / "languages" / "sentences.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path}; set GOLDILOCKS_DATA to the folder that holds languages/")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["lang"] in SEVEN and row["kind"] in ("sentences", "math_problem")]
    total = Counter(row["kind"] for row in rows)
    for among in (None, SEVEN):
        right = Counter(row["kind"] for row in rows if identify(row["text"], among).lang == row["lang"])
        assert right["sentences"] / total["sentences"] >= 0.99
        assert right["math_problem"] / total["math_problem"] >= 0.97


def test_one_word_is_enough_where_it_is_a_word_of_tasks_and_what_has_no_language_is_undetermined() -> None:
    check_table("identified", lambda text: identify(text).lang)
    check_table("identified", lambda text: identify(text, SEVEN).lang)
    check_table("heavy latex", lambda text: identify(text).lang)


FRENCH = "Combien de pommes Marie a-t-elle après en avoir acheté trois de plus au marché ?"
FRENCH_THOUGHTS = "Elle en avait deux, puis elle en achète trois, donc cela fait cinq pommes en tout."
ENGLISH_THOUGHTS = "She had two, then she buys three more at the market, so that makes five apples in total."


def test_the_bonus_needs_one_language() -> None:
    assert consistent(FRENCH, FRENCH_THOUGHTS, "La réponse est cinq pommes.", strict=False)
    assert not consistent(FRENCH, ENGLISH_THOUGHTS, "La réponse est cinq pommes.", strict=False)
    assert not consistent(FRENCH, FRENCH_THOUGHTS, "The answer is five apples.", strict=False)


@pytest.mark.parametrize("answer", [r"$\boxed{5}$", "5", "", r"\[ x = 5 \]"])
def test_an_answer_without_words_is_passed_over_or_refused(answer: str) -> None:
    assert consistent(FRENCH, FRENCH_THOUGHTS, answer, strict=False)
    assert not consistent(FRENCH, ENGLISH_THOUGHTS, answer, strict=False)
    assert not consistent(FRENCH, FRENCH_THOUGHTS, answer, strict=True)
