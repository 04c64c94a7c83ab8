"""Whole responses where an answer was expected: the last resort for pairs that people wrote.

Used by `compare_texts` only, never for rewards: a sentence around an answer is cut away, "The largest n is 34" is 34.
"""

from __future__ import annotations

import re

from curation.languages.vocabulary import one_of
from curation.thinking import CLOSE, OPEN
from curation.verify.answers.tokens import FUNCTIONS
from curation.verify.answers.units import is_unit
from curation.verify.answers.words import parse_choice
from curation.verify.extraction import ANSWER_CUE, clean_recorded_answer, extract_answer

_TEXT_COMMAND = re.compile(
    r"\\(?:text|mathrm|mbox|operatorname|textbf|textit|textnormal)[a-z]*\s*\{[^{}]*\}"
    r"|\\(?:begin|end)\s*\{[^{}]*\}(?:\{[lcr| ]*\})?|\\[A-Za-z]+"
)
_MATH = re.compile(
    r"\$\$.{1,2000}?\$\$|\$(?:\\.|[^$\\\n]){1,2000}\$|\\\([^\n]{1,2000}?\\\)|\\\[.{1,2000}?\\\]", re.DOTALL
)
_WORD = re.compile(r"[A-Za-zÀ-ÿ]{2,}(?![A-Za-zÀ-ÿ])(?!\s*[:=])")
_FOREIGN = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_COPULA = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.copulas)})\s+(?!not\b)", re.IGNORECASE)
_STATES = re.compile(
    rf"\b(?:{one_of(lambda vocab: vocab.answers.states, spaced=True)})\b"
    rf"|{one_of(lambda vocab: vocab.answers.states, spaced=False)}",
    re.IGNORECASE,
)
_STRONG_CUE = re.compile(one_of(lambda vocab: vocab.answers.strong_cues), re.IGNORECASE)
_NEGATED = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.negations)})\s*\(?[A-J](?![A-Za-z])")
_LETTER = re.compile(r"(?<![A-Za-z'\\])([A-HJ])(?![A-Za-z'])")
MAX_RESPONSE_CHARS = 200_000
MAX_PROSE_CHARS = 4_000


def extract_final(text: str) -> str:
    """Return the final answer of a text, or the text itself where it looks like nothing but an answer."""
    if len(text) > MAX_RESPONSE_CHARS:
        return text
    if "boxed" in text or "fbox" in text or OPEN in text or CLOSE in text:
        return _from_boxes(text)
    if '"' in text:
        text = clean_recorded_answer(text) or text
    has_cue = (len(text) > 8 or not text.isascii()) and ANSWER_CUE.search(text) is not None
    if not has_cue and not is_prose(text):
        return text
    if not has_cue and len(text) <= 300 and "$" not in text and "\n" not in text:
        return _cut_sentence(text)
    extracted = extract_answer(text, lenient=True)
    if extracted is None or (has_cue and extracted.method not in ("cue", "hashes") and not is_prose(text)):
        return text
    return _cut_sentence(extracted.answer) if extracted.method in ("cue", "hashes") else extracted.answer


def _from_boxes(text: str) -> str:
    cue = next(iter([*_STRONG_CUE.finditer(text)][::-1]), None)
    if cue is not None and cue.start() > max(text.rfind("boxed"), text.rfind(CLOSE)):
        extracted = extract_answer(text[cue.start() :], lenient=True)
        if extracted is not None and extracted.method == "cue":
            return _cut_sentence(extracted.answer)
    extracted = extract_answer(text, lenient=True)
    return extracted.answer if extracted else text


def is_prose(text: str) -> bool:
    """Return whether words stand around the mathematics: more than a unit or a name."""
    text = text[:MAX_PROSE_CHARS]
    if len(_FOREIGN.findall(text)) >= 5:
        return any(char.isdigit() for char in text)
    outside = _TEXT_COMMAND.sub(" ", _MATH.sub(" ", text))
    words = [word for word in _WORD.findall(outside) if not _is_math_word(word)]
    if _MATH.search(text) and words and words[0].lower() not in ("and", "or", "only"):
        return True
    if len(text) <= 300 and any(char.isdigit() for char in text) and _STATES.search(outside):
        return len(words) >= 2 or bool(_FOREIGN.search(text))
    return len(words) >= 3 and (any(char.isdigit() for char in text) or "$" in text or len(words) > 8)


def _is_math_word(word: str) -> bool:
    """Return whether a run of letters belongs to the mathematics: a function, a unit, a differential."""
    return word in FUNCTIONS or is_unit(word) or word == "pi" or (len(word) == 2 and word[0] == "d" and word != "du")


def _cut_sentence(text: str) -> str:
    """Return the answer at the end of a sentence."""
    if not is_prose(text):
        return text
    copula = next(iter([*_COPULA.finditer(text)][::-1]), None)
    if copula is not None:
        tail = text[copula.end() :].strip()
        if any(char.isdigit() for char in tail) and not is_prose(tail):
            return tail
    extracted = extract_answer(text, lenient=True)
    return extracted.answer if extracted is not None and extracted.method != "cue" else text


def choice_letter_in(text: str) -> str | None:
    """Return the choice letter that a response names."""
    if len(text) > MAX_RESPONSE_CHARS or not (
        is_prose(text) or ANSWER_CUE.search(text) or len(_WORD.findall(text)) > 2 or _FOREIGN.search(text)
    ):
        return None
    extracted = extract_answer(text, lenient=True)
    if extracted is not None:
        choice = parse_choice(extracted.answer)
        if choice is not None:
            return choice[0]
    scope = extracted.answer if extracted is not None and extracted.method == "cue" else text
    letters = _LETTER.findall(_NEGATED.sub(" ", scope))
    return letters[0] if letters and len(scope) < 400 else None
