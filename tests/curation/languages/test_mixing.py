"""Texts in several languages, and the consistency of problem, thoughts and answer."""

from __future__ import annotations

import pytest

from curation.languages.mixing import ConsistencySettings, consistent, language_shares

FRENCH = "Combien de pommes Marie a-t-elle après en avoir acheté trois de plus au marché ?"
FRENCH_THOUGHTS = "Elle en avait deux, puis elle en achète trois, donc cela fait cinq pommes en tout."
ENGLISH_THOUGHTS = "She had two, then she buys three more at the market, so that makes five apples in total."


def shares(text: str) -> dict[str, float]:
    return dict(language_shares(text))


def test_sentences_of_another_language_are_noticed() -> None:
    found = shares(f"{FRENCH_THOUGHTS} {ENGLISH_THOUGHTS}")
    assert set(found) == {"fr", "en"}
    assert sum(found.values()) == pytest.approx(1)
    found = shares("First we add the two numbers and get 12. 所以我们得到了最后的答案。 Then we divide by two.")
    assert list(found) == ["en", "zh"]
    found = shares("We need to find the sum. Мы знаем, что сумма равна десяти.\nSo the answer follows directly.")
    assert list(found) == ["en", "ru"]


def test_names_and_terms_do_not_mix() -> None:
    assert shares("我们使用 Python 计算 Fibonacci 数列的前十项。") == {"zh": 1.0}
    assert shares("Теорема Pythagoras даёт ответ на этот вопрос.") == {"ru": 1.0}


def test_the_bonus_needs_one_language() -> None:
    assert consistent(FRENCH, FRENCH_THOUGHTS, "La réponse est cinq pommes.").consistent
    found = consistent(FRENCH, ENGLISH_THOUGHTS, "La réponse est cinq pommes.")
    assert not found.consistent
    assert found.why == "differ: problem fr, thoughts en, answer fr"
    assert not consistent(FRENCH, FRENCH_THOUGHTS, "The answer is five apples.").consistent


@pytest.mark.parametrize("answer", [r"$\boxed{5}$", "5", "", r"\[ x = 5 \]"])
def test_an_answer_without_words_is_passed_over_or_refused(answer: str) -> None:
    assert consistent(FRENCH, FRENCH_THOUGHTS, answer).consistent
    assert not consistent(FRENCH, ENGLISH_THOUGHTS, answer).consistent
    strict = ConsistencySettings(undetermined="fail")
    found = consistent(FRENCH, FRENCH_THOUGHTS, answer, strict)
    assert not found.consistent
    assert found.why == "no language: answer"


def test_foreign_passages_count_only_where_they_are_looked_for() -> None:
    thoughts = f"{FRENCH_THOUGHTS} 所以我们得到了最后的答案，就是五个苹果。 {FRENCH_THOUGHTS}"
    assert consistent(FRENCH, thoughts, "La réponse est cinq.").consistent
    found = consistent(FRENCH, thoughts, "La réponse est cinq.", ConsistencySettings(max_other_share=0.05))
    assert not found.consistent
    assert "in other languages" in found.why
