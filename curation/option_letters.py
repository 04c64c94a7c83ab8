"""Answers that name an option by letter."""

from __future__ import annotations

import re
from functools import lru_cache

from curation.languages.vocabulary import one_of

_LEAD = re.compile(
    rf"(?i)^\W*(?:the\s+)?(?:(?:{one_of(lambda lang: lang.choices.answer_adjectives)})\s+)?"
    rf"(?:{one_of(lambda lang: lang.choices.answer_leads)})\s*"
    rf"(?:{one_of(lambda lang: lang.choices.copulas)})?\s*[:：]?\s*"
)
_LETTER = re.compile(r"^[(（\[]?([A-Ja-j])(?:[)）\].．:：、,，;]|$)")
_ONLY_LETTER = re.compile(r"^[(（\[]?([A-Ja-j])[)）\].．:：、]*$")


def without_lead(answer: str) -> str:
    """Remove words such as "The answer is"."""
    return _LEAD.sub("", answer.strip())


@lru_cache(maxsize=4096)
def named_letter(answer: str) -> str | None:
    r"""Return the capital letter of an answer such as "B", "B. 12", "\\text{B}"."""
    plain = without_lead(answer)
    plain = re.sub(r"\\(?:text|textbf|textrm|mathrm|mathbf|boxed|bf|rm)\s*\{([^{}]*)\}", r"\1", plain)
    plain = plain.strip("$* \n\\")
    match = _ONLY_LETTER.match(plain) or _LETTER.match(plain)
    return match.group(1).upper() if match else None


@lru_cache(maxsize=4096)
def is_only_letter(answer: str) -> bool:
    """Return whether the answer is only a label."""
    plain = re.sub(r"\\(?:text|textbf|textrm|mathrm|mathbf|boxed|bf|rm)\s*\{([^{}]*)\}", r"\1", without_lead(answer))
    return _ONLY_LETTER.match(plain.strip("$* \n\\")) is not None


def option_letter(raw_answer: str | None, answer: str) -> str | None:
    """Return the letter that a rewritten answer had, if responses may name it."""
    if raw_answer is None:
        return None
    letter = named_letter(raw_answer.partition("\\\\")[0])  # up to a LaTeX line break, behind which debris stands
    return letter if letter != answer else None
