"""A prefix never holds the final answer: planted answers in every writing, and the cut before the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dial.bisection import Bisection
from curation.dial.cutting import (
    Question,
    Trace,
    answer_start,
    cuts,
    finer_cuts,
    possible_cuts,
    prefix_at,
    trace_of,
)
from curation.records import Outcome
from curation.verify.answers import compare

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def verifier(pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
    """The house's comparison, in this process."""
    return (compare(reference, answer).outcome for reference, answer in pairs)


def in_words(number: int) -> str:
    if number < 20:
        return ONES[number]
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")


WRITINGS = (
    "{n}", "{n}.", "= {n}", "x={n}", "$x = {n}$", "\\boxed{{{n}}}", "$\\boxed{{{n}}}$", "**{n}**", "({n})",
    "\\({n}\\)",
    "{double}/2", "$\\frac{{{double}}}{{2}}$", "\\dfrac{{{double}}}{{2}}", "{n}.0", "{half} + {rest}",
    "${half}+{rest}$",
    "{words}", "{n} apples", "$$y\n= {n}$$", "{n}%", "x_{n}", "{n}x",
    "the answer is:|{n}", "[{n}]", "\\text{{it is }}|{n}",
)  # fmt: skip
"""How a text may say a whole number; what stands before a bar is no part of it."""


@settings(max_examples=120, deadline=None)
@given(
    number=st.integers(21, 99),
    writing=st.sampled_from(WRITINGS),
    before=st.integers(0, 3),
    glue=st.sampled_from("\n ,"),
)
def test_a_prefix_ends_before_an_answer_in_any_writing(number: int, writing: str, before: int, glue: str) -> None:
    values = {"n": number, "double": 2 * number, "half": 10, "rest": number - 10, "words": in_words(number)}
    lead = " ".join(("We look at it.", "Let us think again.", "So we go on.")[:before])
    intro, _, said = writing.format(**values).rpartition("|")
    begin = f"{lead}{glue}and so we get {intro}"
    body, place = f"{begin}{said} which ends it. More text follows here, as we check.", len(begin)
    question = Question("How many are there?", str(number), "en")
    found = possible_cuts(Trace("<think>", body), question, 0.999, verifier)
    assert all(length <= place for length in found), body[: max(found)]
    start = answer_start(body, question, verifier)
    assert start is not None
    assert start <= place


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("3/4", "$\\frac{6}{8}$"), ("3/4", "0.75"), ("0.5", "1/2"), ("0.5", "½"),
        ("\\frac{1}{2}", "50%"),
        ("-12", "minus |12"), ("-12", "-12"), ("12", "a |dozen"), ("12", "１２"), ("1200", "1,200"),
        ("1200", "1{,}200"),
        ("x^2+1", "y = 1 + x^2"), ("x^2+1", "$1+x^2$"), ("(3, 4)", "$(3,4)$"), ("\\sqrt{2}", "$2^{1/2}$"),
        ("Paris", "paris"), ("\\{1, 2\\}", "$\\{2,1\\}$"), ("2\\frac{1}{2}", "2 1/2"), ("x > 3", "$x>3$"),
        ("7", "seven"),
    ],
)  # fmt: skip
def test_other_answers_are_found_too(reference: str, said: str) -> None:
    intro, _, said = said.rpartition("|")
    begin = f"We begin. Then it is {intro}"
    start = answer_start(f"{begin}{said}, as we see.", Question("What is it?", reference, "en"), verifier)
    assert start is not None
    assert start <= len(begin)


@pytest.mark.parametrize(("lang", "said"), [("fr", "vingt-cinq"), ("de", "fünfundzwanzig"), ("zh", "二十五")])
def test_number_words_of_other_languages(lang: str, said: str) -> None:
    text = f"a b c {said}"
    assert answer_start(text, Question("?", "25", lang), verifier) == 6


def test_options_are_answers() -> None:
    question = Question("Which?", "a circle", "en", "B")
    assert answer_start("It is not A. It may be (B) then", question, verifier) == 24
    assert answer_start("It is not A. So a Circle then", question, verifier) == 16


def test_the_question_as_a_formula_is_no_answer_but_a_step_of_it_is() -> None:
    question = Question("What is 47 + 38?", "85", "en")
    assert answer_start("47+38:7+8=15;4+3+1=8;", question, verifier) is None
    assert answer_start("47+38:80+5", question, verifier) == 6
    assert answer_start("47+38=85", question, verifier) == 0
    assert answer_start("3/4 of it", Question("3 of 4 balls are red", "3/4", "en"), verifier) == 0


def test_what_the_verifier_fails_on_counts_as_the_answer() -> None:
    def failing(pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        return (Outcome.TIMEOUT for _ in pairs)

    assert answer_start("so 17", Question("?", "3", "en"), failing) == 3


def test_cuts_lie_behind_sentences_and_where_these_are_few_behind_words() -> None:
    many = " ".join(f"Step {'abcdefghij'[n]}." for n in range(10))
    assert cuts(many, len(many))[:3] == [7, 15, 23]
    assert [("One two. Three, four")[:length] for length in cuts("One two. Three, four", 16)] == [
        "One", "One two.", "One two. Three,",
    ]  # fmt: skip
    assert cuts("so $a + b + c$ is", 17) == [2, 14]
    assert finer_cuts("47+38:7", 0, 7) == [2, 3, 5, 6]


def test_a_trace_is_the_thoughts_of_who_thinks_and_the_answer_of_who_does_not() -> None:
    text = "<think>\nfirst this</think>So \\boxed{4}"
    assert trace_of(text, thinks=True) == Trace("<think>", "\nfirst this")
    assert trace_of(text, thinks=False) == Trace("", "So \\boxed{4}")
    assert trace_of("worked out", thinks=True) == Trace("<think>\n", "worked out")
    assert trace_of("<think>a<think>b</think>c", thinks=True) is None
    assert trace_of("<think></think> ", thinks=True) is None


def test_what_is_cut_is_checked_again() -> None:
    trace = Trace("<think>", "so 12 it is")
    question = Question("?", "12", "en")
    assert prefix_at(trace, 2, question, verifier) == "<think>so"
    assert prefix_at(trace, 5, question, verifier) is None


@given(lengths=st.integers(0, 60), edge=st.integers(0, 60), width=st.integers(0, 5))
def test_bisection_ends_and_finds_what_is_there(lengths: int, edge: int, width: int) -> None:
    """Lengths below ``edge`` are too hard, from ``edge + width`` on too easy; those between are in the band."""
    state, tried = Bisection.over(lengths), 0
    while (number := state.next()) is not None:
        tried += 1
        if edge <= number < edge + width:
            break
        state = state.after(number, too_hard=number < edge)
    assert tried <= max(lengths, 1).bit_length() + 1
    assert (number is not None) == (width > 0 and edge < lengths)
