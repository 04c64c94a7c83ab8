r"""The final answer of a response: boxes first, documented fall-backs after."""

from __future__ import annotations

import pytest

from curation.response_formats import ANY, BOXED, CHOICE, CUE, HASHES, LOOSE
from curation.verify import answers
from curation.verify.extraction import clean_recorded_answer, extract_answer, read_answer


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
        (r"as \frac{1}{2 is cut and } is left, {so \boxed{\frac{3}{4}}", r"\frac{3}{4}", "boxed"),
        (r"\\} a line \\\fbox{8} }", "8", "boxed"),
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


@pytest.mark.parametrize(
    ("response", "answer", "method"),
    [
        ("Therefore, it will cost #### 144 to paint the room", "144", "hashes"),
        ("So it costs #### $1,440.50 in the end.", "$1,440.50", "hashes"),
        ("It is #### 5 km to the next house", "5 km", "hashes"),
        ("#### Step 2: Add them\n3 + 4 = 7\n#### 7", "7", "hashes"),
        ("3 + 4 = 7\n#### 7\n#### Step 3: done with all of it", "7", "hashes"),
        ("<answer>18</answer>", "18", "tag"),
        ("We add.\n<answer>\n18 eggs for the whole week\n</answer>", "18", "tag"),
        (r"<answer>So it is \boxed{18}</answer>", "18", "tag"),
        (r"\boxed{3} is a part. <answer>18</answer>", "18", "tag"),
        (r"<answer>18</answer> that is \boxed{19}", "19", "boxed"),
        ("【答案】18", "18", "cue"),
        ("我们相加。\n【答案】18<eoa>", "18", "cue"),
        ("We add.\n\n**Final Answer**\n\n18", "18", "cue"),
        ("We add.\n\n### Answer:\n$18$", "18", "cue"),
        ("**Answer**: 18 apples are left in the basket", "18", "cue"),
        ("The answer is 18. This answer is correct.", "18", "cue"),
        ("The answer is that Tom has 7 apples left.", "7", "cue"),
        ("So the answer is 5 + 3 = 8 apples.", "8", "cue"),
        ("The final answer is: the largest $n$ is 34.", "34", "cue"),
        ("Solution: Choice_C", "C", "choice"),
        ("We compare them all.\nChoice_C", "C", "choice"),
        ("\\boxed{6}\n\n\\boxed{6}", "6", "boxed"),
        (r"\boxed{6} or $\boxed{6}$", "6, 6", "boxed"),
        (r"$x = \boxed{2}$, $y = \boxed{2}$", "2, 2", "boxed"),
        (r"$a = \boxed{255}$. Final Answer: The final answer is 10455.", "10455", "cue"),
    ],
)
def test_a_marker_before_a_value_and_prose_is_read(response: str, answer: str, method: str) -> None:
    found = extract_answer(response)
    assert found is not None
    assert (found.answer, found.method) == (answer, method)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("12 - 8 = 4.\n\nTherefore, Jerry has 4 red chickens.", "4"),
        ("Each costs $52. So, the boots cost $104.", "$104"),
        ("So he needs 20 - 16 = 4 more books than Alice.", "4 more books than Alice"),
        ("He buys 6 pairs\nSo it cost 6*60=$360", "$360"),
        ("They eat.\n- In the end **12 eggs** are left.", "12"),
        ("We add them all. Let me know if you need 3 more examples of this kind!", None),
        ("We add them all. Are there 3 more of them in the box, or fewer?", None),
        ("He has 12 eggs. So they are not 7 any more.", "So they are not 7 any more"),  # which `answers` refuses
    ],
)
def test_without_any_marker_the_last_sentence_concludes(response: str, answer: str | None) -> None:
    found = extract_answer(response)
    assert (found.answer if found is not None else None) == answer
    for form in (BOXED, CUE, HASHES):
        assert extract_answer(response, form) is None
    assert extract_answer(response, ANY, "length") is None


def test_thoughts_that_never_close_hold_no_answer_in_any_format() -> None:
    thoughts = r"<think>maybe \boxed{\frac13} but let me check"
    assert read_answer(thoughts, LOOSE) is None
    assert read_answer(thoughts) is None
    assert all(extract_answer(thoughts, form) is None for form in (ANY, LOOSE, BOXED))


def test_a_letter_behind_a_box_counts_beside_it() -> None:
    found = extract_answer("So \\boxed{x=3}.\n\n**Answer: D**")
    assert found is not None
    assert found.answer == "D. x=3"


@pytest.mark.parametrize(
    "said",
    [
        "#### 3 fifths of the whole cake",
        "#### 5 or 6, depending on the room",
        "#### 18 is wrong, so it is another number",
        "#### 5 dozen eggs in all the baskets",
        "The answer is 5 plus what the others have.",
        "The answer is not 18 as one could have thought.",
        "The answer is that Tom has 7 apples and Ann has 9.",
        "The answer is at least 18 days for them all.",
        "<answer>Yes, 18 days are enough for them all</answer>",
        "The answer is Yes, $y = 18$ is a solution of it.",
    ],
)
def test_what_may_change_the_value_is_not_cut_off_and_never_refused_with_confidence(said: str) -> None:
    found = extract_answer("We think about it.\n" + said)
    assert found is not None
    assert found.answer not in ("3", "5", "7", "9", "18")
    verdict = answers.compare("18", found.answer)
    assert verdict.outcome.value == "wrong"
    assert verdict.doubtful


FORMATS = {
    BOXED: (r"so \boxed{18}", r"18"),
    "<answer>": ("so <answer>18</answer>", "18"),
    "<final>": ("so <final>18</final>", "18"),
    HASHES: ("so\n#### 18", "18"),
    CUE: ("so the answer is 18.", "18"),
    CHOICE: ("so it is Choice_C, not option B\nChoice_C", "C"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_stated_format_is_read_and_no_other(form: str) -> None:
    response, answer = FORMATS[form]
    found = extract_answer(response, form)
    assert found is not None
    assert found.answer == answer
    for other, (text, _) in FORMATS.items():
        if other != form:
            assert extract_answer(text, form) is None, (form, text)


def test_letters_in_the_format_of_choices() -> None:
    for response in ("The answer is (C).", "Answer: C", "**C**", "Option C", "I take choice C."):
        found = extract_answer(response, CHOICE)
        assert found is not None, response
        assert found.answer == "C"
    assert extract_answer("The answer is 18.", CHOICE) is None


def test_the_last_token_of_a_response_that_was_cut_off_does_not_count() -> None:
    assert extract_answer("so\n#### 14", finish="length") is None
    assert extract_answer("14", finish="length") is None
    assert extract_answer("The answer is 14", CUE, "length") is None
    found = extract_answer("it costs #### 144 to paint the ro", finish="length")
    assert found is not None
    assert found.answer == "144"
    boxed = extract_answer(r"so \boxed{14} and th", finish="length")
    assert boxed is not None
    assert boxed.answer == "14"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("xy+yz+zx+3", "xy+yz+zx+3"),
        ("x + yz + zx + 3", "x + yz + zx + 3"),
        ("May 5", "May 5"),
        ("5 km", "5 km"),
        ("The sum of the series is 2.", "2"),
        ("Yes, $y=0$ is a singular solution.", "Yes, $y=0$ is a singular solution."),
        ("No answer provided.", None),
        ("<think>so 5</think>The answer is 6.", "6"),
    ],
)
def test_a_recorded_answer_is_read_as_it_is(text: str, answer: str | None) -> None:
    assert read_answer(text) == answer


def test_loose_reading_adds_to_the_other_and_changes_nothing() -> None:
    texts = [response for response, _ in FORMATS.values()]
    texts += ["The answer is 18. This answer is correct.", "18", "$x = 3$", r"\boxed{1} and \boxed{2}", "A: 26"]
    for text in texts:
        assert extract_answer(text, LOOSE) == extract_answer(text, ANY)
    unfinished = "We found 18 of them, after many steps and many more words, which"
    assert extract_answer(unfinished) is None
    found = extract_answer(unfinished, LOOSE)
    assert found is not None
    assert found.answer == "18"
