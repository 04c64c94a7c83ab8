r"""The final answer of a response: boxes first, documented fall-backs after."""

from __future__ import annotations

import pytest

from curation.verify.extraction import clean_recorded_answer, extract_answer


@pytest.mark.parametrize(
    ("response", "answer", "method"),
    [
        (r"<think>\boxed{1}</think> so \boxed{2}", "2", "boxed"),
        (r"first \boxed{1}, no: \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "boxed"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "boxed"),
        (r"\fbox{7}", "7", "boxed"),
        (r"\boxed{a \boxed{5}}", "a  {5}", "boxed"),
        (r"so $x = \boxed{1}$ or $x = \boxed{2}$", "1, 2", "boxed"),
        (r"\boxed{1} was wrong. Now \boxed{2}", "2", "boxed"),
        (r"\boxed 5", "5", "boxed"),
        ("16 - 3 = 13\nA: 26", "26", "cue"),
        ("some steps\n#### 18", "18", "hashes"),
        ("We add. The answer is 12.", "12", "cue"),
        ("Therefore the final answer is: $\\frac{3}{4}$.", r"\frac{3}{4}", "cue"),
        ("所以答案是 42。", "42", "cue"),
        ("Donc la réponse est 7.", "7", "cue"),
        ("Die Antwort lautet: 9", "9", "cue"),
        ("Ответ: 15", "15", "cue"),
        ("18", "18", "bare"),
        ("$x = 3$", "$x = 3$", "bare"),
    ],
)
def test_final_answers(response: str, answer: str, method: str) -> None:
    found = extract_answer(response)
    assert found is not None
    assert (found.answer, found.method) == (answer, method)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "   ",
        "<think> we are still thinking, maybe 5",
        r"<think> \boxed{5}",
        r"so the answer is \boxed{12 + 3",
        "Natalia sold 48/2 = 24 clips in May.\nShe sold 24 + 48 = 72 clips, and then there are many other things to "
        "count, like these",
    ],
)
def test_a_response_without_a_final_answer_has_none(response: str) -> None:
    assert extract_answer(response) is None


@pytest.mark.parametrize(
    ("recorded", "clean"),
    [
        ('"answer": "40"\n}', "40"),
        ('"answer": 34\n}', "34"),
        ("24,", "24"),
        ('2025",', "2025"),
        ("No answer provided.", None),
        ("null", None),
        ("None", None),
        ("{", None),
        (None, None),
        (r"\{1, 2\}", r"\{1, 2\}"),
        ("n = 11", "n = 11"),
        ('"answer": "a = 17, b = 1"\n}', "a = 17, b = 1"),
    ],
)
def test_recorded_answers_lose_their_debris(recorded: str | None, clean: str | None) -> None:
    assert clean_recorded_answer(recorded) == clean
