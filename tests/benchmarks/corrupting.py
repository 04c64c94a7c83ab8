"""Translations broken on purpose, so that what the invariants catch can be counted.

Each corruption changes what the problem asks or says, or does not happen: a number takes another value, a formula goes
with its dollars, a sentence comes back in English, the text is another language's, an answer is added. None depends on
how the invariants look for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

_NUMBER = re.compile(r"(?<![\w.,/])\d+(?:[.,]\d+)?(?![\w/]|[.,]\d)")
_FORMULA = re.compile(r"(?<!\$)\$(?!\$)[^$\n]{1,200}\$(?!\$)|\\\([^$]{1,200}?\\\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKED = {
    "en": ("Answer: {}", "The answer is {}."),
    "de": ("Antwort: {}", "Die Antwort ist {}."),
    "es": ("Respuesta: {}", "La respuesta es {}."),
    "fr": ("Réponse : {}", "La réponse est {}."),
    "it": ("Risposta: {}", "La risposta è {}."),
    "ru": ("Ответ: {}", "Ответ — {}."),
    "zh": ("答案：{}", "答案是 {}。"),
}

Corruption = Callable[[str, str, str, str, Mapping[str, str], random.Random], str | None]
"""Original, translation, target, answer, the same problem in other languages, chance → the broken translation."""


def number_changed(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Give one number in digits another value that does not stand in the problem."""
    numbers = list(_NUMBER.finditer(translated))
    if not numbers:
        return None
    number = chance.choice(numbers)
    digits = number[0]
    there = {int(run) for run in re.findall(r"\d+", translated)}
    whole = int(re.split("[.,]", digits)[0])
    shifts = [whole + step for step in (1, 2, 3, 5, 10, 17) if whole + step not in there]
    changed = digits.replace(str(whole), str(chance.choice(shifts)), 1) if shifts else None
    if changed is None or changed == digits:
        return None
    return translated[: number.start()] + changed + translated[number.end() :]


def formula_dropped(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Drop one formula between dollars."""
    formulas = [formula for formula in _FORMULA.finditer(translated) if re.search(r"[A-Za-z=+\\^]", formula[0][1:-1])]
    if not formulas:
        return None
    formula = chance.choice(formulas)
    return translated[: formula.start()] + translated[formula.end() :]


def amount_dropped(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Drop one number in digits: what a formula is to a word problem."""
    numbers = list(_NUMBER.finditer(translated))
    if not numbers:
        return None
    number = chance.choice(numbers)
    return translated[: number.start()] + translated[number.end() :]


def sentence_left(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Put one sentence of the original in; texts whose sentences do not pair are not used."""
    before, after = _SENTENCE.split(original.strip()), [part for part in _SENTENCE.split(translated.strip()) if part]
    if len(before) != len(after) or len(after) < 2:
        return None
    worded = [at for at, sentence in enumerate(before) if len(re.findall(r"(?<![\\\w])[a-z]{2,}", sentence)) >= 3]
    if not worded:
        return None
    at = chance.choice(worded)
    after[at] = before[at]
    return " ".join(after)


def wrong_language(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Return the same problem in another of the languages."""
    choices = sorted(lang for lang in others if lang != target)
    return others[chance.choice(choices)] if choices else None


def answer_appended(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Append the answer: bare, marked in English, or marked in the target's language."""
    form = chance.choice(("{}", "({})", "= {}", *_MARKED[target], *_MARKED["en"]))
    return f"{translated} {form.format(answer)}"


CORRUPTIONS: dict[str, Corruption] = {
    "number changed": number_changed,
    "number dropped": amount_dropped,
    "formula dropped": formula_dropped,
    "sentence left": sentence_left,
    "wrong language": wrong_language,
    "answer appended": answer_appended,
}
