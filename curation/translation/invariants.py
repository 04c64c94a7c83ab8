"""Check what a translation must keep: numbers, formulas, code, options, answer, language and end.

Each failure is a reason in words; a model reads what passes (`questions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from curation.languages.identification import identify, identify_prose
from curation.languages.names import LANGUAGES
from curation.languages.stripping import letters, strip, without_formulas
from curation.languages.vocabulary import has_decimal_comma
from curation.records import Domain
from curation.translation.digits import changed_numbers, misread_thousands
from curation.translation.formulas import changed_code, changed_formulas, formulas_of
from curation.translation.rows import SOURCE
from curation.verify.math_judge import Judge

VERSION = "translation@17"

_WORDS = 3
"""Letters from which an answer is in words, not a name."""
_LABEL = re.compile(
    r"(?:(?<=\s)|^)[(（]?([A-H])[)）.:：、](?=\s|[^\s\w])|[(（]([A-H])[)）]|\\text(?:bf)?\{\(?([A-H])\)?\.?\}",
    re.MULTILINE,
)
_ENDS_SENTENCE = re.compile(r"\w[ \t]\Z")
"""Precedes a letter that ends a sentence: than Machine A. Machine C."""
_WORDLESS = re.compile(r"[^\W\d_]{2}")
_ELSEWHERE = 0.5
"""Confidence from which a third language is believed."""
_LEFT = 0.8
"""Confidence from which a sentence is in the original's language."""
_FEW = 10
"""Letters from which prose must have a language."""
_A_SENTENCE = 16
_COPIED = 3
"""Lower-case words from which a sentence can be copied."""
_SENTENCE = re.compile(r"(?<=[.!?:;…])\s+|(?<=[。！？；：])\s*|\n+")
_AFTER_QUESTION = re.compile(r"[?？؟][^?？؟]*\Z")


@dataclass(frozen=True, slots=True)
class ProblemText:
    """Translated texts; those ``unchanged`` must stay, such as a program's examples."""

    statement: str
    answer: str | None = None
    choices: tuple[str, ...] = ()
    domain: Domain = Domain.MATH
    unchanged: tuple[str, ...] = field(default=(), compare=False)


def is_in_words(answer: str | None) -> bool:
    """Return whether an answer is in words, as Tuesday."""
    prose = strip(answer or "")
    return letters(prose) >= _WORDS or prose.lower() == "no" or any("\u3400" <= sign <= "\u9fff" for sign in prose)


def broken(original: ProblemText, translated: ProblemText, target: str, judge: Judge | None) -> list[str]:
    """Return what a translation broke, as ``name: what``; programs need no judge."""
    return [f"{name}: {what}" for name, what in _broken(original, translated, target, judge)]


def _broken(
    original: ProblemText, translated: ProblemText, target: str, judge: Judge | None
) -> Iterator[tuple[str, str]]:
    before, after = _whole(original), _whole(translated)
    statements = original.statement, translated.statement
    if (changed := changed_numbers(before, after)) is not None:
        yield "numbers", changed
    is_comma = has_decimal_comma(target)
    misread = misread_thousands(after, before, decimal_comma=is_comma) if is_comma is not None else None
    if misread is not None:
        yield "thousands", f"{misread} is a decimal number in {target}: write its thousands as the language does"
    if (changed := changed_formulas(before, after)) is not None:
        yield "formulas", changed
    if (changed := changed_code(*statements) or _changed_blocks(original, translated.statement)) is not None:
        yield "code", changed
    labels_before, labels_after = (" ".join(labels(text)) or "none" for text in statements)
    if labels_before != labels_after:
        yield "options", f"the labels were {labels_before}, now {labels_after}"
    if len(original.choices) != len(translated.choices) or not all(choice.strip() for choice in translated.choices):
        yield "options", f"{len(original.choices)} options became {len(translated.choices)}, or one is empty"
    if original.answer is not None and is_in_words(original.answer):
        yield from _wrong_answer(original.answer, translated.answer, target, judge)
    if (language := other_language(*statements, target)) is not None:
        yield "language", f"the translation is in {language}, not in {target}"
    if (sentence := left_sentence(*statements, SOURCE, target)) is not None:
        yield "language", f"not translated: {sentence[:120]!r}"
    if (addition := appended(*statements, translated.answer or original.answer)) is not None:
        yield "end", f"not in the original: {addition[:80]!r}"


def _whole(text: ProblemText) -> str:
    return "\n".join([text.statement, *text.choices])


def _changed_blocks(original: ProblemText, statement: str) -> str | None:
    if original.domain is not Domain.CODE:
        return None
    missing = next((text for text in original.unchanged if text not in statement), None)
    if missing is not None:
        return f"this must stay as it is: {missing[:200]!r}"
    before, after = (_lines_of_data(text) for text in (original.statement, statement))
    return None if before == after else "the lines without words, such as the examples, must stay as they are"


def _lines_of_data(statement: str) -> list[str]:
    return [line.rstrip() for line in statement.splitlines() if line.strip() and not _WORDLESS.search(line)]


def _wrong_answer(before: str, after: str | None, target: str, judge: Judge | None) -> Iterator[tuple[str, str]]:
    """Yield a translated answer's faults; ``verifier`` if the verifier failed."""
    if after is None or not after.strip():
        yield "answer", f"the answer {before!r} is gone"
        return
    changed = changed_numbers(before, after)
    if changed is not None or sorted(formulas_of(before)) != sorted(formulas_of(after)):
        yield "answer", f"{before!r} became {after!r}: {changed or 'a formula changed'}"
        return
    assert judge is not None
    (check,) = judge.check([(after, target)])
    if check.failure is not None:
        yield "verifier", f"checking the answer {after!r} ended as {check.failure.value} ({check.reason})"
    elif not check.usable:
        yield "answer", f"{after!r} cannot be verified: {check.reason}"


def labels(statement: str) -> list[str]:
    """Return a statement's option labels; none unless A and B come first."""
    letters_of = [
        next(filter(None, match.groups()))
        for match in _LABEL.finditer(statement)
        if not (match[0] == "A." and _ENDS_SENTENCE.search(statement[: match.start()]))
    ]
    pairs = (at for at in range(len(letters_of) - 1) if letters_of[at : at + 2] == ["A", "B"])
    start = next(pairs, None)
    return letters_of[start:] if start is not None else []


def kept_texts(statement: str, texts: Sequence[str | None]) -> tuple[str, ...]:
    """Return tests and code that a program's statement must keep."""
    stripped = (text.strip() for text in texts if text is not None)
    return tuple(dict.fromkeys(text for text in stripped if text and f"\n{text}\n" in f"\n{statement}\n"))


def other_language(original: str, translated: str, target: str) -> str | None:
    """Return a translation's language unless it is ``target``."""
    guess = identify(translated, tuple(dict.fromkeys((*LANGUAGES, target))))
    if guess.lang == target:
        is_third = guess.anywhere not in (None, target, *LANGUAGES) and guess.anywhere_confidence >= _ELSEWHERE
        return guess.anywhere if is_third else None
    if guess.lang is None and identify(original).letters < _FEW:
        return None
    return guess.lang or "no language for sure"


def left_sentence(original: str, translated: str, source: str, target: str) -> str | None:
    """Return a sentence in the original's language, or None."""
    copied = {_letters(sentence) for sentence in _sentences(original)}
    for sentence in _sentences(translated):
        prose = strip(sentence)
        lower = sum(word[:1].islower() for word in prose.split())
        if lower < _COPIED:
            continue
        if _letters(sentence) in copied:
            return sentence
        guess = identify_prose(prose, (source, target)) if letters(prose) >= _A_SENTENCE else None
        if guess is not None and guess.lang == source and guess.confidence >= _LEFT:
            return sentence
    return None


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE.split(without_formulas(text)) if sentence.strip()]


def _letters(text: str) -> str:
    return "".join(sign for sign in strip(text).lower() if sign.isalpha())


def appended(original: str, translated: str, answer: str | None) -> str | None:
    """Return what a translation adds at its end: words, box or answer."""
    if translated.count("\\boxed") > original.count("\\boxed"):
        return "\\boxed"
    tail = _tail(translated)
    if tail and original.rstrip().endswith("?"):
        return tail
    ending = (answer or "").strip().strip("$.").strip()
    return ending if ending and _ends_with(translated, ending) and not _ends_with(original, ending) else None


def _tail(text: str) -> str:
    match = _AFTER_QUESTION.search(text)
    tail = match[0][1:].strip() if match else ""
    return tail if re.search(r"[^\W_]", tail) else ""


def _ends_with(text: str, ending: str) -> bool:
    bare = re.sub(r"[\s.。$)\]}]+\Z", "", text)
    return re.search(rf"(?<![\w.,]){re.escape(ending)}\Z", bare) is not None
