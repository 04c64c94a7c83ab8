"""Compares outputs by the rules of Kattis' default validator.

Invariants: white space is C's isspace in the C locale; text after the right answer is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from curation.records import VerifierError

_BLOCK = 1 << 19
_SPACE = re.compile(rb"[ \t\n\r\x0b\f]")
_SPACES = re.compile(rb"([ \t\n\r\x0b\f]+)")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How outputs are compared, by default as in Kattis packages; without tolerance numbers are text.

    ``absolute`` bounds ``|program - expected|``, ``relative`` that over ``|expected|``; one suffices.
    """

    case_sensitive: bool = False
    space_change_sensitive: bool = False
    absolute: float | None = None
    relative: float | None = None

    @property
    def tolerant(self) -> bool:
        """Return whether numbers may differ."""
        return self.absolute is not None or self.relative is not None


TOKENS = Comparison(case_sensitive=True)
"""The default comparison: by tokens, case-sensitive."""

EXACT = Comparison(case_sensitive=True, space_change_sensitive=True)
"""Byte for byte."""


def comparison_of_flags(flags: str) -> Comparison:
    """Return the comparison of Kattis ``validator_flags``. Raises `VerifierError` on an invalid flag.

    Example: ``comparison_of_flags("case_sensitive float_tolerance 1e-6")``
    """
    case = space = False
    absolute: float | None = None
    relative: float | None = None
    words = iter(flags.split())
    for word in words:
        if word == "case_sensitive":
            case = True
        elif word == "space_change_sensitive":
            space = True
        elif word in {"float_tolerance", "float_absolute_tolerance", "float_relative_tolerance"}:
            value = _number(next(words, "").encode())
            if value is None or not value >= 0:
                raise VerifierError(f"validator flags {flags!r}: {word} must be followed by a number from 0 up")
            if word != "float_relative_tolerance":
                absolute = value
            if word != "float_absolute_tolerance":
                relative = value
        else:
            raise VerifierError(f"validator flags {flags!r}: the default validator has no flag {word!r}")
    return Comparison(case, space, absolute, relative)


def same_output(expected: bytes, output: bytes, how: Comparison = Comparison()) -> bool:
    r"""Return whether ``output`` is right, in linear time.

    Example: ``same_output(b"Case 1: 3\n", b"case 1:   3")`` is True.
    """
    if output == expected:
        return True
    if how.space_change_sensitive and not how.tolerant:
        return not how.case_sensitive and output.lower() == expected.lower()
    if how.space_change_sensitive:
        return _same_in_space(expected, output, how)
    expected_blocks, output_blocks = _tokens(expected, how), _tokens(output, how)
    expected_tokens: list[bytes] = []
    output_tokens: list[bytes] = []
    while True:
        if not expected_tokens:
            expected_tokens = next(expected_blocks, [])
        if not output_tokens:
            output_tokens = next(output_blocks, [])
        if not expected_tokens or not output_tokens:
            return not expected_tokens and not output_tokens
        count = min(len(expected_tokens), len(output_tokens))
        if not _same_tokens(expected_tokens[:count], output_tokens[:count], how):
            return False
        del expected_tokens[:count]
        del output_tokens[:count]


def _tokens(text: bytes, how: Comparison) -> Iterator[list[bytes]]:
    start = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            gap = _SPACE.search(text, end)  # a run of spaces would be scanned again by each of its blocks
            end = gap.start() if gap else len(text)
        block = text[start:end]
        tokens = (block if how.case_sensitive else block.lower()).split()
        if tokens:
            yield tokens
        start = end


def _same_tokens(expected: list[bytes], output: list[bytes], how: Comparison) -> bool:
    if expected == output:
        return True
    if not how.tolerant:
        return False
    return all(
        expected_token == output_token or _near(expected_token, output_token, how.absolute, how.relative)
        for expected_token, output_token in zip(expected, output, strict=True)
    )


def _same_in_space(expected: bytes, output: bytes, how: Comparison) -> bool:
    if not how.case_sensitive:
        expected, output = expected.lower(), output.lower()
    expected_parts, output_parts = _SPACES.split(expected), _SPACES.split(output)
    return (
        len(expected_parts) == len(output_parts)
        and expected_parts[1::2] == output_parts[1::2]
        and _same_tokens(expected_parts[::2], output_parts[::2], how)
    )


def _near(expected: bytes, output: bytes, absolute: float | None, relative: float | None) -> bool:
    expected_value, output_value = _number(expected), _number(output)
    if expected_value is None or output_value is None:
        return False
    if math.isnan(expected_value) or math.isnan(output_value):
        return math.isnan(expected_value) and math.isnan(output_value)
    if math.isinf(expected_value) or math.isinf(output_value):
        return expected_value == output_value
    apart = abs(expected_value - output_value)
    if apart < 1024 and abs(expected_value) >= 2**53 and _is_whole(expected) and _is_whole(output):
        apart = float(abs(int(expected) - int(output)))
    return (absolute is not None and apart <= absolute) or (
        relative is not None and apart <= relative * abs(expected_value)
    )


def _is_whole(token: bytes) -> bool:
    return token.lstrip(b"+-").isdigit() and len(token) < 400


def _number(token: bytes) -> float | None:
    """Parse a whole token like C's strtod."""
    if b"_" in token or len(token) > 4096:
        return None
    try:
        return float(token)
    except ValueError:
        if token.lstrip(b"+-")[:2].lower() != b"0x":
            return None
    try:
        return float.fromhex(token.decode("ascii", "replace"))
    except (ValueError, OverflowError):
        return None
