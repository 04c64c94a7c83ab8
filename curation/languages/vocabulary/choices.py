"""Words that point at the options of multiple choice; letters match in any case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The table ``choices`` of a language's file."""

    points: tuple[str, ...]
    """Expressions of words that point at options: a question with one is not complete without them."""
    headers: tuple[str, ...]
    """Expressions of headings before options."""
    leads_after_options: tuple[str, ...]
    """Expressions that an instruction after the options begins with."""
    sends: tuple[str, ...]
    """Expressions of questions that send the reader to options."""
    answer_leads: tuple[str, ...]
    """Words before the letter of an answer."""
    answer_adjectives: tuple[str, ...]
    """Adjectives before these words."""
    copulas: tuple[str, ...]
    """Words between such a word and the letter."""
    letter_joiners: tuple[str, ...]
    """Words between letters of a key."""
    marks_an_answer: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since they give the answer away."""
    names_options: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since there are no options any more."""
    asks: tuple[str, ...]
    """Expressions of which a rewritten problem must hold one, or a question mark or a blank."""
