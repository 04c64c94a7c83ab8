"""`goldilocks run --offline`: a new band is decided from stored attempts, and nothing is asked."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import goldilocks
from tests.flows.solver import Solver, write_recipe
from tests.patience import patient

NEW_BAND = ("--set", "stage1.band.max_pass_rate=0.7", "--set", "stage1.band.min_correct=2")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch)


@pytest.mark.slow
def test_a_new_band_is_decided_from_stored_attempts(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with Solver(0.0) as solver:
        recipe = write_recipe(tmp_path, 40, [solver.table("weak")], "labels.rule=votes")
        assert goldilocks("run", recipe, "--out", out).status == 0
        made = solver.requests
        offline = goldilocks("run", recipe, "--out", out, *NEW_BAND, "--offline")
        assert (offline.status, solver.requests) == (0, made), offline.err
        left_open = re.search(r"do not decide (\d+) of 40 problems", offline.err)
        assert left_open is not None, offline.err
        files = (out / "decisions").glob("stage1/*/decisions/*.parquet")
        decisions = pl.concat([pl.read_parquet(file) for file in files])
        assert decisions.filter(pl.col("reason") == "too_few_attempts").height == int(left_open[1]) > 0
        assert decisions["keep"].any()
        further = goldilocks("run", recipe, "--out", out, *NEW_BAND)
        assert further.status == 0
        assert "is sampled further" in further.err
        assert solver.requests > made
