"""What a translation did wrong: the invariant's name, and the evidence, in words that a model can act on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant. ``invariant`` is its name in `invariants.INVARIANTS`, ``evidence`` what to mend.

    Example: ``Violation("numbers", "the number 18 of the original is missing")``
    """

    invariant: str
    evidence: str
