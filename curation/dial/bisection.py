"""Which prefix lengths are tried: bisection between one that is too short and one that is too long.

A longer prefix of a correct attempt is taken to make a problem easier. Where that is not so bisection still ends, and
what it ends with was measured.

Invariant: what is tried next follows from the outcomes so far, so a run that is killed goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bisection:
    """The lengths of one trace, by number: those up to ``short`` are too short, those from ``long`` on too long.

    Example: of seven lengths ``Bisection.over(7).next()`` is the fourth, number 3
    """

    short: int
    long: int

    @classmethod
    def over(cls, lengths: int) -> Bisection:
        """Return the state before anything is tried; the empty prefix is known to be too short."""
        return cls(-1, lengths)

    def next(self) -> int | None:
        """Return the number of the length to try; None where none is left."""
        return (self.short + self.long) // 2 if self.long - self.short > 1 else None

    def after(self, number: int, *, too_hard: bool) -> Bisection:
        """Return the state after a length was tried and is not in the band."""
        return Bisection(number, self.long) if too_hard else Bisection(self.short, number)
