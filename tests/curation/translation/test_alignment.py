"""Sentences that a translation joins or parts, ordinals and afternoons: true ones agree, wrong ones do not."""

from __future__ import annotations

import pytest

from curation.translation.alignment import align
from curation.translation.equivalence import check_equivalence
from curation.translation.half_days import half_days


def broken(original: str, translated: str, target: str) -> set[str]:
    """Return what the sentences of a translation break."""
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize(
    ("target", "original", "true", "wrong"),
    [
        # a sentence that Chinese joins to the next, told by its formulas, its order, its brackets, its words
        ("zh", "A sphere touches the plane at point $D$. Point $E$ lies on the sphere. Find the length of $DE$.",
         "一个球与平面相切于点$D$，点$E$在球面上，求$DE$的长。", "一个球与平面相切于点$D$。求$D$的长。"),
        ("zh", "The angle at $A$ is $30^\\circ$ and the side $BC$ is $5$. Find how many such triangles exist.",
         "$A$处的角为$30^\\circ$，边$BC$为$5$，求这样的三角形有多少个。", "$A$处的角为$30^\\circ$，边$BC$为$5$。"),
        ("zh", "There are two kinds of boxes. The small one holds $9$ cakes, and the big one holds $17$ cakes.",
         "盒子有两种，小的每个装$9$个蛋糕，大的每个装$17$个蛋糕。", "小的装$9$个蛋糕，大的装$17$个蛋糕。"),
        # a definition parted from its sentence
        ("ru", "Given a positive integer $n$, a sequence $(x_1, x_2)$ of numbers exists such that $x_1 + x_2 = n$.",
         "Дано натуральное число $n$. Существует последовательность чисел $(x_1, x_2)$ такая, что $x_1 + x_2 = n$.",
         "Дано натуральное число $n$. Существует последовательность чисел $(x_1, x_2)$ такая, что $x_1 + x_2 = n$."
         " Кроме того, известно, что все эти числа делятся на 7 и больше 20."),
        # a letter that ends a sentence is no initial
        ("ru", "A needs 10 minutes more than B. If A had walked twice as fast, how long would he have taken?",
         "A идёт на 10 минут дольше, чем B. Сколько времени он шёл бы, если бы A шёл вдвое быстрее?",
         "A идёт на 10 минут дольше, чем B."),
        # ordinals
        ("zh", "What is the third number?", "第三个数是多少？", "第四个数是多少？"),
        ("de", "The first train leaves, then the second train.", "Der erste Zug fährt ab, dann der zweite Zug.",
         "Der zweite Zug fährt ab, dann der dritte Zug."),
        ("fr", "She came in third in the race.", "Elle est arrivée troisième de la course.",
         "Elle est arrivée quatrième de la course."),
        ("es", "On the second day he walked.", "El segundo día caminó.", "El tercer día caminó."),
        ("ru", "The fourth house is blue.", "Четвёртый дом синий.", "Пятый дом синий."),
        # what is drawn from a number of things
        ("ru", "If 4 points are selected randomly from these 10 points, find the probability.",
         "Из этих 10 точек случайно выбирают 4 точки, найдите вероятность.",
         "Из этих 4 точек случайно выбирают 10 точек, найдите вероятность."),
        ("de", "4 students are chosen from the 10 students of a class.",
         "Aus den 10 Schülern einer Klasse werden 4 Schüler ausgewählt.",
         "Aus den 4 Schülern einer Klasse werden 10 Schüler ausgewählt."),
        # a condition with its name, a rate in another clause
        ("zh", "Lisa and Maggie win the game, if Maggie guessed the colors.", "如果玛吉猜出了颜色，则莉萨和玛吉获胜。",
         "如果莉萨猜出了颜色，则莉萨和玛吉获胜。"),
        # what denies nothing, and what does
        ("ru", "The number has 5 different non-zero digits.", "В числе 5 различных ненулевых цифр.",
         "В числе 5 различных цифр."),
        ("de", "It gives 7 points for a correct answer and $0$ points for an incorrect answer or no answer.",
         "Es gibt 7 Punkte für eine richtige und $0$ Punkte für eine falsche oder fehlende Antwort.",
         "Es gibt 7 Punkte für eine richtige und $0$ Punkte für eine richtige oder gegebene Antwort."),
        ("zh", "The line does not pass through the origin.", "这条直线不过原点。", "这条直线过原点。"),
        ("fr", "Assume no air resistance.", "On néglige la résistance de l'air.", "On mesure la résistance de l'air."),
        ("ru", "Assume no air resistance.", "Сопротивлением воздуха пренебречь.", "Учесть сопротивление воздуха."),
        ("de", "Assume no friction.", "Die Reibung wird vernachlässigt.", "Die Reibung wird berechnet."),
        ("es", "Assume no friction.", "Desprecie la fricción.", "Calcule la fricción."),
        ("ru", "What should come in place of the question mark?", "Что стоит на месте вопросительного знака?",
         "Что не стоит на месте вопросительного знака?"),
        ("de", "What should come in place of the question mark?", "Was steht anstelle des Fragezeichens?",
         "Was steht nicht anstelle des Fragezeichens?"),
        # of whom some are chosen
        ("es", "Bert is among 12 tenants, from which 9 tenants are selected.",
         "Bert está entre los 12 inquilinos, de los cuales se elige a 9.",
         "Bert está entre los 9 inquilinos, de los cuales se elige a 12."),
        # numbers that are no words in English
        ("zh", "A regular triangular pyramid has height 5.", "一个正三棱锥的高为5。", "一个正棱锥的高为三。"),
        ("zh", "The points $P$, $A$, $Q$ and $B$ are concyclic.", "$P$、$A$、$Q$、$B$四点共圆。",
         "$P$、$A$、$Q$、$B$五点共圆。"),
    ],
)  # fmt: skip
def test_true_ones_agree_and_wrong_ones_do_not(target: str, original: str, true: str, wrong: str) -> None:
    assert broken(original, true, target) == set()
    assert broken(original, wrong, target)


@pytest.mark.parametrize(
    ("target", "true", "wrong"),
    [
        ("de", "Er beginnt um 15:30 Uhr.", "Er beginnt um 3:30 Uhr."),
        ("de", "Er beginnt um 3:30 Uhr nachmittags.", "Er beginnt morgens um 3.30 Uhr."),
        ("ru", "Он начинает в 3:30 дня.", "Он начинает в 3:30."),
        ("fr", "Il commence à 15 h 30.", "Il commence à 3 h 30."),
        ("es", "Empieza a las 3:30 de la tarde.", "Empieza a las 3:30."),
        ("zh", "他下午3点30分开始。", "他3点30分开始。"),
    ],
)
def test_an_afternoon_stays_one(target: str, true: str, wrong: str) -> None:
    original = "He starts at 3:30 p.m. today."
    assert half_days(original, true, "en", target) == []
    assert half_days(original, wrong, "en", target) != []
    assert half_days("He starts at 3:30 a.m. today.", wrong, "en", target) == []


def test_no_sentence_is_taken_for_one_that_is_there() -> None:
    original = "Ann has 3 dogs. Her brother lives in a small town near the sea. Ann buys 2 more dogs."
    segments = align(original, "Ann hat 3 Hunde. Ann kauft 2 weitere Hunde.", "en", "de")
    assert [segment.before for segment in segments if not segment.after] == [
        "Her brother lives in a small town near the sea."
    ]
