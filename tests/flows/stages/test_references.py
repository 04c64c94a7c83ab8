"""A reference that the verifier can read only after a rewriting: it is disputed, and a person's word brings it back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import goldilocks, published, write_tiny


@pytest.mark.slow
def test_a_needed_rewriting_that_nothing_proves_goes_to_the_disputes(tmp_path: Path) -> None:
    recipe = write_tiny(tmp_path / "in")
    problems = tmp_path / "in" / "problems.jsonl"
    spoiled = problems.read_text().replace('"final": "221"', r'"final": "221 \\\\ \\end{array}"')
    assert spoiled != problems.read_text()
    problems.write_text(spoiled)
    out = tmp_path / "run"
    assert goldilocks("run", recipe, "--out", out).status == 0
    dropped = published(out, "dropped").filter(pl.col("reason") == "unproven_rewriting")
    assert dropped["stage"].to_list() == ["references"]
    assert dropped["answer"].to_list() == [r"221 \\ \end{array}"]
    (dispute,) = published(out, "disputed").filter(pl.col("kind") == "unproven_rewriting").rows(named=True)
    assert dispute["references"] == [r"221 \\ \end{array}", "221"]
    assert "without its layout it would be 221" in dispute["evidence"]
    assert "unproven_rewriting" in goldilocks("status", out).out
    assert "without its layout it would be 221" in goldilocks("explain", out, dispute["id"]).out
    listed = goldilocks("review", out).out
    assert "references that the verifier reads only without their layout" in listed
    assert goldilocks("review", out, "--accept", dispute["id"], "--answer", "221").status == 0
    assert goldilocks("run", recipe, "--out", out).status == 0
    assert "What is 13 times 17?" in published(out, "data")["statement"].to_list()
    assert published(out, "disputed").filter(pl.col("kind") == "unproven_rewriting").is_empty()
