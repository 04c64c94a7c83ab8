"""The sentences of a problem and of its translation, aligned.

Sentences are aligned by their lengths and by what they share: the numbers in them and the question marks (Gale and
Church 1993, with anchors). One sentence may have become two or three, two may have become one, and one may be missing.

Invariants: pure functions; segments are in the originals' order and hold every sentence once; no formula is cut.
Not here: what the sentences of a segment must share (`equivalence`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
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
_HIDDEN = "\x01"
_WORDY = re.compile(r"[^\W_]")
_MOVES = {
    (1, 1): 0.0, (2, 1): 2.4, (1, 2): 2.4, (2, 2): 3.0, (3, 1): 5.0, (1, 3): 5.0, (3, 2): 5.5, (2, 3): 5.5, (3, 3): 6.0,
    (1, 0): 2.0, (0, 1): 2.0, (4, 1): 6.5, (1, 4): 6.5, (5, 1): 8.0, (1, 5): 8.0,
}  # fmt: skip
"""Sentences of the original and of the translation in one segment → cost, in nats."""
_ANCHOR = 1.5
"""Cost of a number or question mark that only one side of a segment has."""
_BOTH_GAPS = 6.0
"""What a sentence without an equal costs besides, where both sides have one."""
_JOINED = 1.2
"""How long two sentences may be that are one sentence's translation, as a share of what is expected."""
_EXCHANGED = 3.5
"""What two sentences cost besides that become two, where each has what the other should have."""
_SPREAD, _SLACK = 0.16, 4.0
"""Deviation of a segment's length: its share of the length, and characters."""
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
class _Sentence:
    text: str
    length: float
    anchors: Counter[str]


def align(original: str, translated: str, source: str, target: str) -> list[Segment]:
    """Return the sentences of both texts in segments that say the same, in order.

    Where one sentence of each side would stand alone, they are rather one that was said freely: gaps cost more then.
    """
    before, after = _measured(original, source), _measured(translated, target)
    segments = _with_their_other_half(_aligned(before, after, 0.0), source, target)
    if any(not segment.before for segment in segments) and any(not segment.after for segment in segments):
        return _aligned(before, after, _BOTH_GAPS)
    return segments


def _with_their_other_half(segments: list[Segment], source: str, target: str) -> list[Segment]:
    """Return segments where a sentence that only the translation has is its neighbour's, which is too short alone."""
    at = 0
    while at < len(segments):
        for place in (at - 1, at + 1):
            if segments[at].before or not 0 <= place < len(segments) or not segments[place].before:
                continue
            near = segments[place]
            said = f"{near.after} {segments[at].after}" if place < at else f"{segments[at].after} {near.after}"
            whole = Segment(near.before, said)
            alone, joined = (length_ratio(one, source, target) for one in (near, whole))
            if near.after and joined <= _JOINED and 1 - alone > abs(joined - 1):
                segments = [*segments[: min(at, place)], whole, *segments[max(at, place) + 1 :]]
                at = min(at, place)
                break
        at += 1
    return segments


def _aligned(before: Sequence[_Sentence], after: Sequence[_Sentence], gap: float) -> list[Segment]:
    """Return the cheapest alignment, where a sentence that only one side has costs ``gap`` more."""
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(before) + 1):
        for j in range(len(after) + 1):
            if (i, j) == (0, 0):
                continue
            reached = [
                (
                    best[i - m, j - n][0]
                    + price
                    + gap * (0 in (m, n))
                    + _EXCHANGED * ((m, n) == (2, 2) and _are_exchanged(before[i - 2 : i], after[j - 2 : j]))
                    + _mismatch(before[i - m : i], after[j - n : j]),
                    (m, n),
                )
                for (m, n), price in _MOVES.items()
                if (i - m, j - n) in best
            ]
            if reached:
                best[i, j] = min(reached)
    segments: list[Segment] = []
    i, j = len(before), len(after)
    while (i, j) != (0, 0):
        m, n = best[i, j][1]
        segments.append(Segment(_joined(before[i - m : i]), _joined(after[j - n : j])))
        i, j = i - m, j - n
    return segments[::-1]


def sentences(text: str, lang: str) -> list[str]:
    """Return the sentences of a text; abbreviations, formulas and code end none."""
    hidden = _hidden(text)
    cuts = [
        match
        for match in _END.finditer(hidden)
        if _ends_with_unit(hidden, match, lang)
        or not _abbreviations(lang).search(hidden[max(0, match.start() - 12) : match.start()])
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


def _measured(text: str, lang: str) -> list[_Sentence]:
    relative = language(lang).translation.relative_length
    measured: list[_Sentence] = []
    for sentence in sentences(text, lang):
        formulas = sum(is_formula for _, is_formula in parts(sentence))
        plain = plain_digits(sentence)
        anchors = Counter(str(min(token.values)) for token in in_digits(plain, lang))
        anchors.update(str(value) for value in in_words(plain, lang) if value > 2)
        anchors.update("?" for _ in _QUESTION.findall(sentence))
        measured.append(_Sentence(sentence, len(strip(sentence)) / relative + _FORMULA * formulas, anchors))
    return measured


def _mismatch(before: Sequence[_Sentence], after: Sequence[_Sentence]) -> float:
    """Return how unlike two runs of sentences are: by length where both have some, and by what only one has."""
    left, right = sum((one.anchors for one in before), Counter()), sum((one.anchors for one in after), Counter())
    cost = _ANCHOR * ((left - right).total() + (right - left).total())
    if not before or not after:
        return cost
    lengths = sum(one.length for one in before), sum(one.length for one in after)
    return cost + min(12.0, (lengths[0] - lengths[1]) ** 2 / (2 * (_SLACK + _SPREAD * max(lengths)) ** 2))


def _are_exchanged(before: Sequence[_Sentence], after: Sequence[_Sentence]) -> bool:
    """Return whether a number of the first sentence stands in the second now, and one of the second in the first."""
    (first, second), (mine, others) = ([one.anchors for one in pair] for pair in (before, after))
    return bool((first - mine) & (others - second)) and bool((mine - first) & (second - others))


def _joined(run: Sequence[_Sentence]) -> str:
    return " ".join(one.text for one in run)


def length_ratio(segment: Segment, source: str, target: str) -> float:
    """Return how long a segment's translation is, as a share of what is expected; near 1 where either side is short."""
    before = sum(one.length for one in _measured(segment.before, source))
    after = sum(one.length for one in _measured(segment.after, target))
    if after < before:
        slack = 2 * _SLACK if before < _BRIEF else _SLACK
        return (after + slack) / (before + slack)
    return max(1.0, (after + _SLACK) / (before + _SHORT))


def keeps_anchors(segment: Segment, source: str, target: str) -> bool:
    """Return whether a segment's translation has every number and question mark of its original."""
    before, after = (
        sum((one.anchors for one in _measured(text, lang)), Counter())
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
