"""Templates in the six other languages of the recipe: a sum, a purchase, an equation and a percentage in each.

The texts are written for this project, not translated by a machine. Same invariants as `tests.demo_data.templates`.
"""

from __future__ import annotations

from fractions import Fraction

from tests.demo_data.items import Dice, Item

SUM = {
    "fr": "Quelle est la somme de {a} et de {b} ?",
    "es": "¿Cuánto suman {a} y {b}?",
    "it": "Qual è la somma di {a} e {b}?",
    "de": "Wie groß ist die Summe von {a} und {b}?",
    "zh": "{a} 与 {b} 的和是多少？",
    "ru": "Чему равна сумма чисел {a} и {b}?",
}
PURCHASE = {
    "fr": "Un cahier coûte {p} euros. Combien d'euros coûtent {n} cahiers ?",
    "es": "Un cuaderno cuesta {p} euros. ¿Cuántos euros cuestan {n} cuadernos?",
    "it": "Un quaderno costa {p} euro. Quanti euro costano {n} quaderni?",
    "de": "Ein Heft kostet {p} Euro. Wie viele Euro kosten {n} Hefte zusammen?",
    "zh": "一本笔记本 {p} 元，买 {n} 本一共要多少元？",
    "ru": "Одна тетрадь стоит {p} рублей. Сколько рублей нужно заплатить за {n} таких тетрадей?",
}
EQUATION = {
    "fr": "Résoudre l'équation {a}x + {b} = {r}. Quelle est la valeur de x ?",
    "es": "Resuelve la ecuación {a}x + {b} = {r}. ¿Cuánto vale x?",
    "it": "Risolvi l'equazione {a}x + {b} = {r}. Quanto vale x?",
    "de": "Löse die Gleichung {a}x + {b} = {r}. Welchen Wert hat x?",
    "zh": "解方程 {a}x + {b} = {r}，求 x 的值。",
    "ru": "Решите уравнение {a}x + {b} = {r} и найдите значение x.",
}
PERCENT = {
    "fr": "Combien font {s} % de {w} élèves ?",
    "es": "¿Cuántos alumnos son el {s} % de {w} alumnos?",
    "it": "Quanti alunni sono il {s} % di {w} alunni?",
    "de": "Wie viele Kinder sind {s} % von {w} Kindern?",
    "zh": "全校有 {w} 名学生，其中 {s}% 是女生。女生有多少名？",
    "ru": "В школе {w} учеников, из них {s} % ходят в хор. Сколько учеников ходит в хор?",
}


def foreign(d: Dice, lang: str, which: int) -> Item:
    """Return one problem in the language; ``which`` counts through the four kinds."""
    kind = which % 4
    if kind == 0:
        a, b = d.between(14, 89), d.between(14, 89)
        return Item(SUM[lang].format(a=a, b=b), Fraction(a + b), f"{a} + {b}", "foreign_total", 1, lang)
    if kind == 1:
        p, n = d.between(3, 19), d.between(4, 18)
        return Item(PURCHASE[lang].format(p=p, n=n), Fraction(p * n), f"{n} * {p}", "foreign_purchase", 2, lang)
    if kind == 2:
        a, x, b = d.between(2, 9), d.between(2, 15), d.between(3, 30)
        text = EQUATION[lang].format(a=a, b=b, r=a * x + b)
        return Item(text, Fraction(x), f"({a * x + b} - {b}) / {a}", "foreign_equation", 3, lang, variable="x")
    s, w = d.pick((15, 20, 30, 35, 40, 45, 60)), 20 * d.between(3, 40)
    text = PERCENT[lang].format(s=s, w=w)
    return Item(text, Fraction(s * w, 100), f"{s} / 100 * {w}", "foreign_percent", 3, lang)
