"""Options found inside statements, in the styles they are written in; and answers resolved to one of them."""

import pytest

from curation.filters.multiple_choice import ParsedChoice, open_question, parse_choice, resolve_option
from curation.options import split_options, strip_label
from tests.curation.tables import check_table


def open_one(statement: str, answer: str, choices: list[str | None] | None = None) -> tuple[str, str] | str | None:
    """The open question with its answer, why no option is right, or None: no multiple choice, or it needs options."""
    parsed = parse_choice(statement, answer, choices)
    return parsed if parsed is None or isinstance(parsed, str) else open_question(parsed)


def test_every_style_is_opened_and_labels_that_are_no_options_are_left_alone() -> None:
    check_table("options opened", open_one)


def test_numbered_and_circled_options_where_the_question_sends_to_them() -> None:
    assert parse_choice("选出 $2+2$ 的值 ①3 ②4 ③5", "②") == ParsedChoice("选出 $2+2$ 的值", ("3", "4", "5"), 1)
    numbered = split_options("Choose the value of $2+2$: (1) 3 (2) 4 (3) 5")
    assert numbered is not None
    assert numbered.options == ("3", "4", "5")


def test_options_of_a_field_lose_their_labels() -> None:
    labelled = ["A)6", "B. 7", "(C) 8", "D、9", "10"]
    assert [strip_label(text, index) for index, text in enumerate(labelled)] == ["6", "7", "8", "9", "10"]
    assert strip_label("B.C.", 0) == "B.C."


def test_answers_by_letter_text_and_number() -> None:
    check_table("answers resolved", resolve_option)
    assert resolve_option("2", ["6", "7", "8"], first=0) == 2
    assert resolve_option("1", ["3", "2", "1"], first=0) is None  # an index and an option: not guessed


def test_unresolved_and_several_are_refused_with_evidence() -> None:
    assert open_one("What is $2+2$?", "F", ["3", "4", "5"]) == "F not in: 3 | 4 | 5"
    assert open_one("Choose all solutions of $x^2=1$.", "A, C", ["1", "2", "-1"]) == "A, C names several options"


@pytest.mark.parametrize(
    "form",
    [
        r"$\left(\begin{array}{cc} %s & 2 \\ 3 & 4 \end{array}\right)$",
        r"$\left\{\begin{array}{l}x=%s\\y=2\end{array}\right.$",
        r"\begin{tabular}{c} %s \\ 7 \end{tabular}",
    ],
)
def test_what_an_option_holds_stays_in_it(form: str) -> None:
    options: list[str | None] = [form % number for number in (1, 5, 6, 7)]
    inline = " ".join(f"({letter}) {text}" for letter, text in zip("ABCD", options, strict=True))
    for statement, listed in (("What is $A$?", options), (f"What is $A$? {inline}", None)):
        found = parse_choice(statement, "B", listed)
        assert isinstance(found, ParsedChoice)
        assert found.options[found.index].strip("$") == (form % 5).strip("$")


def test_layout_around_the_options_goes() -> None:
    for begin in ("{array}{cccc}", "{align*}", "{enumerate}"):
        rows = f"\\begin{begin} (A) 3 & (B) 4 \\\\ (C) 5 & (D) 6 \\end{begin.partition('}')[0]}}}"
        for letter, answer in zip("ABCD", "3456", strict=True):
            assert open_one(f"What is $2+2$? {rows}", letter) == ("What is $2+2$?", answer)
