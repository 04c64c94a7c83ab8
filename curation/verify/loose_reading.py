"""Guesses the answer of an unmarked text, never for rewards."""

from __future__ import annotations

import re

from curation.languages.vocabulary import languages
from curation.verify.prose import CHAFF_END, COPULA, MATH, SENTENCE_END, inside, is_conditioned

Guess = tuple[str, str]
"""How an answer was found (sentence, display, emphasis, number), and the answer."""

_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(
    r"\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}"
    r"|(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:[.,]\d+)?(?:/\d+)?%?(?![.,]?\d)|(?<![\w])\.\d+"
)
MAX_CONDITION_CHARS = 120
"""A longer text is a response, with a way to its answer."""

_KINDS = [
    word for vocab in languages() for kind, said in vocab.answers.declarations.items() if kind != "any" for word in said
]
_DECLARES = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, _KINDS))})[\s.$]*$", re.IGNORECASE)
"""The end of a text that defines what a name in it is: "where t is any integer"."""

_COINS = ("$", "€", "£", "¥")
_MONEY = re.compile(r"\s?[$€£¥]")


def guess_answer(text: str) -> Guess | None:
    """Return the last sentence's or text's last formula or number; None if a short text has several."""
    if len(text) <= MAX_CONDITION_CHARS and _has_condition(text):
        return None
    return _by_last_sentence(text) or _by_display(text) or _by_emphasis(text) or _by_number(text)


def _has_condition(text: str) -> bool:
    """Return whether a short text has conditions or several formulas."""
    if _DECLARES.search(text):
        return True
    formulas = len(MATH.findall(text))
    if formulas > 1 or (text.count("$") % 2 and "\\" in text) or is_conditioned(text):
        return True
    several = formulas + len(_NUMBER.findall(MATH.sub(" ", text))) > 1
    return several and "=" not in text and not COPULA.search(text)


def _by_last_sentence(text: str) -> Guess | None:
    start = max(0, len(text) - 2000)
    cuts = [match.end() for match in SENTENCE_END.finditer(text, start)]
    edges = [start, *cuts, len(text)]
    for low, high in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        sentence = CHAFF_END.sub("", text[low:high])
        if sentence.count("$") % 2:
            return None
        if any(char.isdigit() for char in sentence):
            extracted = _by_display(sentence) or _by_number(sentence)
            return ("sentence", extracted[1]) if extracted is not None else None
    return None


def _by_display(text: str) -> Guess | None:
    last = next(iter([*MATH.finditer(text)][::-1]), None)
    return ("display", inside(last.group())) if last else None


def _by_emphasis(text: str) -> Guess | None:
    matches = [match for match in _BOLD.findall(text) if any(char.isdigit() for char in match)]
    return ("emphasis", matches[-1]) if matches else None


def only_money(text: str) -> str | None:
    """Return a text's only amount of money."""
    money = _money_in(text)
    return money[0].group() if len(money) == 1 else None


def _by_number(text: str) -> Guess | None:
    last = (_money_in(text) or list(_NUMBER.finditer(text)))[-1:]
    return ("number", last[0].group()) if last else None


def _money_in(text: str) -> list[re.Match[str]]:
    return [
        match
        for match in _NUMBER.finditer(text)
        if _MONEY.match(text, match.end()) or text[match.start() - 1 : match.start()] in _COINS
    ]
