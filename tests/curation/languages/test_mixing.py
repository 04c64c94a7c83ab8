"""Problem, thoughts and answer in one language."""

from __future__ import annotations

import pytest

from curation.languages.identification import consistent

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
