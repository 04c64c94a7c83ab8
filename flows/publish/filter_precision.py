"""What a card states about the format filter's rules: how often each is right, on how many rows, with its interval."""

from __future__ import annotations

from collections.abc import Iterator

from curation.filters.statements.precision import MEASURED
from curation.publish.pages import wilson


def precision_sentences(disabled: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield what a card states about the rules that are not switched off."""
    figures = [_figure(rule, *counts) for rule, counts in MEASURED.items() if rule not in disabled]
    if figures:
        listed = ", ".join(figures)
        yield f"The format filter's precision on labelled rows, by rule, with its 95 % interval: {listed}."


def _figure(name: str, fired: int, right: int) -> str:
    low, high = wilson(right, fired)
    return f"{name} {right / fired:.2f} ({low:.2f} to {high:.2f}) on {fired:,}"
