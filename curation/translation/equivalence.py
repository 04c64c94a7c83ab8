"""Whether a translation asks the same: what its sentences say, compared with those that they are aligned with.

    sentences     no sentence is gone, and none came in
    quantities    each number has its unit, in its sentence, in the same order unless units tell it apart
    polarity      a sentence that denies still denies, one that does not still does not
    comparisons   more is not less, at least not at most, older not younger
    entities      the names stand in the same order, each with its numbers
    notation      thousands are parted as the target's language parts them

Invariants: pure functions; every violation names the aligned things that differ, with an excerpt of both sides.
Not here: whether the numbers, formulas and units are there at all (`quantities`, `formulas`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.clauses import clause_moved
from curation.translation.formulas import formulas_of
from curation.translation.names import Name, exchanged_names, exchanged_owners, names_of, places_of
from curation.translation.numerals import in_digits, in_words, plain_digits
from curation.translation.quantities import months_named, prose_of_units
from curation.translation.sentences import Segment, align, length_ratio
from curation.translation.units import DIMENSIONS, UnitMention, units_mentioned
from curation.translation.violations import Violation

_NUMBER = re.compile(r"[\d.,\s{}/]+(?:\\%)?")
_DISPLAYED = re.compile(
    r"\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)|\\begin\s*\{(\w+\*?)\}.*?\\end\s*\{\1\}|```.*?```|`[^`\n]+`", re.DOTALL
)
_DIGITS = re.compile(r"\d+")
_CLOCK = re.compile(r"\d\s?[ap]\.?\s?m\b|\d:\d\d|o['’]clock|noon|midnight", re.IGNORECASE)
_CURRENCIES = "$€£¢"
_QUESTION = re.compile(r"[?？]")
_BLANKS = " \u00a0\u202f-个"
"""What may stand between a number and its unit."""
_SHOWN = 70
_SHORTEST = 0.5
_LONGEST = 2.2


def check_equivalence(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return what the aligned sentences of a translation say otherwise than the original's; empty where they agree."""
    segments = align(original, translated, source, target)
    names = names_of(original, translated, source, target)
    whole = [segment for segment in segments if segment.before and segment.after]
    return [
        *coverage(segments, source, target),
        *(violation for segment in whole for violation in quantities(segment, source, target, names)),
        *(violation for segment in whole for violation in polarity(segment, source, target)),
        *(violation for segment in whole for violation in comparisons(segment, source, target)),
        *(violation for segment in whole for violation in entities(segment, names, source, target)),
        *new_units(original, translated, source, target),
        *numbers_in_formulas(original, translated),
        *notation(original, translated, source, target),
    ]


def coverage(segments: list[Segment], source: str, target: str) -> list[Violation]:
    """Return violations for sentences that only one text has, and for ones far shorter or longer than expected."""
    violations: list[Violation] = []
    for segment in segments:
        if not segment.after:
            violations.append(Violation("sentences", f"nothing stands for {_excerpt(segment.before)}"))
        elif not segment.before:
            violations.append(Violation("sentences", f"nothing in the original says {_excerpt(segment.after)}"))
        else:
            ratio = length_ratio(segment, source, target)
            if not _SHORTEST <= ratio <= _LONGEST:
                said = "shorter" if ratio < 1 else "longer"
                violations.append(Violation("sentences", f"much {said} than the original: {_sides(segment)}"))
    return violations


def quantities(segment: Segment, source: str, target: str, names: list[Name]) -> list[Violation]:
    """Return violations for units that were exchanged, and for numbers that changed places."""
    before = Counter(one.unit for one in units_mentioned(prose_of_units(segment.before), source))
    after = Counter(one.unit for one in units_mentioned(prose_of_units(segment.after), target))
    for unit in before - after:
        for other in after - before:
            if DIMENSIONS[unit] == DIMENSIONS[other]:
                return [Violation("units", f"{unit} became {other}: {_sides(segment)}")]
    violations = _order(segment, source, target)
    if violations and _units_stay(segment, source, target) and _clause_moved(segment, names, source, target):
        return []
    return violations


def _units_stay(segment: Segment, source: str, target: str) -> bool:
    before, after = _tied(segment.before, source), _tied(segment.after, target)
    partners = zip(before, _partners(before, after), strict=True)
    return all(number.unit == after[at].unit for number, at in partners if at is not None)


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
    return any(
        clause_moved(mine, others, fewest)
        and {str, frozenset} <= {type(a) for a, b in zip(mine, others, strict=True) if a != b}
        for mine, others in ((before, after), firsts)
    )


def _things(text: str, forms: list[tuple[str, tuple[str, ...]]], lang: str) -> list[str | frozenset[Fraction]]:
    """Return the names and the numbers in digits of a text, in order."""
    plain = prose_of_units(plain_digits(_without_terms(text)))
    things: list[tuple[int, str | frozenset[Fraction]]] = [
        (token.start, token.values) for token in in_digits(plain, lang)
    ]
    things += [(place, name) for name, listed in forms for place in places_of(plain, listed)]
    return [thing for _, thing in sorted(things, key=lambda thing: thing[0])]


@dataclass(frozen=True, slots=True)
class _TiedNumber:
    """A number in digits, the values that it may have, and the unit that it stands with."""

    text: str
    values: frozenset[Fraction]
    unit: str | None


_Pair = tuple[_TiedNumber, _TiedNumber]


def _order(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where two numbers changed places or units, and did not take their own units along."""
    before, after = _tied(segment.before, source), _tied(segment.after, target)
    order = _partners(before, after)
    pairs = [(number, after[at]) for number, at in zip(before, order, strict=True) if at is not None]
    places = [at for at in order if at is not None]
    for i, mine in enumerate(pairs):
        for j in range(i + 1, len(pairs)):
            others = pairs[j]
            if mine[0].values & others[0].values or mine[1].values & others[1].values:
                continue
            moved = places[i] > places[j]
            if (moved and not _told_apart(mine, others)) or _units_exchanged(mine, others):
                shown = f"{mine[0].text} and {others[0].text} changed places"
                return [Violation("order", f"{shown}: {_sides(segment)}")]
    lost = [number for number, at in zip(before, order, strict=True) if at is None]
    new = [number for at, number in enumerate(after) if at not in places]
    return _moved_out(segment, lost, new, source, target)


def _moved_out(
    segment: Segment, lost: list[_TiedNumber], new: list[_TiedNumber], source: str, target: str
) -> list[Violation]:
    """Return a violation where a sentence has another number in the place of its own, though both are in the text."""
    words_before = in_words(plain_digits(segment.before), source)
    words_after = in_words(plain_digits(segment.after), target)
    lost = [number for number in lost if not number.values & {*words_after}]
    new = [number for number in new if not number.values & {*words_before}]
    if not lost or not new:
        return []
    return [Violation("order", f"{new[0].text} stands where {lost[0].text} should: {_sides(segment)}")]


def _partners(before: list[_TiedNumber], after: list[_TiedNumber]) -> list[int | None]:
    """Return for each number the place of its equal on the other side, of equal unit where there are several."""
    free = list(range(len(after)))
    partners: list[int | None] = []
    for number in before:
        equal = [at for at in free if after[at].values & number.values]
        best = min(equal, key=lambda at: (after[at].unit != number.unit, at), default=None)
        partners.append(best)
        if best is not None:
            free.remove(best)
    return partners


def _told_apart(mine: _Pair, others: _Pair) -> bool:
    """Return whether two numbers have kept units that differ: then each is still what it was, in whatever order."""
    return mine[0].unit == mine[1].unit and others[0].unit == others[1].unit and mine[0].unit != others[0].unit


def _units_exchanged(mine: _Pair, others: _Pair) -> bool:
    """Return whether each of two numbers has the unit now that the other had."""
    return mine[0].unit == others[1].unit != others[0].unit == mine[1].unit


def _tied(text: str, lang: str) -> list[_TiedNumber]:
    """Return the numbers in digits of a text with the unit behind or before each; a fraction is a unit of its own."""
    plain = prose_of_units(plain_digits(_without_terms(text)))
    mentions = units_mentioned(plain, lang)
    tied: list[_TiedNumber] = []
    for token in in_digits(plain, lang):
        end = token.start + len(token.text)
        unit = next((one.unit for one in mentions if _before(plain, token.start, one)), None)
        unit = unit or next((one.unit for one in mentions if _behind(plain, end, one)), None)
        if unit is None and _times(lang).match(plain, end):
            unit = "times"
        tied.append(_TiedNumber(token.text, token.values, unit or ("fraction" if "/" in token.text else None)))
    return tied


@cache
def _times(lang: str) -> re.Pattern[str]:
    """Return the expression of a word that makes the number before it a factor."""
    return re.compile(
        rf"[\s-]?(?:{'|'.join(language(lang).meaning.times)})(?![^\W_])"
        if language(lang).spaced
        else rf"\s?(?:{'|'.join(language(lang).meaning.times)})"
    )


def _without_terms(text: str) -> str:
    """Return a text without its formulas but those that are a number: what stands in formulas is compared there."""
    pieces = (
        piece if not is_formula else f" {piece} " if _NUMBER.fullmatch(piece.strip()) else " "
        for piece, is_formula in parts(_DISPLAYED.sub(" ", text))
    )
    return "".join(pieces)


def _before(text: str, start: int, mention: UnitMention) -> bool:
    """Return whether a currency's sign stands directly before a number."""
    return mention.end <= start and not text[mention.end : start].strip() and text[mention.end - 1] in _CURRENCIES


def _behind(text: str, end: int, mention: UnitMention) -> bool:
    """Return whether a unit stands directly behind a number, or with one word between if it is a word itself."""
    if mention.start < end:
        return False
    between = text[end : mention.start]
    if not between.strip(_BLANKS):
        return True
    return text[mention.end - 1] not in _CURRENCIES and re.fullmatch(r"[\s-][^\W\d_]{1,12}[\s-]", between) is not None


@cache
def _matcher(lang: str, name: str) -> re.Pattern[str]:
    """Return one expression of a list of `Meaning`, the longest alternatives first."""
    listed = getattr(language(lang).meaning, name)
    if not listed:
        return re.compile(r"(?!)")
    alternatives = "|".join(sorted(listed, key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])" if language(lang).spaced else f"(?:{alternatives})")


@dataclass(frozen=True, slots=True)
class _Said:
    """What a sentence says of more and less, and how often it denies."""

    up: int
    down: int
    denied: int
    negative: int
    forms: int
    smaller: int


@cache
def _read(text: str, lang: str) -> _Said:
    plain = "".join(" " if is_formula else piece for piece, is_formula in parts(text)).lower().replace("’", "'")
    plain = _matcher(lang, "idioms").sub(" ", plain)
    plain, least = _matcher(lang, "at_least").subn(" ; ", plain)
    plain, most = _matcher(lang, "at_most").subn(" ; ", plain)
    compared, less = _matcher(lang, "less").subn(" ; ", plain)
    affirmed, denied = _matcher(lang, "negations").subn(" ; ", plain)
    return _Said(
        up=least + len(_matcher(lang, "more").findall(compared)),
        down=most + less,
        denied=denied,
        negative=len(_matcher(lang, "negative_words").findall(affirmed)),
        forms=len(_matcher(lang, "negative_forms").findall(affirmed)),
        smaller=len(_matcher(lang, "smaller").findall(plain)),
    )


def polarity(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where one side denies and the other does not, in another word either.

    A word that denies by itself explains no lost negation where the original has such a word as well.
    """
    before, after = _read(segment.before, source), _read(segment.after, target)
    if before.denied > after.denied + max(0, after.negative - before.forms):
        return [Violation("polarity", f"a negation is lost: {_sides(segment)}")]
    if after.denied > before.denied + max(0, before.negative - after.forms):
        return [Violation("polarity", f"a negation came in: {_sides(segment)}")]
    return []


def comparisons(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where less came in, or more took the place of less.

    "Four times as many" is said with more in many languages, so more alone may come in; less may only where
    a half, a discount or another such word explains it.
    """
    before, after = _read(segment.before, source), _read(segment.after, target)
    if after.down > before.down + (before.smaller if after.up >= before.up else 0):
        return [Violation("comparisons", f"more became less: {_sides(segment)}")]
    if after.up > before.up and after.down < before.down:
        return [Violation("comparisons", f"less became more: {_sides(segment)}")]
    return []


def entities(segment: Segment, names: list[Name], source: str, target: str) -> list[Violation]:
    """Return a violation where two names changed places, and not a clause with them, or what one has is the other's."""
    owners = exchanged_owners(segment, names, source, target)
    if owners is not None:
        return [Violation("entities", f"what {owners[0]} has is {owners[1]}'s: {_sides(segment)}")]
    exchanged = exchanged_names(segment, names)
    if exchanged is None or _clause_moved(segment, names, source, target, names_changed=True):
        return []
    return [Violation("entities", f"{exchanged[0]} and {exchanged[1]} changed places: {_sides(segment)}")]


def new_units(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for a number with a unit that the original names nowhere, while it names another of its kind.

    Months for years, that is; where the original names none of the kind, the word is another (livres are books, too).
    """
    named = {one.unit for one in units_mentioned(prose_of_units(original), source)}
    dated = bool(_CLOCK.search(original)) or bool(months_named(original, source))
    for number in _tied(translated, target):
        if number.unit is None or number.unit in ("fraction", "percent", "times") or number.unit in named:
            continue
        kind = DIMENSIONS[number.unit]
        if any(DIMENSIONS[unit] == kind for unit in named) and not (dated and kind == "time"):
            shown = _excerpt(translated[max(0, translated.find(number.text) - 20) :])
            return [Violation("units", f"{number.unit} came in, which the original does not name: {shown}")]
    return []


def numbers_in_formulas(original: str, translated: str) -> list[Violation]:
    """Return a violation for a formula that is the same but for its numbers."""
    before, after = Counter(formulas_of(original)), Counter(formulas_of(translated))
    new = {_DIGITS.sub("#", formula): formula for formula in after - before}
    for formula in before - after:
        other = new.get(_DIGITS.sub("#", formula))
        if other is not None and len(formula) > 2:
            return [Violation("formulas", f"{formula[:_SHOWN]} became {other[:_SHOWN]}")]
    return []


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
    return any(token.values == {value} for token in in_digits(plain_digits(original), source))


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return f"“{flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + '…'}”"


def _sides(segment: Segment) -> str:
    return f"{_excerpt(segment.before)} / {_excerpt(segment.after)}"
