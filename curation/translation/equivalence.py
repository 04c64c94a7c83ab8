"""Whether a translation asks the same: what its sentences say, compared with those that they are aligned with.

    sentences     no sentence is gone, and none came in
    quantities    each number has its unit, in its sentence, in the same order unless units tell it apart
    distribution  what each of several has stays each one's
    polarity      a sentence that denies still denies, one that does not still does not
    comparisons   more is not less, at least not at most, older not younger
    entities      the names stand in the same order, each with its numbers
    numbers       no number in words became another
    notation      thousands are parted as the target's language parts them

Invariants: pure functions; every violation names the aligned things that differ, with an excerpt of both sides.
Not here: whether the numbers, formulas and units are there at all (`quantities`, `formulas`).
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.alignment import align
from curation.translation.clauses import clause_moved
from curation.translation.comparisons import comparisons, polarity
from curation.translation.directions import turned_numbers
from curation.translation.distribution import distribution
from curation.translation.exchanged_words import exchanged_ranks, exchanged_words
from curation.translation.formulas import displayed_as_formulas, formulas_of
from curation.translation.name_matching import Name, names_of
from curation.translation.names import (
    clauses_stay,
    compared_stays,
    exchanged_compared,
    exchanged_in_condition,
    exchanged_names,
    exchanged_owners,
    joined_names,
    owner_stays,
    places_of,
    side_by_side,
)
from curation.translation.number_words import new_parts, replaced_words
from curation.translation.numerals import in_digits, plain_digits
from curation.translation.order import is_date, order, units_exchanged, units_stay
from curation.translation.prose import is_form
from curation.translation.quantities import months_named, prose_of_units
from curation.translation.sentences import Segment, excerpt, keeps_anchors, length_ratio, sentences, sides
from curation.translation.tied_numbers import tied_numbers, without_terms
from curation.translation.units import DIMENSIONS, units_mentioned
from curation.translation.violations import Violation

_DIGITS = re.compile(r"\d+(?:\.\d+)*")
_LEAST_LIST = 3
"""Numbers of a formula from which their order is compared."""
_CLOCK = re.compile(
    r"\d\s?[ap]\.?\s?m\b|\d:\d\d|o['’]clock|noon|midnight|\b(?:turn(?:s|ed)?|birthday|aged?)\b", re.IGNORECASE
)
_QUESTION = re.compile(r"[?？]")
_ALSO_MEANT = {"cent": "dollar", "pound": "lb"}
"""Unit → what the original may name instead: a quarter is a coin of 25 cents, and pounds are money, too."""
_SHORTEST, _SHORTEST_OF_ALL = 0.35, 0.2
"""How long a sentence must be, as a share of what is expected; the second where no number and no question is gone."""
_LONGEST = 2.2


def check_equivalence(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return what the aligned sentences of a translation say otherwise than the original's; empty where they agree."""
    names = names_of(original, translated, source, target)
    segments = align(original, translated, source, target, names)
    whole = [segment for segment in segments if segment.before and segment.after]
    return [
        *coverage(segments, original, source, target),
        *question(original, translated, source, target),
        *(violation for segment in whole for violation in quantities(segment, source, target, names)),
        *(violation for segment in whole for violation in polarity(segment, source, target)),
        *(violation for segment in whole for violation in comparisons(segment, source, target)),
        *(violation for segment in whole for violation in turned_numbers(segment, source, target)),
        *(violation for segment in whole for violation in entities(segment, names, source, target)),
        *(violation for segment in whole for violation in exchanged_words(segment, source, target, original)),
        *(violation for segment in whole for violation in exchanged_ranks(segment, source, target)),
        *(violation for segment in whole for violation in distribution(segment, source, target)),
        *new_units(original, translated, source, target),
        *numbers_in_formulas(original, translated),
        *replaced_words(original, translated, source, target),
        *new_parts(original, translated, source, target),
        *notation(original, translated, source, target),
    ]


def coverage(segments: list[Segment], original: str, source: str, target: str) -> list[Violation]:
    """Return violations for sentences that only one text has, and for ones far shorter or longer than expected."""
    violations: list[Violation] = []
    for segment in segments:
        if not segment.after:
            violations.append(Violation("sentences", f"nothing stands for {excerpt(segment.before)}"))
        elif not segment.before and is_form(segment.after, original):
            continue
        elif not segment.before:
            violations.append(Violation("sentences", f"nothing in the original says {excerpt(segment.after)}"))
        else:
            ratio = length_ratio(segment, source, target)
            shortest = _SHORTEST_OF_ALL if keeps_anchors(segment, source, target) else _SHORTEST
            if not shortest <= ratio <= _LONGEST:
                said = "shorter" if ratio < 1 else "longer"
                violations.append(Violation("sentences", f"much {said} than the original: {sides(segment)}"))
    return violations


def question(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation where the question that ends the original is gone: no question mark, no word that asks.

    An order with a question mark asks nothing: Divide 32 in the ratio 3:5?
    """
    last = sentences(translated, target)[-1:]
    if not _QUESTION.search(original[-3:]) or _QUESTION.search(translated):
        return []
    if _asks(last, target) or not _asks(sentences(original, source)[-1:], source):
        return []
    return [Violation("sentences", f"no question: {excerpt(last[0] if last else '')}")]


def _asks(said: list[str], lang: str) -> bool:
    """Return whether a sentence has a word that asks."""
    return any(re.search(word, one, re.IGNORECASE) for word in language(lang).questions.asks for one in said)


def quantities(segment: Segment, source: str, target: str, names: list[Name]) -> list[Violation]:
    """Return violations for units that were exchanged, and for numbers that changed places."""
    violations = units_exchanged(segment, source, target)
    if violations:
        return violations
    violations = order(segment, source, target)
    if violations and units_stay(segment, source, target) and _clause_moved(segment, names, source, target):
        return []
    return violations


def _clause_moved(
    segment: Segment, names: list[Name], source: str, target: str, *, names_changed: bool = False
) -> bool:
    """Return whether a clause moved with its names and numbers; every mention of a name counts, or the first alone.

    Numbers alone may be exchanged, too, where a clause moved: without a name that moved with them nothing is said.
    """
    before = _things(segment.before, [(name.original, (name.original,)) for name in names], source)
    after = _things(segment.after, [(name.original, name.forms) for name in names], target)
    same = {a: b for a in before for b in after if isinstance(a, frozenset) and isinstance(b, frozenset) and a & b}
    before = [same.get(thing, thing) if isinstance(thing, frozenset) else thing for thing in before]
    both = {*before} & {*after}
    before, after = [thing for thing in before if thing in both], [thing for thing in after if thing in both]
    firsts = list(dict.fromkeys(before)), list(dict.fromkeys(after))
    fewest = 4 if names_changed and not _QUESTION.search(segment.before) else 3
    is_told = names_changed and not language(target).spaced and not _QUESTION.search(segment.before)
    shortest = 2 if is_told else 1  # 比马克多20 has the name before its number
    return any(
        clause_moved(mine, others, fewest, shortest)
        and {str, frozenset} <= {type(a) for a, b in zip(mine, others, strict=True) if a != b}
        for mine, others in ((before, after), firsts)
    )


def _things(text: str, forms: list[tuple[str, tuple[str, ...]]], lang: str) -> list[str | frozenset[Fraction]]:
    """Return the names and the numbers in digits of a text, in order."""
    plain = prose_of_units(plain_digits(without_terms(text)))
    things: list[tuple[int, str | frozenset[Fraction]]] = [
        (token.start, token.values) for token in in_digits(plain, lang)
    ]
    things += [(place, name) for name, listed in forms for place in places_of(plain, listed)]
    return [thing for _, thing in sorted(things, key=lambda thing: thing[0])]


def entities(segment: Segment, names: list[Name], source: str, target: str) -> list[Violation]:
    """Return a violation where two names changed places, and not a clause with them, or what one has is the other's."""
    owners = exchanged_owners(segment, names, source, target)
    if owners is not None:
        return [Violation("entities", f"what {owners[0]} has is {owners[1]}'s: {sides(segment)}")]
    compared = exchanged_compared(segment, names, source, target)
    if compared is not None:
        return [Violation("entities", f"{compared[0]} is compared with, not {compared[1]}: {sides(segment)}")]
    of_condition = exchanged_in_condition(segment, names, source, target)
    if of_condition is not None:
        return [Violation("entities", f"a condition is {of_condition[1]}'s, not {of_condition[0]}'s: {sides(segment)}")]
    exchanged = exchanged_names(segment, names)
    if exchanged is None or owner_stays(segment, names, exchanged, source, target):
        return []
    if joined_names(segment, names, exchanged, source, target):
        return []
    if clauses_stay(segment, names, source, target):
        return []
    if compared_stays(segment, names, exchanged, source, target) or side_by_side(segment.before, exchanged):
        return []
    if _clause_moved(segment, names, source, target, names_changed=True):
        return []
    return [Violation("entities", f"{exchanged[0]} and {exchanged[1]} changed places: {sides(segment)}")]


def new_units(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for a number with a unit that the original names nowhere, while it names another of its kind.

    Months for years, that is; where the original names none of the kind, the word is another (livres are books, too).
    """
    named = {one.unit for one in units_mentioned(prose_of_units(original), source)}
    dated = bool(_CLOCK.search(original)) or bool(months_named(original, source))
    for number in tied_numbers(translated, target):
        if number.unit is None or number.unit not in DIMENSIONS or number.unit == "percent" or number.unit in named:
            continue
        if number.unit == "year" and is_date(number.text):
            continue
        kind = DIMENSIONS[number.unit]
        if number.unit in _ALSO_MEANT and _ALSO_MEANT[number.unit] in named:
            continue
        if any(DIMENSIONS[unit] == kind for unit in named) and not (dated and kind == "time"):
            shown = excerpt(translated[max(0, translated.find(number.text) - 20) :])
            return [Violation("units", f"{number.unit} came in, which the original does not name: {shown}")]
    return []


def numbers_in_formulas(original: str, translated: str) -> list[Violation]:
    """Return a violation for a formula that is the same but for its numbers, or for their order."""
    before, after = Counter(formulas_of(original)), Counter(formulas_of(translated))
    new = {_DIGITS.sub("#", formula): formula for formula in after - before}
    for formula in before - after:
        other = new.get(_DIGITS.sub("#", formula))
        if other is not None and len(formula) > 2:
            return [Violation("formulas", f"{formula[:70]} became {other[:70]}")]
    lists = _number_lists(original) - _number_lists(translated)
    others = {tuple(sorted(one)): one for one in _number_lists(translated) - _number_lists(original)}
    for one in lists:
        if tuple(sorted(one)) in others:
            shown = " ".join(one), " ".join(others[tuple(sorted(one))])
            return [Violation("formulas", f"{shown[0][:70]} became {shown[1][:70]}")]
    return []


def _number_lists(text: str) -> Counter[tuple[str, ...]]:
    """Return the numbers of each formula that has several, in order."""
    pieces = (piece for piece, is_formula in parts(displayed_as_formulas(text)) if is_formula)
    lists = (tuple(re.findall(r"\d+", piece)) for piece in pieces)
    return Counter(one for one in lists if len(one) >= _LEAST_LIST)


_FOREIGN_GROUPS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:([.,])\d{3})(?![\d]|[.,]\d)")


def notation(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for thousands parted by a sign that is the target's decimal sign."""
    foreign = [
        match[0]
        for piece, is_formula in parts(plain_digits(translated))
        if not is_formula
        for match in _FOREIGN_GROUPS.finditer(piece)
        if match[1] not in language(target).meaning.thousands
    ]
    shown = [text for text in foreign if not _is_decimal_there(text, original, source)]
    if not shown:
        return []
    name = language(target).name
    return [Violation("notation", f"{shown[0]} is no thousand in {name}: write it as {name} parts thousands")]


def _is_decimal_there(text: str, original: str, source: str) -> bool:
    value = Fraction(text.replace(",", "."))
    same = (token for token in in_digits(plain_digits(original), source) if token.values == {value})
    return any(value.denominator > 1 or re.search("[.,]", token.text) for token in same)
