"""`export --check`: planted bad rows are found in every format, and sound rows stay."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from curation.publish.export_formats import FORMATS
from tests.curation.publish.test_export_formats import MATH, OTHER, PROGRAM, curated
from tests.flows.conftest import goldilocks

UNREACHABLE = {**OTHER, "id": "m3", "answer": "\\frac{1}{"}
TAKES_ALL = {**OTHER, "id": "m4", "accepted": ["5"]}
SOLVED = {**PROGRAM, "solution": "n = input()\nif n == n:\n    print(n)"}
WRONG = {**PROGRAM, "solution": "print(0)"}


@pytest.mark.slow
def test_planted_rows_are_found_in_every_format(tmp_path: Path) -> None:
    sound = curated(tmp_path / "sound", MATH, OTHER, SOLVED)
    planted = curated(tmp_path / "planted", MATH, UNREACHABLE, OTHER, TAKES_ALL, WRONG)
    said = goldilocks("export", sound, "--format", "all", "--check", "--out", tmp_path / "all")
    assert (said.status, said.out.count("3 problems: ")) == (0, len(FORMATS)), said.out + said.err
    for form in FORMATS:
        out = tmp_path / "bad" / form
        said = goldilocks("export", planted, "--format", form, "--check", "--out", out)
        assert said.status == 0, said.err
        assert f"3 problems left out of {form}, which fail their proof:" in said.out
        assert "m3: its reference earns 0.0" in said.out
        assert "m4: a near miss earns 1.0" in said.out
        assert "c1: its reference earns 0.0" in said.out
        assert "2 problems: " in said.out


def test_a_folder_of_areal_opens_as_a_whole(tmp_path: Path) -> None:
    folder = curated(tmp_path / "curated", MATH, OTHER, PROGRAM)
    assert goldilocks("export", folder, "--format", "areal", "--out", tmp_path / "out").status == 0
    assert datasets.load_from_disk(str(tmp_path / "out"))["train"].num_rows == 3
