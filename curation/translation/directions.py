"""Which way a number compares: 5 more stays 5 more, 10 % off stays less, three times more is not three times fewer.

A word of more or less is tied to the number before it in its clause, or else to the one right behind it. Only numbers
that both sides of a segment say with a direction are compared, so that what one language says without any (twice as
many, the half) refuses nothing.

Invariants: pure functions over the words of `Meaning`. Not here: how often a sentence says more or less
(`comparisons`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.meaning_words import matcher
from curation.translation.numerals import in_digits, plain_digits, scale_end, word_tokens
from curation.translation.sentences import Segment, sides
from curation.translation.violations import Violation

_BEHIND, _BEFORE = 34, 16
"""Characters between a number and the word of its direction, behind it and before it; a third where words run
together."""
_WORDS = 4
"""Words between a number and its direction."""
_CLAUSE = re.compile(r"[.,;:!?，。；：！？]")

_ONE = frozenset({Fraction(1)})
"""What may be an article: it takes the word of its direction (one less than double), and is not compared."""

Directions = dict[frozenset[Fraction], set[str]]


def _blank(match: re.Match[str]) -> str:
    return ";" * len(match[0])


@lru_cache(maxsize=256)
def directions(text: str, lang: str) -> tuple[tuple[frozenset[Fraction], frozenset[str]], ...]:
    """Return the numbers that are more or less than something, each with the directions it is said with.

    >>> [sorted(ways) for _, ways in directions("He has 5 more than Ann.", "en")]
    [['more']]
    """
    plain = plain_digits("".join(" " * len(piece) if is_formula else piece for piece, is_formula in parts(text)))
    plain = plain.lower().replace("’", "'")
    for name in ("at_least", "at_most", "idioms"):
        plain = matcher(lang, name).sub(_blank, plain)
    numbers = sorted(
        {
            (token.start, scale_end(plain, token.start + len(token.text)), token.values)
            for token in (*in_digits(plain, lang), *word_tokens(plain, lang))
        },
        key=lambda number: number[0],
    )
    found = _ways(plain, lang, numbers, _words(plain, lang, numbers))
    return tuple((values, frozenset(ways)) for values, ways in found.items() if values != _ONE)


def _words(plain: str, lang: str, numbers: list[tuple[int, int, frozenset[Fraction]]]) -> list[tuple[int, int, str]]:
    """Return where words of more and less stand; of those that hold a number, the part behind it."""
    taken = [(match.start(), match.end(), "less") for match in matcher(lang, "less").finditer(plain)]
    covered = matcher(lang, "less").sub(_blank, plain)
    taken += [(match.start(), match.end(), "more") for match in matcher(lang, "more").finditer(covered)]
    inner = [
        (max([start, *(one[1] for one in numbers if start <= one[0] < end)]), end, way) for start, end, way in taken
    ]
    return [word for word in inner if word[0] < word[1]]


def _ways(
    plain: str, lang: str, numbers: list[tuple[int, int, frozenset[Fraction]]], words: list[tuple[int, int, str]]
) -> Directions:
    """Return the directions by number: a word is that of the number before it, or else of the one right behind it."""
    behind, before = (_BEHIND, _BEFORE) if language(lang).spaced else (_BEHIND // 3, _BEFORE // 3)
    found: Directions = {}
    for first, last, way in words:
        low = max((one for one in numbers if one[1] <= first), default=None, key=lambda one: one[1])
        high = min((one for one in numbers if one[0] >= last), default=None, key=lambda one: one[0])
        if high and not language(lang).spaced and not plain[last : high[0]].strip():  # 多10分, 多 10 分
            found.setdefault(high[2], set()).add(way)
        elif low and first - low[1] <= behind and _is_one_clause(plain[low[1] : first], lang):
            found.setdefault(low[2], set()).add(way)
        elif high and high[0] - last <= before and not _CLAUSE.search(plain[last : high[0]]):
            found.setdefault(high[2], set()).add(way)
    return found


def _is_one_clause(between: str, lang: str) -> bool:
    """Return whether few words stand between a number and a direction, none of which begins another clause."""
    is_short = not language(lang).spaced or len(between.split()) <= _WORDS
    return is_short and not _CLAUSE.search(between) and not matcher(lang, "clause_words").search(between)


def turned_numbers(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation for a number that was more and is less, or the other way round."""
    after = directions(segment.after, target)
    for values, ways in directions(segment.before, source):
        others = [other for said, other in after if said & values]
        if len(ways) == 1 and len(others) == 1 and len(others[0]) == 1 and ways != others[0]:
            number, way, other = min(values), *ways, *others[0]
            return [Violation("comparisons", f"{number} {way} became {number} {other}: {sides(segment)}")]
    return []
