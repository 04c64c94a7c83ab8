"""Find two principal directions of the weights' path in training (arXiv 2506.10910, section 7; arXiv 1712.09913)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curation.records import StoreError
from training.optimisation.model import load_model, load_tokenizer, save_model

PLANE = 2
"""Directions of a plane."""


@dataclass(frozen=True, slots=True)
class Directions:
    """A plane through the last state, whose coordinates are (0, 0).

    ``weights`` [states, 2] combine the centred states into the two unit vectors; ``explained`` is each one's share of
    the variance.
    """

    states: tuple[Path, ...]
    weights: tuple[tuple[float, float], ...]
    coordinates: tuple[tuple[float, float], ...]
    explained: tuple[float, float]


def principal_directions(states: Sequence[Path]) -> Directions:
    """Return the plane of a model's states in order; directions point from the first to the last."""
    if len(states) <= PLANE:
        raise StoreError(
            f"{len(states)} states of the weights span no plane; train with checkpoints.trajectory set to fewer steps"
        )
    gram = torch.zeros(len(states), len(states), dtype=torch.float64)
    for _, _, values in _tensors(states):
        centred = values - values.mean(0)
        gram += centred @ centred.T
    values, vectors = torch.linalg.eigh(gram)
    values, vectors = values.flip(0)[:PLANE].clamp(min=0), vectors.flip(1)[:, :PLANE]
    if values[PLANE - 1] <= 1e-12 * max(float(gram.trace()), 1e-300):
        raise StoreError(f"the states of {states[-1].parent} lie on one line, or on one point; no plane is theirs")
    lengths = values.sqrt()
    combined = vectors / lengths  # c = Xc^T u / sqrt(value) has length 1
    scores = vectors * lengths  # Xc c
    coordinates = scores - scores[-1]
    signs = torch.where(coordinates[0] > 0, -1.0, 1.0).double()
    combined, coordinates = combined * signs, coordinates * signs
    share = values / gram.trace()
    return Directions(
        tuple(states),
        tuple((float(a), float(b)) for a, b in combined),
        tuple((float(a), float(b)) for a, b in coordinates),
        (float(share[0]), float(share[1])),
    )


def write_point(directions: Directions, first: float, second: float, folder: Path) -> Path:
    """Write the model w* + first c1 + second c2; at (0, 0) it is w* bit for bit."""
    last = directions.states[-1]
    weights = torch.tensor(directions.weights, dtype=torch.float64) @ torch.tensor([first, second], dtype=torch.float64)
    state: dict[str, Tensor] = {}
    for name, base, values in _tensors(directions.states):
        step = (weights @ (values - values.mean(0))).reshape(base.shape)
        state[name] = (base.double() + step).to(base.dtype) if first or second else base
    save_model(load_model(last), load_tokenizer(last), folder, state=state)
    return folder


def _tensors(states: Sequence[Path]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield each floating tensor's name, last value, and all values [states, size] in float64."""
    files = [_files(state) for state in states]
    for name in sorted(files[-1]):
        if lacking := [state for state, names in zip(states, files, strict=True) if name not in names]:
            raise StoreError(f"{lacking[0]} has no tensor {name}; it is of another model")
        values = [names[name].get_tensor(name) for names in files]
        if len({value.shape for value in values}) > 1:
            raise StoreError(
                f"{name} has different shapes in {states[0]} and {states[-1]}; they are of different models"
            )
        if values[-1].is_floating_point():
            yield name, values[-1], torch.stack([value.double().flatten() for value in values])


def _files(folder: Path) -> dict[str, Any]:
    """Return the open file of each of a model's tensors."""
    from safetensors import safe_open

    files = [safe_open(str(path), "pt") for path in sorted(folder.glob("*.safetensors"))]
    if not files:
        raise StoreError(f"{folder} holds no weights (*.safetensors)")
    return {name: file for file in files for name in file.keys()}  # type: ignore[no-untyped-call]  # noqa: SIM118 - no mapping
