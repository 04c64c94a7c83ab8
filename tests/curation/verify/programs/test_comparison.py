"""Outputs compared as contest judges compare them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from curation.records import VerifierError
from curation.verify.programs.comparison import EXACT, comparison_of_flags, same_output

ROWS = [json.loads(line) for line in Path(__file__).with_name("outputs.jsonl").read_text("utf-8").splitlines()]
"""A row has the validator's ``flags``, two outputs, bytes as Latin-1, and whether they count as the ``same``."""


def test_outputs_are_compared_as_the_flags_ask() -> None:
    for row in ROWS:
        expected, output = row["expected"].encode("latin-1"), row["output"].encode("latin-1")
        assert same_output(expected, output, comparison_of_flags(row["flags"])) is row["same"], row
    assert not same_output(b"a\n", b"A\n", EXACT)


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


@pytest.mark.parametrize("space", [b"\n", b" \n\t"])
def test_32_mb_of_white_space_take_linear_time(space: bytes) -> None:
    padding = space * ((32 << 20) // len(space))
    start = time.process_time()
    assert same_output(b"3\n", b"3" + padding)
    assert same_output(b"3" + padding, b"3")
    assert not same_output(b"3\n", padding)
    assert time.process_time() - start < 0.6, "it was 1.2 to 3.2 s for each"
