"""The sentences of a text, and how long those are that say the same.

Invariants: pure functions; no formula is cut.
Not here: which sentences say the same (`alignment`), and what they must share (`equivalence`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from curation.languages.stripping import parts, strip
from curation.languages.vocabulary import language
from curation.translation.numerals import in_digits, in_words, plain_digits

_DISPLAY = re.compile(
    r"\\begin\s*\{(\w+\*?)\}.*?\\end\s*\{\1\}|\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)|```.*?```|`[^`\n]+`", re.DOTALL
)
_END = re.compile(
    r"(?<=[a-z\u0430-\u044f]\.\.)(?=[A-Z\u0410-\u042f])|(?<=[.!?…])[\"”»’)\]]*\s+(?=[^\W_a-zа-яà-ÿ]|[\"“«¿¡(\[$\\„])|(?<=[。！？])(?![\"”’）]+\s*[的，、])[\"”’）]*\s*(?=\S)|(?<=[.!?:;…。！？：；])\n+|\n+(?![a-zа-яà-ÿ]|(?<=\d\n)[\u3400-\u9fff])"
)
_QUESTION = re.compile(r"[?？]")
_LONE = re.compile(r"(?<!\w)([A-Z])\.\s*\Z")
_HIDDEN = "\x01"
_WORDY = re.compile(r"[^\W_]")
SLACK = 4.0
"""Characters by which a segment's length may differ, whatever its length."""
_SHOWN = 70
_BRIEF = 45
"""Characters of a sentence that may lose a word that another language does not say."""
_SHORT = 14
"""Characters that a sentence of few words may grow by: they cost 5 each is the price of each one is 5."""
_FORMULA = 6
"""Characters that a formula counts for."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Sentences that say the same; one side is empty where nothing does.

    Example: ``Segment("He has 3 dogs.", "Il a 3 chiens.")``
    """

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, its length in characters of English, and what tells where it belongs: its numbers and question marks;
    its formulas and names.

    Example: ``Sentence("Il a 3 chiens.", 13.1, Counter({"3": 1}))``
    """

    text: str
    length: float
    anchors: Counter[str]
    marks: frozenset[str] = frozenset()


def sentences(text: str, lang: str) -> list[str]:
    """Return the sentences of a text; abbreviations, formulas and code end none."""
    hidden = _hidden(text)
    cuts = [
        match
        for match in _END.finditer(hidden)
        if _ends_with_unit(hidden, match, lang)
        or not _abbreviations(lang).search(hidden[max(0, match.start() - 12) : match.start()])
        or _ends_with_variable(hidden, match)
    ]
    starts = [0, *(match.end() for match in cuts)]
    ends = [*(match.end() for match in cuts), len(text)]
    pieces = [piece for start, end in zip(starts, ends, strict=True) if (piece := text[start:end].strip())]
    whole: list[str] = []
    for piece in pieces:
        if whole and not _WORDY.search(piece):
            whole[-1] = f"{whole[-1]} {piece}"
        else:
            whole.append(piece)
    return whole


@cache
def _unit(lang: str) -> re.Pattern[str]:
    """Return the expression of a unit's short name with its stop, behind a number that is no year."""
    short = "|".join(filter(None, ("[kcm]?m|kg|g|h|min", language(lang).units.short, language("en").units.short)))
    behind = r"(?:(?<!\b(?:18|19|20)\d\d)(?<=\d)[\s\u00a0]?|(?<=\d)\s?\w{1,3}/)"
    return re.compile(rf"{behind}(?:{short})\.\s*\Z", re.IGNORECASE)


def _ends_with_unit(text: str, cut: re.Match[str], lang: str) -> bool:
    """Return whether a unit's short name stands behind a number before a cut, and a capital behind it: 5 km. Find."""
    behind = text[cut.end() : cut.end() + 1]
    return (behind.isupper() or behind in "¿¡") and _unit(lang).search(text[: cut.start()]) is not None


def _ends_with_variable(text: str, cut: re.Match[str]) -> bool:
    """Return whether a capital that stands alone elsewhere, no initial of a name, stands before a cut: A or B. Find."""
    letter = _LONE.search(text[: cut.start()])
    return letter is not None and re.search(rf"(?<!\w){letter[1]}(?![\w.'’])", text) is not None


def _hidden(text: str) -> str:
    """Return the text with every sign of a formula or of code hidden; its length stays."""
    text = _DISPLAY.sub(lambda match: _HIDDEN * len(match[0]), text)
    pieces = [f"${_HIDDEN * len(piece)}$" if is_formula else piece for piece, is_formula in parts(text)]
    return "".join(pieces)


@cache
def _abbreviations(lang: str) -> re.Pattern[str]:
    """Return the expression of the abbreviations that end before a place, in a language and in English."""
    words = {*language(lang).meaning.abbreviations, *language("en").meaning.abbreviations}
    listed = [*map(re.escape, sorted(words)), "[A-Z\u0410-\u042f]"]
    if r"\." in language(lang).dates.day_suffixes:  # in der 6. Klasse
        listed.append(rf"(?:{language(lang).numerals.referring})\s\d{{1,2}}")
    return re.compile(rf"(?<![A-Za-z\u00c0-\u024f\u0400-\u04ff&])(?:{'|'.join(listed)})\.\s*\Z")


def measured(text: str, lang: str) -> list[Sentence]:
    """Return the sentences of a text with the length that English would have, and with what anchors each."""
    relative = language(lang).translation.relative_length
    found: list[Sentence] = []
    for sentence in sentences(text, lang):
        formulas = sum(is_formula for _, is_formula in parts(sentence))
        plain = plain_digits(sentence)
        anchors = Counter(str(min(token.values)) for token in in_digits(plain, lang))
        anchors.update(str(value) for value in in_words(plain, lang) if value > 2)
        anchors.update("?" for _ in _QUESTION.findall(sentence))
        found.append(Sentence(sentence, len(strip(sentence)) / relative + _FORMULA * formulas, anchors))
    return found


def length_ratio(segment: Segment, source: str, target: str) -> float:
    """Return how long a segment's translation is, as a share of what is expected; near 1 where either side is short."""
    before = sum(one.length for one in measured(segment.before, source))
    after = sum(one.length for one in measured(segment.after, target))
    if after < before:
        slack = 2 * SLACK if before < _BRIEF else SLACK
        return (after + slack) / (before + slack)
    return max(1.0, (after + SLACK) / (before + _SHORT))


def keeps_anchors(segment: Segment, source: str, target: str) -> bool:
    """Return whether a segment's translation has every number and question mark of its original."""
    before, after = (
        sum((one.anchors for one in measured(text, lang)), Counter())
        for text, lang in ((segment.before, source), (segment.after, target))
    )
    return not before - after


def excerpt(text: str) -> str:
    """Return the beginning of a text, in quotation marks, for the evidence of a violation."""
    flat = " ".join(text.split())
    return f"“{flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + '…'}”"


def sides(segment: Segment) -> str:
    """Return the beginnings of both sides of a segment."""
    return f"{excerpt(segment.before)} / {excerpt(segment.after)}"
