"""Outputs compared as contest judges compare them."""

from __future__ import annotations

import time

import pytest

from curation.records import VerifierError
from curation.verify.programs.comparison import EXACT, Comparison, comparison_of_flags, same_output

NEAR = comparison_of_flags("float_tolerance 1e-6")


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (b"3\n", b"3"),
        (b"3", b"3\n\n"),
        (b"1 2\n3\n", b"1\n2 3"),
        (b"a b\n", b"  a\t\tb  \r\n"),
        (b"Yes\n", b"YES\n"),
        (b"", b" \n"),
        (b"\xff\xfe\n", b"\xff\xfe"),
        (b"a\x00b\n", b"a\x00b"),
    ],
)
def test_the_same_tokens_are_right(expected: bytes, output: bytes) -> None:
    assert same_output(expected, output)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (b"1 2 3", b"1 2"),
        (b"1 2", b"1 2 3"),
        (b"12", b"1 2"),
        (b"3", b""),
        (b"", b"0"),
        (b"1.0", b"1"),
        (b"a", b"a\x00"),
        (b"\xff", b"\xfe"),
        (b"ok", b"ok\ngarbage"),
    ],
)
def test_other_tokens_are_wrong(expected: bytes, output: bytes) -> None:
    assert not same_output(expected, output)


def test_case_matters_only_when_asked_for() -> None:
    assert not same_output(b"Yes", b"yes", Comparison(case_sensitive=True))
    assert same_output(b"Yes", b"Yes", Comparison(case_sensitive=True))


def test_white_space_matters_only_when_asked_for() -> None:
    strict = comparison_of_flags("space_change_sensitive")
    assert not same_output(b"a  b\n", b"a b\n", strict)
    assert not same_output(b"a b\n", b"a b", strict)
    assert same_output(b"a b\n", b"A b\n", strict)
    assert not same_output(b"a\n", b"A\n", EXACT)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (b"1.0", b"1"),
        (b"1", b"1.0000009"),
        (b"1000000", b"1000000.9"),
        (b"1e3", b"1000"),
        (b"-0", b"0"),
        (b"inf", b"INF"),
    ],
)
def test_numbers_near_enough_are_right(expected: bytes, output: bytes) -> None:
    assert same_output(expected, output, NEAR)


@pytest.mark.parametrize(
    ("expected", "output"),
    [
        (b"1", b"1.00001"),
        (b"1", b"one"),
        (b"one", b"1"),
        (b"1", b"nan"),
        (b"1", b"1_0"),
        (b"inf", b"-inf"),
        (b"1 2", b"1"),
    ],
)
def test_numbers_too_far_are_wrong(expected: bytes, output: bytes) -> None:
    assert not same_output(expected, output, NEAR)


def test_the_two_measures_are_apart() -> None:
    absolute, relative = comparison_of_flags("float_absolute_tolerance 0.1"), Comparison(relative=0.1)
    assert same_output(b"0.001", b"0.05", absolute)
    assert not same_output(b"0.001", b"0.05", relative)
    assert same_output(b"1000", b"1050", relative)
    assert not same_output(b"1000", b"1050", absolute)


def test_whole_numbers_beyond_doubles_are_told_apart() -> None:
    assert not same_output(
        b"12345678901234567890", b"12345678901234567891", comparison_of_flags("float_absolute_tolerance 0.5")
    )


def test_white_space_and_tolerance_together() -> None:
    both = comparison_of_flags("space_change_sensitive float_tolerance 1e-3")
    assert same_output(b"1.0 2\n", b"1 2\n", both)
    assert not same_output(b"1.0 2\n", b"1  2\n", both)


@pytest.mark.parametrize("flags", ["float_tolerance", "float_tolerance much", "float_tolerance -1", "case_insensitive"])
def test_flags_that_mean_nothing_are_refused(flags: str) -> None:
    with pytest.raises(VerifierError, match="validator flags"):
        comparison_of_flags(flags)


def test_large_outputs_with_other_white_space_across_blocks() -> None:
    numbers = [str(number) for number in range(400_000)]
    lines, spaces = "\n".join(numbers).encode(), "   ".join(numbers).encode()
    assert same_output(lines, spaces)
    assert not same_output(lines, spaces[:-1])
    assert same_output(b"x" * 2_000_000 + b"\n", b" " + b"x" * 2_000_000)


@pytest.mark.parametrize("space", [b"\n", b" ", b" \n\t"])
def test_32_mb_of_white_space_take_linear_time(space: bytes) -> None:
    padding = space * ((32 << 20) // len(space))
    start = time.process_time()
    assert same_output(b"3\n", b"3" + padding)
    assert same_output(b"3" + padding, b"3")
    assert not same_output(b"3\n", padding)
    assert time.process_time() - start < 0.6, "it was 1.2 to 3.2 s for each"
