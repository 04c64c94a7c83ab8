"""Broken translations: each differs from a sound one as its name says, and the same seed breaks the same."""

from __future__ import annotations

from random import Random

import pytest

from curation.planting import CORRUPTIONS, TranslatedPair, plant_translations

ENGLISH = "A box holds 20 red balls and 7 blue balls. How many balls are in the box?"
GERMAN = "Eine Kiste enthält 20 rote und 7 blaue Bälle. Wie viele Bälle sind in der Kiste?"
FRENCH = "Une boîte contient 20 boules rouges et 7 boules bleues. Combien de boules y a-t-il dans la boîte ?"
PAIR = TranslatedPair("a1", ENGLISH, GERMAN, "de", "27", {"fr": FRENCH})


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("wrong language", {FRENCH}),
        ("numbers exchanged", {GERMAN.replace("20", "x").replace("7", "20").replace("x", "7")}),
        ("number dropped", {GERMAN.replace("20", ""), GERMAN.replace("7", "")}),
        ("sentence dropped", set(GERMAN.split(". ")) | {"Eine Kiste enthält 20 rote und 7 blaue Bälle."}),
        (
            "sentence left",
            {
                GERMAN.replace("Wie viele Bälle sind in der Kiste?", "How many balls are in the box?"),
                "A box holds 20 red balls and 7 blue balls. Wie viele Bälle sind in der Kiste?",
            },
        ),
        ("formula dropped", {None}),
    ],
)
def test_a_kind_breaks_what_it_says(kind: str, wanted: set[str | None]) -> None:
    assert {CORRUPTIONS[kind](PAIR, Random(seed)) for seed in range(20)} <= wanted


def test_a_number_gets_a_value_that_stands_nowhere_else() -> None:
    for seed in range(20):
        changed = CORRUPTIONS["number changed"](PAIR, Random(seed))
        assert changed is not None
        assert changed != GERMAN
        assert sum(number in changed.split() for number in ("20", "7")) == 1


def test_an_answer_comes_in() -> None:
    assert all("27" in str(CORRUPTIONS["answer appended"](PAIR, Random(seed))) for seed in range(20))


def test_the_same_seed_breaks_the_same_and_no_kind_more_than_asked() -> None:
    pairs = [TranslatedPair(f"a{n}", ENGLISH, GERMAN, "de", "27", {}) for n in range(9)]
    first = list(plant_translations(pairs, 3, 4))
    assert first == list(plant_translations(pairs[::-1], 3, 4))
    kinds = [kind for kind, _, _ in first]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == dict.fromkeys(
        set(CORRUPTIONS) - {"formula dropped", "wrong language"}, 4
    )
