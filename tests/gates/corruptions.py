"""Translations broken on purpose, so that what is refused of them can be counted.

Each corruption changes what the problem asks or says, or does not happen: a number takes another value, goes or changes
places with another, a formula goes with its dollars, a sentence goes or comes back in the original's language, the text
is another language's, an answer is added. None depends on how the invariants look for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from curation.planting import ANSWERS, UNSPACED

_NUMBER = re.compile(r"(?<![\w.,/])\d+(?:[.,]\d+)?(?![\w/]|[.,]\d)")
_FREE_NUMBER = re.compile(r"(?<![A-Za-z\d.,/\\{^_-])\d+(?:[.,]\d+)?(?![A-Za-z\d/]|[.,]\d)")
_FORMULA = re.compile(r"(?<!\$)\$(?!\$)[^$\n]{1,200}\$(?!\$)|\\\([^$]{1,200}?\\\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
SENTENCE_BORDER = re.compile(r"(?<=[.!?])\s+(?=[^\Wa-zа-я\d_]|[¿«„\"])|(?<=[。！？])\s*")


@dataclass(frozen=True, slots=True)
class TranslatedPair:
    """A problem and its translation, with the same problem in further languages.

    Example: ``TranslatedPair("a1", "How many?", "Wie viele?", "de", "18", {})``
    """

    id: str
    original: str
    translated: str
    target: str
    answer: str
    others: Mapping[str, str]
    source: str = "en"


def number_changed(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Give one number in digits another value that does not stand in the problem."""
    numbers = list(_NUMBER.finditer(pair.translated))
    if not numbers:
        return None
    number = chance.choice(numbers)
    digits = number[0]
    there = {int(run) for run in re.findall(r"\d+", pair.translated)}
    whole = int(re.split("[.,]", digits)[0])
    shifts = [whole + step for step in (1, 2, 3, 5, 10, 17) if whole + step not in there]
    changed = digits.replace(str(whole), str(chance.choice(shifts)), 1) if shifts else None
    if changed is None or changed == digits:
        return None
    return pair.translated[: number.start()] + changed + pair.translated[number.end() :]


def formula_dropped(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Drop one formula between dollars."""
    formulas = [
        formula for formula in _FORMULA.finditer(pair.translated) if re.search(r"[A-Za-z=+\\^]", formula[0][1:-1])
    ]
    if not formulas:
        return None
    formula = chance.choice(formulas)
    return pair.translated[: formula.start()] + pair.translated[formula.end() :]


def amount_dropped(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Drop one number in digits: what a formula is to a word problem."""
    numbers = list(_NUMBER.finditer(pair.translated))
    if not numbers:
        return None
    number = chance.choice(numbers)
    return pair.translated[: number.start()] + pair.translated[number.end() :]


def sentence_left(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Put one sentence of the original in; texts whose sentences do not pair are not used."""
    before, after = (
        _SENTENCE.split(pair.original.strip()),
        [part for part in _SENTENCE.split(pair.translated.strip()) if part],
    )
    if len(before) != len(after) or len(after) < 2:
        return None
    worded = [at for at, sentence in enumerate(before) if len(re.findall(r"(?<![\\\w])[a-z]{2,}", sentence)) >= 3]
    if not worded:
        return None
    at = chance.choice(worded)
    after[at] = before[at]
    return " ".join(after)


def wrong_language(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Return the same problem in another of the languages."""
    choices = sorted(lang for lang in pair.others if lang != pair.target)
    return pair.others[chance.choice(choices)] if choices else None


def answer_appended(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Append the answer: bare, marked in English, or marked in the target's language."""
    bare = ("{} {answer}", "{} ({answer})", "{} = {answer}")
    form = chance.choice((*bare, *ANSWERS[pair.target], *ANSWERS["en"]))
    return form.replace("{answer}", pair.answer).replace("{}", pair.translated)


def numbers_exchanged(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Exchange two numbers in digits of different value."""
    numbers = list(_FREE_NUMBER.finditer(pair.translated))
    pairs = [(a, b) for at, a in enumerate(numbers) for b in numbers[at + 1 :] if _value(a[0]) != _value(b[0])]
    if not pairs:
        return None
    a, b = chance.choice(pairs)
    return (
        pair.translated[: a.start()] + b[0] + pair.translated[a.end() : b.start()] + a[0] + pair.translated[b.end() :]
    )


def _value(number: str) -> float:
    return float(number.replace(",", "."))


def sentence_dropped(pair: TranslatedPair, chance: random.Random) -> str | None:
    """Drop one sentence of two words or more."""
    pieces = [part for part in SENTENCE_BORDER.split(pair.translated.strip()) if part]
    whole = [
        at
        for at, part in enumerate(pieces)
        if len(re.findall(r"[^\W\d_]", part)) >= (5 if pair.target in UNSPACED else 10)
    ]
    if (
        len(pieces) < 2
        or not whole
        or (pair.translated.count("$") > 1 and re.search(r"\$[^$]*[.?!]\s[A-Z][^$]*\$", pair.translated))
    ):
        return None
    dropped = chance.choice(whole)
    return ("" if pair.target in UNSPACED else " ").join(part for at, part in enumerate(pieces) if at != dropped)


CORRUPTIONS: Mapping[str, Callable[[TranslatedPair, random.Random], str | None]] = {
    "number changed": number_changed,
    "number dropped": amount_dropped,
    "formula dropped": formula_dropped,
    "sentence left": sentence_left,
    "wrong language": wrong_language,
    "answer appended": answer_appended,
    "numbers exchanged": numbers_exchanged,
    "sentence dropped": sentence_dropped,
}
"""By name. None needs words of a language but those of `curation.planting`."""
