"""What the rules find in wordings they were not made from, in seven languages, and what they must leave alone."""

from __future__ import annotations

import polars as pl
import pytest

from curation.filters.statements import classify
from curation.filters.statements.cleaning import clean_text, has_debris
from curation.filters.statements.expressions import either
from curation.records import PROBLEM, DropReason

Row = tuple[str, str, str]


def reasons(rows: list[Row]) -> list[str | None]:
    """The reason for which each row of (language, statement, answer) is dropped, null where it is kept."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("lang", "statement", "answer"), pl.String), orient="row")
    return classify(frame)["reason"].to_list()


GIVEN_AWAY: list[Row] = [
    ("en", "Compute 12 + 30. The answer is 42.", "42"),
    ("en", "Compute 12 + 30.\n\n**Answer:** 42", "42"),
    ("en", "Compute 12 + 30. [Ans: 42]", "42"),
    ("en", "Evaluate $\\frac{1}{4}+\\frac14$. Answer: $\\frac{1}{2}$", "\\frac{1}{2}"),
    ("en", "What is 7 times 6? #### 42", "42"),
    ("fr", "Calculer 6 fois 7. La réponse est 42.", "42"),
    ("es", "Calcule 6 por 7. Respuesta: 42", "42"),
    ("es", "Calcule 6 por 7. Solución: 6·7 = 42", "42"),
    ("it", "Calcola 6 per 7. Soluzione: 6·7 = 42", "42"),
    ("it", "Calcola 6 per 7. Risposta: 42.", "42"),
    ("de", "Berechne 6 mal 7. Lösung: 42", "42"),
    ("de", "Berechne 6 mal 7. Die Antwort lautet 42.", "42"),
    ("ru", "Вычислите 6·7. Ответ: 42.", "42"),
    ("zh", "计算 $6\\times 7$。答：42", "42"),
    ("zh", "计算 $6\\times 7$。解：$6\\times7=42$。", "42"),
    ("zh", "计算 $6\\times 7$。【答案】42", "42"),
]  # fmt: skip

NOT_GIVEN_AWAY: list[Row] = [
    ("en", "A student got the answer 42 by tripling a number. Find the number.", "14"),
    ("en", "Write your answer as a fraction: what is 0.5?", "1/2"),
    ("en", "If the answer is 12 when a number is doubled, what is the number?", "6"),
    ("en", "A salt solution: 30 % of 50 ml is salt. How many ml of salt are in it?", "15"),
    ("en", "Two solutions of $x^2-5x+6=0$ are $2$ and $3$. Find their sum.", "5"),
    ("en", "Find the number of solutions: $x^2 = 4$.", "2"),
    ("zh", "答对一题得 5 分，答错一题扣 2 分，共 10 题，小明答对 8 题，得多少分？", "36"),
]  # fmt: skip

NOT_ELSEWHERE: list[Row] = [
    ("en", "Tom solved 3 problems in part of an hour, 45 minutes. What part of an hour is it?", "3/4"),
    ("en", "In a contest, problem 3 is worth 7 points and problem 4 is worth 5. What are both worth?", "12"),
    ("en", "By the pigeonhole principle, what is the least number of socks to draw from 3 colours to get a pair?", "4"),
    ("en", "A section of 12 m is cut from a rope of 30 m. What length remains in metres?", "18"),
    ("de", "Wie viele Aufgaben löst Max in 3 Stunden, wenn er 4 Aufgaben je Stunde löst?", "12"),
    ("ru", "Вася решил 12 задач за 3 часа. Сколько задач он решал в час?", "4"),
    ("zh", "小明做了 20 道题，做对 18 道题，正确率是多少？", "90%"),
]  # fmt: skip

NOT_FIGURES: list[Row] = [
    ("en", "The following table gives the sales. What was the total?\n| day | sales |\n| 1 | 20 |\n| 2 | 30 |", "50"),
    ("en", "What is the area under the graph of $y=x^2$ from 0 to 1?", "1/3"),
    ("en", "How many chairs are at each table if 6 tables have 24 chairs?", "4"),
    ("en", "Ann drew a map with scale 1:1000. What is 5 cm on the map in metres?", "50"),
    ("de", "Wie viele Bilder hat Max, wenn er 3 Alben zu 12 Bildern hat?", "36"),
    ("zh", "一张桌子和 4 把椅子共 300 元，桌子 100 元，椅子多少元？", "50"),
]  # fmt: skip

NOT_CUT_OFF: list[Row] = [
    ("en", "The value of $3 + 4$ is", "7"),
    ("en", "Express the area in terms of a", "a^2"),
    ("en", "Solve for x and y", "(1,2)"),
    ("en", "If $x=3$ then $x^2=$", "9"),
    ("en", "Evaluate $\\lim_{n \\to \\infty} \\left(1+\\frac1n\\right)^n$", "e"),
    ("en", "Roll a fair die. What is the probability of a six with one die", "1/6"),
    ("zh", "求前 10 个正整数的和", "55"),
    ("zh", "甲、乙两数之比是 3:2，和是 10，求甲数与乙数的积", "24"),
    ("de", "Gib den Wert von x für $2x = 8$ an", "4"),
    ("fr", "Combien gagne-t-il en un an", "12"),
    ("en", "A shirt costs $20 and a hat costs $15 less $3 with a coupon. What is the total?", "32"),
]  # fmt: skip

WORDS: list[Row] = [
    ("en", "What kind of triangle has sides 3, 4 and 5?", "right triangle"),
    ("en", "What arrives first?", "The train arrives first."),
    ("ru", "Кто старше?", "старше всех Анна"),
]  # fmt: skip

NOT_WORDS: list[Row] = [
    ("en", "What colour is the 10th bead?", "red"),
    ("en", "Find the limit of 1/n^2 as n grows.", "infinity"),
    ("en", "Find all real solutions of $x^2=-1$.", "no real solutions"),
    ("en", "For which $n$ is $2n$ even?", "all integers n"),
    ("en", "Factor out of ab+ac.", "a(b+c)"),
    ("en", "How many apples are there?", "twelve"),
    ("zh", "求 $x^2=-1$ 的实数解。", "无实数解"),
    ("zh", "方程有几个解？", "三个"),
    ("en", "Find the product of a, b and c.", "abc"),
    ("en", "Express the area with m and n.", "mn"),
    ("en", "How long does it take in hours and minutes?", "two hours"),
    ("en", "What is the derivative of sin x?", "cosx"),
]  # fmt: skip

DEBRIS: list[Row] = [
    ("fr", "CombiÃ©n font 12 et 30 Ã  peu prÃ¨s ?", "42"),
    ("zh", "æ±‚ä¸‹åˆ—æ–¹ç¨‹çš„è§£ï¼š2x=4", "2"),
    ("en", "<script>var x=3;</script> What is x?", "3"),
]  # fmt: skip

NOT_DEBRIS: list[Row] = [
    ("fr", "Élève à côté: combien font 3 et 4 déjà ?", "7"),
    ("ru", "Сколько будет 15 и 27?", "42"),
    ("en", "What does `def f(x): return x*x` return for x = 4?", "16"),
]  # fmt: skip

NOT_NO_PROBLEM: list[Row] = [
    ("en", "Add 12 and 30.", "42"),
    ("en", "Given that x = 4, state the value of x + 3.", "7"),
    ("en", "The sum of 13 and 4 is ____.", "17"),
    ("zh", "3+5=多少？", "8"),
    ("en", "Find the sum of the numbers: (1) 6 (2) 7 (3) 8", "21"),
]  # fmt: skip

FIRES = {
    DropReason.ANSWER_IN_STATEMENT: GIVEN_AWAY,
    DropReason.TEXTUAL_ANSWER: WORDS,
    DropReason.DEBRIS: DEBRIS,
}
HARMLESS: dict[str, list[Row]] = {
    DropReason.ANSWER_IN_STATEMENT: NOT_GIVEN_AWAY,
    "elsewhere": NOT_ELSEWHERE,
    "figures": NOT_FIGURES,
    "cut off": NOT_CUT_OFF,
    DropReason.TEXTUAL_ANSWER: NOT_WORDS,
    DropReason.DEBRIS: NOT_DEBRIS,
    "no problem": NOT_NO_PROBLEM,
}


@pytest.mark.parametrize("reason", FIRES)
def test_what_must_go_goes_for_its_reason(reason: DropReason) -> None:
    rows = FIRES[reason]
    assert [(row, got) for row, got in zip(rows, reasons(rows), strict=True) if got != reason] == []


@pytest.mark.parametrize("reason", HARMLESS)
def test_look_alikes_stay(reason: str) -> None:
    rows = HARMLESS[reason]
    assert [(row, got) for row, got in zip(rows, reasons(rows), strict=True) if got is not None] == []


def test_a_short_question_in_chinese_is_a_statement() -> None:
    assert reasons([("zh", "77 是质数吗？", "否"), ("zh", "3+5=多少？", "8")]) == [DropReason.YES_NO, None]


CLUTTER = {
    "12. Compute $x + 1$.": "Compute $x + 1$.",
    "Problem 7. [5 points] A triangle has base 17.": "A triangle has base 17.",
    "**Problem 3.** Find $x + 1$.": "Find $x + 1$.",
    "\\textbf{Problem 3.} Find $x + 1$.": "Find $x + 1$.",
    "### Question\n\nA triangle has base 17.": "A triangle has base 17.",
    "(Autumn Cup 2014, Problem 3) Find the mean of 8 and 4.": "Find the mean of 8 and 4.",
    "（2019·全国卷）求 $x+1$ 的值。": "求 $x+1$ 的值。",
    "Find 199 mod 7. (3 marks)": "Find 199 mod 7.",
    "Find 199 mod 7. (AMC 2010)": "Find 199 mod 7.",
    "Example 3: Find the mean.": "Find the mean.",
    "例3 已知 $x=1$，求 $y$。": "已知 $x=1$，求 $y$。",
    "【题目】求 $x$ 的值。": "求 $x$ 的值。",
    "第5题．求 $x$ 的值。": "求 $x$ 的值。",
    "求 $x$ 的值（5 分）": "求 $x$ 的值",
    "Задача 5. Найдите среднее.": "Найдите среднее.",
    "Aufgabe 4: Berechne 3 + 4.": "Berechne 3 + 4.",
    "Exercice 2. Calculer 3 + 4.": "Calculer 3 + 4.",
}  # fmt: skip


def test_numbers_points_and_contests_go() -> None:
    frame = pl.DataFrame({"text": list(CLUTTER)})
    assert frame.select(has_debris("text").all()).item()
    assert clean_text(frame, "text")["text"].to_list() == list(CLUTTER.values())
    assert clean_text(clean_text(frame, "text"), "text")["text"].to_list() == list(CLUTTER.values())


NO_CLUTTER = [
    "1. Compute 6 * 7. 2. Compute 8 * 9.",
    "1) Find a. 2) Find b.",
    "3.5 is the mean of which numbers?",
    "3．5 与 4 的和是多少？",
    "(2x + 2015) is a power of what number?",
    "Question 3 has five marks. How many marks have 4 such questions?",
    "Exercise 12 with a radius of 5.",
    "5 points lie on a circle.",
    "[2, 3] is an interval of what length?",
    "第 3 天小明走了多少米？",
    "12. 5",
]


def test_numbers_that_belong_to_the_problem_stay() -> None:
    frame = pl.DataFrame({"text": NO_CLUTTER})
    assert clean_text(frame, "text")["text"].to_list() == NO_CLUTTER


def test_an_answer_keeps_its_label() -> None:
    row = {"statement": "What is $3 + 5$? (1) 6 (2) 8 (3) 9", "answer": "(2) 8"}
    assert classify(pl.DataFrame([row]))["answer"].to_list() == ["8"]
    answers = pl.DataFrame({"answer": ["1. 5", "(3) 7"]})
    assert clean_text(answers, "answer", labels=False).equals(answers)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\w+", "é3_ж!", "é3_ж"),
        (r"[^?]+\?", "Ab?c", "Ab?"),
        (r"[\s\S]*b", "a\nBc", "a\nB"),
        (r"[\w-]+", "a-b c", "a-b"),
        (r"\W\d", "x 7", " 7"),
        (r"\S\.", "a.", "a."),
    ],
)
def test_cheap_expressions_mean_the_same(pattern: str, text: str, found: str) -> None:
    assert pl.Series([text]).str.extract(f"({either(pattern)})").to_list() == [found]


def test_a_handful_of_rows_is_judged_in_every_schema() -> None:
    empty = pl.DataFrame(schema=PROBLEM)
    assert classify(empty).is_empty()
