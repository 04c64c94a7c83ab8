"""What the verifier reads of a statement: what is asked for, and in which form.

Letters match in any case. Blanks: ``<unit>``, ``<number>`` small, in digits or words, ``<place>`` one of ``places``,
``<step>`` a power of ten in digits, ``<names>`` of variables, ``<formula>``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The table ``questions`` of a language's file."""

    asks: tuple[str, ...]
    """Expressions of words that ask; the last sentence with one, or with a question mark, states what is asked for."""
    formula: tuple[str, ...]
    """Expressions with ``<formula>``, the one that is asked for."""
    unit: tuple[str, ...]
    """Expressions with ``<unit>``, that in which the answer is asked for."""
    per: tuple[str, ...]
    """Expressions of words between two units of which the first is divided by the second."""
    temperature: tuple[str, ...]
    """Expressions of words that say that a degree is no angle."""
    decimals: tuple[str, ...]
    """Expressions with ``<number>`` of digits behind the decimal point."""
    digits: tuple[str, ...]
    """Expressions with ``<number>`` of significant digits."""
    nearest: tuple[str, ...]
    """Expressions with ``<place>`` or ``<step>`` that the answer is rounded to."""
    places: dict[str, tuple[str, ...]]
    """Digits after the decimal point, negative before it → expressions of that place."""
    exact: tuple[str, ...]
    """Expressions that ask for an exact value: as a fraction, in terms of π, in radicals."""
    percent: tuple[str, ...]
    """Expressions of any word for percent."""
    in_percent: tuple[str, ...]
    """Expressions that ask for a number of percent."""
    ordered: tuple[str, ...]
    """Expressions that ask for a tuple: coordinates, an ordered pair."""
    interval: tuple[str, ...]
    """Expressions that ask for an interval."""
    open_interval: tuple[str, ...]
    """Expressions that ask for open intervals."""
    closed_interval: tuple[str, ...]
    """Expressions that ask for closed intervals."""
    every_value: tuple[str, ...]
    """Expressions that ask for all of several values."""
    one_value: tuple[str, ...]
    """Expressions that ask for any one of several values."""
    integers: tuple[str, ...]
    """Expressions with ``<names>`` of integers."""
    positive: tuple[str, ...]
    """Expressions with ``<names>`` of positive numbers."""
