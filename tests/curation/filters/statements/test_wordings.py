"""What the rules find in wordings they were not made from, in seven languages, and what they must leave alone."""

from __future__ import annotations

import polars as pl
import pytest

from curation.config import StatementSettings
from curation.filters.statements import classify
from curation.filters.statements.cleaning import clean_text, has_debris
from curation.filters.statements.words import either
from curation.records import PROBLEM, DropReason

Row = tuple[str, str, str]
SUSPICIOUS = StatementSettings(suspected_from=1e-6)
"""What any rule finds is dropped."""


def reasons(rows: list[Row], settings: StatementSettings | None = None) -> list[str | None]:
    """The reason for which each row of (language, statement, answer) is dropped, null where it is kept."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("lang", "statement", "answer"), pl.String), orient="row")
    return classify(frame, settings)["reason"].to_list()


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

ELSEWHERE: list[Row] = [
    ("en", "Repeat Problem 5 for a cube of side 3.", "27"),
    ("en", "Using Theorem 4.2, compute the limit of the sequence.", "1"),
    ("en", "Refer to Exercise 7. What is the mean now?", "1"),
    ("en", "Find the variance for the data in Example 3.", "1"),
    ("en", "Use your result from part (a) to find the total cost.", "84"),
    ("en", "What is the answer to question 4 if the radius is 3?", "9"),
    ("es", "Con los datos del ejercicio 7, calcula la media.", "3"),
    ("it", "Usando il risultato dell'esercizio 3, calcolare l'area.", "3"),
    ("it", "Come nel problema precedente, calcola l'area.", "3"),
    ("fr", "D'après l'exercice 4, calculer le volume.", "3"),
    ("ru", "Решите задачу для чисел из примера 5.", "3"),
    ("ru", "Используя таблицу из пункта 3, найдите сумму.", "3"),
    ("zh", "用第3题的结果求 $x$ 的值。", "3"),
    ("zh", "根据例2中的方法，求 $x$。", "3"),
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

FIGURES: list[Row] = [
    ("en", "The pie chart shows how 40 students travel. How many walk?", "8"),
    ("en", "Use the number line below to find the distance from A to B.", "8"),
    ("en", "The table below shows the ages of 5 children. What is the mean?", "8"),
    ("en", "Find the area of the shaded region in the diagram.", "8"),
    ("fr", "D'après le graphique, combien de voitures ont été vendues ?", "8"),
    ("fr", "Le tableau ci-dessous donne les notes. Quelle est la moyenne ?", "8"),
    ("es", "Según el gráfico, ¿cuántos coches se vendieron?", "8"),
    ("es", "La siguiente tabla muestra las ventas. ¿Cuál es el total?", "8"),
    ("it", "Il grafico mostra le vendite. Qual è il totale?", "8"),
    ("it", "La tabella seguente riporta i voti. Qual è la media?", "8"),
    ("de", "Das Diagramm zeigt die Verkäufe. Wie viele Autos wurden verkauft?", "8"),
    ("de", "Die Tabelle zeigt die Noten. Wie groß ist der Durchschnitt?", "8"),
    ("ru", "По графику определите, сколько машин продано в мае.", "8"),
    ("ru", "В таблице приведены оценки. Найдите среднее.", "8"),
    ("zh", "根据统计图，五月卖出多少辆车？", "8"),
    ("zh", "下表是某班的成绩，求平均分。", "8"),
    ("zh", "图中有几个三角形？", "8"),
]  # fmt: skip

NOT_FIGURES: list[Row] = [
    ("en", "The following table gives the sales. What was the total?\n| day | sales |\n| 1 | 20 |\n| 2 | 30 |", "50"),
    ("en", "What is the area under the graph of $y=x^2$ from 0 to 1?", "1/3"),
    ("en", "How many chairs are at each table if 6 tables have 24 chairs?", "4"),
    ("en", "Ann drew a map with scale 1:1000. What is 5 cm on the map in metres?", "50"),
    ("de", "Wie viele Bilder hat Max, wenn er 3 Alben zu 12 Bildern hat?", "36"),
    ("zh", "一张桌子和 4 把椅子共 300 元，桌子 100 元，椅子多少元？", "50"),
]  # fmt: skip

CUT_OFF: list[Row] = [
    ("en", "A farmer has 12 cows and sells 5 of them to the", "7"),
    ("en", "Find all $x$ such that $\\frac{x+1}{x-", "7"),
    ("en", "Compute $3 + 4 \\times", "7"),
    ("en", "Determine the greatest common divisor of 12 and", "6"),
    ("en", "Tom has 5 apples, Ann has 7 apples and they", "6"),
    ("fr", "Un train parcourt 120 km en 2 heures. Quelle est la vitesse du", "60"),
    ("es", "Un tren recorre 120 km en 2 horas. ¿Cuál es la velocidad del", "60"),
    ("es", "Ana tiene 12 manzanas y regala 5. ¿Cuántas", "7"),
    ("it", "Un treno percorre 120 km in 2 ore. Qual è la velocità del", "60"),
    ("de", "Ein Zug fährt 120 km in 2 Stunden. Wie groß ist die Geschwindigkeit des", "60"),
    ("ru", "Поезд проехал 120 км за 2 часа. Найдите скорость, с которой он ехал из", "60"),
    ("zh", "一列火车 2 小时行驶 120 千米，如果", "60"),
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
    ("en", "Which planet has 2 moons?", "Mars"),
    ("fr", "Qui est le plus grand, Paul ou Luc ?", "Luc"),
    ("es", "¿Qué día será dentro de 10 días si hoy es lunes?", "jueves"),
    ("it", "Che giorno sarà tra 3 giorni se oggi è lunedì?", "giovedì"),
    ("de", "Welcher Wochentag ist in 10 Tagen, wenn heute Montag ist?", "Donnerstag"),
    ("ru", "Какой день недели будет через 10 дней, если сегодня понедельник?", "четверг"),
    ("zh", "今天星期一，10 天后是星期几？", "星期四"),
    ("zh", "甲乙丙三人谁最高？", "小明"),
    ("en", "What kind of triangle has sides 3, 4 and 5?", "right triangle"),
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
    ("en", "=== *** --- +++ === *** --- 5 === *** ---", "3"),
]  # fmt: skip

NOT_DEBRIS: list[Row] = [
    ("fr", "Élève à côté: combien font 3 et 4 déjà ?", "7"),
    ("ru", "Сколько будет 15 и 27?", "42"),
    ("en", "What does `def f(x): return x*x` return for x = 4?", "16"),
]  # fmt: skip

NO_PROBLEM: list[Row] = [
    ("en", "The number 17 is prime.", "17"),
    ("en", "Chapter 4: Linear equations and their graphs", "4"),
    ("en", "Last year the school counted 420 pupils.", "420"),
    ("en", "The sum of two numbers is 12 and their product is 32.", "8"),
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
    DropReason.REFERS_ELSEWHERE: ELSEWHERE,
    DropReason.MISSING_FIGURE: FIGURES,
    DropReason.TRUNCATED: CUT_OFF,
    DropReason.TEXTUAL_ANSWER: WORDS,
    DropReason.DEBRIS: DEBRIS,
    DropReason.NOT_A_PROBLEM: NO_PROBLEM,
}
HARMLESS = {
    DropReason.ANSWER_IN_STATEMENT: NOT_GIVEN_AWAY,
    DropReason.REFERS_ELSEWHERE: NOT_ELSEWHERE,
    DropReason.MISSING_FIGURE: NOT_FIGURES,
    DropReason.TRUNCATED: NOT_CUT_OFF,
    DropReason.TEXTUAL_ANSWER: NOT_WORDS,
    DropReason.DEBRIS: NOT_DEBRIS,
    DropReason.NOT_A_PROBLEM: NOT_NO_PROBLEM,
}


@pytest.mark.parametrize("reason", FIRES)
def test_what_must_go_goes_for_its_reason(reason: DropReason) -> None:
    rows = FIRES[reason]
    assert [(row, got) for row, got in zip(rows, reasons(rows), strict=True) if got != reason] == []


@pytest.mark.parametrize("reason", HARMLESS)
def test_look_alikes_stay(reason: DropReason) -> None:
    rows = HARMLESS[reason]
    assert [(row, got) for row, got in zip(rows, reasons(rows), strict=True) if got is not None] == []


def test_a_short_question_in_chinese_is_a_statement() -> None:
    assert reasons([("zh", "77 是质数吗？", "否"), ("zh", "3+5=多少？", "8")]) == [DropReason.YES_NO, None]


def test_a_hedge_by_sign_is_suspected() -> None:
    question = "What is the square root of 200?"
    answers = ["$\\approx 14.1$", "≈ 14.1", "$10\\sqrt{2}$"]
    rows = [("en", question, answer) for answer in answers]
    assert reasons(rows, SUSPICIOUS) == [DropReason.HEDGED_ANSWER] * 2 + [None]


def test_what_comes_next_is_suspected_unless_the_law_is_stated() -> None:
    rows = [
        ("en", "What is the next number in the sequence 3, 5, 9, 17?", "33"),
        ("fr", "Quel est le nombre suivant de la suite 2, 5, 11, 23 ?", "47"),
        ("de", "Setze die Zahlenfolge fort: 1, 3, 7, 15, ____", "31"),
        ("ru", "Найдите следующее число последовательности 2, 5, 11, 23.", "47"),
    ]
    assert reasons(rows, SUSPICIOUS) == [DropReason.GUESSWORK] * 4
    law = [
        ("en", "Find the next term of the geometric sequence 3, 6, 12.", "24"),
        ("zh", "等差数列 2，5，8 的下一个数是多少？", "11"),
    ]
    assert reasons(law, SUSPICIOUS) == [None, None]


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
