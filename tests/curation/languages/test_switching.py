"""Words of another language inside sentences."""

from __future__ import annotations

import pytest

from curation.config.languages import LANGUAGES
from curation.languages.mixing import ConsistencySettings, consistent, language_shares
from curation.languages.switching import foreign_letters, speaks_for

FRENCH = "Elle en avait deux, puis elle en achète trois, donc cela fait cinq pommes en tout pour la semaine."


@pytest.mark.parametrize(
    ("lang", "text", "other"),
    [
        ("fr", "Elle en avait deux, so we must add les trois autres pour la semaine.", "en"),
        ("de", "Wir addieren die beiden Zahlen y luego dividimos por dos, also ist es zehn.", "es"),
        ("en", "First we add the numbers, dann teilen wir durch zwei, and that is the answer.", "de"),
        ("en", "First we add the two numbers 然后除以二 and that is the answer.", "zh"),
        ("zh", "我们先把这两个数相加，then we divide by two，就得到了最后的答案。", "en"),
        ("ru", "Сначала сложим оба числа, then we divide by two, и получим ответ.", "en"),
    ],
)
def test_a_switch_inside_a_sentence_is_noticed(lang: str, text: str, other: str) -> None:
    shares = dict(language_shares(text))
    assert shares[other] > 0.1
    assert sum(shares.values()) == pytest.approx(1)
    assert foreign_letters(text, lang)[other] >= 8


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("fr", f"{FRENCH} Le marketing et le software de New York sont online, cookies et iPhone."),
        ("de", "Die App Store Software läuft im Browser, der Download dauert 5 min bei 3 MB/s in San Francisco."),
        ("es", r"Sea $\text{if } x > 0$ la función y `for x in the_list: print(x)` el programa."),
        ("en", "Jose de la Cruz lives in Los Angeles and buys a croissant, two tacos and a pizza."),
        ("zh", "我们使用 Python 计算 Fibonacci 数列的前十项，速度是 5 km/h。"),
        ("xx", "whatever this may be, it has no file"),
    ],
)
def test_terms_names_formulas_and_code_are_nothing_foreign(lang: str, text: str) -> None:
    assert foreign_letters(text, lang) == {} or language_shares(text)[0] == (lang, 1.0)


def test_the_bonus_looks_inside_where_it_is_told_to() -> None:
    thoughts = f"{FRENCH} Elle prend so we must add les trois autres pour la semaine. {FRENCH}"
    answer = "La réponse est cinq pommes."
    assert consistent(FRENCH, thoughts, answer).consistent
    assert not consistent(FRENCH, thoughts, answer, ConsistencySettings(max_other_share=0.01)).consistent
    assert consistent(FRENCH, FRENCH, answer, ConsistencySettings(max_other_share=0.01)).consistent


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("it", "La nave viaggia a 10 miglia all'ora e torna a 6 miglia all'ora, poi riparte a 8 miglia all'ora."),
        ("fr", "Il se repose le week-end, et le week-end suivant il part à la mer avec son frère."),
    ],
)
def test_words_without_their_vowel_and_joined_words_are_no_foreign_ones(lang: str, text: str) -> None:
    assert foreign_letters(text, lang) == {}


def test_a_window_that_speaks_for_the_texts_own_language_is_not_foreign() -> None:
    text = (
        "Mishka compró 3 pares de zapatos para sus hermanas esta semana. Un par de pantalones cuesta $22 y "
        "un par de zapatos cuesta $42. ¿Cuántos dólares gastó Mishka en todas las prendas de vestir que compró?"
    )
    assert language_shares(text, LANGUAGES) == [("es", 1.0)]
    assert not speaks_for("Un pantalon coûte vingt euros et les chaussures coûtent plus cher", "es", "fr")


@pytest.mark.parametrize("passage", ["trozos de madera del mismo largo", "les pommes sont dans le panier"])
def test_small_words_of_others_are_not_among_the_english_ones(passage: str) -> None:
    text = f"The wire was cut into pieces and {passage} before the builder came back to the house."
    assert sum(foreign_letters(text, "en").values()) >= 8
