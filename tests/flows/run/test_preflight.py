from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import free_port, goldilocks
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
        assert goldilocks("run", recipe, "--out", tmp_path / "run").status == 0
    again = goldilocks("run", recipe, "--out", tmp_path / "run")
    assert again.status == 0
    assert "warning: models.student: no server answers" in again.err
