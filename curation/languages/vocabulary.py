"""Words of the human languages: ``curation/languages/data/<ISO 639-1 code>.toml``, with the schema `Language`.

Expressions for statements are in Rust's syntax, others in Python's.

Invariants: every file has every field and no other; only `curation.records` is imported here, so that the verifier's
workers start quickly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from curation.records import ConfigError

FOLDER = Path(__file__).resolve().parent / "data"

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Words that point at the options of multiple choice; letters match in any case."""

    points: tuple[str, ...]
    """Expressions of words that point at options: a question with one is not complete without them."""
    headers: tuple[str, ...]
    """Expressions of headings before options."""
    leads_after_options: tuple[str, ...]
    """Expressions that an instruction after the options begins with."""
    sends: tuple[str, ...]
    """Expressions of questions that send the reader to options."""
    answer_leads: tuple[str, ...]
    """Words before the letter of an answer."""
    answer_adjectives: tuple[str, ...]
    """Adjectives before these words."""
    copulas: tuple[str, ...]
    """Words between such a word and the letter."""
    letter_joiners: tuple[str, ...]
    """Words between letters of a key."""
    marks_an_answer: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since they give the answer away."""
    names_options: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since there are no options any more."""
    asks: tuple[str, ...]
    """Expressions of which a rewritten problem must hold one, or a question mark or a blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Words in and around answers; letters match in any case unless the reader decides otherwise."""

    yes: tuple[str, ...]
    """Words that say yes, in lower case."""
    no: tuple[str, ...]
    """Words that say no, in lower case."""
    same: dict[str, tuple[str, ...]]
    """Meaning (infinity, no solution, dne, reals, divergent …) → phrases for it, in lower case without signs."""
    nothing: str
    """Expression of whole answers that say that there is nothing; empty for none."""
    articles: tuple[str, ...]
    """Expressions of words in front of an answer that show nothing."""
    choice_words: tuple[str, ...]
    """Words before the letter of a choice."""
    and_words: tuple[str, ...]
    """Words between answers that all hold."""
    or_words: tuple[str, ...]
    """Words between answers of which one holds."""
    connectives_at_end: tuple[str, ...]
    """Of both, those that are cut off at the end of a text."""
    connectives_at_start: tuple[str, ...]
    """Of both, those that are cut off at the start of a text, and count as words between boxes."""
    box_joiners: tuple[str, ...]
    """Words between boxes that are one answer."""
    box_fillers: tuple[str, ...]
    """Expressions of further words between such boxes."""
    list_joiners: tuple[str, ...]
    """Words between the items of a list of words."""
    list_leads: tuple[str, ...]
    """Words after a comma of such a list."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply the number before them."""
    cues: tuple[str, ...]
    """Expressions that a final answer follows."""
    headings: tuple[str, ...]
    """Expressions of a line of its own that a final answer follows on the next, without marks of a heading."""
    judgements: tuple[str, ...]
    """Expressions after a cue that say how an answer is, not what it is."""
    value_words: tuple[str, ...]
    """Words next to a number, besides numerals, that make it another one or leave it open."""
    weak_cues: tuple[str, ...]
    """Expressions of cues that count only where there is no better."""
    strong_cues: tuple[str, ...]
    """Expressions of cues that count more than a box before them."""
    farewells: tuple[str, ...]
    """Expressions at the end of a response that do not belong to the answer."""
    second_thoughts: tuple[str, ...]
    """Words between two boxes that take the first one back."""
    nothing_recorded: tuple[str, ...]
    """Whole recorded answers that say that there is none."""
    copulas: tuple[str, ...]
    """Words for "is" before an answer in a sentence."""
    states: tuple[str, ...]
    """Expressions that state a number of things."""
    negations: tuple[str, ...]
    """Expressions before a letter that is not the answer."""
    tails: tuple[str, ...]
    """Expressions of words that begin a condition after a formula."""
    tail_words: tuple[str, ...]
    """Of these, single words that do so outside of text commands."""
    condition_words: tuple[str, ...]
    """Words that begin a condition."""
    relating_words: tuple[str, ...]
    """Words that the name of a counted thing does not have: five over, not five."""
    declarations: dict[str, tuple[str, ...]]
    """What a declared name is (Z, N, Q, R, C, prime, positive …; ``any`` for words that say no more) → words of a
    declaration: where n is any integer."""
    hedges: tuple[str, ...]
    """Expressions of references that leave the answer open."""
    elsewhere: tuple[str, ...]
    """Expressions of references that point elsewhere, or are proofs."""
    breaks_off: tuple[str, ...]
    """Words that a whole reference does not end in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What the verifier reads of a statement: what is asked for, and in which form; letters match in any case.

    Blanks: ``<unit>``, ``<number>`` small, in digits or words, ``<place>`` one of ``places``, ``<step>`` a power of ten
    in digits, ``<names>`` of variables, ``<formula>``.
    """

    asks: tuple[str, ...]
    """Expressions of words that ask; the last sentence with one, or with a question mark, states what is asked for."""
    formula: tuple[str, ...]
    """Expressions with ``<formula>``, the one that is asked for."""
    unit: tuple[str, ...]
    """Expressions with ``<unit>``, that in which the answer is asked for."""
    per: tuple[str, ...]
    """Expressions of words between two units of which the first is divided by the second."""
    temperature: tuple[str, ...]
    """Expressions of words that say that a degree is no angle."""
    decimals: tuple[str, ...]
    """Expressions with ``<number>`` of digits behind the decimal point."""
    digits: tuple[str, ...]
    """Expressions with ``<number>`` of significant digits."""
    nearest: tuple[str, ...]
    """Expressions with ``<place>`` or ``<step>`` that the answer is rounded to."""
    places: dict[str, tuple[str, ...]]
    """Digits after the decimal point, negative before it → expressions of that place."""
    exact: tuple[str, ...]
    """Expressions that ask for an exact value: as a fraction, in terms of π, in radicals."""
    percent: tuple[str, ...]
    """Expressions of any word for percent."""
    in_percent: tuple[str, ...]
    """Expressions that ask for a number of percent."""
    ordered: tuple[str, ...]
    """Expressions that ask for a tuple: coordinates, an ordered pair."""
    interval: tuple[str, ...]
    """Expressions that ask for an interval."""
    open_interval: tuple[str, ...]
    """Expressions that ask for open intervals."""
    closed_interval: tuple[str, ...]
    """Expressions that ask for closed intervals."""
    every_value: tuple[str, ...]
    """Expressions that ask for all of several values."""
    one_value: tuple[str, ...]
    """Expressions that ask for any one of several values."""
    integers: tuple[str, ...]
    """Expressions with ``<names>`` of integers."""
    positive: tuple[str, ...]
    """Expressions with ``<names>`` of positive numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    r"""What the format filter looks for in statements and answers, in Rust's syntax, without look-around.

    Letters match in any case, and ``\b`` is an ASCII boundary, so never next to an accented letter. All languages are
    tried on every row.
    """

    proof_needles: tuple[str, ...]
    """Literals (any case) of which one is in every text that ``proof`` finds."""
    proof: tuple[str, ...]
    """Expressions that ask for a proof, an explanation or a drawing."""
    proof_harmless: tuple[str, ...]
    """Expressions with the same words that ask for nothing: blanked out before ``proof`` is looked for."""
    asks_a_value: tuple[str, ...]
    """Expressions that ask for a value next to a proof: with a short answer at hand, that part can be verified."""
    asks: tuple[str, ...]
    """Expressions of verbs and question words that ask for something, right after the mark of a part."""
    orders: tuple[str, ...]
    """The same for parts that follow a condition of their own."""
    also_asked_needles: tuple[str, ...]
    """Literals of which one is in every text that ``also_asked`` finds, but for those with two question marks."""
    also_asked: tuple[str, ...]
    """Expressions that ask for two quantities."""
    also_asked_harmless: tuple[str, ...]
    """Expressions of a second question that asks for the same in another writing: blanked out before ``also_asked``."""
    several_joiners: tuple[str, ...]
    """Expressions between two answers: and."""
    asks_several: tuple[str, ...]
    """Expressions of questions that want more than one answer."""
    yes_no_answers: tuple[str, ...]
    """Expressions of whole answers that are yes or no, true or false."""
    no_answer: tuple[str, ...]
    """Expressions of whole answers that say that there is none."""
    worked: tuple[str, ...]
    """Expressions that begin a worked solution where the answer should be."""
    math_words: tuple[str, ...]
    """Expressions of words in answers that a verifier reads as mathematics."""
    proof_answers: tuple[str, ...]
    """Expressions that begin an answer which states what is to be proved."""
    answer_labels: tuple[str, ...]
    """Expressions of labels before an answer that is in the statement."""
    copulas: tuple[str, ...]
    """Words for "is" between such a label and the answer."""
    worked_labels: tuple[str, ...]
    """Expressions of labels before a solution that is in the statement."""
    given_needles: tuple[str, ...]
    """Literals of which one is in every text with such a label."""
    label_words: tuple[str, ...]
    """Expressions of words for a problem before its number."""
    label_words_alone: tuple[str, ...]
    """The same for words that are a label without a number."""
    label_patterns: tuple[str, ...]
    """Further expressions of labels."""
    label_starts: tuple[str, ...]
    """Expressions of what such labels begin with, where no number and no label word does."""
    points: tuple[str, ...]
    """Expressions of points after their number."""
    before_points: tuple[str, ...]
    """Expressions before the number of points."""
    points_needles: tuple[str, ...]
    """Literals of which one is in every text with points."""
    points_at: tuple[str, ...]
    """Literals of words that point at a figure or another text: a model is asked about such a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """All known words and rules of one language."""

    code: str
    """ISO 639-1; the file's name."""
    name: str
    """In English, for people."""
    position: int
    """Place among the languages, from 1: in this order their alternatives are joined."""
    script: Literal["latin", "cyrillic", "han"]
    decimal_comma: bool
    """Whether 1,5 is three halves; then a comma or point before three digits can mean either."""
    identification: Identification
    numerals: Numerals
    dates: Dates
    units: Units
    prompts: Prompts
    duplicates: Duplicates
    statements: Statements
    choices: Choices
    answers: Answers
    questions: Questions

    @property
    def spaced(self) -> bool:
        """Return whether words are separated; in Chinese, expressions have no boundaries."""
        return self.script != "han"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A language that is only identified, and read in answers."""

    code: str
    """ISO 639-1; the file's name."""
    name: str
    """In English, for people."""
    tasks: tuple[str, ...]
    """As `Identification.tasks`."""
    yes: tuple[str, ...]
    """As `Answers.yes`."""
    no: tuple[str, ...]
    """As `Answers.no`."""
    cues: tuple[str, ...]
    """As `Answers.cues`."""


@cache
def languages() -> tuple[Language, ...]:
    """Return every language with a file, by position.

    Raises:
        ConfigError: a field is missing, unknown or of another type, or positions are wrong.
    """
    ordered = sorted((read(path, Language) for path in FOLDER.glob("*.toml")), key=lambda lang: lang.position)
    if [lang.position for lang in ordered] != list(range(1, len(ordered) + 1)):
        listed = ", ".join(f"{lang.code} {lang.position}" for lang in ordered)
        raise ConfigError(
            f"the languages' positions are not 1 to {len(ordered)}, each once ({listed}); mend the files."
        )
    return tuple(ordered)


@cache
def neighbours() -> tuple[Neighbour, ...]:
    """Return the languages with few known words, by code."""
    return tuple(read(path, Neighbour) for path in sorted((FOLDER / "neighbours").glob("*.toml")))


@cache
def language(code: str) -> Language:
    """Return the language of an ISO 639-1 code.

    Raises:
        KeyError: it has no file.
    """
    return {lang.code: lang for lang in languages()}[code]


def has_decimal_comma(code: str) -> bool | None:
    """Return whether 1,5 is three halves in a language; None without a file."""
    return next((lang.decimal_comma for lang in languages() if lang.code == code), None)


def every(pick: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    """Return what ``pick`` takes of each language, by position."""
    return tuple(item for lang in languages() for item in pick(lang))


def one_of(pick: Callable[[Language], Iterable[str]], *, spaced: bool | None = None) -> str:
    """Join what ``pick`` takes into an expression's alternatives, without brackets.

    Args:
        spaced: only languages with (True) or without (False) separated words.
    """
    selected = (lang for lang in languages() if spaced is None or lang.spaced is spaced)
    return "|".join(dict.fromkeys(item for lang in selected for item in pick(lang)))


def read(path: Path, kind: type[T]) -> T:
    """Read a file into a `Language` or a `Neighbour`.

    Raises:
        ConfigError: a field is missing, unknown, or of another type.
    """
    built: T = _built({"code": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}, kind, path.name)
    return built


def _built(value: Any, kind: Any, where: str) -> Any:
    """Return a TOML value as a field's type."""
    inner, origin = get_args(kind), get_origin(kind)
    if is_dataclass(kind) and isinstance(value, dict):
        table: Any = kind
        hints = _hints(table)
        for name in [*hints, *value]:
            if name not in value:
                raise ConfigError(f"{where}: {name} is missing; write it, empty where the language has none.")
            if name not in hints:
                raise ConfigError(f"{where}: {name} is no field; take it out, or correct its name.")
        return table(**{name: _built(value[name], hint, f"{where}, {name}") for name, hint in hints.items()})
    if origin is tuple and isinstance(value, list):
        return tuple(_built(item, inner[0], where) for item in value)
    if origin is dict and isinstance(value, dict):
        return {key: _built(item, inner[1], f"{where}, {key}") for key, item in value.items()}
    if type(value) is kind or (origin is Literal and value in inner):
        return value
    raise ConfigError(f"{where}: {value!r} is not of the type that belongs here ({kind}); correct it.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
