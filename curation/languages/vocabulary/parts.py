"""The small tables of a language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """Words and letters that show the language."""

    tasks: tuple[str, ...]
    """What short problems are made of, and the commonest articles, prepositions and conjunctions; not a dictionary."""
    telling: tuple[str, ...]
    """Literals that no other language in Latin letters has; empty if the script is enough."""
    further: tuple[str, ...]
    """Further common literals; a text with one of either kind is not looked at more closely."""
    own_letters: str
    """Regular expression (Rust) without which a text is not believed to be in the language; empty for none."""
    foreign_letters: str
    """Regular expression (Rust) of letters that make its tag doubtful; empty for none."""
    letters_of_others: str
    """Regular expression of all letters of its script that only other languages have; empty where the script does
    not settle the language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerals:
    """Numbers written in words. Values are decimal integers or fractions, "1/2"."""

    units: tuple[str, ...]
    """The words for 0, 1, 2 … as far as they are words of their own."""
    tens: tuple[str, ...]
    """The words for 20, 30 … 90."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply what is before them."""
    parts: dict[str, tuple[str, ...]]
    """Value → words for a half, a third …, as denominators and alone."""
    more: dict[str, tuple[str, ...]]
    """Value → further words: other cases and genders, doublings, dozens. Ordinals are left out."""
    joiners: tuple[str, ...]
    """Words that may be inside a numeral."""
    behind_digits: dict[str, tuple[str, ...]]
    """Value → expressions that multiply digits before them: 3 million, 3万."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Names of months, and dates as they are written out."""

    months: tuple[str, ...]
    """Twelve: the month's name as dates write it, and its short forms after it; empty where months are numbers."""
    day_suffixes: tuple[str, ...]
    """Expressions after a day's number: 3rd, 1er, 3."""
    before_month: tuple[str, ...]
    """Words between day and month."""
    before_year: tuple[str, ...]
    """Words between month and year."""
    after_year: tuple[str, ...]
    """Words after the year."""
    in_digits: str
    """Expression of a date in digits, with groups for year, month and day; empty for none but ISO's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Names of units and currencies."""

    beside_numbers: dict[str, tuple[str, ...]]
    """Unit → expressions that name it next to a number, in any form."""
    written: dict[str, tuple[str, ...]]
    """Unit (of `curation.verify.answers.units`) → words that an answer may name it with."""
    powers: dict[str, tuple[str, ...]]
    """2 or 3 → words for it before or after a unit."""
    empty: tuple[str, ...]
    """Words after a number that show nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Instructions for a model."""

    boxed: str
    """How the final answer of a math problem must be written."""
    fenced: str
    """How a program must be written; ``{fence}`` is the name after the fence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """What makes another problem of a text."""

    labels: tuple[str, ...]
    """Words before a number that only number a problem."""

    telling: tuple[str, ...]
    """Words that, like numbers, make another problem of a text when they change."""
