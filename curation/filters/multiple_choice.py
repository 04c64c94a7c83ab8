"""Splits multiple choice, and resolves the option that the reference names.

Invariants: rows with an options field are multiple choice; an answer that names no option, or several, resolves to
None.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from curation.languages.vocabulary import one_of
from curation.options import (
    LETTERED_LIST,
    OptionSplit,
    is_only_letter,
    named_letter,
    split_options,
    strip_label,
    tidy_option,
    without_frame,
    without_lead,
)
from curation.verify.rewriting import keep_reference, reads_the_same

# Literals of which an inline multiple choice holds one: the second label.
_SECOND = [
    "B)", "B )", "B）", "B.", "B．", "B、", "B:", "B：", "B}", "B]", "Ｂ", "b)", "b )", "b）", "\nb.", "②", "2)", "2）",
    "2．", "2、", "\n2.", "\n2 .", "\\choice", "\\task", "Alph", "[A.]", "[(A)]",
]  # fmt: skip
# The first and the second label in one style and in order (Rust syntax).
_INLINE = (
    r"(?:^|[(（\[{\s&$;,，；。?？)）:：}*])\(?\s*[AＡ]\s*[)）.．、:：}\]][\s\S]*[BＢ]\s*[)）.．、:：}\]]"
    r"|\p{Han}[AＡ][.．、)][\s\S]*[BＢ][.．、)]"
    r"|(?:^|[\s.?:;&])\(?\s*a\s*[)）.][\s\S]*b\s*[)）.]|①[\s\S]*②[\s\S]*③"
    r"|[\s(（?:]1\s*[)）．、][\s\S]*2\s*[)）．、][\s\S]*3\s*[)）．、]"
    r"|\n\s*1\s*\.\s[\s\S]*\n\s*2\s*\.\s[\s\S]*\n\s*3\s*\.\s"
    rf"|{LETTERED_LIST}"
)
# Questions that send the reader to options.
_SENDS = re.compile(rf"(?i){one_of(lambda lang: lang.choices.sends)}")
_LABELLED = re.compile(r"B\s*[)）.．、:：}\]]|②")
# A number with a sign of currency before and a unit after it, in LaTeX or not.
_COMMANDS = r"\\(?:[dt]?frac|sqrt|pi|cdot|times|left|right|circ|q?quad|[ ,;:!%$])"
_NUMBER_ALONE = re.compile(
    rf"(?i)(?:rs\.?|[£€¥])?(?:[-+−$£€¥{{}}()\[\]^_/:.,%°\s\d√π!=]|{_COMMANDS})*"
    r"(?:\\(?:text|mathrm)\{)?(?:[^\W\d_]{1,12}(?:\^?[23])?)?[\s}.。$]*"
)
# A formula alone that is a value: no relation, no words, no list.
_VALUE_ALONE = re.compile(r"\$(?:[^$=<>,;|]|\\frac)+\$")
_NO_VALUE = re.compile(r"\\(?:[lg]eq?|text|mathrm|neq?|quad|qquad|circ\s+[a-z]|triangle|angle|infty)\b|\\\{")
_WORD = re.compile(r"[^\W\d_]{3}")
_POINTS = re.compile(rf"(?i){one_of(lambda lang: lang.choices.points)}")
_EMPTY_BRACKETS = re.compile(r"[（(](?:[\s~　]|\\q?quad|\\ )*[)）](?=[\s.。．]*$)")
_FINAL_STOP = re.compile(r"(?<=[\w})$%])\s*[.。．;；]$")

_MARKUP = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|boxed|bf|rm)\b\s*|[{}$*\s]|\\[ ,;:!]|\\\\")
_JOINERS = one_of(lambda lang: lang.choices.letter_joiners)
_LETTERS = re.compile(rf"^[(（]?[A-J](?:(?:[)）,，、;/&\s]|{_JOINERS})*[(（]?[A-J])+[)）.]?$")
_NUMBER = re.compile(r"^[(（\[]?([0-9])[)）\].、]?$")
_NUMBERED = re.compile(r"^[(（]?([1-8])[)）.、](.+)$")
_CIRCLED = "①②③④⑤⑥⑦⑧"


@dataclass(frozen=True, slots=True)
class ParsedChoice:
    """A question, its options, and the right one's index."""

    question: str
    options: tuple[str, ...]
    index: int


def is_multiple_choice() -> pl.Expr:
    """Return cheaply whether a row may be multiple choice."""
    inline = pl.col("statement").str.contains_any(_SECOND)
    listed = pl.col("choices").list.len().fill_null(0) > 0
    return (pl.col("answer").is_not_null() & (listed | inline)).fill_null(False)


def parse_choices(rows: pl.DataFrame) -> Iterator[tuple[int, ParsedChoice | str]]:
    """Yield ``_at`` and each parsed multiple choice, or why no single option is right.

    Args:
        rows: ``_at``, ``statement``, ``answer``, ``choices`` and ``source``.
    """
    listed = pl.col("choices").list.len().fill_null(0) > 0
    usable = (pl.col("statement").str.strip_chars() != "") & (pl.col("answer").str.strip_chars() != "")
    rows = rows.filter(usable & (listed | pl.col("statement").str.contains(_INLINE)))
    first = _first_numbers(rows)
    columns = ("_at", "statement", "answer", "choices", "source")
    for at, statement, answer, choices, source in rows.select(columns).iter_rows():
        parsed = parse_choice(statement, answer, choices, first.get(source))
        if parsed is not None:
            yield at, parsed


def parse_choice(
    statement: str, answer: str, choices: Sequence[str | None] | None = None, first: int | None = None
) -> ParsedChoice | str | None:
    """Parse a multiple choice; return None if it is none, or why no single option is right.

    Args:
        first: number of the first option, if the source's answers are numbers.
    """
    if choices:
        options = [strip_label((choice or "").strip(), index) for index, choice in enumerate(choices)]
        inline = split_options(statement) if _LABELLED.search(statement) else None
        question = inline.question if inline and len(inline.options) == len(options) else statement
        return _resolve(question, answer, options, "upper", first)
    split = split_options(statement)
    if split is None or not _is_choice(split, answer):
        return None
    return _resolve(split.question, answer, split.options, split.kind, None)


def _resolve(question: str, answer: str, options: Sequence[str], kind: str, first: int | None) -> ParsedChoice | str:
    if names_several(answer, len(options)) and resolve_option(answer, options, "text") is None:
        return f"{answer} names several options"
    if not is_only_letter(answer):
        options = [sound_option(option) for option in options]
    index = resolve_option(answer, options, kind, first)
    if index is None and not is_only_letter(answer):
        index = _read_as(answer, options)
    if index is None or not options[index]:
        return f"{answer} not in: {' | '.join(options)}"
    if not question.strip():
        return "no question before the options"
    return ParsedChoice(question, tuple(options), index)


def open_question(choice: ParsedChoice) -> tuple[str, str] | None:
    """Return question and answer, or None if options may be needed."""
    options = [sound_option(option) for option in choice.options]
    not_values = [option for option in options if not _is_value(option)]
    if options[choice.index] in not_values or len(not_values) > 1 or not all(map(_WORD.search, not_values)):
        return None
    question = _EMPTY_BRACKETS.sub("____", choice.question.strip())
    if _POINTS.search(question):
        return None
    if re.search(r"(?:[^\W\d_]|[=:：＝])$", question):
        question = f"{question} ____"
    return question, tidy_answer(options[choice.index])


def _is_value(option: str) -> bool:
    if re.search(r"\d", option) and _NUMBER_ALONE.fullmatch(option):
        return True
    return bool(_VALUE_ALONE.fullmatch(option)) and not _NO_VALUE.search(option)


def sound_option(option: str) -> str:
    """Remove layout if the verifier then reads the option as before."""
    plain, text = without_frame(option), tidy_option(option)
    return text if text == plain else keep_reference(plain, text)


def tidy_answer(option: str) -> str:
    """Strip blanks and final stop."""
    return _FINAL_STOP.sub("", option.strip().strip("~").strip())


def _read_as(answer: str, options: Sequence[str]) -> int | None:
    """Return the only option that the verifier reads like the answer, but never one with equal text."""
    written = strip_markup(without_lead(answer))
    if any(strip_markup(option) == written for option in options):
        return None
    same = [index for index, option in enumerate(options) if option and reads_the_same(answer, option)]
    return same[0] if len(same) == 1 else None


def _is_choice(split: OptionSplit, answer: str) -> bool:
    """Return whether labels mark options, not parts."""
    letter = named_letter(answer)
    label = letter is not None and is_only_letter(answer) and ord(letter) - 65 < len(split.options)
    sends = bool(_SENDS.search(split.question))
    short = max(map(len, split.options)) <= 200
    asking_options = sum("?" in option or "？" in option for option in split.options)
    if asking_options >= 2:
        return False
    if split.kind == "upper":
        by_text = resolve_option(answer, split.options) is not None or (
            not label and resolve_option(answer, [tidy_option(option) for option in split.options]) is not None
        )
        return (
            label
            or by_text
            or names_several(answer, len(split.options))
            or (len(split.options) >= 4 and short and sends)
        )
    if split.kind == "lower":
        by_text = resolve_option(answer, split.options) is not None and len(split.options) >= 3
        return (label or by_text or (_values_asked_for(split) and is_only_letter(answer))) and short
    bracketed = bool(re.match(r"^\W*[(（][1-8][)）]\W*$|^[①-⑧]$", answer.strip()))
    labelled = (
        re.match(r"^[(（]?[1-8][)）.、]\s*\S", answer.strip())
        and resolve_option(answer, split.options, split.kind) is not None
    )
    names_an_option = bracketed or bool(labelled) or resolve_option(answer, split.options, "upper") is not None
    if len(split.options) >= 3 and sends and short and names_an_option:
        return True
    number = re.match(r"^\W*([1-8])\W*$", answer.strip())
    counted = number is not None and int(number.group(1)) <= len(split.options)
    return _values_asked_for(split) and (names_an_option or counted or is_only_letter(answer))


def _values_asked_for(split: OptionSplit) -> bool:
    """Return whether short values follow a question: "What is …? (1) 8 (2) 10 (3) 12"."""
    values = all(len(option) <= 24 and re.search(r"\d|\\[a-z]", option) for option in split.options)
    closed = not any(re.search(r"[。?？；;]", option) for option in split.options)
    return len(split.options) >= 3 and values and closed and split.question.rstrip().endswith(("?", "？", "____"))


def _first_numbers(rows: pl.DataFrame) -> dict[str | None, int]:
    number, size = pl.col("answer").str.strip_chars().cast(pl.Int64, strict=False), pl.col("choices").list.len()
    over = (number >= size).any()
    first = pl.when((number.min() == 0) & ~over).then(0).when((number.min() >= 1) & over).then(1)
    counted = (
        rows.filter(size.fill_null(0) > 0)
        .group_by("source")
        .agg(first=first, plain=number.is_not_null().all())
        .filter("plain", pl.col("first").is_not_null())
    )
    return dict(counted.select("source", "first").iter_rows())


@lru_cache(maxsize=4096)
def strip_markup(text: str) -> str:
    """Return lower case without markup, spaces and final stop."""
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text))
    return plain.replace("\\left", "").replace("\\right", "").replace("\\dfrac", "\\frac").rstrip(".。;").lower()


@lru_cache(maxsize=4096)
def names_several(answer: str, count: int) -> bool:
    """Return whether the answer names several lettered options ("A, C", "ABD")."""
    plain = without_lead(answer).strip("$ .。").upper()
    plain = re.sub(r"\\(?:TEXT|MATHRM|TEXTBF|BOXED)\{([^{}]*)\}", r"\1", plain)
    if not _LETTERS.match(plain):
        return False
    letters = re.findall(r"[A-J]", plain.replace("AND", " "))
    return len(letters) > 1 and letters == sorted(set(letters)) and all(ord(letter) - 65 < count for letter in letters)


def resolve_option(answer: str, options: Sequence[str], kind: str = "upper", first: int | None = None) -> int | None:
    """Return the index of the option that ``answer`` names, or None.

    ``first`` is the source's first option's number; if unknown, ambiguous numbers resolve to None.

    >>> resolve_option("B", ["6", "7"]), resolve_option("7", ["6", "7"]), resolve_option("9", ["6", "7"])
    (1, 1, None)
    """
    lone = named_letter(answer) if is_only_letter(answer) else None
    if (
        lone
        and kind in ("upper", "lower")
        and not any(len(option) < 6 and strip_markup(option) == lone.lower() for option in options)
    ):
        return _within(ord(lone) - 65, options)
    texts = [strip_markup(option) for option in options]
    bare_answer = strip_markup(without_lead(answer))
    same = [index for index, text in enumerate(texts) if text == bare_answer]
    circled = _CIRCLED.find(answer.strip()) if len(answer.strip()) == 1 else -1
    if kind == "circled" and 0 <= circled < len(options):
        return circled
    number, labelled = _NUMBER.match(bare_answer), _NUMBERED.match(bare_answer)
    if kind == "digit" and labelled:
        index = int(labelled.group(1)) - 1
        if _within(index, options) is not None and texts[index] == labelled.group(2):
            return index
    if kind == "digit" and number and re.match(r"\W*[(（]", answer.strip()):
        return _within(int(number.group(1)) - 1, options)
    if len(same) == 1:
        start = 1 if first is None and kind == "digit" else first
        counted = _within(int(number.group(1)) - start, options) if number and start is not None else same[0]
        return same[0] if counted in (None, same[0]) else None
    if len(same) > 1:
        letter = named_letter(answer)
        return same[0] if letter is None else _within(ord(letter) - 65, options)
    letter = named_letter(answer)
    lettered = is_only_letter(answer) and kind not in ("digit", "circled")
    if letter is not None and (lettered or _agrees(answer, letter, texts)):
        return _within(ord(letter) - 65, options)
    if number:
        if first is not None:
            return _within(int(number.group(1)) - first, options)
        if kind in ("digit", "circled"):
            return _within(int(number.group(1)) - 1, options)
    return None


def _agrees(answer: str, letter: str, texts: Sequence[str]) -> bool:
    """Return whether the text after the answer's letter is that option's."""
    index = ord(letter) - 65
    if index >= len(texts):
        return False
    rest = re.sub(r"^[(（\[]?[a-j][)）\].:、,;]*", "", strip_markup(without_lead(answer)))
    return rest == texts[index] or (bool(rest) and (texts[index].startswith(rest) or rest.startswith(texts[index])))


def _within(index: int, options: Sequence[str]) -> int | None:
    return index if 0 <= index < len(options) else None
