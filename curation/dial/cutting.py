r"""Where a correct attempt may be cut, so that its beginning helps and does not hold the final answer.

The answer begins where the verifier first finds the reference, or anything equal to it, among the text's `Span`s; what
the verifier fails on counts as found, and so does a number that differs by its sign only. A reference in words, or a
formula that is written just so, is looked for by its letters too. One thing that equals an answer is none: a sum of
nothing but the statement's own numbers ("47 + 38" where the statement asks for it, and the answer is 85). It is the
question, written as a formula.

A cut is made behind a line or a sentence; where a text has few of them, behind a clause or a word, outside of formulas.
Where one such cut is too hard and the next too easy, it is made between any two words or signs (`finer_cuts`). White
space at a cut is left to the model, whose tokens begin with it.

Invariant: `prefix_at` returns no text in which `answer_start` finds the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from curation.dial.spans import Span, answer_spans
from curation.records import Outcome
from curation.thinking import CLOSE, OPEN, split_response
from curation.translation.number_words import implied
from curation.translation.numerals import word_tokens
from curation.verify.answers import is_plain

VERSION = "dial@1"

FEW_CUTS = 8
"""With fewer ends of lines and sentences, clauses and words are cut behind too."""

Compare = Callable[[Iterable[tuple[str, str]]], Iterator[Outcome]]
"""The verifier: outcomes of (reference, answer) pairs, in order."""

_STRONG = re.compile(r"\n+|[.!?](?=\s)|[。！？]")
_WEAK = re.compile(r"[;:；：]|,(?=\s)|\s+")
_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+?\$|\\\[.+?\\\]|\\\(.+?\\\)|\{[^{}]*\}", re.DOTALL)
_OPERATOR = re.compile(r"[-+*/^·×÷−]|\\(?:times|cdot|div)")
_BORDER = re.compile(r"\w+|[^\w\s]")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_INTEGER = re.compile(r"[-−]?\d+")
_SIGNS = re.compile(r"[\s$\\{}*_`\"'~]")


@dataclass(frozen=True, slots=True)
class Question:
    """What a prefix must not answer. ``letter`` names the reference's option, where it had some.

    Example: ``Question("What is 47 + 38?", "85", "en")``
    """

    statement: str
    reference: str
    lang: str
    letter: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A correct attempt, in the form of the house, as what may be cut: what stands in front of it, and its body.

    Example: ``Trace("<think>", "47+38:7+8=15;4+3+1=8;85")``
    """

    opening: str
    body: str


def trace_of(text: str, *, thinks: bool) -> Trace | None:
    """Return a correct text as a trace; None where it cannot be gone on from.

    Args:
        text: in the form of the house, or a solution without thoughts.
        thinks: whether whoever goes on thinks aloud: in its thoughts then, else in its answer.
    """
    parts = split_response(text)
    if thinks and parts.thoughts.strip():
        trace = Trace(OPEN, parts.thoughts)
    else:
        trace = Trace(f"{OPEN}\n" if thinks else "", (parts.answer or "").strip())
    return trace if trace.body.strip() and not any(tag in trace.body for tag in (OPEN, CLOSE)) else None


def answer_start(text: str, question: Question, compare: Compare) -> int | None:
    """Return where the answer begins in a text at the latest; None where it is nowhere in it."""
    limit = _literal_start(text, question)
    end = len(text) if limit is None else limit
    spans = [span for span in answer_spans(text, question.lang) if span.start < end and not _restates(span, question)]
    references = list(dict.fromkeys([question.reference, question.reference.strip().lstrip("-−")]))
    pairs = [(reference, span) for span in spans for reference in references if reference]
    outcomes = compare((reference, span.text) for reference, span in pairs)
    for (_, span), outcome in zip(pairs, outcomes, strict=True):
        if outcome not in (Outcome.WRONG, Outcome.NO_ANSWER):
            return span.start
    return limit


def cuts(body: str, limit: int) -> list[int]:
    """Return the lengths at which a body may be cut, up to ``limit`` characters, from the shortest prefix on."""
    inside = [match.span() for match in _FORMULA.finditer(body)]

    def places(pattern: re.Pattern[str]) -> set[int]:
        ends = (match.end() for match in pattern.finditer(body))
        free = (end for end in ends if end <= limit and not any(start < end < stop for start, stop in inside))
        return {len(body[:end].rstrip()) for end in free} - {0}

    strong = places(_STRONG)
    return sorted(strong if len(strong) >= FEW_CUTS else strong | places(_WEAK))


def finer_cuts(body: str, short: int, long: int) -> list[int]:
    """Return the lengths between two, at every border of a word, a number or a sign."""
    ends = {len(body[: match.end()].rstrip()) for match in _BORDER.finditer(body, short, long)}
    return sorted(end for end in ends if short < end < long)


def possible_cuts(trace: Trace, question: Question, max_share: float, compare: Compare) -> list[int]:
    """Return the lengths at which a trace may be cut: before its answer, and before ``max_share`` of its body."""
    begun = trace.body[: int(max_share * len(trace.body))]
    start = answer_start(begun, question, compare)
    return cuts(trace.body, len(begun) if start is None else start)


def prefix_at(trace: Trace, length: int, question: Question, compare: Compare) -> str | None:
    """Return what a response shall begin with; None where the verifier finds the answer in it all the same."""
    body = trace.body[:length]
    return None if answer_start(body, question, compare) is not None else trace.opening + body


def _restates(span: Span, question: Question) -> bool:
    """Return whether a span is a sum of the statement's numbers, and so no answer where the answer is a number."""
    numbers = _DIGITS.findall(span.text)
    if not _INTEGER.fullmatch(question.reference.strip()) or len(numbers) < 2 or not _OPERATOR.search(span.text):
        return False
    if question.reference.strip().lstrip("-−") in numbers or re.search(r"[=≈<>≤≥]", span.text):
        return False
    known = set(_DIGITS.findall(question.statement))
    words = word_tokens(question.statement, question.lang)
    known |= {str(value) for token in words for value in token.values}
    return set(numbers) <= known


def _literal_start(text: str, question: Question) -> int | None:
    """Return where the reference's own letters, its option's letter or a word that implies its number stand."""
    starts = [] if is_plain(question.reference, lang=question.lang) else list(_occurrences(text, question.reference))
    if question.letter:
        named = rf"(?<![^\W_]){re.escape(question.letter)}(?![^\W_])"
        starts += [match.start() for match in re.finditer(named, text)][:1]
    if _INTEGER.fullmatch(question.reference.strip()):
        starts += list(_implied(text, question))[:1]
    return min(starts, default=None)


def _occurrences(text: str, reference: str) -> Iterator[int]:
    """Yield where a reference begins in a text, both without case, spaces and the signs of LaTeX and Markdown."""
    letters, places = _bare(text)
    wanted, _ = _bare(reference)
    at = letters.find(wanted) if wanted else -1
    while at >= 0:
        before, behind = letters[at - 1 : at], letters[at + len(wanted) : at + len(wanted) + 1]
        if len(wanted) > 2 or not (before.isalnum() or behind.isalnum()):
            yield places[at]
        at = letters.find(wanted, at + 1)


def _bare(text: str) -> tuple[str, list[int]]:
    kept = [
        (folded, place)
        for place, sign in enumerate(text)
        if not _SIGNS.fullmatch(sign)
        for folded in unicodedata.normalize("NFKC", sign).casefold()
    ]
    return "".join(folded for folded, _ in kept), [place for _, place in kept]


def _implied(text: str, question: Question) -> Iterator[int]:
    """Yield where sentences begin that say the reference by a word such as dozen."""
    value = int(question.reference.strip().replace("−", "-"))
    begin = 0
    for end in chain((match.end() for match in _STRONG.finditer(text)), (len(text),)):
        if abs(value) in implied(text[begin:end], question.lang):
            yield begin
        begin = end
