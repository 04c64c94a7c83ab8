"""Templates of well-formed problems in English: short, one right answer each, from one step to several.

Invariant: every template draws its numbers from the `Dice` it is given and computes its answer from them; no two
templates share a topic. Templates in other languages are in `tests.demo_data.templates_foreign`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, lcm

from tests.demo_data.items import Dice, Item, plain_number

Template = Callable[[Dice], Item]

NAMES = ("Ana", "Ben", "Chloe", "Dev", "Elif", "Finn", "Grace", "Hugo", "Iris", "Jonas", "Kofi", "Lena", "Mira", "Noor")
THINGS = ("apples", "marbles", "stickers", "coins", "shells", "cards", "buttons", "beads")


def total(d: Dice) -> Item:
    a, b = d.between(12, 89), d.between(12, 89)
    text = d.pick(("What is {a} + {b}?", "Add {a} and {b}.", "Work out {a} + {b}.", "Find the sum of {a} and {b}."))
    return Item(text.format(a=a, b=b), Fraction(a + b), f"{a} + {b}", "total", 1)


def difference(d: Dice) -> Item:
    b = d.between(11, 49)
    a = b + d.between(12, 50)
    text = d.pick(("What is {a} - {b}?", "Subtract {b} from {a}.", "How much larger is {a} than {b}?"))
    return Item(text.format(a=a, b=b), Fraction(a - b), f"{a} - {b}", "difference", 1)


def product(d: Dice) -> Item:
    a, b = d.between(3, 9), d.between(11, 19)
    text = d.pick(("What is {a} * {b}?", "Multiply {a} by {b}.", "Calculate ${a} \\times {b}$."))
    return Item(text.format(a=a, b=b), Fraction(a * b), f"{a} * {b}", "product", 1)


def halves(d: Dice) -> Item:
    whole, part = d.pick(((1, 2), (1, 4), (3, 4), (1, 5), (2, 5), (3, 5), (4, 5))), d.between(2, 19)
    top, bottom = whole[0] * part, whole[1] * part
    text = d.pick(
        ("Write {a}/{b} in lowest terms.", "Reduce the fraction {a}/{b}.", "Simplify $\\frac{{{a}}}{{{b}}}$.")
    )
    return Item(text.format(a=top, b=bottom), Fraction(top, bottom), f"{top} / {bottom}", "halves", 2)


def two_steps(d: Dice) -> Item:
    a, b, c = d.between(5, 40), d.between(3, 9), d.between(3, 12)
    if d.chance(0.5):
        return Item(f"What is {a} + {b} * {c}?", Fraction(a + b * c), f"{a} + {b} * {c}", "two_steps", 2)
    return Item(f"What is ({a} + {b}) * {c}?", Fraction((a + b) * c), f"({a} + {b}) * {c}", "two_steps", 2)


def shopping(d: Dice) -> Item:
    name, thing, n = d.pick(NAMES), d.pick(("notebook", "pencil case", "ticket", "sandwich")), d.between(3, 9)
    price = Fraction(d.pick((5, 7, 9, 11, 13, 15)), d.pick((1, 2, 4)))
    cost = plain_number(price)
    question = f"A {thing} costs {cost} dollars. How many dollars does {name} pay for {n} of them?"
    return Item(question, n * price, f"{n} * {cost}", "shopping", 2, unit="dollars", prefix="\\$")


def giving(d: Dice) -> Item:
    name, thing = d.pick(NAMES), d.pick(THINGS)
    have, give, gained = d.between(30, 80), d.between(5, 25), d.between(3, 20)
    question = (
        f"{name} has {have} {thing}, gives away {give} and finds {gained} more. How many {thing} does {name} have now?"
    )
    return Item(question, Fraction(have - give + gained), f"{have} - {give} + {gained}", "giving", 2, unit=thing)


def percent_of(d: Dice) -> Item:
    share, whole = d.pick((5, 10, 15, 20, 25, 30, 40, 60, 75)), 20 * d.between(2, 30)
    text = d.pick(("What is {s}% of {w}?", "Find {s} percent of {w}.", "Calculate ${s}\\%$ of ${w}$."))
    answer = Fraction(share * whole, 100)
    return Item(text.format(s=share, w=whole), answer, f"{share} / 100 * {whole}", "percent_of", 2)


def what_percent(d: Dice) -> Item:
    whole = d.pick((20, 25, 40, 50, 80, 200, 250))
    part = whole * d.pick((5, 10, 15, 20, 30, 35, 45, 60, 70, 80, 90)) // 100 or 1
    text = d.pick(
        ("What percent of {w} is {p}?", "{p} out of {w} seats are taken. What percentage of the seats is that?")
    )
    answer = Fraction(100 * part, whole)
    return Item(text.format(w=whole, p=part), answer, f"100 * {part} / {whole}", "what_percent", 3, percent=True)


def fraction_sum(d: Dice) -> Item:
    b, c = d.pick(((2, 3), (3, 4), (2, 5), (4, 5), (3, 8), (4, 6), (5, 6), (3, 5), (2, 8))), d.between(1, 2)
    a = d.between(1, b[0] - 1)
    answer = Fraction(a, b[0]) + Fraction(c, b[1])
    text = d.pick(("What is {a}/{b} + {c}/{e}?", "Compute $\\frac{{{a}}}{{{b}}} + \\frac{{{c}}}{{{e}}}$."))
    return Item(text.format(a=a, b=b[0], c=c, e=b[1]), answer, f"{a} / {b[0]} + {c} / {b[1]}", "fraction_sum", 3)


def rectangle(d: Dice) -> Item:
    a, b = d.between(6, 24), d.between(4, 19)
    if d.chance(0.5):
        question = f"A rectangle is {a} cm long and {b} cm wide. What is its area in square centimetres?"
        return Item(question, Fraction(a * b), f"{a} * {b}", "rectangle", 3, unit="cm^2")
    question = f"A rectangle has sides of {a} cm and {b} cm. Find its perimeter in centimetres."
    return Item(question, Fraction(2 * (a + b)), f"2 * ({a} + {b})", "rectangle", 3, unit="cm")


def triangle(d: Dice) -> Item:
    base, height = d.between(5, 25), d.between(3, 17)
    question = f"A triangle has base {base} and height {height}. What is its area?"
    return Item(question, Fraction(base * height, 2), f"{base} * {height} / 2", "triangle", 3)


def equation(d: Dice) -> Item:
    a, x, b = d.between(2, 9), d.between(-9, 14), d.between(-20, 30)
    name, right = d.pick(("x", "y", "n", "t")), a * x + b
    left = f"{a}{name} {'-' if b < 0 else '+'} {abs(b)}"
    text = d.pick(("Solve {l} = {r} for {n}.", "Find {n} if ${l} = {r}$.", "If {l} = {r}, what is {n}?"))
    setup = f"({right} {'+' if b < 0 else '-'} {abs(b)}) / {a}"
    return Item(text.format(l=left, r=right, n=name), Fraction(x), setup, "equation", 3, variable=name)


def half_equation(d: Dice) -> Item:
    a, c = d.pick((2, 4, 5, 8)), d.between(1, 9)
    right = d.between(c + 1, 40)
    question = d.pick(("Solve ${a}x + {c} = {r}$.", "Find the value of x with {a}x + {c} = {r}."))
    answer = Fraction(right - c, a)
    return Item(question.format(a=a, c=c, r=right), answer, f"({right} - {c}) / {a}", "half_equation", 3, variable="x")


def remainder(d: Dice) -> Item:
    b = d.between(4, 13)
    a = d.between(50, 400)
    text = d.pick(("What is the remainder when {a} is divided by {b}?", "Find {a} mod {b}."))
    return Item(text.format(a=a, b=b), Fraction(a % b), f"{a} mod {b}", "remainder", 3)


def mean(d: Dice) -> Item:
    a, b, c, e = (d.between(4, 40) for _ in range(4))
    question = f"Find the mean of {a}, {b}, {c} and {e}."
    return Item(question, Fraction(a + b + c + e, 4), f"({a} + {b} + {c} + {e}) / 4", "mean", 3)


def common_divisor(d: Dice) -> Item:
    g = d.between(3, 14)
    a, b = g * d.between(3, 9), g * d.between(10, 17)
    text = d.pick(("What is the greatest common divisor of {a} and {b}?", "Calculate $\\gcd({a}, {b})$."))
    return Item(text.format(a=a, b=b), Fraction(gcd(a, b)), f"gcd({a}, {b})", "common_divisor", 4)


def common_multiple(d: Dice) -> Item:
    a, b = d.between(6, 24), d.between(25, 48)
    question = f"Find the least common multiple of {a} and {b}."
    return Item(question, Fraction(lcm(a, b)), f"lcm({a}, {b})", "common_multiple", 4)


def sequence(d: Dice) -> Item:
    start, step, n = d.between(2, 20), d.between(3, 11), d.between(15, 60)
    first_terms = ", ".join(str(start + i * step) for i in range(4))
    question = f"An arithmetic sequence begins {first_terms}. What is its term number {n}?"
    return Item(question, Fraction(start + (n - 1) * step), f"{start} + ({n} - 1) * {step}", "sequence", 4)


def journey(d: Dice) -> Item:
    speed, minutes = 12 * d.between(2, 9), d.pick((10, 15, 25, 35, 40, 50, 55, 70))
    question = f"A train runs at {speed} km per hour. How many kilometres does it cover in {minutes} minutes?"
    return Item(question, Fraction(speed * minutes, 60), f"{speed} * {minutes} / 60", "journey", 4, unit="km")


def big_product(d: Dice) -> Item:
    a, b = d.between(23, 98), d.between(34, 97)
    text = d.pick(("What is {a} * {b}?", "Calculate ${a} \\cdot {b}$.", "Multiply {a} by {b}."))
    return Item(text.format(a=a, b=b), Fraction(a * b), f"{a} * {b}", "big_product", 4)


def series(d: Dice) -> Item:
    n, step = d.between(20, 90), d.between(2, 6)
    question = f"What is the sum of the first {n} positive multiples of {step}?"
    return Item(question, Fraction(step * n * (n + 1), 2), f"{step} * {n} * ({n} + 1) / 2", "series", 5)


def power_remainder(d: Dice) -> Item:
    base, power, m = d.between(2, 7), d.between(12, 40), d.between(5, 13)
    question = f"What is the remainder when ${base}^{{{power}}}$ is divided by {m}?"
    return Item(question, Fraction(pow(base, power, m)), f"{base}^{power} mod {m}", "power_remainder", 5)


def root(d: Dice) -> Item:
    inside, outside = d.pick((2, 3, 5, 6, 7)), d.between(2, 9)
    square = inside * outside * outside
    text = d.pick(("Simplify $\\sqrt{{{s}}}$.", "A square has area {s}. How long is its side, as a simplified surd?"))
    exact = f"{outside}\\sqrt{{{inside}}}"
    return Item(text.format(s=square), Fraction(square), f"sqrt({square})", "root", 5, exact=exact)


ENGLISH: tuple[Template, ...] = (
    total, difference, product, halves, two_steps, shopping, giving, percent_of, what_percent, fraction_sum,
    rectangle, triangle, equation, half_equation, remainder, mean, common_divisor, common_multiple, sequence,
    journey, big_product, series, power_remainder, root,
)  # fmt: skip
