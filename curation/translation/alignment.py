"""Which sentences of a problem and of its translation say the same.

Sentences are aligned by their lengths and by what they share: the numbers in them and the question marks (Gale and
Church 1993, with anchors), and, lighter, their formulas and the names of both texts. One sentence may have become two
or three, two may have become one, and one may be missing. Where one is, its words may show that it stands in the next
one.

Invariants: pure functions; segments are in the original's order and hold every sentence once.
Not here: what the sentences of a segment must share (`equivalence`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from curation.languages.stripping import strip
from curation.languages.vocabulary import language
from curation.translation.formulas import formulas_of
from curation.translation.name_matching import Name, names_of
from curation.translation.sentences import SLACK, Segment, Sentence, keeps_anchors, length_ratio, measured
from curation.translation.word_pairs import said_there, says_of

_MOVES = {
    (1, 1): 0.0, (2, 1): 2.4, (1, 2): 2.4, (2, 2): 3.0, (3, 1): 5.0, (1, 3): 5.0, (3, 2): 5.5, (2, 3): 5.5, (3, 3): 6.0,
    (1, 0): 2.0, (0, 1): 2.0, (4, 1): 6.5, (1, 4): 6.5, (5, 1): 8.0, (1, 5): 8.0,
}  # fmt: skip
"""Sentences of the original and of the translation in one segment → cost, in nats."""
_ANCHOR = 1.5
"""Cost of a number or question mark that only one side of a segment has."""
_MARK, _MOST_MARKS = 0.8, 3
"""Cost of a formula or name that only one side of a segment has, and how many of them count."""
_BOTH_GAPS = 6.0
"""What a sentence without an equal costs besides, where both sides have one."""
_JOINED = 1.2
"""How long two sentences may be that are one sentence's translation, as a share of what is expected."""
_LONGER = 1.6
"""How long they may be where words or signs show that they belong together."""
_LEFT, _MOST_SAID = 0.6, 0.5
"""How long what stands for a sentence and its neighbour must be, and which share of its known words must be said
there."""
_EXCHANGED = 3.5
"""What two sentences cost besides that become two, where each has what the other should have."""
_PASSAGE, _PASSAGE_BEHIND = re.compile(r"\([^()]+\)\Z"), re.compile(r"[(（][^()（）]+[)）][.。]?\Z")
"""A sentence in brackets, and a passage in brackets that ends a sentence."""
_SPREAD = 0.16
"""Deviation of a segment's length, as a share of the length."""


def align(
    original: str, translated: str, source: str, target: str, names: Sequence[Name] | None = None
) -> list[Segment]:
    """Return the sentences of both texts in segments that say the same, in order.

    Where one sentence of each side would stand alone, they are rather one that was said freely: gaps cost more then.

    Args:
        names: those of `names_of` for these texts, where the caller has them.
    """
    names = names_of(original, translated, source, target) if names is None else names
    before = _marked(measured(original, source), [(name.original, (name.original,)) for name in names])
    after = _marked(measured(translated, target), [(name.original, name.forms) for name in names])
    segments = _with_their_neighbours(_aligned(before, after, 0.0), source, target)
    if any(not segment.before for segment in segments) and any(not segment.after for segment in segments):
        return _aligned(before, after, _BOTH_GAPS)
    return segments


def _with_their_neighbours(segments: list[Segment], source: str, target: str) -> list[Segment]:
    """Return segments where a sentence that only one text has is its neighbour's, which says it or is too short."""
    at = 0
    while at < len(segments):
        for place in (at - 1, at + 1):
            if segments[at].before and segments[at].after:
                break
            if not 0 <= place < len(segments) or not (segments[place].before and segments[place].after):
                continue
            first, second = segments[min(at, place)], segments[max(at, place)]
            whole = Segment(f"{first.before} {second.before}".strip(), f"{first.after} {second.after}".strip())
            if _belongs(segments[at], segments[place], whole, source, target):
                segments = [*segments[: min(at, place)], whole, *segments[max(at, place) + 1 :]]
                at = min(at, place)
                break
        at += 1
    return segments


def _belongs(gap: Segment, near: Segment, whole: Segment, source: str, target: str) -> bool:
    """Return whether a sentence that one text has alone is part of what its neighbour says.

    It is where the other language's words for its own stand there and have no other reason, or where the
    neighbour is too short without it. What a translation alone has is short then, and says nothing new in signs.
    """
    alone, joined = (length_ratio(one, source, target) for one in (near, whole))
    if gap.before:
        is_whole = joined >= _LEFT and keeps_anchors(whole, source, target)
        return is_whole and (
            said_there(gap.before, near, source, target) >= _MOST_SAID
            or _stands_there(gap.before, near)
            or (_orders(gap.before, source) and _orders(near.after, target) and not _orders(near.before, source))
        )
    if joined <= _JOINED and 1 - alone > abs(joined - 1):
        return True
    if joined > _LONGER or re.search(r"\d", strip(gap.after)):
        return False
    signs = {*formulas_of(gap.after)}
    if signs:
        return signs <= {*formulas_of(near.before)}
    return says_of(gap.after, near, source, target)


def _stands_there(sentence: str, near: Segment) -> bool:
    """Return whether a neighbour's translation has the signs of an original's sentence that its own original lacks.

    So does a passage in brackets, where the sentence is one.
    """
    signs, own, there = ({*formulas_of(text)} for text in (sentence, near.before, near.after))
    if signs - own and signs <= there:
        return True
    is_passage = _PASSAGE.match(sentence.strip()) is not None
    return is_passage and "(" not in near.before and _PASSAGE_BEHIND.search(near.after.strip()) is not None


def _orders(text: str, lang: str) -> bool:
    """Return whether a text orders to find something."""
    return any(re.search(word, text, re.IGNORECASE) for word in language(lang).statements.orders)


def _aligned(before: Sequence[Sentence], after: Sequence[Sentence], gap: float) -> list[Segment]:
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


def _marked(found: Sequence[Sentence], names: Sequence[tuple[str, tuple[str, ...]]]) -> list[Sentence]:
    """Return sentences with the formulas and names that each has."""
    return [
        replace(
            one,
            marks=frozenset(
                (*formulas_of(one.text), *(name for name, forms in names if any(form in one.text for form in forms)))
            ),
        )
        for one in found
    ]


def _mismatch(before: Sequence[Sentence], after: Sequence[Sentence]) -> float:
    """Return how unlike two runs of sentences are: by length where both have some, and by what only one has."""
    left, right = sum((one.anchors for one in before), Counter()), sum((one.anchors for one in after), Counter())
    cost = _ANCHOR * ((left - right).total() + (right - left).total())
    if not before or not after:
        return cost
    mine, others = ({mark for one in run for mark in one.marks} for run in (before, after))
    cost += _MARK * min(len(mine ^ others), _MOST_MARKS)
    lengths = sum(one.length for one in before), sum(one.length for one in after)
    return cost + min(12.0, (lengths[0] - lengths[1]) ** 2 / (2 * (SLACK + _SPREAD * max(lengths)) ** 2))


def _are_exchanged(before: Sequence[Sentence], after: Sequence[Sentence]) -> bool:
    """Return whether a number of the first sentence stands in the second now, and one of the second in the first."""
    (first, second), (mine, others) = ([one.anchors for one in pair] for pair in (before, after))
    return bool((first - mine) & (others - second)) and bool((mine - first) & (second - others))


def _joined(run: Sequence[Sentence]) -> str:
    return " ".join(one.text for one in run)
