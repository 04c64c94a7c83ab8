"""BYOL-AC's flow against what is known of it: what it keeps, what it climbs, where it ends, and where it is caught."""

from __future__ import annotations

import numpy as np
import pytest

from curation.difficulty.representation import flow, follow, learn, objective


def orthonormal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.normal(size=(rows, columns)))[0])


def test_the_flow_is_the_gradient_of_the_loss_with_its_target_held() -> None:
    """White features by enumeration: x over sqrt(d) times the unit vectors, y = M_a x."""
    rng = np.random.default_rng(1)
    size, wide = 2, 4
    phi, maps = orthonormal(rng, wide, size), rng.normal(size=(3, wide, wide))
    x = np.sqrt(wide) * np.eye(wide)
    matrices = np.stack([x.T @ (x @ one.T) / wide for one in maps])

    def loss(encoder: np.ndarray) -> float:
        total = 0.0
        for one, matrix in zip(maps, matrices, strict=True):
            predictor = phi.T @ matrix @ phi
            total += 0.5 * ((x @ encoder @ predictor - x @ one.T @ phi) ** 2).sum(axis=1).mean()
        return total / len(maps)

    numeric = np.zeros_like(phi)
    for place in np.ndindex(*phi.shape):
        moved = np.zeros_like(phi)
        moved[place] = 1e-6
        numeric[place] = -(loss(phi + moved) - loss(phi - moved)) / 2e-6
    assert np.abs(numeric - flow(phi, matrices)).max() < 1e-7
    for matrix in matrices:  # no predictor foretells better
        predictor = phi.T @ matrix @ phi
        codes, targets = x @ phi, x @ matrix @ phi
        assert np.abs(np.linalg.lstsq(codes, targets, rcond=None)[0] - predictor).max() < 1e-12


def test_the_flow_keeps_the_columns_orthonormal() -> None:
    rng = np.random.default_rng(2)
    phi, matrices = orthonormal(rng, 6, 3), rng.normal(size=(2, 6, 6)) / 4
    assert np.abs(phi.T @ flow(phi, matrices)).max() < 1e-14
    moved = follow(phi, matrices, 400, 0.01)
    assert np.abs(moved - phi).max() > 0.01
    assert np.abs(moved.T @ moved - np.eye(3)).max() < 1e-10


def test_the_flow_climbs_where_the_matrices_are_symmetric() -> None:
    rng = np.random.default_rng(3)
    matrices = rng.normal(size=(2, 6, 6)) / 4
    matrices = matrices + matrices.transpose(0, 2, 1)
    phi = orthonormal(rng, 6, 2)
    values = [objective(phi, matrices)]
    for _ in range(50):
        phi = follow(phi, matrices, 5, 0.05)
        values.append(objective(phi, matrices))
    assert np.diff(values).min() > -1e-12
    assert values[-1] > values[0] + 0.01


def test_it_ends_in_the_top_subspace_where_the_spectra_are_ordered_alike() -> None:
    rng = np.random.default_rng(4)
    basis = orthonormal(rng, 5, 5)
    spectra = np.array([[0.9, 0.7, 0.4, 0.2, 0.1], [1.0, 0.8, 0.5, 0.3, 0.0]])
    matrices = np.stack([(basis * spectrum) @ basis.T for spectrum in spectra])
    values, vectors = np.linalg.eigh((matrices @ matrices).mean(axis=0))
    for size in (1, 2, 3):
        top = vectors[:, np.argsort(values)[-size:]]
        for seed in range(6):
            start = orthonormal(np.random.default_rng(seed), 5, size)
            phi = follow(start, matrices, 3000, 0.2)
            assert np.linalg.norm(top.T @ phi) == pytest.approx(np.sqrt(size), abs=1e-6)


def test_spectra_ordered_unlike_hold_it_at_a_lesser_vector() -> None:
    matrices = np.stack([np.diag([0.9, 0.1]), np.diag([0.1, 0.95])])
    start = np.linalg.qr(np.array([[1.0], [0.05]]))[0]
    phi = follow(start, matrices, 3000, 0.2)
    lesser, better = np.eye(2)[:, :1], np.eye(2)[:, 1:]
    assert np.abs(phi[0]) == pytest.approx(1, abs=1e-9)
    assert objective(lesser, matrices) < objective(better, matrices)
    alone = matrices.mean(axis=0, keepdims=True)  # one action: BYOL-Pi leaves it
    assert np.abs(follow(start, alone, 3000, 0.2)[1]) == pytest.approx(1, abs=1e-3)


def test_a_forecaster_finds_what_training_does() -> None:
    rng = np.random.default_rng(5)
    strength, noise, actions = rng.normal(size=4000), rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000)
    rates = 1 / (1 + np.exp(-(strength + actions)))
    judged = np.full(4000, 16)
    correct = rng.binomial(judged, rates)
    features = np.column_stack([strength, noise])
    after = np.column_stack([strength + actions, rng.normal(size=(4000, 2))])
    forecaster = learn(features, actions, after, correct, judged, 1)
    assert np.abs(forecaster.logits(features, actions) - (strength + actions)).mean() < 0.1
    swapped = forecaster.logits(features, 1 - actions)
    assert np.abs(swapped - (strength + 1 - actions)).mean() < 0.1
