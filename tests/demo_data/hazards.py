"""Planted rows that are made from well-formed items: multiple choice, debris, duplicates, difficulty, and controls.

Invariants:
  - every difficulty row's counts of right, top wrong and other attempts are set here, not drawn, so what the default
    bands must say of it is known;
  - a control looks like a defect and is none: it must be kept, and its attempts lie inside both bands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from curation.records import DropReason
from flows.demo.report import KEEP, REWRITTEN
from tests.demo_data import templates as t
from tests.demo_data.items import Item, plain_number
from tests.demo_data.responses import Plan, slips
from tests.demo_data.rows import (
    Answering,
    Planted,
    Row,
    by_level,
    in_band,
    row_of,
)
from tests.demo_data.supply import Supply

EASY = (t.total, t.difference, t.product, t.two_steps)
MIDDLE = (t.two_steps, t.percent_of, t.fraction_sum, t.equation, t.remainder, t.triangle, t.mean)
HARD = (t.common_multiple, t.sequence, t.big_product, t.series, t.power_remainder, t.journey)


def _labelled(values: list[str], mark: str, gap: str) -> str:
    return gap.join(mark.format("ABCDE"[i]) + value for i, value in enumerate(values))


STYLES: tuple[tuple[str, Callable[[str, list[str]], str], str], ...] = (
    ("(A) … in the line", lambda q, v: f"{q} {_labelled(v, '({}) ', ' ')}", "{}"),
    ("A. … on lines", lambda q, v: f"{q}\n{_labelled(v, '{}. ', chr(10))}", "{}"),
    ("A) … on lines, answer (C)", lambda q, v: f"{q}\n{_labelled(v, '{}) ', chr(10))}", "({})"),
    (
        "contest LaTeX",
        lambda q, v: f"{q}\n\n" + _labelled([f" {x}" for x in v], "$\\textbf{{({})}}$", " \\qquad "),
        "\\textbf{{({})}}",
    ),
    ("(A) … in the line, value as the answer", lambda q, v: f"{q} {_labelled(v, '({}) ', ' ')}", ""),
    ("options: … A: …", lambda q, v: f"{q}\nOptions: {_labelled(v, '{}: ', ', ')}", "{}"),
)


def choice_rows(s: Supply) -> list[Row]:
    """Return multiple choice that must become an open question: six styles in the text, three in a field of its own."""
    rows: list[Row] = []
    for number in range(18):
        item = s.item((t.total, t.product, t.percent_of, t.equation, t.remainder, t.common_divisor))
        values = s.dice.shuffled([item.reference, *slips(item)[: 3 + number % 2]])
        letter = "ABCDE"[values.index(item.reference)]
        if number < 12:
            name, write, mark = STYLES[number % 6]
            question, options = write(item.question, values), None
            reference = mark.format(letter) or item.reference
        else:
            name = ("options in a field", "options in a field, labelled", "options in a field, value as the answer")[
                number % 3
            ]
            question = item.question
            options = tuple(f"{'ABCDE'[i]}) {v}" if number % 3 == 1 else v for i, v in enumerate(values))
            reference = item.reference if number % 3 == 2 else letter
        rows.append(_choice(s, item, question, options, reference, name))
    for lang, mark, gap in (("zh", "{}．", "  "), ("de", "{}) ", " "), ("fr", "{}. ", "\n")):
        item = s.foreign(lang, 0)
        values = s.dice.shuffled([item.reference, *slips(item)[:3]])
        question = f"{item.question}\n{_labelled(values, mark, gap)}"
        rows.append(_choice(s, item, question, None, "ABCD"[values.index(item.reference)], f"in {lang}"))
    return rows


def _choice(s: Supply, item: Item, question: str, options: tuple[str, ...] | None, reference: str, note: str) -> Row:
    same_text = question == item.question and reference == item.reference  # only the field of options goes
    planted = Planted("multiple_choice", KEEP if same_text else REWRITTEN, "statements", note)
    row = row_of(item, in_band(s.dice, item), planted)
    return replace(row, question=question, options=options, reference=reference)


CLUTTER: tuple[tuple[str, str], ...] = (
    ("exercise number", "12. {q}"),
    ("problem number and points", "Problem 7. [5 points] {q}"),
    ("HTML", "<p>{q}</p>"),
    ("HTML entities", "{q}&nbsp;<br/>"),
    ("LaTeX layout", "\\noindent {q} \\\\"),
    ("LaTeX environment", "\\begin{{problem}}{q}\\end{{problem}}"),
    ("markdown heading", "### Question\n\n{q}"),
    ("contest tag", "(Autumn Cup 2014, Problem 3) {q}"),
    ("points behind", "{q} (3 marks)"),
    ("label", "{q} \\label{{eq:17}}"),
)


def clutter_rows(s: Supply) -> list[Row]:
    """Return well-formed problems with debris around them that must be cleaned away; the problem itself is good."""
    rows = []
    for note, form in CLUTTER:
        item = s.item(MIDDLE)
        planted = Planted("clutter", REWRITTEN, "statements", note)
        rows.append(replace(row_of(item, in_band(s.dice, item), planted), question=form.format(q=item.question)))
    return rows


RESPACED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("same text", lambda q: q),
    ("double spaces", lambda q: q.replace(" ", "  ")),
    ("line break", lambda q: q.replace(" ", "\n", 1)),
    ("spaces around", lambda q: f"  {q} \n"),
    ("no-break spaces", lambda q: q.replace(" ", "\u00a0")),
    ("zero-width space", lambda q: q.replace(" ", " \u200b", 1)),
    ("tab", lambda q: q.replace(" ", "\t", 2)),
)


def duplicate_rows(s: Supply) -> list[Row]:
    """Return twelve problems that occur twice; in four the second reference is written differently but equal."""
    rows = []
    for number in range(12):
        other_form = number >= 8
        item = s.item((t.shopping, t.triangle, t.half_equation) if other_form else MIDDLE)
        while other_form and item.answer.denominator == 1:
            item = s.item((t.shopping, t.triangle, t.half_equation))
        note, respace = RESPACED[number % len(RESPACED)]
        pair = f"duplicate {number}"
        first = replace(row_of(item, by_level(s.dice, item)), pair=pair)
        planted = Planted("duplicate", DropReason.DUPLICATE, "exact_dedup", note)
        second = replace(first, question=respace(item.question), planted=planted)
        if other_form:
            value = item.answer
            second = replace(
                second,
                reference=f"\\frac{{{value.numerator}}}{{{value.denominator}}}",
                planted=replace(planted, note=f"{note}; the same answer in another form"),
            )
        rows += [first, second]
    return rows


def conflict_rows(s: Supply) -> list[Row]:
    """Return six problems that occur twice with different answers: neither can be trusted."""
    rows = []
    for number in range(6):
        item = s.item(MIDDLE)
        planted = Planted("conflicting_answers", DropReason.CONFLICTING_ANSWERS, "exact_dedup")
        first = replace(row_of(item, by_level(s.dice, item), planted), pair=f"conflict {number}")
        rows += [first, replace(first, reference=slips(item)[number % 3])]
    return rows


def difficulty_rows(s: Supply) -> list[Row]:
    """Return problems hard for the weak model only, never solved, too easy, or with too few attempts."""
    rows: list[Row] = []

    def add(kind: str, expected: str, item: Item, weak: Plan, strong: Plan, alone: str | None = None) -> None:
        planted = Planted(kind, expected, "stage2", "", alone)
        rows.append(row_of(item, Answering(item, weak, strong), planted))

    for _ in range(12):  # the paper's reason for two stages
        strong = Plan(s.dice.between(3, 11))
        add("hard_for_weak", KEEP, s.item(HARD), Plan(0), strong, DropReason.NEVER_SOLVED)
    for _ in range(9):
        add("never_solved", DropReason.NEVER_SOLVED, s.item(HARD), Plan(0), Plan(0))
    for number in range(10):
        item = s.item(EASY)
        weak, strong = Plan(14 + number % 3), Plan(15 + number % 2)
        add("too_easy", DropReason.TOO_EASY, item, weak, strong)
    for number in range(9):
        item, few = s.item(MIDDLE), number % 6  # from none at all to five
        plan = Plan(min(few, number % 3), few)
        add("too_few_attempts", DropReason.TOO_FEW_ATTEMPTS, item, plan, plan)
    return rows


def wrong_label_rows(s: Supply) -> list[Row]:
    """Return fourteen wrong references: the strong model's attempts agree on the true answer, written in several ways.

    In most of them no single string has a majority, so only equivalence finds them.
    """
    kinds = (t.half_equation, t.fraction_sum, t.triangle, t.equation, t.series, t.shopping, t.halves)
    rows = []
    for number in range(14):
        template = kinds[number % len(kinds)]
        item = s.item((template,))
        while item.answer.denominator == 1 and template not in (t.equation, t.series):
            item = s.item((template,))
        label = slips(item)[number % 4]
        agree = s.dice.between(10, 14)
        weak = Plan(number % 2, top_wrong=s.dice.between(2, 6))
        strong = Plan(min(number % 3, 16 - agree), top_wrong=agree)
        planted = Planted("wrong_label", DropReason.SUSPECTED_WRONG_LABEL, "stage2", f"true answer {item.reference}")
        row = row_of(item, Answering(item, weak, strong, label), planted)
        rows.append(replace(row, reference=label, worked=item.setup))
    return rows


def _own(
    question: str, setup: str, answer: int | Fraction, note: str, lang: str = "en", level: int = 2
) -> tuple[Item, str]:
    return Item(question, Fraction(answer), setup, "control", level, lang), note


CONTROLS = (
    _own("Show your work: what is 48 + 27 * 2?", "48 + 27 * 2", 102, "show, but no proof"),
    _own("Lena improved her score from 64 to 91 points. By how many points?", "91 - 64", 27, "improved, not prove"),
    _own("A regular figure has 9 equal sides of 7 cm. What is its perimeter in cm?", "9 * 7", 63, "figure in words"),
    _own("How many two-figure numbers are divisible by 11?", "99 / 11", 9, "figure means digit"),
    _own("Tom exercises 35 minutes a day. How many minutes is that in 12 days?", "35 * 12", 420, "exercises, a verb"),
    _own(
        "Ana read 26 pages on Monday and 17 more than that on the following day. How many on both days?",
        "26 + 26 + 17",
        69,
        "following, but nothing follows",
    ),
    _own(
        "A bag holds 30 beads: 12 red, 10 blue, the rest green. How many are green?",
        "30 - 12 - 10",
        8,
        "a list, one question",
    ),
    _own("Compute (a + b) * c for a = 6, b = 9 and c = 4.", "(6 + 9) * 4", 60, "letters in brackets are no parts"),
    _own(
        "A pen costs 4 dollars. (It was 6 dollars before.) What do 15 pens cost now, in dollars?",
        "15 * 4",
        60,
        "brackets",
    ),
    _own("What is 58 - 0 * 7?", "58 - 0 * 7", 58, "the answer is a number of the statement"),
    _own("Simplify 17/17 * 23.", "17 / 17 * 23", 23, "the answer is a number of the statement"),
    _own(
        "What is the true length in km of 8 cm on a map where 1 cm is 5 km?", "8 * 5", 40, "true, but no true-or-false"
    ),
    _own("Solve the equation 6x - 11 = 43", "(43 + 11) / 6", 9, "no full stop, yet complete"),
    _own("Evaluate\n$$14^2 - 13^2$$", "14^2 - 13^2", 27, "ends in a formula"),
    _own(
        "Kofi has about 20 coins; exactly 17, in fact. He gets 3 * 9 more. How many coins has he?",
        "17 + 3 * 9",
        44,
        "about",
    ),
    _own("The answer to 9 * 13 is divided by 3. What comes out?", "9 * 13 / 3", 39, "answer, not given away"),
    _own("What part of an hour is 45 minutes?", "45 / 60", Fraction(3, 4), "part, but no parts"),
    _own("There are 4 choices of soup and 7 choices of bread. How many meals can be chosen?", "4 * 7", 28, "choices"),
    _own(
        "A. Kaya, B. Lund and C. Moss share 87 stickers equally. How many does each get?",
        "87 / 3",
        29,
        "A. B. C. are names",
    ),
    _own("Combien de figures à 3 côtés faut-il pour avoir 51 côtés ?", "51 / 3", 17, "figures", "fr"),
    _own("Wie viele Teile zu je 6 cm ergeben ein Band von 96 cm?", "96 / 6", 16, "Teile", "de"),
    _own("¿Cuánto es la tercera parte de 84?", "84 / 3", 28, "parte", "es"),
    _own("3 个图书馆各有 15 名职员，一共多少名？", "3 * 15", 45, "图书馆 holds 图", "zh"),
    _own("Ученик доказал 7 теорем, на каждую ушло 12 минут. Сколько минут ушло всего?", "7 * 12", 84, "доказал", "ru"),
)


def control_rows(s: Supply) -> list[Row]:
    """Return look-alikes that must be kept, and three problems where half of the attempts agree on a wrong answer."""
    rows = []
    for item, note in CONTROLS:
        s.reserve(item.question)
        rows.append(row_of(item, in_band(s.dice, item), Planted("control", KEEP, "statements", note)))
    for right in (4, 6, 8):
        item = s.item(MIDDLE)
        planted = Planted("control", KEEP, "stage2", "half of the attempts agree on a wrong answer: no majority")
        rows.append(row_of(item, Answering(item, Plan(right), Plan(right, top_wrong=8)), planted))
    for _ in range(3):
        item = s.item((t.half_equation,))
        while item.answer.denominator == 1:
            item = s.item((t.half_equation,))
        planted = Planted("control", KEEP, "stage2", "the majority writes the reference in another form")
        reference = plain_number(item.answer)
        rows.append(replace(row_of(item, in_band(s.dice, item), planted), reference=reference))
    return rows
