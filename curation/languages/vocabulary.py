"""Words of the human languages: ``curation/languages/data/<ISO 639-1 code>.toml``, with the schema `Language`.

Expressions for statements are in Rust's syntax, others in Python's.

Invariants: every file has exactly these fields; only `curation.records` is imported, so that the verifier's workers
start quickly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from curation.records import ConfigError

FOLDER = Path(__file__).resolve().parent / "data"

T = TypeVar("T")

Words = tuple[str, ...]

WordsBy = dict[str, Words]
"""By a value, unit or meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """Words and letters that show the language."""

    tasks: Words  # frequent words of short problems, articles, prepositions and conjunctions
    telling: Words  # literals unique to it in Latin letters; empty if script is enough
    further: Words  # further common literals; a text with one of either kind is not examined further
    own_letters: str  # expression (Rust) whose absence makes its tag doubtful; empty for none
    foreign_letters: str  # expression (Rust) of letters that make its tag doubtful
    letters_of_others: str
    """Expression of its script's letters that only other languages have; empty if script settles nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerals:
    """Numbers in words. Values are decimal integers or fractions, "1/2"."""

    units: Words  # words for 0, 1, 2 …
    tens: Words  # words for 20, 30 … 90
    scales: WordsBy  # value → words that multiply what precedes them
    parts: WordsBy  # value → words for a half, a third …, also alone
    more: WordsBy  # value → other cases and genders, doublings, dozens; no ordinals
    joiners: Words  # words that may be inside a numeral
    behind_digits: WordsBy  # value → expressions that multiply digits: 3 million, 3万


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Names of months, and written dates."""

    months: Words  # twelve: the written name, then short forms; empty if months are numbers
    day_suffixes: Words  # expressions after a day's number: 3rd, 1er, 3
    before_month: Words  # words between day and month
    before_year: Words  # words between month and year
    after_year: Words  # words after the year
    in_digits: str  # expression with groups for year, month and day; empty for ISO's alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Names of units and currencies."""

    beside_numbers: WordsBy  # unit → expressions for it next to a number
    written: WordsBy  # unit (of `curation.verify.answers.units`) → words for it in answers
    powers: WordsBy  # 2 or 3 → words before or after a unit
    empty: Words  # meaningless words after a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Instructions for a model."""

    boxed: str  # required form of a math problem's final answer
    fenced: str  # required form of a program; ``{fence}`` is the fence's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """Words that distinguish problems, or only number them."""

    labels: Words  # words before a problem's number
    telling: Words  # words that, like numbers, distinguish problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Words about options of multiple choice, in any case."""

    points: Words  # expressions that make a question incomplete without its options
    headers: Words  # expressions of headings before options
    leads_after_options: Words  # expressions that begin an instruction after the options
    sends: Words  # expressions that send the reader to options
    answer_leads: Words  # words before an answer's letter
    answer_adjectives: Words  # adjectives before these words
    copulas: Words  # words between these and the letter
    letter_joiners: Words  # words between letters of a key
    marks_an_answer: Words  # expressions that give away a rewritten problem's answer
    names_options: Words  # expressions that mention options, which rewritten problems lack
    asks: Words  # expressions of which rewritten problems need one, a question mark or a blank


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Words in and around answers, by default in any case."""

    yes: Words  # words for yes, in lower case
    no: Words  # words for no, in lower case
    same: WordsBy  # meaning (infinity, no solution, dne, reals, divergent …) → phrases, in lower case without signs
    nothing: str  # expression of whole answers meaning that there is nothing; empty for none
    articles: Words  # expressions of meaningless words before an answer
    choice_words: Words  # words before a choice's letter
    and_words: Words  # words between answers that all hold
    or_words: Words  # words between alternative answers
    connectives_at_end: Words  # of both, those cut off at a text's end
    connectives_at_start: Words  # of both, those cut off at a text's start, and between boxes
    box_joiners: Words  # words between boxes of one answer
    box_fillers: Words  # expressions of further words between such boxes
    list_joiners: Words  # words between items of a list
    list_leads: Words  # words after such a list's comma
    scales: WordsBy  # value → words that multiply the preceding number
    cues: Words  # expressions that a final answer follows
    headings: Words  # expressions of headings before a final answer, without their marks
    judgements: Words  # expressions after a cue that only judge an answer
    value_words: Words  # words that change an adjacent number, or leave it open
    weak_cues: Words  # expressions of cues that count only without better ones
    strong_cues: Words  # expressions of cues stronger than a box before them
    farewells: Words  # expressions after the answer at a response's end
    second_thoughts: Words  # words between two boxes that revoke the first
    nothing_recorded: Words  # whole recorded answers meaning that there is none
    copulas: Words  # words for "is" before an answer
    states: Words  # expressions that state a number of things
    negations: Words  # expressions before a letter that is refused
    tails: Words  # expressions that begin a condition after a formula
    tail_words: Words  # of these, single words valid outside of text commands
    condition_words: Words  # words that begin a condition
    relating_words: Words  # words that no counted thing's name has: five over, not five
    declarations: WordsBy
    """Set or property of a name (Z, N, Q, R, C, prime, positive …; ``any`` for neither) → words for it."""
    hedges: Words  # expressions of references that leave the answer open
    elsewhere: Words  # expressions of references that are proofs or point elsewhere
    breaks_off: Words  # words that end no whole reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Expressions of what a statement asks for, and in which form; letters match in any case.

    Blanks: ``<unit>``, ``<number>`` small, in digits or words, ``<place>`` one of ``places``, ``<step>`` a power of ten
    in digits, ``<names>`` of variables, ``<formula>``.
    """

    asks: Words  # words that ask; the last sentence with one, or with a question mark, counts
    formula: Words  # with ``<formula>`` that is asked for
    unit: Words  # with the answer's ``<unit>``
    per: Words  # words between two units, the first divided by the second
    temperature: Words  # words that make a degree no angle
    decimals: Words  # with ``<number>`` of digits after the decimal point
    digits: Words  # with ``<number>`` of significant digits
    nearest: Words  # with ``<place>`` or ``<step>`` of rounding
    places: WordsBy  # digits after the decimal point, negative before it → that place
    exact: Words  # ask for an exact value: as a fraction, in terms of π, in radicals
    percent: Words  # words for percent
    in_percent: Words  # ask for a number of percent
    ordered: Words  # ask for a tuple: coordinates, an ordered pair
    interval: Words  # ask for an interval
    open_interval: Words  # ask for open intervals
    closed_interval: Words  # ask for closed intervals
    every_value: Words  # ask for all of several values
    one_value: Words  # ask for any of several values
    integers: Words  # with ``<names>`` of integers
    positive: Words  # with ``<names>`` of positive numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    r"""Expressions of the format filter, in Rust's syntax.

    Letters match in any case; ``\b`` is ASCII, so never next to an accented letter. All languages are tried on every
    row.
    """

    proof_needles: Words  # literals (any case), one in every text that ``proof`` finds
    proof: Words  # ask for a proof, an explanation or a drawing
    proof_harmless: Words  # have these words but ask for nothing: removed before ``proof``
    asks_a_value: Words  # ask for a value next to a proof, verified by a short answer
    asks: Words  # verbs and question words right after a part's mark
    orders: Words  # the same after a part's own condition
    also_asked_needles: Words  # literals, one in each text ``also_asked`` finds, except with two question marks
    also_asked: Words  # ask for two quantities
    also_asked_harmless: Words  # ask for the same in another writing: removed before ``also_asked``
    several_joiners: Words  # between two answers: and
    asks_several: Words  # ask for several answers
    yes_no_answers: Words  # whole answers: yes or no, true or false
    no_answer: Words  # whole answers that mean there is none
    worked: Words  # begin a worked solution in place of an answer
    math_words: Words  # words of answers that a verifier reads as mathematics
    proof_answers: Words  # begin an answer that states what is to be proved
    answer_labels: Words  # labels before an answer in the statement
    copulas: Words  # words for "is" between label and answer
    worked_labels: Words  # labels before a solution in the statement
    given_needles: Words  # literals, one in every text with such a label
    label_words: Words  # words for a problem before its number
    label_words_alone: Words  # words that are labels without a number
    label_patterns: Words  # further labels
    label_starts: Words  # beginnings of such labels without number or label word
    points: Words  # points after their number
    before_points: Words  # words before the number of points
    points_needles: Words  # literals, one in every text with points
    points_at: Words  # literals that point at a figure or text; a model judges such rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """All known words and rules of one language."""

    code: str  # ISO 639-1; the file's name
    name: str  # in English, for people
    position: int  # from 1; the order in which languages' alternatives are joined
    script: Literal["latin", "cyrillic", "han"]
    decimal_comma: bool  # whether 1,5 is three halves; then separators before three digits are ambiguous
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
        """Return whether spaces separate words; else expressions have no boundaries."""
        return self.script != "han"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A language that is only identified and read in answers."""

    code: str  # ISO 639-1; the file's name
    name: str  # in English, for people
    tasks: Words  # as `Identification.tasks`
    yes: Words  # as `Answers.yes`
    no: Words  # as `Answers.no`
    cues: Words  # as `Answers.cues`


@cache
def languages() -> tuple[Language, ...]:
    """Return every language, by position."""
    return tuple(sorted((read(path, Language) for path in FOLDER.glob("*.toml")), key=lambda lang: lang.position))


@cache
def neighbours() -> tuple[Neighbour, ...]:
    """Return languages with few known words, by code."""
    return tuple(read(path, Neighbour) for path in sorted((FOLDER / "neighbours").glob("*.toml")))


@cache
def language(code: str) -> Language:
    """Return the language of an ISO 639-1 code.

    Raises:
        KeyError: it has no file.
    """
    return {lang.code: lang for lang in languages()}[code]


def has_decimal_comma(code: str) -> bool | None:
    """Return whether 1,5 is three halves; None without a file."""
    return next((lang.decimal_comma for lang in languages() if lang.code == code), None)


def every(pick: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    """Return what ``pick`` takes of each language, by position."""
    return tuple(item for lang in languages() for item in pick(lang))


def one_of(pick: Callable[[Language], Iterable[str]], *, spaced: bool | None = None) -> str:
    """Join what ``pick`` takes as an expression's alternatives, without brackets.

    Args:
        spaced: only languages with (True) or without (False) separated words.
    """
    selected = (lang for lang in languages() if spaced is None or lang.spaced is spaced)
    return "|".join(dict.fromkeys(item for lang in selected for item in pick(lang)))


def read(path: Path, kind: type[T]) -> T:
    """Read a file into a `Language` or `Neighbour`.

    Raises:
        ConfigError: a field is missing or unknown.
    """
    try:
        built: T = _built({"code": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}, kind)
    except (TypeError, AttributeError) as error:
        raise ConfigError(f"{path.name}: {error}; correct the file.") from error
    return built


def _built(value: Any, kind: Any) -> Any:
    """Return a table as its dataclass, and lists as tuples."""
    if is_dataclass(kind):
        table: Any = kind
        kinds = get_type_hints(table)
        return table(**{name: _built(item, kinds.get(name)) for name, item in value.items()})
    if isinstance(value, dict):
        return {key: _built(item, None) for key, item in value.items()}
    return tuple(value) if isinstance(value, list) else value
