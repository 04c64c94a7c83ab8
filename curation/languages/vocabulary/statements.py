"""What the format filter looks for in statements and answers.

Expressions are in Rust's syntax, without look-around. Letters match in any case, and ``\\b`` is a boundary of ASCII
words (see `curation.filters.statements.words.cheap`), so none stands beside an accented letter. All are tried on every
row, since a row's tag may be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The table ``statements`` of a language's file."""

    proof_needles: tuple[str, ...]
    """Literals (any case) of which one stands in every text that ``proof`` finds."""
    proof: tuple[str, ...]
    """Expressions that ask for a proof, an explanation or a drawing."""
    proof_harmless: tuple[str, ...]
    """Expressions with the same words that ask for nothing: blanked out before ``proof`` is looked for."""
    asks_a_value: tuple[str, ...]
    """Expressions that ask for a value beside a proof: with a short answer at hand, that part can be verified."""
    open_ended: tuple[str, ...]
    """Expressions of tasks whose whole content is the argument when no reference answer comes with them."""
    formal_task: tuple[str, ...]
    """Expressions of tasks that, stated in formulas, are worth their argument only when they come without a result."""
    asks: tuple[str, ...]
    """Expressions of verbs and question words that ask for something, right after the mark of a part."""
    orders: tuple[str, ...]
    """The same for parts that stand behind a condition of their own."""
    also_asked_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``also_asked`` finds, but for those with two question marks."""
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
    true_false_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``true_false`` finds."""
    true_false: tuple[str, ...]
    """Expressions that ask whether something is true."""
    no_answer: tuple[str, ...]
    """Expressions of whole answers that say that there is none."""
    hedges: tuple[str, ...]
    """Expressions before a number that make it a guess: about, perhaps."""
    hedges_behind: tuple[str, ...]
    """The same behind a number."""
    hedged: tuple[str, ...]
    """Expressions anywhere in an answer that leave it open."""
    either_words: tuple[str, ...]
    """Expressions between two numbers of which one is meant: or, to."""
    asks_a_number: tuple[str, ...]
    """Expressions that ask for one number."""
    worked: tuple[str, ...]
    """Expressions that begin a worked solution where the answer should be."""
    math_words: tuple[str, ...]
    """Expressions of words in answers that a verifier reads as mathematics."""
    figure_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``figure`` finds."""
    figure_kinds: tuple[str, ...]
    """Expressions of the kinds of figures; ``<figure>`` in ``figure`` is one of them."""
    figure: tuple[str, ...]
    """Expressions that point at a figure."""
    undrawn: tuple[str, ...]
    """Expressions of a figure that alone says what is asked about: the graph of a function that is not given."""
    figure_harmless: tuple[str, ...]
    """Expressions with the same words that point at none: blanked out before ``figure`` is looked for."""
    shown_by_rows: tuple[str, ...]
    """Expressions that point at rows which may be drawn with signs: blanked out before ``figure`` where some are."""
    table_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``table`` finds."""
    table: tuple[str, ...]
    """Expressions that point at a table."""
    elsewhere_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``elsewhere`` finds."""
    elsewhere: tuple[str, ...]
    """Expressions that refer to other problems and texts; ``<number>`` is a number with its sign."""
    shown: tuple[str, ...]
    """Expressions that state a result which is to be shown, up to the result."""
    shown_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``shown`` finds."""
    proof_answers: tuple[str, ...]
    """Expressions that begin an answer which states what is to be proved."""
    answer_labels: tuple[str, ...]
    """Expressions of labels before an answer that stands in the statement."""
    copulas: tuple[str, ...]
    """Words for "is" between such a label and the answer."""
    worked_labels: tuple[str, ...]
    """Expressions of labels before a solution that stands in the statement."""
    given_needles: tuple[str, ...]
    """Literals of which one stands in every text with such a label."""
    task: tuple[str, ...]
    """Expressions of whatever asks: verbs, question words."""
    task_needles: tuple[str, ...]
    """Literals that ask beyond doubt; only what has none of them is looked at more closely."""
    requests: tuple[str, ...]
    """Expressions of what makes a sentence ask, fewer than ``task``: no word that a story or a definition has, too."""
    unfinished: tuple[str, ...]
    """Expressions at the very end of a text that must be followed by something. Left out is what a text to be
    completed may end in ("the value of x is") and what is a name or a number elsewhere ("in terms of a", "y", 的和)."""
    not_a_problem: tuple[str, ...]
    """Expressions of texts that are no problems: instructions, refusals, remains of web pages."""
    headings: tuple[str, ...]
    """Expressions of headings of what is no problem: a proof, a remark."""
    not_a_problem_needles: tuple[str, ...]
    """Literals of which one stands in every text that either of the two finds."""
    series_guess: tuple[str, ...]
    """Expressions that ask for the next number of a series."""
    series_needles: tuple[str, ...]
    """Literals of which one stands in every text that ``series_guess`` finds."""
    series_laws: tuple[str, ...]
    """Expressions of laws by which a series has one continuation."""
    label_words: tuple[str, ...]
    """Expressions of words for a problem before its number."""
    label_words_alone: tuple[str, ...]
    """The same for words that are a label without a number."""
    label_patterns: tuple[str, ...]
    """Further expressions of labels."""
    label_starts: tuple[str, ...]
    """Expressions of what such labels begin with, where no number and no label word does."""
    points: tuple[str, ...]
    """Expressions of points behind their number."""
    before_points: tuple[str, ...]
    """Expressions before the number of points."""
    points_needles: tuple[str, ...]
    """Literals of which one stands in every text with points."""
