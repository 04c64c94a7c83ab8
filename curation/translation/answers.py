"""Whether a translation's reference answer still verifies.

An answer that is no words must come back as it was. One that is words (``Tuesday``, ``no solution``, ``red``) must be
translated: the verifier must find it usable in the target's language, formulas and numbers in it must survive.

Invariant: the verifier reads a translated answer in its workers, behind the hard limit, never in this process. Its own
failure there is the violation "verifier", not "answer": nothing is known of the translation then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from curation.languages.identification import identify
from curation.languages.stripping import letters, strip
from curation.languages.vocabulary import language
from curation.records import Outcome
from curation.translation.formulas import formulas_of
from curation.translation.quantities import numbers
from curation.translation.violations import Violation
from curation.verify import answers
from curation.verify.math_judge import ReferenceCheck


class ChecksReferences(Protocol):
    """What this file needs of the verifier: `curation.verify.math_judge.MathJudge`, with its workers."""

    def check(self, references: Iterable[tuple[str, str]]) -> Iterator[ReferenceCheck]:
        """Return whether each (reference, language) can be verified against."""
        ...


_SURE = 0.6
_LEAST = 3
"""Letters of prose from which an answer is words; below it are names of points and variables."""


def is_words(answer: str) -> bool:
    """Return whether an answer is in words of a language, and not in numbers, formulas or single letters.

    Example: ``is_words("Tuesday")`` and not ``is_words("\\\\frac{1}{2}")``
    """
    prose = strip(answer)
    return letters(prose) >= _LEAST or prose.lower() == "no" or any("\u3400" <= sign <= "\u9fff" for sign in prose)


def check_answer(
    before: str | None, after: str | None, source: str, target: str, judge: ChecksReferences
) -> list[Violation]:
    """Return what is wrong with the reference answer of a translation; empty where it verifies."""
    if before is None:
        return [] if after is None else [Violation("answer", f"the original has none, the translation has {after!r}")]
    if after is None or not after.strip():
        return [Violation("answer", f"the answer {before!r} is gone")]
    if before.strip() == after.strip():
        if not is_words(before):
            return []
        if _is_untranslated(before, source, target):
            return [Violation("answer", f"{before!r} is not translated")]
        return _check_usable(after, target, judge)
    if not is_words(before):
        verdict = answers.quick_compare(before, after, lang=target)
        if verdict is not None and verdict.outcome is Outcome.CORRECT:
            return []
        return [Violation("answer", f"{before!r} became {after!r}; it must stay as it is")]
    violations = [
        Violation("answer", f"{before!r} became {after!r}: {violation.evidence}")
        for violation in numbers(before, after, source, target)
    ]
    if sorted(formulas_of(before)) != sorted(formulas_of(after)):
        violations.append(Violation("answer", f"{before!r} became {after!r}: a formula changed"))
    return violations or _check_usable(after, target, judge)


def _is_untranslated(answer: str, source: str, target: str) -> bool:
    """Return whether an answer that is the same in both languages is words of the original's, and no name."""
    word = answer.strip(" .").lower()
    if word in language(source).translation.short_answers:
        return word not in language(target).answers.no
    guess = identify(answer, (source, target))
    return guess.lang == source and guess.confidence >= _SURE


def _check_usable(answer: str, target: str, judge: ChecksReferences) -> list[Violation]:
    """Return a violation unless the verifier can check responses against the answer."""
    (check,) = judge.check([(answer, target)])
    if check.failure is not None:
        why = f"checking the answer {answer!r} ended as {check.failure.value} ({check.reason}); nothing is known of it"
        return [Violation("verifier", why)]
    return [] if check.usable else [Violation("answer", f"{answer!r} cannot be verified in {target}: {check.reason}")]
