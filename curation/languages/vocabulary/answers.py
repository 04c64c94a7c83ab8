"""Words in and around answers; letters match in any case unless the reader decides otherwise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The table ``answers`` of a language's file."""

    yes: tuple[str, ...]
    """Words that say yes, in lower case."""
    no: tuple[str, ...]
    """Words that say no, in lower case."""
    same: dict[str, tuple[str, ...]]
    """Meaning (infinity, no solution, dne, reals, divergent …) → phrases for it, in lower case without signs."""
    nothing: str
    """Expression of whole answers that say that there is nothing; empty for none."""
    articles: tuple[str, ...]
    """Expressions of words in front of an answer that show nothing."""
    choice_words: tuple[str, ...]
    """Words before the letter of a choice."""
    and_words: tuple[str, ...]
    """Words between answers that all hold."""
    or_words: tuple[str, ...]
    """Words between answers of which one holds."""
    connectives_at_end: tuple[str, ...]
    """Of both, those that are cut off at the end of a text."""
    connectives_at_start: tuple[str, ...]
    """Of both, those that are cut off at the start of a text, and count as words between boxes."""
    box_joiners: tuple[str, ...]
    """Words between boxes that are one answer."""
    box_fillers: tuple[str, ...]
    """Expressions of further words between such boxes."""
    list_joiners: tuple[str, ...]
    """Words between the items of a list of words."""
    list_leads: tuple[str, ...]
    """Words after a comma of such a list."""
    scales: dict[str, tuple[str, ...]]
    """Value → words that multiply the number before them."""
    cues: tuple[str, ...]
    """Expressions that a final answer follows."""
    headings: tuple[str, ...]
    """Expressions of a line of its own that a final answer follows on the next, without marks of a heading."""
    judgements: tuple[str, ...]
    """Expressions after a cue that say how an answer is, not what it is."""
    value_words: tuple[str, ...]
    """Words next to a number, besides numerals, that make it another one or leave it open."""
    weak_cues: tuple[str, ...]
    """Expressions of cues that count only where there is no better."""
    strong_cues: tuple[str, ...]
    """Expressions of cues that count more than a box before them."""
    farewells: tuple[str, ...]
    """Expressions at the end of a response that do not belong to the answer."""
    second_thoughts: tuple[str, ...]
    """Words between two boxes that take the first one back."""
    nothing_recorded: tuple[str, ...]
    """Whole recorded answers that say that there is none."""
    copulas: tuple[str, ...]
    """Words for "is" before an answer in a sentence."""
    states: tuple[str, ...]
    """Expressions that state a number of things."""
    negations: tuple[str, ...]
    """Expressions before a letter that is not the answer."""
    tails: tuple[str, ...]
    """Expressions of words that begin a condition after a formula."""
    tail_words: tuple[str, ...]
    """Of these, single words that do so outside of text commands."""
    condition_words: tuple[str, ...]
    """Words that begin a condition."""
    relating_words: tuple[str, ...]
    """Words that the name of a counted thing does not have: five over, not five."""
    declarations: dict[str, tuple[str, ...]]
    """What a declared name is (Z, N, Q, R, C, prime, positive …; ``any`` for words that say no more) → words of a
    declaration: where n is any integer."""
    hedges: tuple[str, ...]
    """Expressions of references that leave the answer open."""
    elsewhere: tuple[str, ...]
    """Expressions of references that point elsewhere, or are proofs."""
    breaks_off: tuple[str, ...]
    """Words that a whole reference does not end in."""
