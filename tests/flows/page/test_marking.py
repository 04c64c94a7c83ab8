"""What decided, and what changed."""

from __future__ import annotations

from flows.page.formulas import deciding_words, differences


def test_deciding_words_are_those_that_stand_in_the_text() -> None:
    assert deciding_words("proof: Докажите", "Докажите, что 2 > 1.") == ["Докажите"]
    assert deciding_words('refers to "the figure"; score 0.93', "In the figure, x is 3.") == ["the figure"]
    assert deciding_words("similarity 0.86 with 0c4f", "What is 2 + 2?") == []
    assert deciding_words(None, "text") == []


def test_differences_are_marked_word_by_word() -> None:
    before, after = differences("What is A. 3 <b>", "What is 3 <i>")
    assert before == "What is <del>A. </del>3 &lt;<del>b</del>&gt;"
    assert after == "What is 3 &lt;<ins>i</ins>&gt;"
