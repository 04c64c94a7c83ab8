"""What a translation must keep of its original: exact checks, each a pure function with a name and its evidence.

    numbers         every number, in the target's style of digits or in words
    units           every unit and currency of a number
    formulas        every LaTeX formula, by its symbols
    variables       every name outside formulas
    code            every code block and inline code, to the letter
    choices         the labels of the options, in order, and as many options
    answer          the reference answer still verifies, or is translated where it is words
    language        the whole is in the target's language
    length          its prose is as long as translations are
    leftovers       no sentence is left in the original's language
    added_solution  no answer and no solution came in
    sentences       no sentence is gone, and none came in
    order           numbers keep their places and their units
    polarity        what is denied still is
    comparisons     more is not less
    entities        names keep their places
    notation        thousands are parted as the target's language does
    verifier        no invariant: the verifier itself failed on the translated answer

Invariants: `check_translation` looks at all up to `added_solution`, whatever fails first, and at the aligned sentences
(`equivalence`) where these hold: what they say of a number that is gone would be said twice. It needs no
model but the language identification. A translation that passes is not thereby a good one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from curation.translation import prose
from curation.translation.answers import ChecksReferences, check_answer
from curation.translation.equivalence import check_equivalence
from curation.translation.formulas import code, formulas, variables
from curation.translation.half_days import half_days
from curation.translation.quantities import numbers, units
from curation.translation.violations import Violation
from curation.translation.written_alike import written_alike

VERSION = "translation@16"
"""Changes whenever a translation could pass or fail that did not."""

INVARIANTS = (
    "numbers", "units", "formulas", "variables", "code", "choices", "answer", "language", "length", "leftovers",
    "added_solution", "sentences", "order", "polarity", "comparisons", "entities", "notation", "verifier",
)  # fmt: skip
"""The names of all invariants, as `Violation.invariant` says them."""

_LABEL = re.compile(
    r"(?:(?<=\s)|^)[(（]?([A-H])[)）.:：、](?=\s|[^\s\w])|[(（]([A-H])[)）]|\\text(?:bf)?\{\(?([A-H])\)?\.?\}",
    re.MULTILINE,
)

_IN_SENTENCE = re.compile(r"\w[ \t]\Z")
"""What stands before a letter that ends a sentence: than Machine A. Machine C."""


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A problem as far as a translation touches it.

    Example: ``CheckedText("How many?", "18", ())``
    """

    statement: str
    answer: str | None = None
    choices: tuple[str, ...] = ()


def check_translation(
    original: CheckedText, translated: CheckedText, target: str, judge: ChecksReferences, source: str = "en"
) -> list[Violation]:
    """Return everything that a translation broke, in the order of `INVARIANTS`; empty where it passes.

    Args:
        original: the problem as it was.
        translated: the problem in the target's language; an answer that is no words is the original's.
        target: ISO 639-1 code of one of the seven languages.
        judge: the verifier; it is called, in its workers, where an answer is words.
        source: the code of the original's language.
    """
    turned = half_days(original.statement, translated.statement, source, target)
    statements = written_alike(original.statement, translated.statement, source, target)
    original, translated = (
        replace(text, statement=said) for text, said in zip((original, translated), statements, strict=True)
    )
    before, after = _whole(original), _whole(translated)
    violations = [
        *turned,
        *numbers(before, after, source, target),
        *units(before, after, source, target),
        *formulas(before, after),
        *variables(before, after),
        *code(original.statement, translated.statement),
        *choices(original, translated),
        *check_answer(original.answer, translated.answer, source, target, judge),
        *prose.language(original.statement, translated.statement, target),
        *prose.length(before, after, source, target),
        *prose.leftovers(original.statement, translated.statement, source, target),
        *prose.added_solution(
            original.statement, translated.statement, translated.answer or original.answer, source, target
        ),
    ]
    return violations or check_equivalence(original.statement, translated.statement, source, target)


def choices(original: CheckedText, translated: CheckedText) -> list[Violation]:
    """Return a violation where the labels in the statement, in order, or the number of separate options differ."""
    before, after = labels(original.statement), labels(translated.statement)
    if before != after:
        return [Violation("choices", f"the labels were {' '.join(before) or 'none'}, now {' '.join(after) or 'none'}")]
    if len(original.choices) != len(translated.choices):
        return [Violation("choices", f"{len(original.choices)} options became {len(translated.choices)}")]
    return []


def labels(statement: str) -> list[str]:
    """Return the labels of options in a statement, in order; empty unless they begin with A and B.

    Example: ``labels("Which? (A) 1 (B) 2") == ["A", "B"]``
    """
    letters = [
        next(filter(None, match.groups()))
        for match in _LABEL.finditer(statement)
        if not (match[0] == "A." and _IN_SENTENCE.search(statement[: match.start()]))
    ]
    start = next((at for at in range(len(letters) - 1) if letters[at : at + 2] == ["A", "B"]), None)
    return letters[start:] if start is not None else []


def _whole(text: CheckedText) -> str:
    return "\n".join([text.statement, *text.choices])


def reasons(violations: Sequence[Violation]) -> str:
    """Join violations into one text, for the next try and for the counts' evidence."""
    return "; ".join(f"{violation.invariant}: {violation.evidence}" for violation in violations)
