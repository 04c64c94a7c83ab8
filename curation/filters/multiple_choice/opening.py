"""A multiple-choice question made into an open one: the same question, complete without its options.

Invariants:
  - the numbers and formulas of the question stay as they are; only words that point at options go;
  - a question is opened only if its answer would be the same without the options: no "which of these", no "could be",
    no "closest to", no answer that is a sentence or that names other options;
  - otherwise `Refusal` says why, with the words that decided.

Rules only, no model: when in doubt the question is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from curation.filters.multiple_choice.resolving import holds_options
from curation.filters.multiple_choice.words import (
    COUNTS,
    EQUAL_WHICH,
    LISTS,
    META_OPTION,
    OPEN_WHICH,
    POINTS,
    POINTS_DOUBTFUL,
    POINTS_HARMLESS,
    POINTS_WHEN_ASKED,
    TRIGGERS,
    WHICH_NEEDLES,
)
from curation.languages.vocabulary import languages, one_of
from curation.options import tidy_option, without_frame
from curation.records import DropReason
from curation.verify.answers.words import parse_number_words
from curation.verify.rewriting import keep_reference


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question and its answer."""

    statement: str
    answer: str
    doubt: str | None = None
    """Words that make it doubtful that the question stands alone; a classifier or a model decides."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a multiple choice cannot be opened; ``evidence`` is the text that decided."""

    reason: DropReason
    evidence: str


_CURRENCY = re.compile(r"^(?:rs\.?|re\.?|inr|usd|us|eur|gbp|cny|rmb|£|€|¥|\\?\$|hk\\?\$|s\\?\$)\s*", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$[^$]*\$\$|\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]")
_LABEL_LIKE = re.compile(r"^[\s$(（]*(?:\$*[1-9]\$*|[①-⑧]+|[IVX]{1,4}|[a-e])[\s$)）]*$")
_ENVIRONMENT_MARK = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z*]+\}(?:\s*\{[lcr|@\s]*\})?")
_ANY_LETTER = re.compile(r"[^\W\d_]")
_WORDS = re.compile(r"[A-Za-zÀ-ÿЀ-ӿ]{2,}")
_FINAL_STOP = re.compile(r"(?<=[\w})$%])\s*[.。．;；]$")
_LABELS_ALONE = re.compile(r"^[\s$]*[(（]\$*\d\$*[)）][\s$]*$|^[\s$①-⑧、,，和]+$")
_FORMULA_LIKE = re.compile(r"\d|[$\\^=√π∞]|^[A-Za-z]$|\b[A-Za-z]\s*[+*/−-]\s*[A-Za-z]\b")
_FORMULA_START = re.compile(r"[\d$\\(\[{|√π−-]|\b[A-Za-z]\b")
_VALUE_START = re.compile(r"\d|\b[A-Za-z]\b")
_SET_AS_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_YES_NO = re.compile(rf"(?i)^\W*(?:{one_of(lambda lang: lang.choices.yes_no)})\W*$")
_HAN_CODES = tuple(lang.code for lang in languages() if not lang.spaced)
_FALLBACK = "en"
"""The language that a question without a known tag is taken for."""


def open_question(question: str, options: Sequence[str], index: int, lang: str | None) -> OpenQuestion | Refusal:
    """Open the question, with ``options[index]`` as its answer, or say why it makes no sense without the options."""
    answer = _in_digits(tidy_answer(sound_option(options[index])))
    trouble = _answer_trouble(answer, question, options)
    if trouble:
        return Refusal(DropReason.CHOICES_NEEDED, trouble)
    text = _tidied(question)
    text = _asked_for(text, answer)
    points = _pointing(text, lang)
    if points and not holds_options(text, options):
        return Refusal(DropReason.CHOICES_NEEDED, points)
    filled = _filled(text, lang)
    bare = None if filled[-1:] in "?？" else _bare_end(filled)
    if bare:
        return Refusal(DropReason.CHOICES_NEEDED, bare.group().strip())
    return OpenQuestion(filled, answer, points or _doubt(text, lang))


def _bare_end(text: str) -> re.Match[str] | None:
    """Return the end of a sentence that does not say what its blank stands for."""
    return ("____" in text and _BARE_BLANK.search(text)) or _BARE_END.search(text, max(0, len(text) - _LONGEST_END))


def sound_option(option: str) -> str:
    """Return an option's text without layout; as it stood, where the verifier no longer reads the same answer."""
    stood, text = without_frame(option), tidy_option(option)
    return text if text == stood else keep_reference(stood, text)


def _asked_for(text: str, answer: str) -> str:
    """Make a question that only repeats its options ask for the thing itself."""
    if not any(needle in text for needle in WHICH_NEEDLES):
        return text
    if _is_number(answer):
        for pattern, asks in EQUAL_WHICH:
            text = pattern.sub(asks, text)
    for pattern, asks in OPEN_WHICH:
        text = pattern.sub(asks, text)
        text = re.sub(rf"(?<=[a-z0-9$,;)] ){re.escape(asks)}", asks[0].lower() + asks[1:], text)
    return text


def tidy_answer(option: str) -> str:
    """Return the option's text as an answer: no layout, no final stop."""
    text = option.strip().strip("~").strip()
    return _FINAL_STOP.sub("", text)


def _in_digits(answer: str) -> str:
    """Return a number that is written as a word as the verifier reads it: "Three" is 3."""
    number = parse_number_words(answer.lower()) if answer.isalpha() and answer.isascii() else None
    return answer if number is None else keep_reference(answer, str(number))


def _answer_trouble(answer: str, question: str, options: Sequence[str]) -> str | None:
    """Return the answer, if it cannot stand without the other options: another's mention, yes/no, a label, a phrase."""
    if _ANY_LETTER.search(answer) and (META_OPTION.search(_FORMULA.sub(" ¦ ", answer)) or _YES_NO.match(answer)):
        return answer
    if _is_label(answer, question):
        return answer
    if is_mathematical(answer):
        return None
    texts = [tidy_option(option) for option in options]
    names = [text for text in texts if not META_OPTION.search(text)]
    if len(answer) <= 24 and len(names) > 1 and all(_named_in(text, question) for text in names):
        return None
    return answer


def _is_label(answer: str, question: str) -> bool:
    """Return whether the answer names an item that the question lists: "(3)", "①②", "II" beside "II. …"."""
    if _LABELS_ALONE.match(answer):
        return True
    name = answer.strip("$ ()（）")
    if not _LABEL_LIKE.match(answer) or name.isdigit():
        return False
    return bool(re.search(rf"[(（]\s*\$*{re.escape(name)}\$*\s*[)）]|\b{re.escape(name)}\s*[.)]\s", question))


def is_mathematical(answer: str) -> bool:
    """Return whether an answer is a number or a formula, with a currency before and a unit of at most three words
    after.
    """
    text = answer.strip()
    if not (text.startswith("$") and text.count("$") % 2 == 0):
        text = _CURRENCY.sub("", text)
    if _SENTENCE_START.match(text):
        return False
    if not _FORMULA_LIKE.search(text):
        return False
    prose = _FORMULA.sub(" 1 ", _ENVIRONMENT_MARK.sub(" ", text))
    if "\\" in prose:
        prose = _COMMAND.sub("", _SET_AS_TEXT.sub(r" \1 ", prose))
    prose = _PRODUCT.sub("", prose)
    if not prose.isascii() and re.search(r"[\u4e00-\u9fff]{5,}", prose):
        return False
    if not prose.isascii() and _HAN.search(prose):
        return bool(
            re.match(r"^[^\u4e00-\u9fff]*[\d)\]}](?:[^\u4e00-\u9fff]*[\u4e00-\u9fff]{1,4})*[^\u4e00-\u9fff]*$", prose)
        ) and (len(re.findall(r"[\u4e00-\u9fff]+", prose)) <= 3)
    words = [word for word in _WORDS.findall(prose) if word.lower() not in _FUNCTIONS]
    leads = _WORDS.search(prose)
    if leads is None:
        return True
    first = _FORMULA_START.search(text)
    starts_with_word = bool(first and leads.start() < (_VALUE_START.search(prose) or leads).start())
    return len(words) <= 3 and not (starts_with_word and leads.group().lower() not in _FUNCTIONS)


# Unknowns side by side in a formula: "sx/(3.6p)", "1000xp/s"
_PRODUCT = re.compile(r"\b(?:[a-z]{2,3}|[A-Z]{2,3})(?=\s?[/*^+−])|(?<=[/*^(+−])(?:[a-z]{2,3}|[A-Z]{2,3})\b")
_SENTENCE_START = re.compile(rf"(?i)(?:{one_of(lambda lang: lang.choices.sentence_starts)})\s+[a-z]{{2,}}")
_FUNCTIONS = frozenset(
    "sin cos tan cot sec csc log ln lg exp sqrt pi mod arcsin arccos arctan max min gcd lcm inf infty infinity or and"
    " am pm".split()
)  # fmt: skip


def _is_number(answer: str) -> bool:
    """Return whether the answer has no unknowns: digits and LaTeX commands only."""
    return not re.search(
        r"[A-Za-z]",
        re.sub(r"\\(?:d?frac|sqrt|pi|cdot|times|left|right|text\{[^}]*\})|(?<![A-Za-z])i(?![A-Za-z])", "", answer),
    )


def _named_in(option: str, question: str) -> bool:
    """Return whether the question itself names the option, as a short name."""
    words = option.strip().strip(".。").lower()
    return 0 < len(words) <= 24 and words in question.lower() and len(words.split()) <= 3


def _pointing(text: str, lang: str | None) -> str | None:
    """Return the words of a question that point at options, or None."""
    if _HAN.search(text):
        if COUNTS.search(text) and LISTS.search(text):
            return None
        match = next((pointer for code in _HAN_CODES if (pointer := _points(text, code))), None)
        return match.group() if match else None
    plain = lang in (None, _FALLBACK) or lang not in POINTS
    if plain and not _points_possible(text, _FALLBACK):
        return None
    last = _question_part(text)
    if lang in POINTS and lang not in _HAN_CODES and lang != _FALLBACK:
        match = POINTS[lang].search(last)
        if match:
            return match.group().strip()
    match = POINTS[_FALLBACK].search(_without_harmless(last, _FALLBACK))
    return match.group().strip() if match else None


def _points(text: str, code: str) -> re.Match[str] | None:
    if not _points_possible(text, code):
        return None
    plain = _without_harmless(text, code) if code in POINTS_HARMLESS else text
    match = POINTS[code].search(plain)
    if match is None and code in POINTS_WHEN_ASKED:
        match = POINTS_WHEN_ASKED[code].search(_asking_part(plain))
    return match


@lru_cache(maxsize=8)
def _points_possible(text: str, code: str) -> bool:
    """Return whether a word is there without which no expression of the language matches."""
    if code not in TRIGGERS:
        return True
    lower = text.lower()
    for word in TRIGGERS[code]:  # noqa: SIM110 - `any` of a generator takes twice as long
        if word in lower:
            return True
    return False


@lru_cache(maxsize=8)
def _without_harmless(text: str, code: str) -> str:
    """Return a text without the phrases that only look as if they pointed; asked for twice of most texts."""
    return POINTS_HARMLESS[code].sub(" ¦ ", text)


def _doubt(text: str, lang: str | None) -> str | None:
    """Return the words that make it doubtful that a question stands alone, or None."""
    codes: Sequence[str] = _HAN_CODES if _HAN.search(text) else (_FALLBACK, *((lang,) if lang in POINTS else ()))
    for code in codes:
        if code not in POINTS_DOUBTFUL or not _points_possible(text, code):
            continue
        if code in _HAN_CODES:
            part = _THEN.split(_asking_part(_without_harmless(text, code)))[-1]
        else:
            part = _without_harmless(_question_part(text), code)
        if (match := POINTS_DOUBTFUL[code].search(part)) is not None:
            return match.group().strip()
    return None


@lru_cache(maxsize=8)
def _asking_part(text: str) -> str:
    """Return the sentences of a Chinese text that ask: those with a question mark or a blank, and the last one; what
    stands in quotation marks or notes in brackets does not ask.
    """
    sentences = [
        part for part in re.split(r"(?<=[。．；;？?！!])|\n+", _SAID_ASIDE.sub(" ¦ ", text)) if part.strip("．。 \n")
    ]
    asking = [part for part in sentences[:-1] if "____" in part or "？" in part or "?" in part]
    return " ".join([*asking, *sentences[-1:]])


@lru_cache(maxsize=8)
def _question_part(text: str) -> str:
    """Return the sentences that ask: those with a question mark, and the last one."""
    sentences = re.split(
        r"(?<=[.!?;])\s+(?=[A-ZÀ-ÝА-Я\"$(\[])|(?<=[a-z] [.?])\s+(?=[a-z])|\n+",
        _FORMULA.sub(lambda formula: formula.group().replace(". ", ", "), text),
    )
    asking = [sentence for sentence in sentences[:-1] if "?" in sentence]
    return " ".join([*asking, sentences[-1]]) if sentences else text


_SAID_ASIDE = re.compile(r"``[^`']{0,200}''|[“「][^”」]{0,200}[”」]|[（(](?:也|注|说)[^（）()]{0,120}[）)]")
# Places where an answer was to be written: （ ）, (    ), ＿＿
# and in LaTeX $(\quad)$, (\quad$ ）, （ $)$; the dollars around or inside are weighed in `_blank`.
_EMPTY_BRACKETS = re.compile(
    r"(?:(?<!\$)\$(?!\$))?\s*[（(](?:[\s~　]|\\q?quad|\\ |\\hspace\{[^{}]*\})*\$?(?:[\s~　]|\\q?quad"
    r"|\\ )*[)）](?:\s*\$(?!\$))?"
)
# What is in any of them: it begins with a sign, so that it is found quickly.
_MAY_BE_EMPTY = re.compile(r"[（(](?:[\s~　]|\\q?quad|\\ |\\hspace\{[^{}]*\})*\$?(?:[\s~　]|\\q?quad|\\ )*[)）]")
# A sentence that ends in "then ____": nothing says what the blank stands for.
_BARE_BLANK = re.compile(
    rf"(?i)(?:^|[，,。．；;:：]|\$)\s*(?:{one_of(lambda lang: lang.choices.then_words)})[\s,，]*____[\s．。.]*"
    r"(?:[（(][^（）()]{0,120}[)）])?[\s．。.]*$"
)
_HAN_THEN = one_of(lambda lang: lang.choices.then_words_at_end, spaced=False)
# What stands before it is a condition.
_THEN = re.compile(rf"[，,]\s*(?:{_HAN_THEN})")
_SPACED_THEN = one_of(lambda lang: lang.choices.then_words_at_end, spaced=True)
_LONGEST_END = 200
"""Characters at the end of a text in which such a sentence ends."""
_BARE_END = re.compile(rf"(?i)(?:，|,|。|．|；|;)\s*(?:{_HAN_THEN})\s*$|\b(?:{_SPACED_THEN})\s*[:.]?$")
# A bracket that the source lost the end of: $a=($
_OPEN_BRACKET = re.compile(r"[（(]\s*\$\s*(?:____)?\s*[,，]?\s*$")
_MARKED_AS_CHOICE = re.compile(rf"[（(]\s*(?:{one_of(lambda lang: lang.choices.choice_notes)})\s*[)）]")
_CHOOSES = re.compile(
    "|".join(f"[{verb[0].upper()}{verb[0]}]{verb[1:]}" for lang in languages() for verb in lang.choices.choose_verbs)
)
_CHOOSE_VERBS = tuple({verb[1:]: None for lang in languages() for verb in lang.choices.choose_verbs})
"""What follows the first letter of each, which may be a capital."""
_INSTRUCTION = re.compile(
    rf"(?i)\s*\(?(?:{'|'.join(lang.choices.instruction for lang in languages() if lang.choices.instruction)})"
    r"[^.?]{0,30}[.:)]?\s*$"
)
# A key that the source left behind the statement: 【本题欣赏题】答案：B
_LEFT_KEY = re.compile(
    rf"\s*(?:{'|'.join(lang.choices.left_key for lang in languages() if lang.choices.left_key)})\s*[A-E][\s．。.]*$"
)
_KEY_LETTER = re.compile(r"[A-E][\s．。.]*$")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_BLANKS = re.compile(r"[_＿]{2,}")
_SPACED_ENDS = one_of(lambda lang: lang.choices.ends_open, spaced=True)
_HAN_ENDS = one_of(lambda lang: lang.choices.ends_open, spaced=False)
_END = re.compile(rf"(?i)\b(?:{_SPACED_ENDS})\s*[．.]?$")
_HAN_END = re.compile(rf"({_HAN_ENDS}|=|＝|：|:)\s*(\$*)\s*[．。.]?\s*$")
# A measure word with nothing to measure, near the end: 则共有种不同的方法．
_UNIT_END = re.compile("|".join(lang.choices.unit_end for lang in languages() if lang.choices.unit_end))
_LOST_NUMBERS = [re.compile(lang.choices.lost_number) for lang in languages() if lang.choices.lost_number]
_GAPS = {lang.code: re.compile(lang.choices.gap) for lang in languages() if lang.choices.gap}
_NUMBER_ASKED = re.compile(rf"(?:{one_of(lambda lang: lang.choices.number_questions)})[^？?]*____\s*[?？]")


def _tidied(question: str) -> str:
    """Replace brackets that were left for a letter by a blank, and remove instructions about choosing."""
    text = question.strip()
    if "(" in text or "（" in text:
        if _MAY_BE_EMPTY.search(text):
            text = _EMPTY_BRACKETS.sub(_blank, text)
        text = _MARKED_AS_CHOICE.sub("", text)
    if "_" in text or "＿" in text:
        text = _BLANKS.sub("____", text)
    text = _OPEN_BRACKET.sub("$ ____", text)
    if not text.isascii() and _KEY_LETTER.search(text):
        text = _LEFT_KEY.sub("", text)
    if any(verb in text for verb in _CHOOSE_VERBS) and _CHOOSES.search(text):
        text = _INSTRUCTION.sub("", text)
    return text.strip()


def _blank(match: re.Match[str]) -> str:
    """Return a blank for empty brackets; an odd dollar among them belongs to the formula beside."""
    brackets = match.group()
    if not brackets.count("$") % 2:
        return "____" if "$" in brackets or not brackets.startswith((" ", "\n")) else " ____"
    return " $____" if brackets.startswith("$") else "$ ____"


def _with_lost_number(text: str) -> str:
    """Add a blank before a measure word that has nothing to measure: 120有____个因数."""
    body = text.rstrip(" 。．.$\n")
    begins = 1 + max(body.rfind(stop) for stop in "。．；？")
    for lost_number in _LOST_NUMBERS:
        if (found := lost_number.match(text[begins:])) is not None:
            return f"{text[:begins]}{found.group(1)}____{found.group(2)}"
    return text


def _filled(text: str, lang: str | None) -> str:
    """Add a blank to a question that ends where its answer would stand."""
    if "____" in text or re.search(r"[?？]", text):
        return re.sub(r"____\s*([?？])", r"\1", text) if _NUMBER_ASKED.search(text) else text
    if _HAN.search(text):
        if _HAN_END.search(text):
            return _HAN_END.sub(r"\1\2____．", text)
        counted = _UNIT_END.sub(r"\1____\2", text)
        return counted if counted != text else _with_lost_number(text)
    if re.search(r"=\s*\$+\s*[．.]?$", text):
        return f"{text.rstrip(' ．.')} ____."
    gap = _GAPS.get(_FALLBACK if lang is None else lang)
    lost_blank = gap.search(text) if gap else None
    if lost_blank:
        return f"{text[: lost_blank.start()]} ____ {text[lost_blank.end() :]}".rstrip()
    if re.search(r"[:=]\s*\$*$", text) and not text.endswith("$"):
        return f"{text.rstrip(' :')} ____." if text.endswith(":") else f"{text} ____."
    if _END.search(text):
        return f"{text.rstrip(' ．.')} ____."
    return text
