"""Which multiple-choice questions stand without their options, and how they read then."""

from __future__ import annotations

import polars as pl
import pytest

from curation.filters.multiple_choice import OpenQuestion, Refusal, open_one, open_questions
from curation.filters.multiple_choice.opening import is_mathematical
from curation.filters.statements import classify
from curation.records import DropReason

NUMBERS = ["A. 3", "B. 4", "C. 5", "D. 6"]

COMPLETE = [
    ("en", "How many sides has a square?", "How many sides has a square?"),
    ("en", "Which of the following is the value of $2+2$?", "What is the value of $2+2$?"),
    ("en", "Which of these is the largest prime factor of 12?", "What is the largest prime factor of 12?"),
    ("en", "If $x = 2$, which of the following is equal to $2x$?", "If $x = 2$, what is the value of $2x$?"),
    ("en", "The price of the book is :", "The price of the book is ____."),
    ("en", "After $$2$$ hours there are  bacteria.", "After $$2$$ hours there are ____ bacteria."),
    ("en", "$$5+5=2\\times$$．", "$$5+5=2\\times$$．"),
    ("en", "$2 \\times 2=$", "$2 \\times 2=$ ____."),
    ("zh", "正方形的边数是（　　）．", "正方形的边数是____．"),
    ("zh", "正方形的边数为．", "正方形的边数为____．"),
    ("zh", "若 $a+1=5$，则 $a=(\\quad)$", "若 $a+1=5$，则 $a=$ ____"),
    ("zh", "则不同的排法共有种．", "则不同的排法共有____种．"),
    (
        "zh",
        "下列命题：①$1<2$；②$2<3$；③$3<1$．其中真命题的个数是（ ）",
        "下列命题：①$1<2$；②$2<3$；③$3<1$．其中真命题的个数是____",
    ),
    ("zh", "每人得分的乘积都是4，问共有几人？", "每人得分的乘积都是4，问共有几人？"),
    ("zh", "每人得分的乘积为．", "每人得分的乘积为____．"),
    ("fr", "Combien de côtés a un carré ?", "Combien de côtés a un carré ?"),
    ("es", "¿Cuántos lados tiene un cuadrado?", "¿Cuántos lados tiene un cuadrado?"),
    ("it", "Quanti lati ha un quadrato?", "Quanti lati ha un quadrato?"),
    ("de", "Wie viele Seiten hat ein Quadrat?", "Wie viele Seiten hat ein Quadrat?"),
    ("ru", "Сколько сторон у квадрата?", "Сколько сторон у квадрата?"),
]


@pytest.mark.parametrize(("lang", "question", "opened"), COMPLETE)
def test_complete_questions_are_opened(lang: str, question: str, opened: str) -> None:
    assert open_one(question, "B", NUMBERS, lang) == OpenQuestion(opened, "4")


NEEDS_OPTIONS = [
    ("en", "Which of the following is a composite number?"),
    ("en", "Which of the following numbers is divisible by 7?"),
    ("en", "Which of the following is the largest prime number?"),
    ("en", "Which number is even?"),
    ("en", "Which of these is closest to $\\sqrt{17}$?"),
    ("en", "Which statement is true?"),
    ("en", "What is the smallest?"),
    ("en", "If $a > b$, then"),
    ("zh", "下列各数中，是偶数的是（ ）"),
    ("zh", "哪个数最大？"),
    ("zh", "与 $\\sqrt{17}$ 最接近的数是（ ）"),
    ("zh", "若 $a>b$，则（ ）"),
    ("fr", "Parmi les nombres suivants, lequel est pair ?"),
    ("es", "¿Cuál de los siguientes números es par?"),
    ("it", "Quale dei seguenti numeri è pari?"),
    ("de", "Welche der folgenden Zahlen ist gerade?"),
    ("ru", "Какое из следующих чисел чётное?"),
]


DOUBTFUL = [
    ("en", "What could be the number of sides of the figure?", "could be"),
    ("en", "What is a possible value of $x$ if $x > 3$?", "a possible"),
    ("en", "What is the multiple of X, if it is divisible by 9 and 12?", "What is the multiple"),
    ("zh", "则这个数可能是（ ）", "可能是____"),
    ("en", "What is the approximate value of $\\sqrt{17}$?", "approximate"),
    (
        "en",
        "There are 3 rows of x seats. Which expression represents the number of seats?",
        "Which expression represents",
    ),
    ("en", "The numbers 3, 4, 5, 6 are on cards. Which of the numbers is a square?", "Which of"),
    ("en", "Find the number A such that the following statement is true: A + 1 = 5.", "true"),
    ("zh", "准确数约是（ ）", "约是"),
]


@pytest.mark.parametrize(("lang", "question", "words"), DOUBTFUL)
def test_words_that_seldom_point_at_options_leave_a_doubt(lang: str, question: str, words: str) -> None:
    opened = open_one(question, "B", NUMBERS, lang)
    assert isinstance(opened, OpenQuestion)
    assert opened.doubt == words


STAND_ALONE = [
    ("en", "A team cannot be composed of men only. How many teams of 2 can be chosen from 2 men and 2 women?"),
    ("en", "All eels but 12 are green, all except for 14 are blue. How many eels are there?"),
    ("en", "No sock may be counted twice. How many socks guarantee two pairs?"),
    ("zh", "从 1 到 16 中任取 n 个数，其中必有两个数相差 3，则 n 最小是（ ）"),
    ("zh", "每种硬币你可以取任意多个（也可以是 0 个）．你的袋子里最多有几种硬币？"),
    ("zh", "兔子按照以下规则繁殖：每月一对．第 4 个月有（ ）对．"),
    ("en", "the sum of three consecutive integers is 12 . what is the largest number ?"),
    ("en", "the train , which goes approximately 60 miles , stops . how many times does it stop ?"),
    ("en", "19, 16, 13, 10, 7. Which number comes next?"),
    ("en", "Tim doubles a number and gets 8. With which number did he start?"),
    ("en", "What is the median of the following distribution: 6, 2, 9, 3?"),
    ("en", "A test has 4 questions, and each question has 5 answer choices. How many ways are there to fill it in?"),
    ("en", "How many are the games in which one player was a man?"),
    ("zh", "行列式的值等于（ ）"),
    ("zh", "4.803 保留两位小数，约等于（ ）"),
    ("zh", "在所有分母小于 10 的分数中，最接近 20.14 的分数是（ ）"),
    ("zh", "已知 p 的充分不必要条件是 $1<x<2$，则实数 $m$ 的取值范围是（ ）"),
    ("zh", "满足条件的函数 $f(x)$有（ ）"),
]


@pytest.mark.parametrize(("lang", "question"), STAND_ALONE)
def test_words_of_a_condition_point_at_no_options(lang: str, question: str) -> None:
    opened = open_one(question, "B", NUMBERS, lang)
    assert isinstance(opened, OpenQuestion)
    assert opened.doubt is None


@pytest.mark.parametrize(("lang", "question"), NEEDS_OPTIONS)
def test_questions_about_their_options_are_refused(lang: str, question: str) -> None:
    refused = open_one(question, "B", NUMBERS, lang)
    assert isinstance(refused, Refusal)
    assert refused.reason == DropReason.CHOICES_NEEDED
    assert refused.evidence


@pytest.mark.parametrize(
    "answer",
    [
        "None of the above", "All of these", "none", "Cannot be determined", "It is impossible to tell",
        "I and II only", "以上都不对", "无法确定", "Yes", "是", "(3)", "①④", "Both A and B",
        "The mean is larger than the median", "A flat fee of $3",
    ],
)  # fmt: skip
def test_answers_that_need_the_other_options(answer: str) -> None:
    refused = open_one("How many solutions has the equation?", "D", ["1", "2", "3", answer])
    assert refused == Refusal(DropReason.CHOICES_NEEDED, answer)


REWORDED = [
    ("Which of the following is an equation of line m?", "What is an equation of line m?", "$y=2x$"),
    ("Which of the following gives $P$ in terms of $m$?", "What is $P$ in terms of $m$?", "$2m$"),
    ("Which of the following equations gives the height $h$?", "What is the height $h$?", "$h=2s$"),
    ("Which of the following is equal to $d$ ?", "What is $d$ ?", "$-9a$"),
    (
        "Which of the following complex numbers is equal to $(1+i)^2$?",
        "What is the value of $(1+i)^2$?",
        "$2i$",
    ),
]


@pytest.mark.parametrize(("question", "opened", "answer"), REWORDED)
def test_a_question_for_one_thing_that_the_options_only_repeat_asks_for_it(
    question: str, opened: str, answer: str
) -> None:
    assert open_one(question, "B", ["1", answer, "3", "4"]) == OpenQuestion(opened, answer)


def test_a_number_in_words_is_an_answer_in_digits() -> None:
    question = "How many roots has the equation?"
    assert open_one(question, "C", ["One", "Two", "Three", "Four"]) == OpenQuestion(question, "3")
    assert isinstance(open_one(question, "A", ["None", "One", "Two"]), Refusal)


def test_options_that_the_question_lists_leave_a_doubt_only_where_it_lists_them() -> None:
    listed, numbers = "Which of the numbers 3, 8, 15 and 22 is prime?", ["3", "8", "15", "22"]
    assert open_one(listed, "A", numbers) == OpenQuestion(listed, "3", "Which of")
    assert isinstance(open_one("Which of the 22 numbers is prime?", "A", numbers), Refusal)


def test_an_answer_that_is_written_otherwise_than_its_option_names_it() -> None:
    question, options = "What is $a$?", [r"$\sqrt{3}/3$", r"$\sqrt{2}/2$", "1"]
    assert open_one(question, r"\frac{\sqrt{2}}{2}", options) == OpenQuestion(question, options[1])
    assert isinstance(open_one(question, "2", options), Refusal)


def test_names_that_the_question_itself_gives_are_answers() -> None:
    question = "Nancy read 5 pages and John read 7 pages. Who read more pages?"
    assert open_one(question, "B", ["Nancy", "John"]) == OpenQuestion(question, "John")
    assert isinstance(open_one("Who read more pages?", "B", ["Nancy", "John"]), Refusal)


@pytest.mark.parametrize(
    "answer",
    [
        "4",
        "-3.5",
        "$4",
        "Rs. 50",
        "12 apples",
        "2.4 cubic meter",
        "$\\frac{1}{2}$",
        "x^2+1",
        "13:4",
        "3个",
        "$$3$$厘米",
        "0或2",
        "5h 30min",
        "x",
    ],
)
def test_mathematical(answer: str) -> None:
    assert is_mathematical(answer)


@pytest.mark.parametrize(
    "answer", ["gains Rs. 50", "on the 17th day", "正数", "a number above 3", "等腰三角形", "Monday"]
)
def test_not_mathematical(answer: str) -> None:
    assert not is_mathematical(answer)


def test_option_numbers_count_from_where_their_source_does() -> None:
    rows = pl.DataFrame(
        {
            "_at": [0, 1, 2, 3, 4],
            "statement": ["How many sides has a square?"] * 5,
            "answer": ["0", "2", "1", "4", "2"],
            "choices": [["3 sides", "4 sides", "5 sides", "6 sides"]] * 5,
            "lang": ["en"] * 5,
            "source": ["zero", "zero", "one", "one", "unknown"],
        },
        schema_overrides={"_at": pl.UInt32},
    )
    outcome = open_questions(rows)
    assert outcome["answer"].to_list() == ["3 sides", "5 sides", "3 sides", "6 sides", None]
    assert outcome["reason"].to_list() == [None] * 4 + [DropReason.CHOICES_UNRESOLVED]


@pytest.mark.parametrize(
    ("question", "opened"),
    [
        ("甲需要6小时，则丙帮甲搬了小时．【本题欣赏题】答案：B", "甲需要6小时，则丙帮甲搬了____小时．"),
        ("长方形的面积是12平方米，宽3米，长米．", "长方形的面积是12平方米，宽3米，长____米．"),
    ],
)
def test_a_key_that_was_left_behind_goes_and_a_lost_blank_comes_back(question: str, opened: str) -> None:
    assert open_one(question, "B", ["5", "4"], "zh") == OpenQuestion(opened, "4")


def test_what_is_the_multiple_is_doubtful_without_its_options() -> None:
    found = open_one("What is the multiple of X, if it is divisible by 9 and 12?", "A", ["36", "15"], "en")
    assert isinstance(found, OpenQuestion)
    assert found.doubt == "What is the multiple"
    assert isinstance(open_one("What is the least common multiple of 4 and 6?", "A", ["12", "36"], "en"), OpenQuestion)


def test_options_numbered_line_by_line() -> None:
    rows = pl.DataFrame(
        {
            "statement": ["What is 3 times 2?\n1. 6\n2. 7\n3. 8", "Do this.\n1. Add 3.\n2. Halve.\nWhat is left of 5?"],
            "answer": ["1", "4"],
        }
    )
    assert classify(rows).select("keep", "answer").rows() == [(True, "6"), (True, "4")]


@pytest.mark.parametrize(
    ("question", "opened"),
    [
        ("$$120$$有个因数．", "$$120$$有____个因数．"),
        ("2年后，小明比小强大岁．", "2年后，小明比小强大____岁．"),
        ("同学们一起去划船，共有人去划船．", "同学们一起去划船，共有____人去划船．"),
        ("如果3斤可以做6个，需要斤菠萝．", "如果3斤可以做6个，需要____斤菠萝．"),
        ("那么，最少要抽张牌，才能保证有4张牌相同。", "那么，最少要抽____张牌，才能保证有4张牌相同。"),
        ("求共有人数．", "求共有人数．"),
        ("某厂需增加成本20元．", "某厂需增加成本20元．"),
    ],
)
def test_a_blank_that_was_lost_before_a_measure_word_comes_back(question: str, opened: str) -> None:
    found = open_one(question, "B", ["3", "4", "5", "6"], "zh")
    assert isinstance(found, OpenQuestion)
    assert found.statement == opened


def test_the_end_of_a_frame_around_the_options_is_no_part_of_an_answer() -> None:
    rows = "\\text{A)}\\ & 2 &\n\\text{B)}\\ & -2 \\\\\n\\text{C)}\\ & 3 &\n\\text{D)}\\ & \\frac{1}{2}\\\\"
    found = open_one(f"Find: $\\sin x$\n\\begin{{align*}}\n{rows}\n\\end{{align*}}", "D")
    assert isinstance(found, OpenQuestion)
    assert found.answer == "$\\frac{1}{2}$"
