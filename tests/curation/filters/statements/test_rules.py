"""Each rule on rows of its own, in every language it speaks: where it must fire and where it must not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from curation.filters.statements import RULES, StatementSettings, apply_rules, classify
from curation.records import DropReason

Rows = Sequence[tuple[str, ...]]


def verdicts(*rows: tuple[str, str | None, str | None]) -> list[tuple[str | None, str | None]]:
    """Rule and reason per row of (language, statement, answer), nulls where it is kept; all rows in one frame."""
    frame = pl.DataFrame(rows, schema={"lang": pl.String, "statement": pl.String, "answer": pl.String}, orient="row")
    full = frame.with_columns(
        choices=pl.lit(None, pl.List(pl.String)), source=pl.lit("t"), meta=pl.lit(None, pl.String)
    )
    return apply_rules(full).select("rule", "reason").rows()


def verdict(statement: str | None, answer: str | None = "4", lang: str = "en") -> tuple[str | None, str | None]:
    """Rule and reason for one row."""
    return verdicts((lang, statement, answer))[0]  # type: ignore[arg-type]


def astray(rows: Rows, reason: DropReason | None, answer: str | None = "4") -> list[object]:
    """The rows that are not dropped for ``reason``, or not kept where it is null, with what befell them."""
    filled = [(row[0], row[1], row[2] if len(row) > 2 else answer) for row in rows]
    return [(row, got) for row, got in zip(rows, verdicts(*filled), strict=True) if got[1] != reason]


PROOFS = [
    ("en", "Prove that $\\sqrt{2}$ is irrational."),
    ("en", "Let $ABC$ be a triangle. Show that $AB + BC > AC$."),
    ("en", "Explain why the sum of two odd numbers is even."),
    ("en", "Construct a square with ruler and compass, given its diagonal."),
    ("en", "Sketch the graph of $y = x^2 - 4$."),
    ("en", "Let $a, b > 0$. Prove or disprove: $a + b \\ge 2\\sqrt{ab}$."),
    ("fr", "Démontrer que la somme de deux nombres pairs est paire."),
    ("fr", "Soit $n$ un entier. Montrez que $n^2 + n$ est pair."),
    ("es", "Demuestre que $n^3 - n$ es divisible por 6."),
    ("es", "Pruebe que existen infinitos primos."),
    ("it", "Dimostrare che la somma degli angoli di un triangolo è $180^\\circ$."),
    ("it", "Si dimostri che $n^2 + n$ è pari."),
    ("de", "Zeigen Sie, dass $n^2 + n$ gerade ist."),
    ("de", "Man beweise: Es gibt unendlich viele Primzahlen."),
    ("zh", "设 $n$ 为正整数，证明：$n^2+n$ 是偶数。"),
    ("zh", "求证：三角形内角和为 $180^\\circ$。"),
    ("ru", "Докажите, что число $n^2 + n$ чётно."),
    ("ru", "Покажите, что сумма двух чётных чисел чётна."),
]


def test_a_proof_is_dropped_whatever_the_answer() -> None:
    assert astray(PROOFS, DropReason.PROOF, None) == []
    assert astray(PROOFS, DropReason.PROOF, "QED") == []


NO_PROOFS = [
    (
        "en",
        "Jill watched a show that was 30 minutes long and another that was 4 times longer. How many minutes in all?",
    ),
    ("en", "It can be shown that the limit exists. Find the limit of $1/n$ as $n$ grows."),
    ("en", "Tom wants to prove that he is fast. He runs 4 km in 20 minutes. What is his speed in km per hour?"),
    ("en", "Find the number of solutions of $x^2 = 4$. Show your work."),
    ("en", "A company wants to construct a road of 20 km at 5 km a week. How many weeks does it take?"),
    ("zh", "小明证明了一个定理，用了 3 小时，每小时写 2 页。他一共写了多少页？"),
    ("es", "La prueba que hizo Mark tenía 75 preguntas y contestó 70. ¿Cuántas le faltaron?"),
    ("de", "Eine Uhr zeigt 3 Uhr. Wie viel Grad liegen zwischen den Zeigern?"),
    ("ru", "Часы показывают 3 часа. Сколько градусов между стрелками?"),
]


def test_words_of_proof_in_a_story_are_no_proof() -> None:
    assert astray(NO_PROOFS, None, "90") == []


def test_a_proof_with_a_value_to_find_is_kept_for_its_value() -> None:
    statement = "Prove that the sequence $a_n = (1+1/n)^n$ converges, and find the value of its limit."
    assert verdict(statement, "$e$") == (None, None)
    assert verdict(statement, None)[1] == DropReason.PROOF


def test_no_statement() -> None:
    rows = [("en", statement, "4") for statement in (None, "", "   ", "Solve", "x")]
    assert {reason for _, reason in verdicts(*rows)} == {DropReason.MISSING_STATEMENT}  # type: ignore[arg-type]


NO_ANSWER = [None, "", "  ", "N/A", "none", "-", "?", "see solution", "略", "见解析"]


def test_no_answer() -> None:
    assert astray([("en", "What is $2 + 2$?", answer) for answer in NO_ANSWER], DropReason.MISSING_ANSWER) == []


NO_FIGURES = [
    ("en", "Rachel colored 23 of the pictures. There were 44 pictures. How many are left?"),
    ("en", "Thomas made 25 drawings, 14 of the drawings in color. How many are not in color?"),
    ("en", "What is the least number of edges in the graph $G$ on 5 vertices that is connected?"),
    ("en", "A table seats 4 people. How many people do 5 tables seat?"),
    ("zh", "函数 $y=x^2$ 的图象与 $x$ 轴有几个交点？"),
    ("zh", "图书馆有 300 本书，借出 120 本，还剩多少本？"),
]


def test_pictures_in_stories_are_no_figures() -> None:
    assert astray(NO_FIGURES, None, "4") == []


PARTS = [
    ("en", "Let $f(x) = x^2$. (a) Find $f(3)$. (b) Find $f'(3)$."),
    ("en", "A die is rolled. a) What is the chance of a six? b) What is the chance of an even number?"),
    ("en", "Solve: (i) compute $2+2$; (ii) compute $3+3$."),
    ("en", "A sequence is given by $a_n = 2n$. Part A: Find $a_5$. Part B: Find the sum of the first five terms."),
    ("en", "Find the area of a circle of radius 3. Find also its circumference."),
    ("en", "How many pens has Tom if he buys 3 a day for a week? How much does he pay at 2 dollars each?"),
    ("fr", "Soit $f$ une fonction. (a) Calculer $f(0)$. (b) Déterminer $f(1)$."),
    ("es", "Sea $f(x)=x^2$. (a) Calcule $f(2)$. (b) Determine $f(3)$."),
    ("it", "Sia $f(x)=x^2$. (a) Calcolare $f(2)$. (b) Trovare $f(3)$."),
    ("de", "Sei $f(x)=x^2$. (a) Berechnen Sie $f(2)$. (b) Bestimmen Sie $f(3)$."),
    ("zh", "已知函数 $f(x)=\\sin x$。（1）求 $f(x)$ 的最小正周期；（2）若 $f(a)=1$，求 $a$ 的值。"),
    ("zh", "设 $S_n$ 为前 $n$ 项和。\n( I ) 求 $a_n$;\n\n(II ) 设 $b_n=2a_n$，求 $b_n$ 的和。"),
    ("ru", "Дана функция. (a) Найдите $f(1)$. (b) Вычислите $f(2)$."),
]


def test_several_questions_in_one() -> None:
    assert astray(PARTS, DropReason.MULTI_PART, "4") == []


ONE_PART = [
    ("en", "Find all strictly increasing $g$ such that (a) $g$ is surjective and (b) $g(g(x)) = g(x) + 20x$."),
    ("en", "A function satisfies (i) $f(1) = 2$; (ii) $f(n+1) = 2 f(n)$. Find $f(4)$."),
    ("zh", "设数列满足：(1) $a_1=1$；(2) $a_{n+1}=2a_n$。求 $a_{10}$。"),
    ("zh", "设 $z=(1+i)(2-i)$，求 $|z|$。"),
    ("en", "Alice also gave some pens to Bob. She had 10 pens and has 6 left. How many did she give?"),
]


def test_enumerated_conditions_are_not_parts() -> None:
    assert astray(ONE_PART, None, "4") == []


def test_several_answers_to_several_blanks_or_unknowns() -> None:
    assert verdict("The first digit is ____ and the last digit is ____.", "1, 9")[0] == "several_answers"
    assert verdict("Solve the system and find the values of $a$ and $b$.", "251,7")[0] == "several_answers"
    assert verdict("Evaluate both.", "(a) 3 (b) 5")[0] == "marked_answers"
    assert verdict("求 $x$ 和 $y$。", "（1）3；（2）5", "zh")[0] == "marked_answers"
    assert verdict("Find all real $x$ with $x^2 = 4$.", "-2, 2") == (None, None)
    assert verdict("Find $x$ and $y$ such that $x+y=3$ and $x-y=1$.", "$(2, 1)$") == (None, None)
    assert verdict("How many people live in ____ and work in ____?", "12,500") == (None, None)


YES_NO = [
    ("en", "Is $x = 2$ a root of $x^2 - 4$?", "Yes"),
    ("en", "Does the series converge?", "No."),
    ("en", "Is 91 prime?", "No, because $91 = 7 \\cdot 13$."),
    ("en", "The number 2 is the only even prime.", "\\text{True}"),
    ("fr", "Le nombre 91 est-il premier ?", "Non"),
    ("es", "¿Es primo el número 91?", "No"),
    ("it", "Il numero 2 è pari?", "Sì"),
    ("de", "Ist 91 eine Primzahl?", "Nein"),
    ("zh", "91 是否为质数？", "否"),
    ("ru", "Является ли число 91 простым?", "нет"),
]


def test_yes_no() -> None:
    assert astray(YES_NO, DropReason.YES_NO) == []


TEXTUAL_ANSWERS = [
    "The triangle is isosceles because two of its sides are equal.",
    "taking the empty card",
    "三角形是等腰三角形并且两边相等",
    "Solution: we first note that $x = 2$.",
    "【解析】由题意得 $x=2$",
    "解：由题意 $x=2$",
]


def test_textual_answers() -> None:
    assert (
        astray(
            [("en", "Determine the answer to the question about the triangle.", answer) for answer in TEXTUAL_ANSWERS],
            DropReason.TEXTUAL_ANSWER,
        )
        == []
    )


SHORT_ANSWERS_ARE_NOT_TEXTUAL = [
    "12 apples",
    "$x = 2$ and $x = 3$",
    "\\frac{1}{2}",
    "5 hours 30 minutes",
    "3个",
    "\\text{no solution}",
]


def test_short_answers_are_not_textual() -> None:
    assert astray([("en", "Determine the answer.", answer) for answer in SHORT_ANSWERS_ARE_NOT_TEXTUAL], None) == []


def test_exercise_as_a_verb_and_sections_of_a_car_park_are_no_references() -> None:
    assert verdict("Jane's goal is to exercise 1 hour a day. How many hours is that in a week?", "7") == (None, None)
    assert verdict(
        "There are 320 spaces in section 1 and 200 more in section 2. How many are in section 2?", "520"
    ) == (None, None)


def test_statements_that_give_their_answer_away() -> None:
    assert verdict("What is $6 \\cdot 7$? Answer: 42", "42")[1] == DropReason.ANSWER_IN_STATEMENT
    assert verdict("$6\\times7$ 等于多少？答案：42", "42", "zh")[1] == DropReason.ANSWER_IN_STATEMENT
    assert verdict("What is $6 \\cdot 7$? Answer: ____", "42") == (None, None)
    assert verdict("Tom's answer is 3 more than 39. What is it?", "42") == (None, None)


def test_tags_that_cannot_be_right() -> None:
    english = "Tom has three apples and buys two more at the market. How many apples does he have in all?"
    assert verdict(english, "5", "zh")[1] == DropReason.WRONG_LANGUAGE
    assert verdict(english, "5", "ru")[1] == DropReason.WRONG_LANGUAGE
    assert verdict("小明有三个苹果，又买了两个苹果，一共有多少个苹果？", "5", "en")[1] == DropReason.WRONG_LANGUAGE
    assert (
        verdict("У Тома три яблока и он купил ещё два яблока. Сколько у него яблок?", "5", "fr")[1]
        == DropReason.WRONG_LANGUAGE
    )
    assert verdict("计算 $\\frac{1}{2}+\\frac{1}{3}$。", "5/6", "zh") == (None, None)


def test_broken_characters() -> None:
    assert verdict("What is the square of Ã©Â² if it is 4?")[1] == DropReason.DEBRIS


def test_every_rule_has_a_name_of_its_own_and_can_be_switched_off() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    row = pl.DataFrame({"statement": ["Prove that 2 is prime."], "answer": ["4"]})
    settings = StatementSettings(disabled=("proof", "missing_answer"))
    assert classify(row)["rule"].to_list() == ["proof"]
    assert classify(row, settings)["rule"].to_list() == [None]


def test_languages_that_the_recipe_does_not_take() -> None:
    row = pl.DataFrame({"statement": ["Combien font $2 + 2$ ?"] * 2, "answer": ["4"] * 2, "lang": ["fr", None]})
    reasons = classify(row, StatementSettings(languages=("en", "zh")))["reason"].to_list()
    assert reasons == [DropReason.WRONG_LANGUAGE, None]


def test_a_letter_for_an_answer_to_options_that_were_not_understood() -> None:
    assert verdict("Which is right?\nA.\n\nB. 4", "B")[1] == DropReason.MULTIPLE_CHOICE
    assert verdict("Which of the points $A$, $B$ and $C$ is nearest to the origin?", "B") == (None, None)


@pytest.mark.parametrize(
    "answer",
    ["2..5", "1.2.3", "1,,2", "(1,)", "(,2)", "x__2", "3++4", "3#", "1/0", "\\angle", "3 or", "1, 2, and", "and 3"],
)
def test_references_that_lost_a_piece_are_broken(answer: str) -> None:
    assert verdict("What is the value that is asked for here?", answer) == (
        "broken_answer",
        DropReason.UNVERIFIABLE_ANSWER,
    )


@pytest.mark.parametrize(
    "answer", ["2.5", "1,2", "(1,2)", "x_2", "3+4", "1/10", "\\angle ABC", "3 or 4", "y = 2x", "1{,}000", "D, E", "e^x"]
)
def test_whole_references_are_not_broken(answer: str) -> None:
    assert verdict("What is the value that is asked for here?", answer)[0] != "broken_answer"


def test_a_named_answer_in_the_statement_is_given_away() -> None:
    assert verdict("Find x. The answer is 4.", "4") == ("answer_in_statement", DropReason.ANSWER_IN_STATEMENT)


NARROWED = [  # seen in use, each dropped once against its label
    ("en", "A lamp hangs 2 m above the table. After how many seconds does a falling ball hit the table?", "0.64"),
    ("en", "Construct the section of the cube by the plane $AMN$. In what ratio does it divide the volume?", "7:17"),
    ("en", "Simplify the product and show that it converges.", "$\\frac{1}{2}$"),
    (
        "en",
        "Alice either (1) gives a coin to Bob or (2) is given two coins. How many can she have after 5 moves?",
        "12",
    ),
    ("en", "How many ways are there to go from A to B? (That is, how many lines can be drawn?)", "12"),
    ("en", "How much does she make a day? If the answer is 18, what is the value of the unknown variable x?", "16"),
    ("en", "On what day of the week will it be in 100 days?", "Thursday"),
]


def test_what_was_dropped_wrongly_stays() -> None:
    assert astray(NARROWED, None) == []


def test_options_inside_a_line_are_multiple_choice() -> None:
    statement = "Choose the order. (A) \\(x<z<y\\) (B) \\(y<z<x\\) (C) \\(z<x<y\\)"
    assert verdict(statement, "A") == ("multiple_choice", DropReason.MULTIPLE_CHOICE)
