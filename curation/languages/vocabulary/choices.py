"""What multiple choice looks for: words that point at options, and words around them.

Expressions are in Python's syntax; letters match in any case.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The table ``choices`` of a language's file."""

    points: tuple[str, ...]
    """Expressions in the sentences that ask, for words that point at options: why a question does not stand alone."""
    points_when_asked: tuple[str, ...]
    """The same of a language whose ``points`` are looked for in the whole text: in the sentence that asks only."""
    points_doubtful: tuple[str, ...]
    """Words in the sentence that asks that point at options too seldom to refuse a question by themselves."""
    points_harmless: tuple[str, ...]
    """Expressions with the same words that point at none: blanked out before ``points`` is looked for."""
    triggers: tuple[str, ...]
    """Literals of which one must be there for ``points`` to match at all; empty: it is always tried."""
    which_needles: tuple[str, ...]
    """Literals of which one stands in every question that ``which`` is looked for in."""
    which: str
    """Expression of "which of the following"; ``<which>`` in the two next fields."""
    equal_which: str
    """Expression of a question for one thing that the options only repeat, where the answer is a number."""
    open_which: str
    """The same whatever the answer is; nothing that compares the options."""
    asks_for_value: str
    """What replaces ``equal_which``."""
    asks_for: str
    """What replaces ``open_which``."""
    counts: tuple[str, ...]
    """Expressions at the end of questions that count things which the question itself lists."""
    numbering: tuple[str, ...]
    """Signs that number things, beside digits."""
    meta_options: tuple[str, ...]
    """Expressions of options that speak of other options, or say that nothing can be said."""
    yes_no: tuple[str, ...]
    """Whole options that are yes or no, true or false."""
    then_words: tuple[str, ...]
    """Words before a blank at the end that say nothing of what it stands for."""
    then_words_at_end: tuple[str, ...]
    """The same before the end itself."""
    choice_notes: tuple[str, ...]
    """Notes in brackets that name the kind of question."""
    choose_verbs: tuple[str, ...]
    """Verbs of which one, with a capital or without, stands in every ``instruction``."""
    instruction: str
    """Expression of an instruction about choosing, behind the question; empty for none."""
    left_key: str
    """Expression before the letter of a key that the source left behind the statement; empty for none."""
    ends_open: tuple[str, ...]
    """Expressions at the end of a question that its answer would follow."""
    lost_number: str
    """Expression of a text whose only blank, before a measure word in its last sentence, was lost: what stands before
    the blank as group 1, the rest as group 2; empty where the language has no measure words."""
    unit_end: str
    """Expression of a measure word with nothing to measure, near the end, in two groups; empty for none."""
    number_questions: tuple[str, ...]
    """Words of a question for a number, before a blank and a question mark."""
    gap: str
    """Expression of the gap that a lost blank left; empty for none."""
    headers: tuple[str, ...]
    """Expressions of headings before options."""
    leads_after_options: tuple[str, ...]
    """Expressions that an instruction behind the options begins with."""
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
    option_joiners: tuple[str, ...]
    """Words between letters in an option that speaks of others."""
    only_words: tuple[str, ...]
    """Words behind such letters."""
    marks_an_answer: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since they give the answer away."""
    names_options: tuple[str, ...]
    """Expressions that a rewritten problem may not hold, since there are no options any more."""
    asks: tuple[str, ...]
    """Expressions of which a rewritten problem must hold one, or a question mark or a blank."""
    sentence_starts: tuple[str, ...]
    """Expressions of words that begin a sentence and no quantity."""
