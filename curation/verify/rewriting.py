"""Accepts a rewritten reference only if it is the same answer without arithmetic."""

from __future__ import annotations

from curation.records import Outcome
from curation.verify.answers import quick_compare
from curation.verify.answers.forms import Reading, Words


def keep_reference(original: str, rewritten: str) -> str:
    """Return ``rewritten`` if it is the same answer, else ``original``.

    >>> keep_reference("(1 & 2)", "1 2")
    '(1 & 2)'
    """
    return rewritten if original == rewritten or reads_the_same(original, rewritten) else original


def reads_the_same(left: str, right: str) -> bool:
    """Return whether two answers read the same, without computing."""
    quick = quick_compare(left, right)
    if quick is not None:
        return quick.outcome is Outcome.CORRECT
    from curation.verify.answers.reading import parse_readings
    from curation.verify.answers.tiers import MAX_READ_CHARS, clean_answer

    if max(len(left), len(right)) > MAX_READ_CHARS:
        return False
    left, right = clean_answer(left), clean_answer(right)
    if left == right:
        return bool(left)
    # the last reading of a text is its words, which count only if it is the only reading
    left_readings, right_readings = (parse_readings(text, "en") for text in (left, right))
    return any(
        _is_same(first, second)
        for first in left_readings[:-1] or left_readings
        for second in right_readings[:-1] or right_readings
    )


def _is_same(left: Reading, right: Reading) -> bool:
    if isinstance(left.form, Words) and isinstance(right.form, Words):
        return (left.form.text, left.unread) == (right.form.text, right.unread)
    return left == right
