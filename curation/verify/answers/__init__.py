"""Compares two answers to a math problem, in tiers from quick to slow.

    plain       integers, fractions and decimals
    reading     text → form: lists, sets, tuples, intervals, relations, matrices, units, choices, words
    forms       form against form, down to single expressions
    computed    integrals, limits, derivatives and symbolic sums, by sympy
    question    what the statement asks for (`tiers`)
    values      balls refute; exact arithmetic or agreement to many bits proves

`compare` has no time limit: use `math_judge.MathJudge` for foreign input. Nothing is ever evaluated as Python. Unproved
or partly read answers are not equal, and doubtful.
"""

from __future__ import annotations

from curation.records import Outcome
from curation.verify.answers.plain import parse_plain_number, quick_compare
from curation.verify.answers.policy import AnswerComparison
from curation.verify.answers.question import QuestionForm, read_question

__all__ = [
    "VERSION",
    "AnswerComparison",
    "QuestionForm",
    "check_reference",
    "compare",
    "compare_texts",
    "is_plain",
    "load",
    "quick_compare",
    "read_question",
]

VERSION = "answers@9"
"""Changes whenever a verdict could change."""


def load() -> None:
    """Import what comparisons need, so that the first one is quick."""
    import curation.verify.answers.references
    import curation.verify.answers.tiers  # noqa: F401

    read_question("How many?")  # compiles its expressions


def is_plain(reference: str, *, lang: str = "en") -> bool:
    """Return whether a reference is a plain number."""
    return parse_plain_number(reference, lang) is not None


def compare(
    reference: str,
    answer: str,
    *,
    lang: str = "en",
    statement: str | None = None,
) -> AnswerComparison:
    """Return the verdict of all tiers on two final answers.

    Args:
        statement: the problem, which states the form of the answer (`question`).
    """
    quick = quick_compare(reference, answer, lang=lang, statement=statement)
    if quick is not None:
        return quick
    from curation.verify.answers.tiers import compare_answers, compare_with_sentence

    try:
        comparison = compare_answers(reference, answer, lang, read_question(statement, lang))
    except RecursionError:
        return AnswerComparison(Outcome.WRONG, "nested too deeply", reference[:80], answer[:80], True)
    return compare_with_sentence(reference, answer, comparison)


def compare_texts(
    reference: str,
    answer: str,
    *,
    lang: str = "en",
    statement: str | None = None,
) -> AnswerComparison:
    """Return `compare` of texts that may be whole responses."""
    from curation.response_formats import LOOSE
    from curation.verify.extraction import read_answer

    texts = read_answer(reference, LOOSE) or "", read_answer(answer, LOOSE) or ""
    return compare(*texts, lang=lang, statement=statement)


def check_reference(reference: str, *, lang: str = "en") -> str | None:
    """Return why ``reference`` cannot be verified against, as a clause."""
    if is_plain(reference, lang=lang):
        return None
    from curation.verify.answers.references import reference_defect

    return reference_defect(reference, lang)
