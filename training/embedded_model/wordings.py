"""Wordings of the embedded model's problems in seven languages; only English has all kinds.

Every text asks for one number and holds no answer.
"""

from __future__ import annotations

from collections.abc import Mapping

LANGS = ("en", "fr", "es", "it", "de", "zh", "ru")

NAMES = ("Ana", "Ben", "Chloe", "Dev", "Elif", "Finn", "Grace", "Hugo", "Iris", "Jonas", "Kofi", "Lena", "Mira", "Noor")
THINGS = ("apples", "marbles", "stickers", "coins", "shells", "cards", "buttons", "beads")
WARES = ("notebook", "pencil case", "ticket", "sandwich")

ENGLISH: Mapping[str, tuple[str, ...]] = {
    "add": (
        "What is {a} + {b}?",
        "Add {a} and {b}.",
        "Work out {a} + {b}.",
        "Find the sum of {a} and {b}.",
        "{name} has {a} {things} and gets {b} more. How many {things} does {name} have now?",
    ),
    "subtract": (
        "What is {a} - {b}?",
        "Subtract {b} from {a}.",
        "How much larger is {a} than {b}?",
        "{name} has {a} {things} and gives away {b}. How many {things} are left?",
    ),
    "multiply": (
        "What is {b} * {a}?",
        "Multiply {b} by {a}.",
        "Calculate ${b} \\times {a}$.",
        "A {ware} costs {a} dollars. How many dollars does {name} pay for {b} of them?",
        "A rectangle is {a} cm long and {b} cm wide. What is its area in square centimetres?",
    ),
    "three": ("What is {a} + {b} + {c}?", "Find the sum of {a}, {b} and {c}."),
    "giving": (
        "{name} has {a} {things}, gives away {b} and finds {c} more. How many {things} does {name} have now?",
        "What is {a} - {b} + {c}?",
    ),
    "two_steps": ("What is {a} + {b} * {c}?", "Work out {a} + {b} * {c}."),
    "remainder": ("What is the remainder when {a} is divided by {b}?", "Find {a} mod {b}."),
    "larger": ("Find the larger of the numbers {a} and {b}.", "What is the maximum of {a} and {b}?"),
    "equation": (
        "Solve {a}{x} + {b} = {r} for {x}.",
        "Find {x} if ${a}{x} + {b} = {r}$.",
        "If {a}{x} + {b} = {r}, what is {x}?",
    ),
    "big_product": ("What is {a} * {b}?", "Calculate ${a} \\cdot {b}$.", "Multiply {a} by {b}."),
}

FOREIGN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "fr": {
        "add": ("Quelle est la somme de {a} et de {b} ?",),
        "subtract": ("Quelle est la différence entre {a} et {b} ?",),
        "multiply": (
            "Quel est le produit de {a} par {b} ?",
            "Un cahier coûte {a} euros. Combien d'euros coûtent {b} cahiers ?",
        ),
        "equation": ("Résoudre l'équation {a}x + {b} = {r}. Quelle est la valeur de x ?",),
        "remainder": ("Quel est le reste de la division de {a} par {b} ?",),
    },
    "es": {
        "add": ("¿Cuánto suman {a} y {b}?",),
        "subtract": ("¿Cuánto es {a} menos {b}?",),
        "multiply": ("¿Cuánto es {a} por {b}?", "Un cuaderno cuesta {a} euros. ¿Cuántos euros cuestan {b} cuadernos?"),
        "equation": ("Resuelve la ecuación {a}x + {b} = {r}. ¿Cuánto vale x?",),
        "remainder": ("¿Cuál es el resto de dividir {a} entre {b}?",),
    },
    "it": {
        "add": ("Qual è la somma di {a} e {b}?",),
        "subtract": ("Quanto fa {a} meno {b}?",),
        "multiply": ("Quanto fa {a} per {b}?", "Un quaderno costa {a} euro. Quanti euro costano {b} quaderni?"),
        "equation": ("Risolvi l'equazione {a}x + {b} = {r}. Quanto vale x?",),
        "remainder": ("Qual è il resto della divisione di {a} per {b}?",),
    },
    "de": {
        "add": ("Wie groß ist die Summe von {a} und {b}?",),
        "subtract": ("Wie viel ist {a} minus {b}?",),
        "multiply": (
            "Wie viel ist {a} mal {b}?",
            "Ein Heft kostet {a} Euro. Wie viele Euro kosten {b} Hefte zusammen?",
        ),
        "equation": ("Löse die Gleichung {a}x + {b} = {r}. Welchen Wert hat x?",),
        "remainder": ("Welcher Rest bleibt, wenn man {a} durch {b} teilt?",),
    },
    "zh": {
        "add": ("{a} 与 {b} 的和是多少？",),
        "subtract": ("{a} 减去 {b} 等于多少？",),
        "multiply": ("{a} 乘以 {b} 等于多少？", "一本笔记本 {a} 元，买 {b} 本一共要多少元？"),
        "equation": ("解方程 {a}x + {b} = {r}，求 x 的值。",),
        "remainder": ("{a} 除以 {b} 的余数是多少？",),
    },
    "ru": {
        "add": ("Чему равна сумма чисел {a} и {b}?",),
        "subtract": ("Чему равна разность чисел {a} и {b}?",),
        "multiply": (
            "Чему равно произведение чисел {a} и {b}?",
            "Одна тетрадь стоит {a} рублей. Сколько рублей нужно заплатить за {b} таких тетрадей?",
        ),
        "equation": ("Решите уравнение {a}x + {b} = {r} и найдите значение x.",),
        "remainder": ("Чему равен остаток от деления {a} на {b}?",),
    },
}


def wordings(kind: str, lang: str) -> tuple[str, ...]:
    """Return this kind's texts in this language, if any."""
    return (ENGLISH if lang == "en" else FOREIGN[lang]).get(kind, ())
