"""How often the rules of the format filter are right: what the labelled rows said last, for the card.

The labels are the project's own (`tests/benchmarks/filter_labels.tsv`): of rows that were read, with what became of
them, and of sets of which every row is one, no answer or a theorem to prove. Rows written to try the rules do not
count: they pass by construction. A drop is right where the row cannot be used as it stands.

Invariant: the figures are those that `bench_filters --labels` prints for this version (a test holds it).
"""

from __future__ import annotations

from collections.abc import Mapping

MEASURED: Mapping[str, tuple[int, int]] = {
    "also_asked": (7, 6),
    "broken_answer": (8, 8),
    "choices": (103, 97),
    "formal_task": (5, 5),
    "marking_scheme": (13, 13),
    "missing_answer": (2394, 2394),
    "missing_statement": (9, 8),
    "no_task": (15, 2),
    "open_ended": (8, 8),
    "proof": (510, 510),
    "series_guess": (13, 13),
    "several_answers": (21, 21),
    "textual_answer": (35, 35),
    "yes_no_answer": (9, 9),
}
"""By rule: labelled rows that it dropped, and those dropped rightly. Rules with fewer than `LEAST_ROWS` are absent."""

LEAST_ROWS = 5
ENOUGH = 0.95
"""A rule below this share is not trusted; the card says so."""


def precision_sentences(disabled: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what a card says of the rules that are not switched off: the trusted ones, then those below `ENOUGH`."""
    rules = {rule: rows for rule, rows in MEASURED.items() if rule not in disabled}
    shares = {rule: right / fired for rule, (fired, right) in rules.items()}
    trusted = [rule for rule, share in shares.items() if share >= ENOUGH]
    doubtful = [rule for rule, share in shares.items() if share < ENOUGH]
    groups = (
        ("The format filter's precision on labelled rows, by rule", trusted),
        (f"Below {ENOUGH:g}, so that what they drop deserves a look", doubtful),
    )
    return tuple(
        f"{words}: {', '.join(f'{rule} {shares[rule]:.2f} on {rules[rule][0]:,}' for rule in named)}."
        for words, named in groups
        if named
    )
