"""Promises that a statement makes on its answers."""

from __future__ import annotations

import pytest

from curation.programs.test_generation.promised_outputs import exceeds, promised_most


@pytest.mark.parametrize(
    ("sentence", "most"),
    [
        ("It is guaranteed that the answer fits in a signed 64-bit integer.", 2**63),
        ("You may assume that the result can be stored in an unsigned 32-bit integer.", 2**32),
        ("The output will always fit in 63 bits.", 2**63),
        ("It is guaranteed that the answer is at most $10^{18}$.", 10**18),
        ("The answer will not exceed 1000000.", 10**6),
        ("Print the answer modulo 1000000007.", None),
        ("If the answer is at most 100, print it.", None),
        ("The numbers fit in 64 bits.", None),
        ("Each $a_i$ will be at most 1000.", None),
    ],
)
def test_promises(sentence: str, most: int | None) -> None:
    assert promised_most(f"A problem.\n\n{sentence} So print it.", ["12\n", "-7 3\n"]) == most


def test_a_given_output_that_breaks_it_tells_that_it_was_misread() -> None:
    assert promised_most("It is guaranteed that the answer is at most 10.", ["3\n", "11\n"]) is None


def test_numbers_of_an_output() -> None:
    assert [exceeds(text, 100) for text in ("100\n", "101\n", "-101 3\n", "1e9\n", "a101\n", f"{'9' * 9999}\n")] == [
        False,
        True,
        True,
        False,
        False,
        True,
    ]
