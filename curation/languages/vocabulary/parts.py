"""The small tables of a language: how it is told apart, counts, dates and measures, and how it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """Words and letters that show that a text is in the language."""

    tasks: tuple[str, ...]
    """What short problems are made of, and the commonest articles, prepositions and conjunctions; not a dictionary."""
    small_words: tuple[str, ...]
    """Articles, pronouns, verbs of reasoning and the like: what a text in another language does not borrow; empty where
    the script tells."""
    common: tuple[str, ...]
    """Further common words, those of three problems or more in the first halves of MGSM and PolyMath, and words that it
    writes like a word of another language, as seen in GSM8K's translations: in a text of its own they are nothing
    foreign."""
    telling: tuple[str, ...]
    """Literals that the other languages in Latin letters do not write; empty where the script tells."""
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

    order: str
    """How a numeral of several words is built: apart (thirty one); unit_first and ten_first (einunddreißig,
    trentuno: one word, made from ``glue``); positional (三百零五)."""
    units: tuple[str, ...]
    """The words for 0, 1, 2 … as far as they are words of their own."""
    tens: tuple[str, ...]
    """The words for 20, 30 … 90."""
    glue: dict[str, str]
    """For numerals that are one word: ``one`` inside them, ``joint`` between unit and ten, ``hundred``,
    ``one_hundred`` before the first hundred, ``thousand``; ``three`` where it is written otherwise at the end."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply what stands before them."""
    parts: dict[str, tuple[str, ...]]
    """Value → words for a half, a third …, as denominators and alone."""
    more: dict[str, tuple[str, ...]]
    """Value → further words: other cases and genders, doublings, dozens. Ordinals are left out."""
    joiners: tuple[str, ...]
    """Words that may stand inside a numeral."""
    compounds: dict[str, str]
    """Numerals of several words that would be read as several numbers → the one word to read instead."""
    stems: dict[str, str]
    """Value → regular expression of what longer words that are made of it begin with."""
    stem_prefixes: tuple[str, ...]
    """What may stand before these stems."""
    behind_digits: dict[str, tuple[str, ...]]
    """Value → expressions that multiply digits before them: 3 million, 3万."""
    ordinals: dict[str, str]
    """Value → expression of its ordinal, in any form: a translation may say 6th grade in a word, or the other way."""
    afternoon: str
    """Expression of an hour (group 1) whose half of the day stands before it: 下午4点; empty where it stands behind."""
    by: str
    """Expression between the sides of an area: 4 feet by 4 feet."""
    clock: str
    """Expression between the hours and the minutes of a time of the day, where it may be no colon."""
    half_hour: tuple[str, ...]
    """Expression of half an hour, and how 30 minutes are written."""
    halving: str
    """Expression of what is cut in two, its number in the group ``two``, where another language says half."""
    out_of: str
    """Expression between two numbers that are a share: one out of nine; empty where the larger one stands first."""
    places: dict[str, str]
    """Power of ten → expression of its place in a number: the tens digit; in English as such words alone show it."""
    hundreds_or_cents: str
    """Expression of words that are hundreds behind a number, and coins as well (cinq cents); empty elsewhere."""
    implied: dict[str, tuple[str, ...]]
    """Value → expressions that another language may say with this number: a quarter is a coin of 25 cents."""
    like_parts: dict[str, tuple[str, ...]]
    """Value → expressions that hold no such part, and that another language says with its word: a quart, 1 in 4."""
    loose: tuple[str, ...]
    """Words for a number that other languages leave out or say otherwise: both, a pair."""
    referring: str
    """Expression before a number that names again what was counted before: the three, all 5."""
    referring_behind: str
    """Expression behind such a number, which other languages leave out: three of them."""
    half_day: tuple[str, ...]
    """Expressions behind an hour of a twelve-hour clock; empty where the day has twenty-four."""
    forenoon: tuple[str, ...]
    """Those of them that say the first half of the day."""
    second_half: tuple[str, ...]
    """Expressions that say the second half of the day: p.m., in the evening."""
    half_day_range: tuple[str, ...]
    """Words between two hours of such a clock."""
    positional: dict[str, str]
    """For positional numerals: ``numeral`` (expression), ``fraction`` between denominator and numerator,
    ``hundredth``, ``half``, ``scale_ends`` (what may not follow a scale), ``passed_over`` (days and figures),
    ``reduction`` and, behind digits, ``reduction_sign`` (tenths taken off a price), ``twice``, ``dozen``. Empty for all
    others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Names of months, and dates as they are written out."""

    months: tuple[str, ...]
    """Twelve: the month's name as dates write it, and its short forms behind it; empty where months are numbers."""
    month_stems: tuple[str, ...]
    """Twelve, where a month's name has endings: what it begins with. Empty: the name stays as it is."""
    month_endings: tuple[str, ...]
    """Expressions of these endings; none may follow as well."""
    day_suffixes: tuple[str, ...]
    """Expressions behind a day's number: 3rd, 1er, 3."""
    before_month: tuple[str, ...]
    """Words between day and month."""
    before_year: tuple[str, ...]
    """Words between month and year."""
    after_year: tuple[str, ...]
    """Words behind the year."""
    in_digits: str
    """Expression of a date in digits, with groups for year, month and day; empty for none but ISO's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Names of units and currencies."""

    beside_numbers: dict[str, tuple[str, ...]]
    """Unit (of `curation.translation.units`) → expressions that name it beside a number, in any form."""
    written: dict[str, tuple[str, ...]]
    """Unit (of `curation.verify.answers.units`) → words that an answer may name it with."""
    short: str
    """Expression of short names of units, beside those of every language, that may end a sentence with their stop."""
    powers: dict[str, tuple[str, ...]]
    """2 or 3 → words for it before or behind a unit."""
    empty: tuple[str, ...]
    """Words behind a number that say nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What a model is told."""

    name: str
    """The language, as the prompt for translations names it."""
    boxed: str
    """How the final answer of a math problem must be written."""
    fenced: str
    """How a program must be written; ``{fence}`` is the name behind the fence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What a translation is checked by."""

    relative_length: float
    """Characters of prose that say what one character of English says: medians over the parallel problems of MGSM
    (250 each in de, es, fr, ru, zh) and PolyMath (58 to 93 each in the six)."""
    spread: tuple[float, ...]
    """How far a translation's length may lie from the expected one, as two factors. Of those parallel problems the
    shortest lies at 0.61 and the longest at 1.49 (zh: 0.57 and 1.89)."""
    solution_words: tuple[str, ...]
    """Expressions of the headings of answers and solutions."""
    copulas: tuple[str, ...]
    """Words for "is" behind such a heading, or behind the answer."""
    final_words: tuple[str, ...]
    """Expressions of adjectives behind such a heading."""
    answer_articles: tuple[str, ...]
    """Articles before ``answer_words``."""
    answer_words: tuple[str, ...]
    """Words for the answer in a sentence: "the answer is"."""
    solution_marks: tuple[str, ...]
    """Further expressions that begin a solution."""
    short_answers: tuple[str, ...]
    """Answers that are words of this language, but too short to be identified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """What makes another problem of a text."""

    telling: tuple[str, ...]
    """Words that, like numbers, make another problem of a text when they change."""
