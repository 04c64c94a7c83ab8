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


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """Words and letters that show the language."""

    tasks: tuple[str, ...]
    """Frequent words of short problems, articles, prepositions and conjunctions."""
    telling: tuple[str, ...]
    """Literals unique to it in Latin letters; empty if script is enough."""
    further: tuple[str, ...]
    """Further common literals; a text with one of either kind is not examined further."""
    own_letters: str
    """Expression (Rust) whose absence makes its tag doubtful; empty for none."""
    foreign_letters: str
    """Expression (Rust) of letters that make its tag doubtful."""
    letters_of_others: str
    """Expression of its script's letters that only other languages have; empty if script settles nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerals:
    """Numbers in words. Values are decimal integers or fractions, "1/2"."""

    units: tuple[str, ...]
    """Words for 0, 1, 2 …."""
    tens: tuple[str, ...]
    """Words for 20, 30 … 90."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply what precedes them."""
    parts: dict[str, tuple[str, ...]]
    """Value → words for a half, a third …, also alone."""
    more: dict[str, tuple[str, ...]]
    """Value → other cases and genders, doublings, dozens; no ordinals."""
    joiners: tuple[str, ...]
    """Words that may be inside a numeral."""
    behind_digits: dict[str, tuple[str, ...]]
    """Value → expressions that multiply digits: 3 million, 3万."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Names of months, and written dates."""

    months: tuple[str, ...]
    """Twelve: the written name, then short forms; empty if months are numbers."""
    day_suffixes: tuple[str, ...]
    """Expressions after a day's number: 3rd, 1er, 3."""
    before_month: tuple[str, ...]
    """Words between day and month."""
    before_year: tuple[str, ...]
    """Words between month and year."""
    after_year: tuple[str, ...]
    """Words after the year."""
    in_digits: str
    """Expression with groups for year, month and day; empty for ISO's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Names of units and currencies."""

    beside_numbers: dict[str, tuple[str, ...]]
    """Unit → expressions for it next to a number."""
    written: dict[str, tuple[str, ...]]
    """Unit (of `curation.verify.answers.units`) → words for it in answers."""
    powers: dict[str, tuple[str, ...]]
    """2 or 3 → words before or after a unit."""
    empty: tuple[str, ...]
    """Meaningless words after a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Instructions for a model."""

    boxed: str
    """Required form of a math problem's final answer."""
    fenced: str
    """Required form of a program; ``{fence}`` is the fence's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """Words that distinguish problems, or only number them."""

    labels: tuple[str, ...]
    """Words before a problem's number."""

    telling: tuple[str, ...]
    """Words that, like numbers, distinguish problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Words about options of multiple choice, in any case."""

    points: tuple[str, ...]
    """Expressions that make a question incomplete without its options."""
    headers: tuple[str, ...]
    """Expressions of headings before options."""
    leads_after_options: tuple[str, ...]
    """Expressions that begin an instruction after the options."""
    sends: tuple[str, ...]
    """Expressions that send the reader to options."""
    answer_leads: tuple[str, ...]
    """Words before an answer's letter."""
    answer_adjectives: tuple[str, ...]
    """Adjectives before these words."""
    copulas: tuple[str, ...]
    """Words between these and the letter."""
    letter_joiners: tuple[str, ...]
    """Words between letters of a key."""
    marks_an_answer: tuple[str, ...]
    """Expressions that give away a rewritten problem's answer."""
    names_options: tuple[str, ...]
    """Expressions that mention options, which rewritten problems lack."""
    asks: tuple[str, ...]
    """Expressions of which rewritten problems need one, a question mark or a blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Words in and around answers, by default in any case."""

    yes: tuple[str, ...]
    """Words for yes, in lower case."""
    no: tuple[str, ...]
    """Words for no, in lower case."""
    same: dict[str, tuple[str, ...]]
    """Meaning (infinity, no solution, dne, reals, divergent …) → phrases, in lower case without signs."""
    nothing: str
    """Expression of whole answers meaning that there is nothing; empty for none."""
    articles: tuple[str, ...]
    """Expressions of meaningless words before an answer."""
    choice_words: tuple[str, ...]
    """Words before a choice's letter."""
    and_words: tuple[str, ...]
    """Words between answers that all hold."""
    or_words: tuple[str, ...]
    """Words between alternative answers."""
    connectives_at_end: tuple[str, ...]
    """Of both, those cut off at a text's end."""
    connectives_at_start: tuple[str, ...]
    """Of both, those cut off at a text's start, and between boxes."""
    box_joiners: tuple[str, ...]
    """Words between boxes of one answer."""
    box_fillers: tuple[str, ...]
    """Expressions of further words between such boxes."""
    list_joiners: tuple[str, ...]
    """Words between items of a list."""
    list_leads: tuple[str, ...]
    """Words after such a list's comma."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply the preceding number."""
    cues: tuple[str, ...]
    """Expressions that a final answer follows."""
    headings: tuple[str, ...]
    """Expressions of headings before a final answer, without their marks."""
    judgements: tuple[str, ...]
    """Expressions after a cue that only judge an answer."""
    value_words: tuple[str, ...]
    """Words that change an adjacent number, or leave it open."""
    weak_cues: tuple[str, ...]
    """Expressions of cues that count only without better ones."""
    strong_cues: tuple[str, ...]
    """Expressions of cues stronger than a box before them."""
    farewells: tuple[str, ...]
    """Expressions after the answer at a response's end."""
    second_thoughts: tuple[str, ...]
    """Words between two boxes that revoke the first."""
    nothing_recorded: tuple[str, ...]
    """Whole recorded answers meaning that there is none."""
    copulas: tuple[str, ...]
    """Words for "is" before an answer."""
    states: tuple[str, ...]
    """Expressions that state a number of things."""
    negations: tuple[str, ...]
    """Expressions before a letter that is refused."""
    tails: tuple[str, ...]
    """Expressions that begin a condition after a formula."""
    tail_words: tuple[str, ...]
    """Of these, single words valid outside of text commands."""
    condition_words: tuple[str, ...]
    """Words that begin a condition."""
    relating_words: tuple[str, ...]
    """Words that no counted thing's name has: five over, not five."""
    declarations: dict[str, tuple[str, ...]]
    """Set or property of a name (Z, N, Q, R, C, prime, positive …; ``any`` for neither) → words for it."""
    hedges: tuple[str, ...]
    """Expressions of references that leave the answer open."""
    elsewhere: tuple[str, ...]
    """Expressions of references that are proofs or point elsewhere."""
    breaks_off: tuple[str, ...]
    """Words that end no whole reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Expressions of what a statement asks for, and in which form; letters match in any case.

    Blanks: ``<unit>``, ``<number>`` small, in digits or words, ``<place>`` one of ``places``, ``<step>`` a power of ten
    in digits, ``<names>`` of variables, ``<formula>``.
    """

    asks: tuple[str, ...]
    """Words that ask; the last sentence with one, or with a question mark, counts."""
    formula: tuple[str, ...]
    """With ``<formula>`` that is asked for."""
    unit: tuple[str, ...]
    """With the answer's ``<unit>``."""
    per: tuple[str, ...]
    """Words between two units, the first divided by the second."""
    temperature: tuple[str, ...]
    """Words that make a degree no angle."""
    decimals: tuple[str, ...]
    """With ``<number>`` of digits after the decimal point."""
    digits: tuple[str, ...]
    """With ``<number>`` of significant digits."""
    nearest: tuple[str, ...]
    """With ``<place>`` or ``<step>`` of rounding."""
    places: dict[str, tuple[str, ...]]
    """Digits after the decimal point, negative before it → that place."""
    exact: tuple[str, ...]
    """Ask for an exact value: as a fraction, in terms of π, in radicals."""
    percent: tuple[str, ...]
    """Words for percent."""
    in_percent: tuple[str, ...]
    """Ask for a number of percent."""
    ordered: tuple[str, ...]
    """Ask for a tuple: coordinates, an ordered pair."""
    interval: tuple[str, ...]
    """Ask for an interval."""
    open_interval: tuple[str, ...]
    """Ask for open intervals."""
    closed_interval: tuple[str, ...]
    """Ask for closed intervals."""
    every_value: tuple[str, ...]
    """Ask for all of several values."""
    one_value: tuple[str, ...]
    """Ask for any of several values."""
    integers: tuple[str, ...]
    """With ``<names>`` of integers."""
    positive: tuple[str, ...]
    """With ``<names>`` of positive numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    r"""Expressions that the format filter finds in statements and answers, in Rust's syntax, without look-around.

    Letters match in any case; ``\b`` is an ASCII boundary, so never next to an accented letter. All languages are tried
    on every row.
    """

    proof_needles: tuple[str, ...]
    """Literals (any case), one in every text that ``proof`` finds."""
    proof: tuple[str, ...]
    """Ask for a proof, an explanation or a drawing."""
    proof_harmless: tuple[str, ...]
    """Have these words but ask for nothing: removed before ``proof``."""
    asks_a_value: tuple[str, ...]
    """Ask for a value next to a proof, verified by a short answer."""
    asks: tuple[str, ...]
    """Verbs and question words right after a part's mark."""
    orders: tuple[str, ...]
    """The same after a part's own condition."""
    also_asked_needles: tuple[str, ...]
    """Literals, one in each text ``also_asked`` finds, except with two question marks."""
    also_asked: tuple[str, ...]
    """Ask for two quantities."""
    also_asked_harmless: tuple[str, ...]
    """Ask for the same in another writing: removed before ``also_asked``."""
    several_joiners: tuple[str, ...]
    """Between two answers: and."""
    asks_several: tuple[str, ...]
    """Ask for several answers."""
    yes_no_answers: tuple[str, ...]
    """Whole answers: yes or no, true or false."""
    no_answer: tuple[str, ...]
    """Whole answers that mean there is none."""
    worked: tuple[str, ...]
    """Begin a worked solution in place of an answer."""
    math_words: tuple[str, ...]
    """Words of answers that a verifier reads as mathematics."""
    proof_answers: tuple[str, ...]
    """Begin an answer that states what is to be proved."""
    answer_labels: tuple[str, ...]
    """Labels before an answer in the statement."""
    copulas: tuple[str, ...]
    """Words for "is" between label and answer."""
    worked_labels: tuple[str, ...]
    """Labels before a solution in the statement."""
    given_needles: tuple[str, ...]
    """Literals, one in every text with such a label."""
    label_words: tuple[str, ...]
    """Words for a problem before its number."""
    label_words_alone: tuple[str, ...]
    """Words that are labels without a number."""
    label_patterns: tuple[str, ...]
    """Further labels."""
    label_starts: tuple[str, ...]
    """Beginnings of such labels without number or label word."""
    points: tuple[str, ...]
    """Points after their number."""
    before_points: tuple[str, ...]
    """Words before the number of points."""
    points_needles: tuple[str, ...]
    """Literals, one in every text with points."""
    points_at: tuple[str, ...]
    """Literals that point at a figure or text; a model judges such rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """All known words and rules of one language."""

    code: str
    """ISO 639-1; the file's name."""
    name: str
    """In English, for people."""
    position: int
    """From 1; the order in which languages' alternatives are joined."""
    script: Literal["latin", "cyrillic", "han"]
    decimal_comma: bool
    """Whether 1,5 is three halves; then separators before three digits are ambiguous."""
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
    """Return every language with a file, by position."""
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
