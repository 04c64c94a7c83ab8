"""How often the rules of the format filter are right: what the labelled rows said last, for the card.

The labels are the project's own (`tests/benchmarks/filter_labels.tsv`): of rows that were read, with what became of
them, and of sets of which every row is one, no answer or a theorem to prove. Rows written to try the rules do not
count: they pass by construction. A drop is right where the row cannot be used as it stands.

Invariant: the figures are those that `bench_filters --labels` prints for this version (a test holds it).
"""

from __future__ import annotations

from collections.abc import Mapping

MEASURED: Mapping[str, tuple[int, int]] = {
    "also_asked": (7, 7),
    "answer_in_statement": (21, 21),
    "broken_answer": (37, 37),
    "choices": (383, 374),
    "formal_task": (6, 6),
    "marking_scheme": (23, 23),
    "missing_answer": (2394, 2394),
    "missing_statement": (8, 8),
    "multi_part": (72, 71),
    "open_ended": (8, 8),
    "proof": (531, 531),
    "proof_answer": (29, 29),
    "refers_elsewhere": (6, 6),
    "series_guess": (13, 13),
    "several_answers": (39, 39),
    "textual_answer": (67, 66),
    "undefined_name": (21, 21),
    "undrawn_graph": (16, 16),
    "yes_no_answer": (16, 16),
}
"""By rule: labelled rows that it dropped, and those dropped rightly. Rules with fewer than `LEAST_ROWS` are absent."""

SCORED: Mapping[str, tuple[int, int]] = {"a rule's finding": (54, 34), "the text alone": (6, 6)}
"""The same of the classifier's drops at the default thresholds, by what it went by; each row scored by weights that
were trained without its family of sets (`python -m tests.statement_classifier`)."""

RECALL: Mapping[str, tuple[int, float]] = {
    "answer_in_statement": (22, 0.92),
    "choices_needed": (143, 0.94),
    "debris": (10, 0.17),
    "missing_answer": (12, 1.00),
    "missing_figure": (19, 0.21),
    "multi_part": (106, 0.54),
    "proof": (70, 1.00),
    "textual_answer": (66, 0.87),
    "unverifiable_answer": (46, 0.30),
    "yes_no": (15, 0.93),
}
"""By what is wrong with a row: rows read that were drawn by chance, and the share of such rows that is dropped, each
counting for those that it stands for. The classifier was trained on them."""

LEAST_ROWS = 5
ENOUGH = 0.95
"""A rule below this share is not trusted; the card says so."""


def precision_sentences(disabled: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what a card says of the rules that are not switched off: the trusted ones, those below `ENOUGH`, the
    classifier, and what is caught of all.
    """
    rules = {rule: rows for rule, rows in MEASURED.items() if rule not in disabled}
    shares = {rule: right / fired for rule, (fired, right) in rules.items()}
    trusted = [rule for rule, share in shares.items() if share >= ENOUGH]
    doubtful = [rule for rule, share in shares.items() if share < ENOUGH]
    groups = (
        ("The format filter's precision on labelled rows, by rule", trusted),
        (f"Below {ENOUGH:g}, so that what they drop deserves a look", doubtful),
    )
    by_score = ", ".join(f"{right / fired:.2f} on {fired} by {what}" for what, (fired, right) in SCORED.items())
    caught = ", ".join(f"{label} {share:.2f} on {rows}" for label, (rows, share) in RECALL.items())
    return (
        *(
            f"{words}: {', '.join(f'{rule} {shares[rule]:.2f} on {rules[rule][0]:,}' for rule in named)}."
            for words, named in groups
            if named
        ),
        f"Precision of its classifier's drops, on sets that it was not trained on: {by_score}.",
        f"Its recall, the share dropped of the labelled rows of a kind: {caught}.",
    )
