"""What a card says of the format filter's rules: how often each is right, on how many rows, between which bounds.

Invariant: every rule that drops a row alone has a figure, and what was measured on rows of our own says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from curation.filters.statements.precision import BEHIND, BLIND, CERTAIN, MEASURED, RECALL, SCORED, WRITTEN
from curation.filters.statements.scoring import FEATURE_RULES
from curation.publish.receipts import wilson

_DOUBTS = {"choices": "words that may point at options"}


def precision_sentences(disabled: tuple[str, ...] = (), drop_from: float = 0.9) -> tuple[str, ...]:
    """Return what a card says of the rules that are not switched off: those that drop a row alone, by what their
    precision rests on, those that never do, the classifier, and what is caught of all.

    Args:
        drop_from: the recipe's least score of a rule that drops a row alone.
    """

    def listed(table: dict[str, tuple[int, int]]) -> str:
        return ", ".join(_figure(rule, *counts) for rule, counts in table.items() if rule not in disabled)

    seen = listed(dict(MEASURED))
    blind = ", ".join(rule for rule in BLIND if rule not in disabled)
    apart = f" ({blind} on rows read with the verdict hidden when the rule was last changed)" if blind else ""
    behind = listed(dict(BEHIND))
    own = ", ".join(
        f"{_figure(rule, fired, right)} ({_others(real)})"
        for rule, (fired, right, real) in WRITTEN.items()
        if rule not in disabled
    )
    features = ", ".join(_DOUBTS.get(rule, rule) for rule in FEATURE_RULES if rule not in disabled)
    by_score = ", ".join(_figure(f"by {what}", *counts) for what, counts in SCORED.items())
    caught = ", ".join(f"{label} {share:.2f} on {rows}" for label, (rows, share) in RECALL.items())
    return (
        *_if(seen, f"The format filter's precision on labelled rows, by rule, with its 95 % interval{apart}: {seen}."),
        *_if(behind, f"On rows that another rule drops before it, too: {behind}."),
        *_if(own, f"On rows written to try the rule, which flatter it, for want of others: {own}."),
        f"A rule dropped a row alone where its score, (right + ½) / (rows + 1) of these, was {drop_from:g} or more; "
        f"that of {', '.join(CERTAIN)} is 1: what is not there, or not wanted, is no matter of precision.",
        f"Rules that do not reach .95 drop nothing alone, a classifier weighs what they find: {features}.",
        f"Precision of its drops, on sets that it was not trained on: {by_score}.",
        f"The filter's recall, the share dropped of the labelled rows of a kind: {caught}.",
    )


def _figure(name: str, fired: int, right: int) -> str:
    low, high = wilson(right, fired)
    return f"{name} {right / fired:.2f} ({low:.2f} to {high:.2f}) on {fired:,}"


def _others(real: int) -> str:
    return f"{real} of them not ours" if real else "no real row read"


def _if(text: str, sentence: str) -> Iterable[str]:
    return (sentence,) if text else ()
