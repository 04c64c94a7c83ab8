"""Recorded attempts: responses in the house's form, right and wrong, written in varied natural ways.

A response is ``<think>…</think>`` and then a sentence with the final answer in ``\\boxed{}``. Right answers appear
in different but equivalent forms (0.75, ``\\frac{3}{4}``, 3/4; 1250, 1,250; x = 3; 12 cm), because a verifier that
compares strings must be found out by the demo.

Invariants:
  - the number of right attempts at a problem is exactly what the caller asks for;
  - wrong answers are spread so that no wrong answer is given by more than `MOST_ALIKE` of the attempts, unless the
    caller asks for a top wrong answer: then exactly that many agree on it;
  - an attempt without a final answer counts as not correct.

The models are imaginary: nothing here was sampled from a language model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from tests.demo_data.items import (
    Dice,
    Item,
    decimal,
    is_decimal,
    latex_fraction,
    plain_number,
)

MOST_ALIKE = 5

OPENINGS = {
    "en": ("Let me see.", "We need", "First write it down:", "Okay,", "Hmm.", "I get"),
    "fr": ("Voyons.", "Il faut calculer", "Alors,"),
    "es": ("Veamos.", "Hay que calcular", "Bien,"),
    "it": ("Vediamo.", "Bisogna calcolare", "Allora,"),
    "de": ("Mal sehen.", "Zu rechnen ist", "Also,"),
    "zh": ("我们来看：", "需要计算", "先列式："),
    "ru": ("Посмотрим:", "Нужно вычислить", "Итак,"),
}
CHECKS = {
    "en": ("", "", "", " Yes.", " Let me check that again. Yes."),
    "fr": ("", " Oui."),
    "es": ("", " Sí."),
    "it": ("", " Sì."),
    "de": ("", " Ja, das stimmt."),
    "zh": ("", "对。"),
    "ru": ("", " Да, верно."),
}
CLOSINGS = {
    "en": ("The answer is {b}.", "So we get {b}.", "**Answer:** {b}", "Therefore the result is ${b}$.", "{b}"),
    "fr": ("La réponse est {b}.", "On obtient donc ${b}$."),
    "es": ("La respuesta es {b}.", "Por lo tanto, ${b}$."),
    "it": ("La risposta è {b}.", "Quindi si ottiene ${b}$."),
    "de": ("Die Antwort ist {b}.", "Also ergibt sich ${b}$."),
    "zh": ("答案是 {b}。", "所以结果为 ${b}$。"),
    "ru": ("Ответ: {b}.", "Итак, получаем ${b}$."),
}
UNSURE = {
    "en": "I am not sure how to go on from here.",
    "fr": "Je ne trouve pas la valeur.",
    "es": "No encuentro el valor.",
    "it": "Non trovo il valore.",
    "de": "Hier komme ich nicht weiter.",
    "zh": "我不知道怎么继续。",
    "ru": "Не знаю, как продолжить.",
}


class Response(TypedDict):
    """One recorded attempt, as it stands in the file."""

    text: str
    model: str
    correct: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How the attempts at one problem turn out.

    Example: ``Plan(correct=1, attempts=16, top_wrong=10)``: one attempt gives the reference, ten agree on the top
    wrong answer, five give scattered wrong answers or none.
    """

    correct: int
    attempts: int = 16
    top_wrong: int = 0


def forms(item: Item) -> tuple[str, ...]:
    """Return equivalent ways to write the right answer, the plainest first."""
    if item.exact:
        return (item.exact, item.exact.replace("\\sqrt", " \\cdot \\sqrt"), f"\\sqrt{{{item.answer}}}")
    value, plain = item.answer, plain_number(item.answer)
    variants = [plain]
    if value.denominator > 1:
        variants += [latex_fraction(value), latex_fraction(value, 2), f"{value.numerator}/{value.denominator}"]
        variants += [decimal(value)] if is_decimal(value) else [latex_fraction(value).replace("\\frac", "\\dfrac")]
    elif abs(value) >= 1000:
        variants += [f"{value.numerator:,}", f"{value.numerator:,}".replace(",", "{,}")]
    if item.variable:
        variants += [f"{item.variable} = {plain}", f"{item.variable} = {variants[1] if len(variants) > 1 else plain}"]
    if item.unit:
        variants.append(f"{plain}\\text{{ {item.unit}}}")
    if item.prefix:
        variants.append(f"{item.prefix}{plain}")
    if item.percent:
        variants.append(f"{plain}\\%")
    return tuple(dict.fromkeys(variants))


def slips(item: Item) -> tuple[str, ...]:
    """Return wrong answers that somebody in a hurry might give; none equals the right one."""
    if item.exact:
        outside, inside = item.exact.rstrip("}").split("\\sqrt{")
        n = int(outside)
        near_surds = (f"{n + k}\\sqrt{{{inside}}}" for k in (1, 2, -1, 3))
        return (*near_surds, f"\\frac{{{n}}}{{{inside}}}", outside, inside)
    v = item.answer
    near = (v + 1, v - 1, v * 2, v + 10, v - 2, v + 3, v / 2, v + 5, v - 10, v * 10, v + 7)
    # nobody gives a negative number of apples; a factor of 100 could be a percentage with its sign
    return tuple(dict.fromkeys(plain_number(x) for x in near if x != v and (x >= 0 or v < 0)))


def _thought(d: Dice, lang: str, body: str) -> str:
    gap = "" if lang == "zh" else " "
    return f"{d.pick(OPENINGS[lang])}{gap}{body}"


def _close(d: Dice, lang: str, final: str) -> str:
    return d.pick(CLOSINGS[lang]).format(b=f"\\boxed{{{final}}}")


def respond(d: Dice, lang: str, setup: str, final: str) -> str:
    """Return a response that arrives at ``final``."""
    link = ", so " if "=" in final and lang == "en" else ", " if "=" in final else " = "
    stop = "。" if lang == "zh" else "."
    thought = _thought(d, lang, f"{setup}{link}{final}{stop}")
    return f"<think>{thought}{d.pick(CHECKS[lang])}</think>\n{_close(d, lang, final)}"


def second_thoughts(d: Dice, lang: str, setup: str, first: str, final: str) -> str:
    """Return a response that boxes one answer while thinking and another in the end; the last one counts."""
    thought = _thought(d, lang, f"{setup}: \\boxed{{{first}}}? … {setup}: {final}")
    return f"<think>{thought}</think>\n{_close(d, lang, final)}"


def without_answer(d: Dice, lang: str, setup: str) -> str:
    """Return a response cut off while thinking, or one that gives up."""
    if d.chance(0.6):
        return f"<think>{_thought(d, lang, setup[: max(3, len(setup) - 1)])}"
    return f"<think>{_thought(d, lang, setup)}</think>\n{UNSURE[lang]}"


def record(d: Dice, item: Item, model: str, plan: Plan, reference: str | None = None) -> list[Response]:
    """Return the attempts at one problem, in a random order.

    ``reference`` is a planted wrong label: then the item's right answer is the top wrong one, and the attempts
    counted as correct give the label's value.
    """
    right = forms(item)
    kinds = ["correct"] * plan.correct + ["top_wrong_answer"] * plan.top_wrong
    kinds += ["wrong"] * (plan.attempts - len(kinds))
    label_forms = right if reference is None else (reference,)
    top_wrong_forms = right if reference is not None else slips(item)[:1]
    others = [slip for slip in slips(item) if slip != reference and slip not in top_wrong_forms]
    remaining = {slip: min(MOST_ALIKE, 1 + len(others) // 3) for slip in others}
    out: list[Response] = []
    for place, kind in enumerate(d.shuffled(kinds)):
        if kind == "correct":
            text = _right(d, item, label_forms)
        elif kind == "top_wrong_answer":  # walk through the forms in turn, so that no single string has a majority
            text = respond(d, item.lang, item.setup, top_wrong_forms[place % len(top_wrong_forms)])
        else:
            text = _wrong(d, item, remaining)
        out.append({"text": text, "model": model, "correct": kind == "correct"})
    return out


def _right(d: Dice, item: Item, written: tuple[str, ...]) -> str:
    final = written[0] if d.chance(0.5) else d.pick(written)
    if d.chance(0.05):
        return second_thoughts(d, item.lang, item.setup, slips(item)[0], final)
    return respond(d, item.lang, item.setup, final)


def _wrong(d: Dice, item: Item, remaining: dict[str, int]) -> str:
    open_slips = [slip for slip, count in remaining.items() if count > 0]
    if not open_slips or d.chance(0.12):
        return without_answer(d, item.lang, item.setup)
    # the first slips are the likelier ones
    slip = open_slips[0] if d.chance(0.25) else d.pick(open_slips)
    remaining[slip] -= 1
    return respond(d, item.lang, item.setup, slip)
