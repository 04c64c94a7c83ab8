"""Reads which form of answer a statement asks for: quantity, unit, rounding, options.

A field without explicit wording (`curation.languages.vocabulary`) changes no comparison.

Invariants: a pure function of statement and language; it reads at most `MAX_STATEMENT_CHARS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache, lru_cache

from curation.languages.vocabulary import Language, Questions, languages, one_of
from curation.options import split_options, tidy_option
from curation.verify.answers.policy import Rounding
from curation.verify.answers.text import normalise_latex
from curation.verify.answers.units import is_known, normalise_unit
from curation.verify.answers.words import BASE_NAMES, NUMBER_WORDS

_VARIABLE = r"[a-zA-Z](?:_\{?\w\}?)?(?![A-Za-zÀ-ɏЀ-ӿ\\'’])"
_FORMULA = (
    r"(?:\$\$?(?P<dollars>[^$]{1,120})\$\$?|\\\((?P<round>.{1,120}?)\\\)|\\\[(?P<square>.{1,120}?)\\\]"
    r"|(?P<bare>\d{0,4}[a-zA-Z](?:\s*[+*-]\s*\d{0,4}[a-zA-Z]){1,6})(?![\w^]))"
)
FORMULA_GROUPS = ("dollars", "round", "square", "bare")
_STEP = r"(?P<step>0[.,]0{0,8}1|1[,.]?0{0,6})(?!\d|[.,]\d)(?!\s*(?:%|c?m\b|mm\b|k[mg]\b))"
_SIGNS = tuple(
    (
        "km cm mm dm kg mg ml mL cm^2 cm^3 mm^2 mm^3 km^2 dm^2 dm^3 m^2 m^3 ft^2 ft^3 in^2 in^3 kWh kHz MHz Hz kJ kPa "
        "m/s km/h kmh km/s cm/s m/min ft/s mi/h m/s^2 g/cm^3 kg/m^3 mph"
    ).split()
)
"""Signs of units."""

_LETTERS = ("m", "s", "g", "h", "L")  # read only in brackets and after a blank
_IN_FORMULAS = r"(?<![A-Za-z\\])<names>\s*\\in\s*\\mathbb\s*\{?\s*[ZN]"
_POSITIVE_IN_FORMULAS = (
    r"(?<![A-Za-z\\])<names>\s*\\in\s*\\mathbb\s*\{?\s*"
    r"(?:[ZRQ]\s*\}?\s*(?:_\s*\{?\s*>\s*0|\^\s*\{?\+)|N\s*\}?\s*\^\s*\{?\s*[*+])"
)


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A language's expressions by field of `Questions`, and its units and numbers."""

    expressions: dict[str, tuple[re.Pattern[str], ...]]
    unit_name: re.Pattern[str]
    """A unit's name or sign; groups are keys of ``units``."""
    units: dict[str, str]
    """Normalised units by their group in ``unit_name``."""
    power: re.Pattern[str]
    powers: dict[str, int]
    per: re.Pattern[str]
    places: dict[str, int]
    """Groups of <place> → digits after the point."""
    numbers: dict[str, int]
    """Words of <number> → value."""
    joiner: re.Pattern[str]
    """Separator of two <names>."""

    def matches(self, field: str, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches of a field's expressions, in order."""
        for expression in self.expressions[field]:
            yield from expression.finditer(text)

    def has(self, field: str, text: str) -> bool:
        """Return whether a field's expressions match in a text."""
        return any(expression.search(text) for expression in self.expressions[field])

    def unit(self, match: re.Match[str]) -> str | None:
        """Return the normalised unit at the start of a <unit> match."""
        simple = self._simple_unit(match["unit"])
        if simple is None:
            return None
        unit, rest = simple
        per = self.per.match(rest)
        if per is None:
            return unit
        under = self._simple_unit(rest[per.end() :])
        return normalise_unit(f"{unit}/{under[0]}") if under is not None else None

    def _simple_unit(self, text: str) -> tuple[str, str] | None:
        """Return the unit and power at a text's start, and the rest."""
        power_before = self.power.match(text)
        match = self.unit_name.match(text, power_before.end() if power_before else 0)
        if match is None:
            return None
        name = match.group().strip()
        unit = next((self.units[group] for group, word in match.groupdict().items() if word is not None), None)
        unit = unit if unit is not None else normalise_unit(name)
        power_after = None if power_before else self.power.match(text, match.end())
        power = power_before or power_after
        unit = f"{unit}^{self.powers[power['power'].lower()]}" if power and unit else unit
        end = power_after.end() if power_after else match.end()
        return (unit, text[end:]) if unit and is_known(unit) else None


@cache
def question_words(code: str) -> QuestionWords:
    """Return a language's expressions, or English ones without a file."""
    known = {lang.code: lang for lang in languages()}
    lang = known.get(code, known["en"])
    numbers, powers = (
        _numbers(lang),
        {word.lower(): int(at) for at, words in lang.units.powers.items() for word in words},
    )
    unit_name, units = _units(lang)
    questions = lang.questions
    places = {f"place{number}": int(at) for number, at in enumerate(questions.places)}
    longest = sorted(
        zip(places, questions.places, strict=True), key=lambda item: -max(map(len, questions.places[item[1]]))
    )
    place = "|".join(f"(?P<{group}>{'|'.join(questions.places[at])})" for group, at in longest)
    end = r"(?!\w)" if lang.spaced else ""
    joiners = "|".join((*lang.answers.and_words, "and", r"\\text\s*\{\s*and\s*\}"))
    apart = r"\s+" if lang.spaced else r"\s*"
    separator = rf"(?:\s*[,、，]\s*(?:(?:{joiners})\s+)?|{apart}(?:{joiners}){apart})"
    blanks = {
        "<number>": (r"(?<![\w.])" if lang.spaced else "") + rf"(?P<number>\d{{1,2}}|{_any(numbers)})",
        "<unit>": r"(?=(?P<unit>(?![A-Za-z](?![\w/^]))\S[^,.;:?!()，。？（）]{0,40}))",
        "<unit or letter>": r"(?=(?P<unit>\S[^,.;:?!()，。？（）]{0,40}))",
        "<formula>": _FORMULA,
        "<names>": rf"(?<![A-Za-zÀ-ɏЀ-ӿ\\])(?P<names>(?>{_VARIABLE}(?:{separator}{_VARIABLE}){{0,7}}))",
        "<step>": _STEP,
        "<place>": f"(?:{place}){end}",
    }
    further = {
        "unit": (
            r"____\s*[(（]?\s*<unit>",
            r"____\s*[(（]?\s*<unit or letter>[^\s,.;，。；)）]{1,14}(?=\s*(?:[).）。,，;；?？]|$))",
            r"[(（]\s*<unit>[^()（）]{1,30}[)）]",
            r"[(（]\s*\w{1,3}\s+<unit or letter>[^\s()（）]{1,14}\s*[)）]",
        ),
        "integers": (_IN_FORMULAS,),
        "positive": (_POSITIVE_IN_FORMULAS,),
    }
    expressions = {
        item.name: _compile((*getattr(questions, item.name), *further.get(item.name, ())), blanks)
        for item in fields(Questions)
        if item.name != "places"
    }
    space, end = (r"\s+", r"(?!\w)") if lang.spaced else (r"\s*", "")
    power = re.compile(rf"\s*(?P<power>{_any(powers) or '(?!)'})\.?{end}\s*", re.IGNORECASE)
    per = re.compile(rf"(?:{space}(?:{'|'.join(questions.per) or '(?!)'}){space}|\s*/\s*)", re.IGNORECASE)
    return QuestionWords(
        expressions,
        unit_name,
        units,
        power,
        powers,
        per,
        places,
        numbers,
        re.compile(separator),
    )


def _compile(expressions: Iterable[str], blanks: dict[str, str]) -> tuple[re.Pattern[str], ...]:
    plain: list[str] = []
    filled: list[str] = []
    for expression in expressions:
        text = expression
        for blank, content in blanks.items():
            text = text.replace(blank, content)
        (plain if text == expression else filled).append(text)
    joined = ["|".join(plain)] if plain else []
    return tuple(re.compile(text, re.IGNORECASE) for text in (*joined, *filled))


def _numbers(lang: Language) -> dict[str, int]:
    numbers = {word.lower(): value for value, word in enumerate(lang.numerals.units) if value}
    more = ((value, word) for value, words in lang.numerals.more.items() for word in words if value.isdigit())
    return numbers | {word.lower(): int(value) for value, word in more if 1 < int(value) < 13}


def _units(lang: Language) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return an expression for units, and its groups' normalised units."""
    named: dict[str, set[str]] = {}
    for words in lang.units.written.values():
        for word in words:
            named.setdefault(normalise_unit(word), set()).add(re.escape(word))
    if lang.spaced:  # a single character is ambiguous: 分 is a minute, a cent and a point
        for name, words in lang.units.beside_numbers.items():
            named.setdefault(normalise_unit(name), set()).update(word for word in words if len(word) > 1)
    units = {f"unit{number}": unit for number, unit in enumerate(named) if unit not in ("", "%") and is_known(unit)}
    alternatives = [
        f"(?P<{group}>{'|'.join(sorted(named[unit], key=len, reverse=True))})" for group, unit in units.items()
    ]
    longest = sorted(alternatives, key=len, reverse=True)
    end = r"(?!\w)" if lang.spaced else ""
    signs = "|".join(sign.replace("^", r"\s*\^?\s*") for sign in sorted((*_SIGNS, *_LETTERS), key=len, reverse=True))
    return re.compile(rf"(?-i:{signs})(?![\w^/])|(?:{'|'.join(longest)}){end}", re.IGNORECASE), units


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


MAX_STATEMENT_CHARS = 6000
"""Max characters read, from a statement's end."""

MAX_PLACES = 12
"""Max digits that a statement may ask for."""


class AskedValues(Enum):
    """Which values are asked for."""

    ANY = "any one of several values"
    ALL = "all of several values"
    TUPLE = "a tuple, its parts in order"
    INTERVAL = "an interval"


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """The form of answer that a statement asks for; None and empty if not recognised.

    Example: of "Find $m+n$, in meters." it is ``QuestionForm(quantity="m+n", unit="m", is_percent=False)``.
    """

    quantity: str | None = None
    """The formula asked for, as `compact` spells it."""
    values: AskedValues | None = None
    includes_ends: bool | None = None
    """Whether closed (True) or open (False) intervals are asked for."""
    unit: str | None = None
    """Normalised (`curation.verify.answers.units`), of a known dimension."""
    is_percent: bool | None = None
    """Whether a number of percent is asked for; False only without any mention."""
    rounding: Rounding | None = None
    options: tuple[str, ...] = ()
    """Texts of the options A, B, C, …"""
    integers: frozenset[str] = frozenset()
    """Variables that are integers."""
    positive: frozenset[str] = frozenset()
    """Variables that are positive."""
    base: int | None = None
    """The base asked for."""
    words: frozenset[str] = field(default=frozenset(), compare=False)
    """The statement's lower-case words, their stems, and numbers."""
    asking_words: frozenset[str] = field(default=frozenset(), compare=False)
    """Those of the sentence that asks."""


NOTHING_ASKED = QuestionForm()


def read_question(statement: str | None, lang: str = "en") -> QuestionForm:
    """Return the form of answer that a statement asks for.

    Args:
        lang: an ISO 639-1 code; hanzi are read as Chinese, languages without a file as English.
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
    """Return a word's lower-case beginning, shared by its forms: egg, eggs; travel, travelled."""
    return word.lower().removesuffix("s").removesuffix("ing").removesuffix("ed")[:5]


def _stems(text: str) -> frozenset[str]:
    """Return a text's words, stems and numbers, small ones also in words."""
    tokens = [word.replace(",", "").lower() for word in WORDS.findall(text)]
    small = {name for name, value in NUMBER_WORDS.items() if name in tokens or str(value) in tokens}
    return frozenset((*map(stem, tokens), *tokens, *map(stem, small), *(str(NUMBER_WORDS[name]) for name in small)))


WORDS = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+")
_BASE = re.compile(r"\b(in|to|into) (?:base[ -](\d{1,2}|[a-z]{3,7})|(binary|octal|hexadecimal))\b", re.IGNORECASE)


def _base(asking: str) -> int | None:
    """Return the only base asked for, of a conversion its target."""
    targets = [(match[1].lower() == "in", (match[2] or match[3]).lower()) for match in _BASE.finditer(asking)]
    names = {name for is_in, name in targets if is_in == all(is_in for is_in, _ in targets)}
    base = int(BASE_NAMES.get(name := names.pop(), name if name.isdigit() else 0)) if len(names) == 1 else 0
    return base if 2 <= base <= 36 else None


def compact(formula: str) -> str:
    """Return a formula without spaces, delimiters, sizes and needless braces."""
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
    if _SECOND_LABEL.search(statement) is None:
        return statement, ()
    split = split_options(statement)
    if split is None or split.kind not in ("upper", "lower"):
        return statement, ()
    return split.question, tuple(tidy_option(option) for option in split.options)


_SENTENCE = re.compile(r"(?<!\bM[rs]\.)(?<!\bMrs\.)(?<!\bDr\.)(?<=[.?!])\s+(?=[^a-zà-ÿа-я\s]|$)|(?<=[。？！])|\n\s*\n")


def _asking_part(question: str, words: QuestionWords) -> str:
    sentences = [sentence for sentence in _SENTENCE.split(question) if sentence and sentence.strip()]
    indices = range(len(sentences) - 1, -1, -1)
    last = next((at for at in indices if "?" in sentences[at] or "？" in sentences[at]), None)
    if last is None:
        last = next((at for at in indices if words.has("asks", sentences[at])), 0)
    return " ".join(sentences[last:])


_BLANK = re.compile(
    r"(?:\\?_){2,}|\\underline\s*\{(?:\\[a-z]+\s*\{[^{}]*\}|[^{}A-Za-z0-9])*\}|[(（]\s{1,9}[)）]|\\(?:blank|fillin)\b"
)
_MARKUP = re.compile(
    r"\\(?:text|mathrm|mbox|rm|textrm|textbf|textit|emph|operatorname|mathbf)(?![A-Za-z])|\\[,;:! ]|[${}~]|\*\*"
)
_POWERS = str.maketrans({"²": "^2", "³": "^3"})


def _without_markup(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", _BLANK.sub(" ____ ", text.translate(_POWERS))).split())


def _quantity(words: QuestionWords, asking: str) -> str | None:
    """Return the only formula asked for; None for a mere name or number."""
    formulas: list[tuple[int, str]] = []
    for match in words.matches("formula", asking):
        joiner = words.joiner.match(asking, match.end())
        if joiner is not None and asking[joiner.end() : joiner.end() + 1] in ("$", "\\"):
            return None
        name = next(group for group in FORMULA_GROUPS if match[group] is not None)
        formula = _BLANK.sub("", match[name]).strip().rstrip("=?.,;:")
        formulas.append((match.start(name), compact(normalise_latex(formula))))
    if not formulas or len({formula for _, formula in formulas}) > 1:
        return None
    formula = formulas[0][1]
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
    """Return the only unit asked for, except degrees that may be of temperature."""
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
    """Return the only rounding asked for, perhaps an exact value."""
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
