"""Multiple choice: found, resolved to the option that is right, and rewritten to an open question.

    is_multiple_choice()    which rows are worth a closer look, as one expression over a frame
    open_questions(rows)    those rows opened, or refused with a reason, or left alone

Options come as a field of their own or inside the statement, in many styles (options.py); the reference names one by
letter, number or text (resolving.py); the question is opened only if it stays complete (opening.py).

Invariants:
  - a row with options as a field is always opened or refused; a row whose statement only looks like it holds
    options is left alone unless its answer, or its question, says that they are options;
  - refused is never guessed: the reason and the words that decided go with the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from curation.filters.multiple_choice.opening import OpenQuestion, Refusal, open_question, sound_option, tidy_answer
from curation.filters.multiple_choice.resolving import names_several, resolve_option, strip_markup
from curation.languages.vocabulary import one_of
from curation.option_letters import is_only_letter, named_letter, without_lead
from curation.options import LETTERED_LIST, OptionSplit, split_options, strip_label, tidy_option
from curation.records import DropReason
from curation.verify.rewriting import reads_the_same

__all__ = [
    "OpenQuestion",
    "ParsedChoice",
    "Refusal",
    "is_multiple_choice",
    "open_one",
    "open_questions",
    "parse_choices",
    "tidy_answer",
]

# Literals of which an inline multiple choice holds one: the second label.
_SECOND = [
    "B)",
    "B )",
    "B）",
    "B.",
    "B．",
    "B、",
    "B:",
    "B：",
    "B}",
    "B]",
    "Ｂ",
    "b)",
    "b )",
    "b）",
    "\nb.",
    "②",
    "2)",
    "2）",
    "2．",
    "2、",
    "\n2.",
    "\n2 .",
    "\\choice",
    "\\task",
    "Alph",
    "[A.]",
    "[(A)]",
]
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
_OUTCOME = pl.Schema(
    {
        "_at": pl.UInt32,
        "opened": pl.Boolean,
        "statement": pl.String,
        "answer": pl.String,
        "reason": pl.String,
        "evidence": pl.String,  # of an opened one, what makes it doubtful that it stands alone
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedChoice:
    """A multiple choice taken apart: the question without its options, their texts, the index of the right one.

    Example: ``ParsedChoice("Which is even?", ("3", "4"), 1)``
    """

    question: str
    options: tuple[str, ...]
    index: int


def is_multiple_choice() -> pl.Expr:
    """Return whether a row may be multiple choice, by literals only: options as a field, or a second label in the
    statement.
    """
    inline = pl.col("statement").str.contains_any(_SECOND)
    listed = pl.col("choices").list.len().fill_null(0) > 0
    return (pl.col("answer").is_not_null() & (listed | inline)).fill_null(False)


def open_questions(rows: pl.DataFrame) -> pl.DataFrame:
    """Open each multiple choice; return one row for each: ``_at``, ``opened`` with statement and answer, or reason and
    evidence; an opened one with evidence is in doubt.

    ``rows`` holds ``_at``, ``statement``, ``answer``, ``choices``, ``lang`` and ``source``. Rows that turn out not to
    be multiple choice are not in the result.
    """
    rows = _usable(rows)
    first = _counting_from(rows)
    outcomes: list[tuple[int, bool, str | None, str | None, str | None, str | None]] = []
    for at, statement, answer, choices, lang, source in rows.select(
        "_at", "statement", "answer", "choices", "lang", "source"
    ).iter_rows():
        result = open_one(statement, answer, choices, lang, first.get(source))
        if isinstance(result, OpenQuestion):
            outcomes.append((at, True, result.statement, result.answer, None, result.doubt))
        elif isinstance(result, Refusal):
            outcomes.append((at, False, None, None, str(result.reason), result.evidence))
    return pl.DataFrame(outcomes, schema=_OUTCOME, orient="row")


def open_one(
    statement: str,
    answer: str,
    choices: Sequence[str | None] | None = None,
    lang: str | None = None,
    first: int | None = None,
) -> OpenQuestion | Refusal | None:
    """Open or refuse one problem; return None where it is no multiple choice.

    ``first`` is the number of the first option where the source's answers are option numbers.
    """
    parsed = _parse(statement, answer, choices, first)
    return (
        open_question(parsed.question, parsed.options, parsed.index, lang)
        if isinstance(parsed, ParsedChoice)
        else parsed
    )


def parse_choices(rows: pl.DataFrame) -> Iterator[tuple[int, ParsedChoice]]:
    """Yield ``_at`` and parts of every multiple choice whose right option is known, to be opened by other means.

    ``rows`` holds what `open_questions` takes, and all the rows that are handed to that together.
    """
    rows = _usable(rows)
    first = _counting_from(rows)
    columns = ("_at", "statement", "answer", "choices", "source")
    for at, statement, answer, choices, source in rows.select(columns).iter_rows():
        parsed = _parse(statement, answer, choices, first.get(source))
        if isinstance(parsed, ParsedChoice):
            yield at, parsed


def _usable(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a text, an answer, and options as a field or something like them inside the statement."""
    listed = pl.col("choices").list.len().fill_null(0) > 0
    usable = (pl.col("statement").str.strip_chars() != "") & (pl.col("answer").str.strip_chars() != "")
    return rows.filter(usable & (listed | pl.col("statement").str.contains(_INLINE)))


def _parse(
    statement: str, answer: str, choices: Sequence[str | None] | None, first: int | None
) -> ParsedChoice | Refusal | None:
    """Take a multiple choice apart; return None where it is none, and a refusal where its answer names no option."""
    if choices:
        options = [strip_label((choice or "").strip(), index) for index, choice in enumerate(choices)]
        inline = split_options(statement) if _LABELLED.search(statement) else None
        question = inline.question if inline and _same(inline.options, options) else statement
        return _resolve(question, answer, options, "upper", first)
    split = split_options(statement)
    if split is None or not _is_choice(split, answer):
        return None
    return _resolve(split.question, answer, split.options, split.kind, None)


def _resolve(
    question: str, answer: str, options: Sequence[str], kind: str, first: int | None
) -> ParsedChoice | Refusal:
    """Return the question with the option that the answer names."""
    if names_several(answer, len(options)) and resolve_option(answer, options, "text") is None:
        return Refusal(DropReason.CHOICES_NEEDED, answer)
    if not is_only_letter(answer):
        options = [sound_option(option) for option in options]
    index = resolve_option(answer, options, kind, first)
    if index is None and not is_only_letter(answer):
        index = _read_as(answer, options)
    if index is None or not options[index]:
        listed = " | ".join(options)
        return Refusal(DropReason.CHOICES_UNRESOLVED, f"{answer} not in: {listed}")
    if not question.strip():
        return Refusal(DropReason.CHOICES_NEEDED, "no question before the options")
    return ParsedChoice(question, tuple(options), index)


def _read_as(answer: str, options: Sequence[str]) -> int | None:
    """Return the index of the only option that the verifier reads as it reads the answer: ½ where that is 1/2.

    An answer that is an option's very text, and was not resolved to it, may mean another option's number.
    """
    written = strip_markup(without_lead(answer))
    if any(strip_markup(option) == written for option in options):
        return None
    same = [index for index, option in enumerate(options) if option and reads_the_same(answer, option)]
    return same[0] if len(same) == 1 else None


def _is_choice(split: OptionSplit, answer: str) -> bool:
    """Return whether a run of labels is a set of options, going by the answer and the question."""
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
    """Return whether three or more short values stand behind a question: "What is …? (1) 8 (2) 10 (3) 12"."""
    values = all(len(option) <= 24 and re.search(r"\d|\\[a-z]", option) for option in split.options)
    closed = not any(re.search(r"[。?？；;]", option) for option in split.options)
    return len(split.options) >= 3 and values and closed and split.question.rstrip().endswith(("?", "？", "____"))


def _same(inline: Sequence[str], options: Sequence[str]) -> bool:
    """Return whether the statement repeats the options that came as a field."""
    return len(inline) == len(options)


def _counting_from(rows: pl.DataFrame) -> dict[str | None, int]:
    """Return, for each source whose answers are all small integers, where they start counting: 0 or 1."""
    numbered = (
        rows.filter(pl.col("choices").list.len().fill_null(0) > 0)
        .with_columns(
            number=pl.col("answer").str.strip_chars().cast(pl.Int64, strict=False), size=pl.col("choices").list.len()
        )
        .group_by("source")
        .agg(
            plain=pl.col("number").is_not_null().all(),
            low=pl.col("number").min(),
            over=(pl.col("number") >= pl.col("size")).any(),
        )
        .filter("plain")
    )
    counts: dict[str | None, int] = {}
    for source, low, over in numbered.select("source", "low", "over").iter_rows():
        if low == 0 and not over:
            counts[source] = 0
        elif low >= 1 and over:
            counts[source] = 1
    return counts
