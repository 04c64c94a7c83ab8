r"""The final answer of a response: boxes first, documented fall-backs after.

A row of ``responses.jsonl`` has the ``response``, its ``answer`` or null, perhaps the ``method`` that finds it, and the
``form`` and ``finish`` it is read with; ``marked`` is false where no marker but the last sentence has the answer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.response_formats import ANY, BOXED, CHOICE, CUE, HASHES, LOOSE
from curation.verify import answers
from curation.verify.extraction import clean_recorded_answer, extract_answer, read_answer

ROWS = [json.loads(line) for line in Path(__file__).with_name("responses.jsonl").read_text("utf-8").splitlines()]

RECORDED = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text("utf-8").splitlines()]
"""Recorded answers with what is ``clean`` or ``read`` of them, and responses whose answer is ``doubtful``."""


def found_in(response: str, form: str = ANY, finish: str | None = None) -> str | None:
    found = extract_answer(response, form, finish)
    return found.answer if found is not None else None


def test_final_answers() -> None:
    for row in ROWS:
        found = extract_answer(row["response"], row.get("form", ANY), row.get("finish"))
        assert (found.answer if found is not None else None) == row["answer"], row
        if "method" in row:
            assert found is not None
            assert found.method == row["method"], row
        if row.get("marked") is False:
            assert [found_in(row["response"], form) for form in (BOXED, CUE, HASHES)] == [None] * 3, row
            assert found_in(row["response"], ANY, "length") is None, row


def test_recorded_answers_are_read_as_they_are_and_lose_their_debris() -> None:
    for row in RECORDED:
        if "clean" in row:
            assert clean_recorded_answer(row["recorded"]) == row["clean"], row
        elif "read" in row:
            assert read_answer(row["recorded"]) == row["read"], row


def test_thoughts_that_never_close_hold_no_answer_in_any_format() -> None:
    thoughts = r"<think>maybe \boxed{\frac13} but let me check"
    assert read_answer(thoughts, LOOSE) is None
    assert read_answer(thoughts) is None
    assert all(extract_answer(thoughts, form) is None for form in (ANY, LOOSE, BOXED))


@pytest.mark.parametrize("text", [row["doubtful"] for row in RECORDED if "doubtful" in row])
def test_what_may_change_the_value_is_not_cut_off_and_never_refused_with_confidence(text: str) -> None:
    found = extract_answer("We think about it.\n" + text)
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
