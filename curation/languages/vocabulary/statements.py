r"""What the format filter looks for in statements and answers.

Expressions are in Rust's syntax, without look-around; letters match in any case, and ``\b`` is an ASCII boundary, so
never next to an accented letter. All languages are tried on every row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The table ``statements`` of a language's file."""

    proof_needles: tuple[str, ...]
    """Literals (any case) of which one is in every text that ``proof`` finds."""
    proof: tuple[str, ...]
    """Expressions that ask for a proof, an explanation or a drawing."""
    proof_harmless: tuple[str, ...]
    """Expressions with the same words that ask for nothing: blanked out before ``proof`` is looked for."""
    asks_a_value: tuple[str, ...]
    """Expressions that ask for a value next to a proof: with a short answer at hand, that part can be verified."""
    asks: tuple[str, ...]
    """Expressions of verbs and question words that ask for something, right after the mark of a part."""
    orders: tuple[str, ...]
    """The same for parts that follow a condition of their own."""
    also_asked_needles: tuple[str, ...]
    """Literals of which one is in every text that ``also_asked`` finds, but for those with two question marks."""
    also_asked: tuple[str, ...]
    """Expressions that ask for two quantities."""
    also_asked_harmless: tuple[str, ...]
    """Expressions of a second question that asks for the same in another writing: blanked out before ``also_asked``."""
    several_joiners: tuple[str, ...]
    """Expressions between two answers: and."""
    asks_several: tuple[str, ...]
    """Expressions of questions that want more than one answer."""
    yes_no_answers: tuple[str, ...]
    """Expressions of whole answers that are yes or no, true or false."""
    no_answer: tuple[str, ...]
    """Expressions of whole answers that say that there is none."""
    worked: tuple[str, ...]
    """Expressions that begin a worked solution where the answer should be."""
    math_words: tuple[str, ...]
    """Expressions of words in answers that a verifier reads as mathematics."""
    proof_answers: tuple[str, ...]
    """Expressions that begin an answer which states what is to be proved."""
    answer_labels: tuple[str, ...]
    """Expressions of labels before an answer that is in the statement."""
    copulas: tuple[str, ...]
    """Words for "is" between such a label and the answer."""
    worked_labels: tuple[str, ...]
    """Expressions of labels before a solution that is in the statement."""
    given_needles: tuple[str, ...]
    """Literals of which one is in every text with such a label."""
    label_words: tuple[str, ...]
    """Expressions of words for a problem before its number."""
    label_words_alone: tuple[str, ...]
    """The same for words that are a label without a number."""
    label_patterns: tuple[str, ...]
    """Further expressions of labels."""
    label_starts: tuple[str, ...]
    """Expressions of what such labels begin with, where no number and no label word does."""
    points: tuple[str, ...]
    """Expressions of points after their number."""
    before_points: tuple[str, ...]
    """Expressions before the number of points."""
    points_needles: tuple[str, ...]
    """Literals of which one is in every text with points."""
    points_at: tuple[str, ...]
    """Literals of words that point at a figure or another text: a model is asked about such a row."""
