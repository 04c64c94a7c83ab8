"""What looks like another language inside a text and is its own."""

from __future__ import annotations

import pytest

from curation.config.languages import LANGUAGES
from curation.languages.mixing import language_shares
from curation.languages.switching import foreign_letters, speaks_for


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
    assert sum(foreign_letters(text, "en").values()) > 10
