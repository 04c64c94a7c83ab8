"""What an original and its translation write in ways that differ: true ones agree, wrong ones do not."""

from __future__ import annotations

import pytest

from curation.translation.equivalence import check_equivalence, notation
from curation.translation.formulas import formulas
from curation.translation.prose import added_solution
from curation.translation.quantities import numbers
from curation.translation.sentences import sentences
from curation.translation.written_alike import written_alike


def broken(original: str, translated: str, target: str) -> set[str]:
    """Return what the numbers and the sentences of a translation break, read as `check_translation` reads them."""
    both = written_alike(original, translated, "en", target)
    return {one.invariant for one in (*numbers(*both, "en", target), *check_equivalence(*both, "en", target))}


@pytest.mark.parametrize(
    ("target", "original", "true", "wrong"),
    [
        # a blank inside a number
        ("zh", "The probability is 0. 10.", "概率是0.10。", "概率是0.20。"),
        ("de", "It costs 20, 000 dollars.", "Es kostet 20.000 Dollar.", "Es kostet 30.000 Dollar."),
        # times of the day, with a point, a colon, a letter, of either half, with seconds
        ("de", "It shows 8:15 a.m. now.", "Sie zeigt jetzt 8:15 Uhr.", "Sie zeigt jetzt 20:15 Uhr."),
        ("es", "It shows 8:15 in the morning.", "Marca las 8:15 de la mañana.", "Marca las 20:15."),
        ("fr", "From 8:15 a.m. to 8:15 p.m.", "De 8 h 15 à 20 h 15.", "De 8 h 15 à 20 h 45."),
        ("de", "It ran from 8.15 a.m. to 9.20 p.m.", "Es lief von 8.15 Uhr bis 21.20 Uhr.",
         "Es lief von 8.15 Uhr bis 21.40 Uhr."),
        ("fr", "It ran from 8.15 a.m. to 9.20 p.m.", "Elle a marché de 8 h 15 à 21 h 20.",
         "Elle a marché de 9 h 20 à 20 h 15."),
        ("es", "It ran from 8:15 a.m. to 9:20 p.m.", "Funcionó de las 8:15 a las 21:20.",
         "Funcionó de las 8:20 a las 21:15."),
        ("ru", "It ran from 8.15 a.m. to 9.20 p.m.", "Он работал с 8:15 до 21:20.", "Он работал с 8:15 до 21:30."),
        ("zh", "It ran from 8:15 a.m. to 9:20 p.m.", "它从上午8点15分工作到晚上9点20分。",
         "它从上午8点15分工作到晚上9点30分。"),
        ("zh", "From 05:00:00 to 22:59:59 the clock runs.", "从05:00:00到22:59:59，钟在走。",
         "从05:00:00到21:59:59，钟在走。"),
        # shares
        ("zh", "These are 3 quarters of her books.", "这是她的书的四分之三。", "这是她的书的五分之三。"),
        ("de", "He ate 3 quarters of the cake.", "Er aß drei Viertel des Kuchens.",
         "Er aß drei Fünftel des Kuchens."),
        ("ru", "He ate 2 fifths of the cake.", "Он съел две пятых торта.", "Он съел три пятых торта."),
        ("zh", "One out of nine students passed.", "九分之一的学生及格。", "八分之一的学生及格。"),
        ("es", "Two fifths of the students passed.", "Aprobaron 2 de cada 5 estudiantes.",
         "Aprobaron 3 de cada 5 estudiantes."),
        # compounds, counting by a number
        ("zh", "How many 3-digit numbers have the digits 2, 3, 5?", "有多少个三位数由数字2、3、5组成？",
         "有多少个四位数由数字2、3、5组成？"),
        ("de", "She counts the balls $8$ by $8$.", "Sie zählt die Bälle zu je $8$.",
         "Sie zählt die Bälle zu je $9$."),
        # places of a number
        ("de", "What is the digit in the ten thousands place?", "Welche Ziffer steht an der Zehntausenderstelle?",
         "Welche zehn Ziffern stehen dort?"),
        ("ru", "What is the digit in the ten thousands place?", "Какая цифра стоит в разряде десятков тысяч?",
         "Какие десять тысяч цифр там стоят? Их 7."),
        ("zh", "Tell her the tens digit.", "告诉她十位数字。", "告诉她十个数字。"),
        # signs of fractions, thousands of the original
        ("zh", "Each prints 1⁄2 page.", "每台打印1⁄2页。", "每台打印2⁄1页。"),
        ("ru", "It costs $39,000.", "Это стоит $39 000.", "Это стоит $39."),
        # the year of a date
        ("zh", "He runs for an hour. (2007 Math Kangaroo, Question 24)",
         "他跑了一小时。（2007年袋鼠数学竞赛，第24题）",
         "他跑了一年。（2007年袋鼠数学竞赛，第24题）"),
        # a remainder, a divisor; blocks that moved; a share of a share; on top of; rupees
        ("de", "Which number leaves a remainder of 2 when divided by 7?",
         "Welche Zahl lässt bei Division durch 7 den Rest 2?",
         "Welche Zahl lässt bei Division durch 2 den Rest 7?"),
        ("ru", "Which number leaves a remainder of 2 when divided by 7?",
         "Какое число при делении на 7 даёт остаток 2?",
         "Какое число при делении на 2 даёт остаток 7?"),
        ("ru", "Out of 7 consonants and 4 vowels, how many words of 3 consonants and 2 vowels are there?",
         "Сколько слов из 3 согласных и 2 гласных можно составить из 7 согласных и 4 гласных?",
         "Сколько слов из 3 согласных и 7 гласных можно составить из 2 согласных и 4 гласных?"),
        ("zh", "15% of 30% of a number is 90.", "一个数的30%的15%是90。", "一个数的30%的90%是15。"),
        ("zh", "4 girls stand below, 3 stand on top of the 4.", "4个女孩站在下面，4人上面站3人。",
         "4个女孩站在下面，3人上面站4人。"),
        ("zh", "Jack buys 18 pens for Rs. 100.", "杰克用100卢比买了18支笔。", "杰克用18卢比买了100支笔。"),
        # lists of numbers, formulas that exchanged theirs
        ("de", "The sequence is $$1, 4, 7, 10$$.", "Die Folge ist $$1, 4, 7, 10$$.",
         "Die Folge ist $$1, 10, 7, 4$$."),
        ("ru", "The point $F(2,0)$ and the line $x=4$.", "Точка $F(2,0)$ и прямая $x=4$.",
         "Точка $F(4)$ и прямая $x=2,0$."),
        # two sentences that exchanged their numbers
        ("zh", "Josh had 20 marbles. He gave Jack 2 marbles.", "乔希有20颗弹珠。他给了杰克2颗弹珠。",
         "乔希有2颗弹珠。他给了杰克20颗弹珠。"),
    ],
)  # fmt: skip
def test_both_texts_are_written_alike_before_they_are_compared(
    target: str, original: str, true: str, wrong: str
) -> None:
    assert not broken(original, true, target)
    assert broken(original, wrong, target)


@pytest.mark.parametrize(
    ("target", "original", "true", "wrong"),
    [
        ("es", "B is short of one man.", "B tiene un hombre menos.", "B tiene un hombre más."),
        ("fr", "B is short of one man.", "B a un homme de moins.", "B a un homme de plus."),
        ("es", "At least one of the mice is gray.", "Al menos uno de los ratones es gris.",
         "Al más uno de los ratones es gris."),
        ("es", "Find the smallest box.", "Halla la caja más pequeña.", "Halla la caja menos pequeña."),
        ("fr", "Find the smallest box.", "Trouver la plus petite boîte.", "Trouver la moins petite boîte."),
        ("es", "What is the highest simple interest rate?", "¿Cuál es la tasa de interés simple más alta?",
         "¿Cuál es la tasa de interés simple menos alta?"),
        ("es", "The room can hold no more than 64 people.", "En la sala no caben más de 64 personas.",
         "En la sala no caben menos de 64 personas."),
        ("es", "What is the most that it could be?", "¿Cuánto puede valer como máximo?",
         "¿Cuánto puede valer al menos?"),
        ("de", "What is the most that it could be?", "Wie groß kann es höchstens sein?",
         "Wie groß kann es mindestens sein?"),
        # what is named again
        ("es", "Ezra and Ann read. How many did they read altogether?",
         "Ezra y Ann leen. ¿Cuántos leyeron entre los dos?",
         "Ezra y Ann leen. ¿Cuántos leyeron entre los tres?"),
        ("fr", "6 like one and 3 are allergic to both.", "6 aiment l'un et 3 sont allergiques aux deux.",
         "6 aiment l'un et 3 sont allergiques aux trois."),
        ("ru", "Becky, Jake, and Sue shared 4 pizzas.", "Бекки, Джейк и Сью съели на троих 4 пиццы.",
         "Бекки, Джейк и Сью съели на пятерых 4 пиццы."),
        # denials of a moment, shoulds that were not, clauses of never
        ("ru", "The day is after today.", "Этот день ещё не наступил.", "Этот день не наступит."),
        ("zh", "Instead of 7/8 he found 7/18.", "他本应求7/8，却求了7/18。", "他求了7/8，又求了7/18。"),
        ("ru", "There is no tax, and he bought nothing else.", "Налога не берут, и ничего другого он не купил.",
         "Налога не берут, и ничего другого он купил."),
        ("zh", "The average is not known.", "平均数未知。", "平均数已知。"),
    ],
)  # fmt: skip
def test_more_and_less_and_what_is_named_again(target: str, original: str, true: str, wrong: str) -> None:
    assert not broken(original, true, target)
    assert broken(original, wrong, target)


def test_a_note_behind_the_question_is_no_solution_where_the_original_has_it() -> None:
    original = "How far does it go in s seconds (1 kilometer = 1000 meters)?"
    translated = "Wie weit kommt es in s Sekunden? (1 Kilometer = 1000 Meter)"
    assert not added_solution(original, translated, None, "en", "de")
    assert added_solution(original, "Wie weit kommt es in s Sekunden? Es sind 1000 Meter, 1000 s.", None, "en", "de")
    grid = "In how many ways can the squares be filled in so that neighbours differ, where two squares with a common edge are neighbours?"  # noqa: E501
    turned = "Auf wie viele Arten lassen sich die Felder so füllen, dass Nachbarn verschieden sind? Zwei Felder mit gemeinsamer Kante sind Nachbarn."  # noqa: E501
    assert not added_solution(grid, turned, None, "en", "de")
    assert added_solution(grid, f"{turned} Man zählt alle Fälle einzeln ab und kommt so ans Ziel.", None, "en", "de")


def test_a_unit_ends_a_sentence_and_an_abbreviation_does_not() -> None:
    assert len(sentences("Die zweite Hälfte mit 24 km/h. Bestimme die Strecke.", "de")) == 2
    assert len(sentences("Периметр равен 52 см. Найдите сторону.", "ru")) == 2
    assert len(sentences("Он живёт на ул. Ленина.", "ru")) == 1
    assert len(sentences("В 2015 г. Москва росла.", "ru")) == 1


def test_one_point_three_noughts_is_no_decimal_for_a_one() -> None:
    assert notation("From 1 to 1,000.", "从1到1.000。", "en", "zh")
    assert not notation("It is 0.125 m.", "长0.125米。", "en", "zh")


def test_a_symbol_said_once_less_keeps_its_first_and_last_mention() -> None:
    original = "Let $n$ be whole and $n$ even. For $a>b$ find the least $n$."
    assert formulas(original, "Sei $n$ ganz und gerade. Finde zu $a>b$ das kleinste $n$.") == []
    assert formulas(original, "Sei eine Zahl ganz und gerade. Finde zu $a>b$ das kleinste $n$.")
    assert formulas(original, "Sei $n$ ganz und $n$ gerade. Finde zu $a>b$ die kleinste.")
    assert formulas("Let $P$, $A$ be points, $P$ on $x=1$.", "Sei $A$ ein Punkt, $P$ auf $x=1$.")
