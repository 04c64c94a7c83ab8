"""What a statement promises of its answers: that they fit in 64 bits, that they are at most 10^18.

Such a promise is one on the input, for who made it had to see to it; a validator that checks it would have to solve the
problem. Where the voting solutions print a greater number, the input is one that the statement rules out.

Invariants: pure; a promise that a given output breaks is misread, and none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from curation.programs.test_generation.limits import bounds_in_order

_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n\s*\n")
_PROMISED = re.compile(r"\b(?:guarantee[ds]?|assume|always|will|certain|sure|known)\b", re.IGNORECASE)
_ANSWER = re.compile(r"\b(?:answers?|results?|outputs?|solutions?)\b", re.IGNORECASE)
_BITS = re.compile(
    r"\b(?:fits?|representable|represented|stored)\b[^.;]{0,50}?\b(32|64|63|31)\W{0,3}bits?\b( unsigned)?",
    re.IGNORECASE,
)
_UNSIGNED = re.compile(r"\bunsigned\b", re.IGNORECASE)
_MOST = re.compile(
    r"\b(?:at most|not exceed(?:ing)?|never exceeds?|no (?:more|greater|larger) than|bounded by|up to)\b\s*"
    r"(\$?[^.;,]{1,30})",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")


def promised_most(statement: str, outputs: Sequence[str]) -> int | None:
    """Return the greatest magnitude that a whole number of an answer has by the statement's promise; None where it
    makes none, or a given output breaks it.

    Example: of "It is guaranteed that the answer fits in a signed 64-bit integer." it is 2 ** 63
    """
    found = []
    for sentence in _SENTENCE.split(statement):
        if _PROMISED.search(sentence) is None or _ANSWER.search(sentence) is None:
            continue
        bits = _BITS.search(sentence)
        if bits is not None:
            width = int(bits[1])
            signed = width in (32, 64) and _UNSIGNED.search(sentence) is None
            found.append(2 ** (width - signed))
        for match in _MOST.finditer(sentence):
            found += [bound.high for bound in bounds_in_order(f"$1 \\le x \\le {match[1].strip().lstrip('$')}")]
    most = min(found, default=None)
    return most if most is not None and not any(exceeds(output, most) for output in outputs) else None


def exceeds(output: str, most: int) -> bool:
    """Return whether a whole number of an output is greater than ``most``, by its magnitude."""
    longest = len(str(most))
    numbers = (match[0].lstrip("-") for match in _NUMBER.finditer(output))
    return any(len(digits) > longest or int(digits) > most for digits in numbers)
