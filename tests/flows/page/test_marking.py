"""What decided, what changed, and which quantities two languages share."""

from __future__ import annotations

from flows.page.marking import aligned_sentences, deciding_words, differences


def test_deciding_words_are_those_that_stand_in_the_text() -> None:
    assert deciding_words("proof: Докажите", "Докажите, что 2 > 1.") == ["Докажите"]
    assert deciding_words('refers to "the figure"; score 0.93', "In the figure, x is 3.") == ["the figure"]
    assert deciding_words("similarity 0.86 with 0c4f", "What is 2 + 2?") == []
    assert deciding_words(None, "text") == []


def test_differences_are_marked_word_by_word() -> None:
    before, after = differences("What is A. 3 <b>", "What is 3 <i>")
    assert before == "What is <del>A. </del>3 &lt;<del>b</del>&gt;"
    assert after == "What is 3 &lt;<ins>i</ins>&gt;"


def test_equal_quantities_have_one_colour_and_lonely_ones_none() -> None:
    (sentence,) = aligned_sentences("Tom has 3 dogs and 1,000 cats <b>.", "Tom hat 3 Hunde und 900 Katzen.", "en", "de")
    assert '<mark class="q0" title="in both">3</mark>' in sentence.before
    assert '<mark class="q0" title="in both">3</mark>' in sentence.after
    assert '<mark class="lonely" title="in one alone">1,000</mark>' in sentence.before
    assert '<mark class="lonely" title="in one alone">900</mark>' in sentence.after
    assert "&lt;b&gt;" in sentence.before
