"""Words that turn what a problem asks into something else when a translation loses or turns them.

Regular expressions (Python), tried on text in small letters; where words stand apart, they match whole words.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the aligned sentences of a translation are compared by."""

    abbreviations: tuple[str, ...]
    """Words whose full stop ends no sentence, as they are written."""
    idioms: tuple[str, ...]
    """Expressions that hold a word of the lists below and do not mean it: not only, more or less."""
    at_least: tuple[str, ...]
    """At least, no less than; looked for before all that follow, which may be parts of them."""
    at_most: tuple[str, ...]
    """At most, no more than."""
    more: tuple[str, ...]
    """More, and comparatives in its direction: older, longer, faster."""
    less: tuple[str, ...]
    """Less, fewer, and comparatives in its direction: younger, shorter, slower."""
    negations: tuple[str, ...]
    """Not, no, never, none, without."""
    negative_words: tuple[str, ...]
    """Words that another language says with a negation: only, until, remaining, fail, refuse, unless."""
    negative_forms: tuple[str, ...]
    """Words that deny by themselves, and whose translation mostly does so too: unsold, missing, wrong."""
    largest: tuple[str, ...]
    """Superlatives in the direction of more: most, largest, maximum."""
    smallest: tuple[str, ...]
    """Superlatives in the direction of less."""
    privative: tuple[str, ...]
    """Expressions that something ends, runs out or is refused: a translation has one, or a negation."""
    torn: tuple[str, ...]
    """Expressions of which the negation that belongs to them is gone: 而是 without 不是, ни один without не."""
    yet: tuple[str, ...]
    """Negations of a moment alone, which another language may leave out: what has not yet come is after today."""
    suffices: tuple[str, ...]
    """Words of what is enough, in languages that say with their denial what is short or missing: не хватает, 不够."""
    clause_words: tuple[str, ...]
    """Words that begin another clause, or another thing of a comparison: and, if, which, than."""
    times: tuple[str, ...]
    """Expressions right behind a number that multiplies: three times, 3 fois, 3 倍."""
    times_less: tuple[str, ...]
    """Expressions of a factor that makes less: three times fewer, half as many."""
    each_of: str
    """What says that a number counts those of whom each is meant: before it where words stand apart, else behind it."""
    each_behind: str
    """Expression of each behind what it speaks of: $30 each; empty where none is looked for."""
    distributive: tuple[str, ...]
    """Words of which one shows that something is each one's; empty where a language need not say it."""
    every: str
    """Expression before a number of which each is meant: every 8 children."""
    than: str
    """Expression before the number that another is compared with: three less than 10."""
    per: str
    """Expression between a unit and the one that it is measured by: 8 feet per minute; before both where words run
    together."""
    owner: tuple[str, ...]
    """Expressions of whose something is, ``{}`` for the name as it is written; none where an ending says it."""
    owns_before_capitals: bool
    """Whether nouns have capitals, so that a name in -s before one owns it, and before another word does not."""
    joins: str
    """Expression of a word between two names of which the same is said: and, or, with."""
    smaller: tuple[str, ...]
    """Words that another language says with less: half, a third, a discount."""
    not_names: tuple[str, ...]
    """Capitalised words that name nobody, in small letters: days, months, nations; where words run together, words
    written with characters that names are transcribed with."""
    clauses: dict[str, str]
    """Kind (if, after, before, when, from, than, for, of them) → expression of a whole such clause, with which
    numbers move."""
    names: dict[str, tuple[str, ...]]
    """English name, in small letters → how it is written here, where its sound does not show it."""
    rank: str
    """What makes a number behind it a rank, where words run together; empty elsewhere."""
    measures: str
    """Characters between a number and what it counts; empty where words stand apart."""
    transcribing: str
    """Characters that names are transcribed with, where words run together; empty elsewhere."""
    counted: dict[str, tuple[str, ...]]
    """English noun → expressions of it here, in any form: what a number counts, so that numbers may change places."""
    thousands: str
    """Signs that part thousands in its numbers, of comma, point and space."""
    counts: str
    """Characters, beside digits, before a unit of one character; empty where words stand apart."""
