r"""What a statement says about the form of its answer: the quantity asked for, its unit, rounding, options.

`read_question` looks for what is said outright, in the words of the statement's language
(`curation.languages.vocabulary.questions`). What it does not recognise stays None or empty, and then nothing about the
comparison changes. What the fields decide stands in `asked`, in `policy` (rounding), and where values meet.

Invariants: a pure function of the statement and its language; every expression is bounded, and no more than
`MAX_STATEMENT_CHARS` are looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from curation.languages.vocabulary import one_of
from curation.options import split_options, tidy_option
from curation.verify.answers.policy import Rounding
from curation.verify.answers.question_words import FORMULA_GROUPS, QuestionWords, question_words
from curation.verify.answers.text import normalise_latex
from curation.verify.answers.words import BASE_NAMES, NUMBER_WORDS

MAX_STATEMENT_CHARS = 6000
"""Characters at the end of a statement that are looked at."""

MAX_PLACES = 12
"""Digits that a statement may ask for; more are not believed."""


class AskedValues(Enum):
    """Which values are asked for."""

    ANY = "any one of several values"
    ALL = "all of several values"
    TUPLE = "a tuple, its parts in order"
    INTERVAL = "an interval"


@dataclass(frozen=True, slots=True)
class QuestionForm:
    r"""What a statement says about the form of its answer; None and empty where nothing was recognised.

    Example: of "Find $m+n$, in meters." it is ``QuestionForm(quantity="m+n", unit="m", is_percent=False)``.
    """

    quantity: str | None = None
    """The formula asked for, as `compact` spells it."""
    values: AskedValues | None = None
    includes_ends: bool | None = None
    """Whether closed intervals are asked for (True), or open ones (False)."""
    unit: str | None = None
    """Normalised (`curation.verify.answers.units`), of a known dimension."""
    is_percent: bool | None = None
    """Whether a number of percent is asked for; False only where the statement does not speak of percent at all."""
    rounding: Rounding | None = None
    options: tuple[str, ...] = ()
    """The texts of the options A, B, C, …"""
    integers: frozenset[str] = frozenset()
    """Variables that are integers."""
    positive: frozenset[str] = frozenset()
    """Variables that are positive."""
    base: int | None = None
    """The base in which a number is asked for."""
    words: frozenset[str] = field(default=frozenset(), compare=False)
    """The statement's words and numbers, in lower case, words as `stem` has them."""
    asking_words: frozenset[str] = field(default=frozenset(), compare=False)
    """Those of the sentence that asks."""


NOTHING_ASKED = QuestionForm()


def read_question(statement: str | None, lang: str = "en") -> QuestionForm:
    """Return what a statement says about the form of its answer; `NOTHING_ASKED` where there is no statement.

    Args:
        lang: its ISO 639-1 code; Chinese wherever there are hanzi, English for a language without a file.
    """
    return _read(statement, lang) if statement and not statement.isspace() else NOTHING_ASKED


@lru_cache(maxsize=4096)
def _read(statement: str, lang: str) -> QuestionForm:
    statement = statement[-MAX_STATEMENT_CHARS:]
    words = question_words("zh" if _HANZI.search(statement) else lang)
    question, options = _split_options(statement)
    asking = _asking_part(question, words)
    asking_words, all_words = _without_markup(asking), _without_markup(question)
    with_indices = " ".join(question.replace("$", " ").split())
    quantity = _quantity(words, asking)
    return QuestionForm(
        quantity,
        _values(words, asking_words, quantity),
        _includes_ends(words, asking_words),
        _unit(words, asking_words, all_words),
        _is_percent(words, asking_words, statement),
        _rounding(words, asking_words),
        options,
        _names(words, "integers", with_indices),
        _names(words, "positive", with_indices) if "{cases}" not in statement else frozenset(),
        _base(asking_words),
        _stems(statement),
        _stems(asking),
    )


def stem(word: str) -> str:
    """Return the beginning of a word, in lower case, by which its forms are alike: egg, eggs; travel, travelled."""
    return word.lower().removesuffix("s").removesuffix("ing").removesuffix("ed")[:5]


def _stems(text: str) -> frozenset[str]:
    """Return the words of a text as `stem` has them, and its numbers; small numbers both in digits and in words."""
    found = [word.replace(",", "").lower() for word in WORDS.findall(text)]
    small = {name for name, value in NUMBER_WORDS.items() if name in found or str(value) in found}
    return frozenset((*map(stem, found), *found, *map(stem, small), *(str(NUMBER_WORDS[name]) for name in small)))


WORDS = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+")
_BASE = re.compile(r"\b(in|to|into) (?:base[ -](\d{1,2}|[a-z]{3,7})|(binary|octal|hexadecimal))\b", re.IGNORECASE)


def _base(asking: str) -> int | None:
    """Return the base asked for: where a number goes from one base to another, the other."""
    found = [(match[1].lower() == "in", (match[2] or match[3]).lower()) for match in _BASE.finditer(asking)]
    names = {name for is_in, name in found if is_in == all(is_in for is_in, _ in found)}
    base = int(BASE_NAMES.get(name := names.pop(), name if name.isdigit() else 0)) if len(names) == 1 else 0
    return base if 2 <= base <= 36 else None


def compact(formula: str) -> str:
    """Return a formula without the spaces, delimiters, sizes and braces that say nothing."""
    bare = _ONE_SIGN.sub(r"\1", _LAYOUT.sub("", formula).rstrip("."))
    return _SIZED.sub(r"\\\1", bare)


_ONE_SIGN = re.compile(r"\{(\w)\}")
_SIZED = re.compile(r"\\[dt](frac|binom)(?![A-Za-z])")
_HANZI = re.compile("[\u4e00-\u9fff]{2}")
_LAYOUT = re.compile(
    r"\\(?:left|right|[bB]ig[lr]?|displaystyle)(?![A-Za-z])|\\[,;:! ]|\\[()\[\]]|[$~]|(?<![A-Za-z])\s|\s(?![A-Za-z])"
)
_SECOND_LABEL = re.compile(r"[Bb]\s*[)）.．、:：\]}]")


def _split_options(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return the question without its lettered options, and their texts."""
    if _SECOND_LABEL.search(statement) is None:
        return statement, ()
    split = split_options(statement)
    if split is None or split.kind not in ("upper", "lower"):
        return statement, ()
    return split.question, tuple(tidy_option(option) for option in split.options)


_SENTENCE = re.compile(r"(?<!\bM[rs]\.)(?<!\bMrs\.)(?<!\bDr\.)(?<=[.?!])\s+(?=[^a-zà-ÿа-я\s]|$)|(?<=[。？！])|\n\s*\n")


def _asking_part(question: str, words: QuestionWords) -> str:
    """Return the last sentence that asks, and what follows it."""
    sentences = [sentence for sentence in _SENTENCE.split(question) if sentence and sentence.strip()]
    places = range(len(sentences) - 1, -1, -1)
    last = next((at for at in places if "?" in sentences[at] or "？" in sentences[at]), None)
    if last is None:
        last = next((at for at in places if words.has("asks", sentences[at])), 0)
    return " ".join(sentences[last:])


_BLANK = re.compile(
    r"(?:\\?_){2,}|\\underline\s*\{(?:\\[a-z]+\s*\{[^{}]*\}|[^{}A-Za-z0-9])*\}|[(（]\s{1,9}[)）]|\\(?:blank|fillin)\b"
)
_MARKUP = re.compile(
    r"\\(?:text|mathrm|mbox|rm|textrm|textbf|textit|emph|operatorname|mathbf)(?![A-Za-z])|\\[,;:! ]|[${}~]|\*\*"
)
_POWERS = str.maketrans({"²": "^2", "³": "^3"})


def _without_markup(text: str) -> str:
    """Return a text without dollars, braces and font commands; a blank to fill in becomes ``____``."""
    return " ".join(_MARKUP.sub(" ", _BLANK.sub(" ____ ", text.translate(_POWERS))).split())


def _quantity(words: QuestionWords, asking: str) -> str | None:
    """Return the formula that is asked for: None where it is a mere name or number, or one of two."""
    found: list[tuple[int, str]] = []
    for match in words.matches("formula", asking):
        joiner = words.joiner.match(asking, match.end())
        if joiner is not None and asking[joiner.end() : joiner.end() + 1] in ("$", "\\"):
            return None
        name = next(group for group in FORMULA_GROUPS if match[group] is not None)
        formula = _BLANK.sub("", match[name]).strip().rstrip("=?.,;:")
        found.append((match.start(name), compact(normalise_latex(formula))))
    if not found or len({formula for _, formula in found}) > 1:
        return None
    formula = found[0][1]
    is_name = len(formula) < 2 or formula.isdigit() or _NAMED.match(formula) is not None
    return None if is_name else formula


_NAMED = re.compile(r"^[A-Za-z](?:_\{?\w+\}?)?(?:\([^()]{1,20}\))?=")
"""The name that "S = ab + bc" asks for."""

_TUPLE = re.compile(r"\([^()]{1,40},[^()]{1,40}\)")


def _values(words: QuestionWords, asking: str, quantity: str | None) -> AskedValues | None:
    if words.has("interval", asking):
        return AskedValues.INTERVAL
    if words.has("ordered", asking) or (quantity is not None and _TUPLE.fullmatch(quantity)):
        return AskedValues.TUPLE
    if words.has("every_value", asking):
        return AskedValues.ALL
    return AskedValues.ANY if words.has("one_value", asking) else None


def _includes_ends(words: QuestionWords, asking: str) -> bool | None:
    is_open, is_closed = words.has("open_interval", asking), words.has("closed_interval", asking)
    return is_closed if is_open != is_closed else None


def _unit(words: QuestionWords, asking: str, statement: str) -> str | None:
    """Return the unit asked for; None where there are two, or where degrees may be those of a thermometer."""
    units = {words.unit(match) for match in words.matches("unit", asking)} - {None}
    if len(units) != 1:
        return None
    (unit,) = units
    return None if unit == "deg" and words.has("temperature", statement) else unit


_PERCENT = re.compile("%|％|" + one_of(lambda lang: lang.questions.percent), re.IGNORECASE)


def _is_percent(words: QuestionWords, asking: str, statement: str) -> bool | None:
    if not _PERCENT.search(statement):
        return False
    return True if words.has("in_percent", asking) else None


def _rounding(words: QuestionWords, asking: str) -> Rounding | None:
    """Return the rounding asked for; None where two different ones are, or an exact value beside."""
    roundings = {
        *(Rounding(places=_number(words, match)) for match in words.matches("decimals", asking)),
        *(Rounding(digits=_number(words, match)) for match in words.matches("digits", asking)),
        *(
            Rounding(places=_place(words, match))
            for match in words.matches("nearest", asking)
            if "distan" not in asking[max(0, match.start() - 80) : match.end()]
        ),
        *((Rounding(exact=True),) if words.has("exact", asking) else ()),
    }
    if len(roundings) != 1:
        return None
    (rounding,) = roundings
    return rounding if max(rounding.places or 0, rounding.digits or 0) <= MAX_PLACES else None


def _number(words: QuestionWords, match: re.Match[str]) -> int:
    text = match["number"].lower()
    return int(text) if text.isdigit() else words.numbers[text]


def _place(words: QuestionWords, match: re.Match[str]) -> int:
    groups = match.groupdict()
    step = groups.get("step")
    if step is not None:
        step = step.replace(",", ".") if step.startswith("0") else step.replace(",", "").replace(".", "")
        return len(step) - 2 if "." in step else 1 - len(step)
    return next(places for group, places in words.places.items() if groups.get(group) is not None)


_NAME = re.compile(r"[a-zA-Z](?:_\{?\w\}?)?")


def _names(words: QuestionWords, field: str, statement: str) -> frozenset[str]:
    parts = {part.strip() for match in words.matches(field, statement) for part in words.joiner.split(match["names"])}
    return frozenset(name.replace("{", "").replace("}", "") for name in parts if name and _NAME.fullmatch(name))
