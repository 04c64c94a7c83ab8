"""The plane of a way through weights, as by SVD, and the plots of a planted surface on it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from training.embedded_model import WEIGHTS
from training.evaluation.directions import Point, fit_log_length, principal_directions, write_point


def test_a_planted_slope_is_found() -> None:
    noise = [0.01, -0.01, 0.005, -0.005, 0.0]
    points = [Point(0, 0, 0.3 * math.log(20 + n) + 0.1 + noise[n % 5], 20.0 + n) for n in range(30)]
    fit = fit_log_length(points)
    assert fit is not None
    assert fit.low < 0.3 < fit.high
    assert fit.slope == pytest.approx(0.3, abs=0.02)
    assert fit.explained > 0.98
    assert fit_log_length([Point(0, 0, 0.5, 20.0)] * 5) is None


def states(folder: Path, rows: torch.Tensor) -> list[Path]:
    places = []
    for place, row in enumerate(rows):
        path = folder / f"v{place:08}"
        path.mkdir(parents=True)
        save_file({"a": row[:30].reshape(5, 6).clone(), "b": row[30:].clone()}, str(path / "model.safetensors"))
        places.append(path)
    return places


def test_the_directions_are_those_of_the_singular_values(tmp_path: Path) -> None:
    torch.manual_seed(4)
    rows = torch.randn(7, 50, dtype=torch.float64).cumsum(0)
    found = principal_directions(states(tmp_path, rows))
    centred = rows - rows.mean(0)
    _, values, directions = torch.linalg.svd(centred, full_matrices=False)
    made = torch.tensor(found.weights, dtype=torch.float64).T @ centred
    assert torch.allclose((made @ directions[:2].T).abs(), torch.eye(2, dtype=torch.float64), atol=1e-9)
    assert found.explained[0] == pytest.approx(float(values[0] ** 2 / (values**2).sum()))


def test_the_origin_is_the_trained_model_and_a_state_lies_where_it_is(tmp_path: Path) -> None:
    from training.optimisation.model import load_model, load_tokenizer, save_model

    model, tokenizer, places = load_model(WEIGHTS), load_tokenizer(WEIGHTS), [WEIGHTS]
    start = load_file(WEIGHTS / "model.safetensors")
    torch.manual_seed(5)
    ways = [{name: torch.randn_like(value) * 1e-3 for name, value in start.items()} for _ in range(2)]
    for a, b in ((1.0, 0.2), (2.0, -0.1), (3.0, 0.0)):
        moved = {name: value + a * ways[0][name] + b * ways[1][name] for name, value in start.items()}
        places.append(tmp_path / f"v{len(places):08}")
        save_model(model, tokenizer, places[-1], state=moved)
    found = principal_directions(places)
    origin = load_file(write_point(found, 0.0, 0.0, tmp_path / "origin") / "model.safetensors")
    last = load_file(places[-1] / "model.safetensors")
    assert origin.keys() == last.keys()
    assert all(torch.equal(origin[name], last[name]) for name in last)
    assert (tmp_path / "origin" / "model.safetensors").read_bytes() == (places[-1] / "model.safetensors").read_bytes()
    there = load_file(write_point(found, *found.coordinates[1], tmp_path / "there") / "model.safetensors")
    second = load_file(places[1] / "model.safetensors")
    assert all(torch.allclose(there[name], second[name], atol=1e-5) for name in second)
