"""How often the rules of the format filter are right, by what the labelled rows said last: for their scores, the card
and the receipt.

The labels are the project's own (`tests/benchmarks/filter_labels.tsv`): of rows that were read, with what became of
them, and of sets of which every row is one, no answer or a theorem to prove. A drop is right where the row cannot be
used as it stands. Rows written to try a rule count only where others are too few, in a table of their own: they are
what the rule was made for, and whoever shows the figure says so.

Invariant: the figures are those that `bench_filters --labels` prints for this version (a test holds it).
"""

from __future__ import annotations

from collections.abc import Mapping

Counts = Mapping[str, tuple[int, int]]
"""By rule: labelled rows that it dropped, and those dropped rightly."""

MEASURED: Counts = {
    "also_asked": (51, 50),
    "answer_in_statement": (21, 21),
    "broken_answer": (37, 37),
    "choices": (162, 155),
    "formal_task": (15, 15),
    "hedged_answer": (12, 12),
    "marking_scheme": (23, 23),
    "missing_answer": (2394, 2394),
    "missing_statement": (8, 8),
    "missing_table": (42, 41),
    "multi_part": (72, 71),
    "open_ended": (8, 8),
    "proof": (531, 531),
    "proof_answer": (29, 29),
    "several_answers": (87, 87),
    "textual_answer": (65, 64),
    "undefined_name": (45, 44),
    "undrawn_graph": (16, 16),
    "worked_solution": (23, 23),
    "yes_no_answer": (28, 28),
}
"""On rows that others wrote and that the rule is the first to drop."""

BLIND = ("choices",)
"""Rules whose figure in `MEASURED` is of rows that were read, verdicts hidden, when the rule had been mended for the
last time. The others were mended with a look at some of their rows."""

BEHIND: Counts = {"letter_answer": (102, 101), "true_or_false": (6, 6)}
"""The same where those are fewer than `LEAST_ROWS`, on all rows in which it finds something, behind other rules too."""

WRITTEN: Mapping[str, tuple[int, int, int]] = {
    "another_language": (18, 18, 0),
    "answer_to_show": (14, 14, 0),
    "broken_characters": (13, 13, 1),
    "marked_answers": (13, 13, 3),
    "not_a_problem": (17, 17, 1),
    "only_signs": (12, 12, 1),
    "program_text": (11, 11, 0),
    "wrong_script": (6, 6, 0),
}
"""The same where those, too, are fewer, with rows written to try the rule; how many are not written stands last."""

CERTAIN = ("missing_statement", "language_not_wanted", "missing_answer")
"""Rules that no threshold lets back: what is not there cannot be asked, and what a recipe does not want it need not
have. Their score is 1."""

SCORED: Counts = {"a rule's finding": (265, 188), "the text alone": (5, 5)}
"""The same of the classifier's drops at the default thresholds, by what it went by; each row scored by weights that
were trained without its family of sets (`python -m tests.statement_classifier`)."""

RECALL: Mapping[str, tuple[int, float]] = {
    "answer_in_statement": (22, 0.92),
    "choices_needed": (143, 0.92),
    "debris": (10, 0.08),
    "missing_answer": (12, 1.00),
    "missing_figure": (19, 0.21),
    "multi_part": (106, 0.60),
    "proof": (70, 1.00),
    "textual_answer": (66, 0.87),
    "unverifiable_answer": (46, 0.30),
    "yes_no": (15, 0.93),
}
"""By what is wrong with a row: rows read that were drawn by chance, and the share of such rows that is dropped, each
counting for those that it stands for. The classifier was trained on them."""

LEAST_ROWS = 5
ENOUGH = 0.95
"""A rule below this share does not drop a row alone."""


def rule_score(rule: str) -> float:
    """Return how likely a drop by a rule is right, to four places: the mean of the share's posterior under Jeffreys'
    prior, (right + ½) / (rows + 1), so that the fewer rows there are the nearer it is to one half.

    Raises:
        KeyError: the rule was never measured.

    >>> rule_score("missing_answer")
    1.0
    """
    if rule in CERTAIN:
        return 1.0
    fired, right = {**WRITTEN, **BEHIND, **MEASURED}[rule][:2]
    return round((right + 0.5) / (fired + 1), 4)
