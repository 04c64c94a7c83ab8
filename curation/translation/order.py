"""Whether the numbers of aligned sentences keep their units and their order.

    units     no unit became another of its kind, no percentage lost its sign
    order     no two numbers changed places, unless what each stands with tells them apart

Invariants: pure functions; every violation names the numbers, with an excerpt of both sides.
Not here: a clause that moved with its names and numbers (`equivalence`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

from curation.translation.clauses import clause_moved
from curation.translation.numerals import in_words, plain_digits
from curation.translation.quantities import prose_of_units
from curation.translation.sentences import Segment, sides
from curation.translation.tied_numbers import TiedNumber, tied_numbers
from curation.translation.units import DIMENSIONS, units_mentioned
from curation.translation.violations import Violation
from curation.translation.word_pairs import SOURCE, says_anything, told_by_words

_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_Pair = tuple[TiedNumber, TiedNumber]
_HALF = Fraction(1, 2)
_TOLD, _EXCHANGED, _EITHER = 0.1, -0.5, -0.03
"""How much better numbers must agree with their own translations to be told apart by the words around them, and how
much better with each other's, each of them, to be exchanged wherever they stand."""
_FEWEST_IN_BLOCKS = 4
"""Numbers of two blocks together that may change places as such."""
_SHARE_OF = re.compile(r"\s*(?:%|\\%|per ?cent)?\s*of (?:the )?", re.IGNORECASE)
_DATED = "year of a date"
_OF_THEM = "of them"
"""The kind of a clause whose number is a part of the one before it: exchanged, the part would be the larger one."""
_TURNED_ROLES = ("label", "than", "every")
"""Roles that only one of two numbers has: house 12 has 1 for house 1 has 12."""
_ROLES_ALONE = ("every", "rate")
"""Roles that tell a number apart, whatever it counts."""
_TURNED_CLAUSES = ("if", "date", "total", "difference", "note", "limit", "age", "remainder", "divisor", "base", "from")
"""Kinds of clauses in which only one of two numbers stands: on August 22 at 17 for on August 17 at 22."""


def units_exchanged(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation for a unit that became another of its kind, and for a percentage without its sign."""
    before, after = _units_of(segment.before, source), _units_of(segment.after, target)
    for unit in before - after:
        for other in after - before:
            gone = not after[unit] and not before[other]
            if DIMENSIONS[unit] == DIMENSIONS[other] and (gone or _unit_of_number_turned(segment, source, target)):
                return [Violation("units", f"{unit} became {other}: {sides(segment)}")]
    if before["percent"] > after["percent"]:
        for mine, theirs in _paired(tied_numbers(segment.before, source), tied_numbers(segment.after, target)):
            if mine.unit == "percent" and theirs.unit is None:
                return [Violation("units", f"{theirs.text} is no percentage any more: {sides(segment)}")]
    return []


def _units_of(text: str, lang: str) -> Counter[str]:
    """Return how often a text names each unit; the year of a date is none."""
    plain = prose_of_units(text)
    found = Counter(one.unit for one in units_mentioned(plain, lang))
    dated = sum(number.unit == "year" and is_date(number.text) for number in tied_numbers(text, lang))
    return found - Counter({"year": dated})


def is_date(digits: str) -> bool:
    """Return whether digits are the year of a date, as 2015 is."""
    return _YEAR.fullmatch(digits) is not None


def _unit_of_number_turned(segment: Segment, source: str, target: str) -> bool:
    """Return whether a number in digits stands with another unit of the same kind now."""
    pairs = _paired(tied_numbers(segment.before, source), tied_numbers(segment.after, target))
    kinds = [(mine.unit, other.unit) for mine, other in pairs if mine.unit in DIMENSIONS and other.unit in DIMENSIONS]
    return any(mine != other and DIMENSIONS[mine] == DIMENSIONS[other] for mine, other in kinds if mine and other)


def units_stay(segment: Segment, source: str, target: str) -> bool:
    """Return whether every number that both sides have stands with the unit that it had."""
    pairs = _paired(tied_numbers(segment.before, source), tied_numbers(segment.after, target))
    return all(mine.unit == other.unit for mine, other in pairs)


def order(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where two numbers changed places or units, and did not take their own units along."""
    before, after = _both(segment, source, target)
    partners = _partners(before, after)
    violations = _order(segment, before, after, partners, source, target)
    if not violations or _blocks_moved([at for at in partners if at is not None]):
        return []
    return _order(segment, before, after, _partners(before, after, by_tie=False), source, target)


def _blocks_moved(places: list[int]) -> bool:
    """Return whether two runs of two numbers or more changed places, and nothing else: no exchange of two does that."""
    return clause_moved(sorted(places), places, _FEWEST_IN_BLOCKS, _FEWEST_IN_BLOCKS // 2)


def _is_share_of_share(mine: _Pair, others: _Pair, source: str) -> bool:
    """Return whether one share is another's, 15% of 30%, so that their order says nothing."""
    units = {mine[0].unit, others[0].unit, mine[1].unit, others[1].unit}
    between = mine[0].around.behind
    of_it = source == SOURCE and between == others[0].around.before and _SHARE_OF.fullmatch(between) is not None
    return of_it and len(units) == 1 and units <= {"percent", "fraction"}


def _order(
    segment: Segment,
    before: list[TiedNumber],
    after: list[TiedNumber],
    partners: list[int | None],
    source: str,
    target: str,
) -> list[Violation]:
    """Return the violation of two numbers, where each number of the original has its equal at ``partners``."""
    pairs = [(number, after[at]) for number, at in zip(before, partners, strict=True) if at is not None]
    places = [at for at in partners if at is not None]
    for i, mine in enumerate(pairs):
        for j in range(i + 1, len(pairs)):
            others = pairs[j]
            if mine[0].values & others[0].values or mine[1].values & others[1].values:
                continue
            if _is_share_of_share(mine, others, source):
                continue
            moved = places[i] > places[j]
            told = _told_by_words(mine, others, target) if source == SOURCE else (0.0, 0.0)
            changed = moved and sum(told) <= _TOLD and not _told_apart(mine, others)
            exchanged = sum(told) < _EXCHANGED and max(told) < _EITHER
            if changed or exchanged or _ties_exchanged(mine, others):
                shown = f"{mine[0].text} and {others[0].text} changed places"
                return [Violation("order", f"{shown}: {sides(segment)}")]
    lost = [number for number, at in zip(before, partners, strict=True) if at is None]
    new = [number for at, number in enumerate(after) if at not in places]
    return _moved_out(segment, lost, new, source, target)


def _both(segment: Segment, source: str, target: str) -> tuple[list[TiedNumber], list[TiedNumber]]:
    """Return the numbers in digits of both sides, and those in words that the other side has in digits."""
    before, after = tied_numbers(segment.before, source), tied_numbers(segment.after, target)
    mine = Counter(value for number in before for value in number.values)
    others = Counter(value for number in after for value in number.values)
    in_words_here, in_words_there = (frozenset(more) - {1} for more in (others - mine, mine - others))
    if in_words_here:
        before = tied_numbers(segment.before, source, in_words_here)
    if in_words_there:
        after = tied_numbers(segment.after, target, in_words_there)
    return before, _dated(before, after)


def _dated(before: list[TiedNumber], after: list[TiedNumber]) -> list[TiedNumber]:
    """Return the translation's numbers, where those that are the original's years are years too."""
    years = {value for number in before if number.role == _DATED for value in number.values}
    return [
        replace(number, role=_DATED) if number.values & years and number.unit is None else number for number in after
    ]


def _moved_out(
    segment: Segment, lost: list[TiedNumber], new: list[TiedNumber], source: str, target: str
) -> list[Violation]:
    """Return a violation where a sentence has another number in the place of its own, though both are in the text."""
    words_before = in_words(plain_digits(segment.before), source)
    words_after = in_words(plain_digits(segment.after), target)
    inverted = {1 / value for number in lost for value in number.values if value}
    new = [number for number in new if not number.values & inverted]  # 1/3 as many is 3 times fewer
    parts = {_HALF} & {*words_before} | {value for number in lost for value in number.values if value < 1}
    mixed = {value + part for number in lost for value in number.values for part in parts}
    mixed |= {value / 100 for number in lost if number.unit == "cent" for value in number.values}  # 50 cents are $0.50
    new = [number for number in new if not number.values & mixed]  # 1 and half times is 1.5 times, 3 and 1/2 are 3.5
    lost = [number for number in lost if not number.values & {*words_after}]
    new = [number for number in new if not number.values & {*words_before}]
    if not lost or not new:
        return []
    return [Violation("order", f"{new[0].text} stands where {lost[0].text} should: {sides(segment)}")]


def _partners(before: list[TiedNumber], after: list[TiedNumber], *, by_tie: bool = True) -> list[int | None]:
    """Return for each number the place of its equal on the other side; of several, that of equal tie, or the first."""
    free = list(range(len(after)))
    partners: list[int | None] = []
    for number in before:
        equal = [at for at in free if after[at].values & number.values]
        best = min(equal, key=lambda at: (*_unlike(number, after[at], by_tie), at), default=None)
        partners.append(best)
        if best is not None:
            free.remove(best)
    return partners


def _unlike(mine: TiedNumber, other: TiedNumber, by_tie: bool) -> tuple[bool, bool, bool]:
    """Return how two numbers that may be equal differ: 1,000 is sooner 1 000 than 1."""
    differ = mine.tie != other.tie if by_tie else mine.unit != other.unit
    clauses = by_tie and mine.clauses != other.clauses and not mine.clauses & other.clauses
    return max(mine.values) != max(other.values), differ, clauses


def _paired(before: list[TiedNumber], after: list[TiedNumber]) -> list[_Pair]:
    """Return the numbers that both sides have, each with its equal."""
    partners = _partners(before, after)
    return [(number, after[at]) for number, at in zip(before, partners, strict=True) if at is not None]


def _told_apart(mine: _Pair, others: _Pair) -> bool:
    """Return whether one of two numbers has kept what it stands with, and the other never stood with that.

    Then each is still what it was, in whatever order: 437 raisins in 5 boxes, in 5 boxes 437 raisins. Its unit alone
    tells where only one language says its role. So does the clause that it moved with: what he has left, if 3 go. The
    smaller one may follow as a part of the larger: 75 kernels, of which 60 pop.
    """
    if _OF_THEM in mine[1].clauses and min(mine[1].values) < min(others[1].values):
        return True
    return any(
        (one[0].tie is not None and one[0].tie == one[1].tie and one[0].tie not in (other[0].tie, other[1].tie))
        or (
            one[0].thing is not None
            and one[0].thing == one[1].thing
            and one[0].thing not in (other[0].thing, other[1].thing)
        )
        or (
            one[0].role in _ROLES_ALONE
            and one[0].role == one[1].role
            and one[0].role not in (other[0].role, other[1].role)
        )
        or bool((one[0].clauses & one[1].clauses) - other[0].clauses - other[1].clauses)
        for one, other in ((mine, others), (others, mine))
    )


def _told_by_words(mine: _Pair, others: _Pair, target: str) -> tuple[float, float]:
    """Return how much better each of two numbers agrees with its own than with the other's translation, by their words.

    Two with nothing said between them stand with the same words: from 3 to 5, of $850, and $705, a ratio.
    """
    between = mine[0].around.behind
    if between == others[0].around.before and not says_anything(between, target):
        return 0.0, 0.0
    return told_by_words((mine[0].around, mine[1].around), (others[0].around, others[1].around), target)


def _ties_exchanged(mine: _Pair, others: _Pair) -> bool:
    """Return whether each of two numbers stands with what the other stood with: units, or nouns that both count."""
    if mine[0].unit == others[1].unit != others[0].unit == mine[1].unit:
        return True
    for role in _TURNED_ROLES:
        roles = [number.role == role for number in (*mine, *others)]
        if roles in ([True, False, False, True], [False, True, True, False]):
            return True
    if mine[0].role == mine[1].role != others[0].role == others[1].role:
        return False  # each has kept its own role: a rate in another clause is still that rate
    for kind in _TURNED_CLAUSES:
        within = [kind in number.clauses for number in (*mine, *others)]
        if within in ([True, False, False, True], [False, True, True, False]):
            return True
    nouns = mine[0].noun, others[0].noun
    return None not in nouns and (others[1].noun, mine[1].noun) == nouns and nouns[0] != nouns[1]
