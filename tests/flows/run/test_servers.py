"""A run and its models' servers: asked for before anything begins, and not at all with `--offline`."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import free_port, goldilocks
from tests.flows.run.folders import run
from tests.flows.solver import Solver, write_recipe
from tests.patience import patient


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch)


def recipe_of(home: Path, url: str, model: str = "weak", key: str = "") -> Path:
    return write_recipe(home, 20, [f'kind = "endpoint"\nmodel = "{model}"\nrevision = "1"\nurls = ["{url}"]\n{key}'])


@pytest.mark.parametrize(
    ("model", "key", "message", "dry"),
    [
        ("gone", "", "holds no model 'gone'", False),
        ("weak", 'api_key_env = "GOLDILOCKS_NO_SUCH_KEY"', "GOLDILOCKS_NO_SUCH_KEY", True),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_first(
    tmp_path: Path, model: str, key: str, message: str, dry: bool
) -> None:
    with Solver(0.0) as solver:
        recipe = recipe_of(tmp_path, solver.url, model, key)
        done = goldilocks("run", recipe, "--out", tmp_path / "run", *(["--dry"] if dry else []))
    assert done.status == 1
    assert "models.student: " in done.err
    assert message in done.err
    assert not (tmp_path / "run/stages").exists()


@pytest.mark.slow
def test_without_its_server_a_run_begins_nothing_and_a_finished_one_only_warns(tmp_path: Path) -> None:
    dead = recipe_of(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    refused = goldilocks("run", dead, "--out", tmp_path / "run")
    assert refused.status == 1
    assert "models.student: no server answers" in refused.err
    assert not (tmp_path / "run/stages").exists()
    with Solver(0.0) as solver:
        recipe = recipe_of(tmp_path, solver.url)
        run(recipe, tmp_path / "run")
    assert "warning: models.student: no server answers" in run(recipe, tmp_path / "run").err


@pytest.mark.slow
def test_a_new_band_is_decided_from_stored_attempts(tmp_path: Path) -> None:
    out, band = tmp_path / "run", ("stage1.band.max_pass_rate=0.7", "stage1.band.min_correct=2")
    with Solver(0.0) as solver:
        recipe = write_recipe(tmp_path, 40, [solver.table("weak")], "labels.rule=votes")
        run(recipe, out)
        made = solver.requests
        changes = [word for change in band for word in ("--set", change)]
        offline = goldilocks("run", recipe, "--out", out, *changes, "--offline")
        assert (offline.status, solver.requests) == (0, made), offline.err
        left_open = re.search(r"do not decide (\d+) of 40 problems", offline.err)
        assert left_open is not None, offline.err
        decisions = pl.read_parquet(out / "decisions" / "stage1" / "*" / "decisions" / "*.parquet")
        assert decisions.filter(reason="too_few_attempts").height == int(left_open[1]) > 0
        assert decisions["keep"].any()
        assert "is sampled further" in run(recipe, out, *band).err
        assert solver.requests > made
