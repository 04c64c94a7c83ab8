"""BYOL-AC: a representation of problems that foretells itself across versions of a policy (arXiv 2406.02035).

A problem has features x at one version and y at the next; meanwhile it was trained on or not, its action a. The encoder
Phi [features, size] has orthonormal columns, one linear predictor per action foretells Phi^T y from Phi^T x, and the
target takes no gradient. With white features (E x x^T = I), T_a = E[x y^T | a] and the best predictors, gradient
descent on Phi is the flow

    dPhi = mean_a (I - Phi Phi^T) T_a Phi (Phi^T T_a Phi)^T

which keeps Phi^T Phi, and for symmetric T_a climbs f = mean_a Tr[(Phi^T T_a Phi)^2]. Its stable points are not all
maxima of f: where the actions' spectra are ordered unlike, a subspace with a lesser vector may hold.

Nothing here is used by a run: as a forecaster of pass rates it is no better than the difficulty model
(`tests.benchmarks.bench_representation`). Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.difficulty.observations import Array, Indices

_STEPS, _STEP = 400, 0.5
_RIDGE = 1.0
_NEWTON = 30


def flow(phi: Array, matrices: Array) -> Array:
    """Return [features, size] dPhi.

    Args:
        phi: [features, size] with orthonormal columns. matrices: [actions, features, features] T_a.
    """
    images = matrices @ phi
    predictors = phi.T @ images
    residuals = images - phi @ predictors
    return np.asarray((residuals @ predictors.transpose(0, 2, 1)).mean(axis=0))


def objective(phi: Array, matrices: Array) -> float:
    """Return f = mean_a Tr[(Phi^T T_a Phi)^2]."""
    predictors = phi.T @ matrices @ phi
    return float(np.trace(predictors @ predictors, axis1=1, axis2=2).mean())


def follow(phi: Array, matrices: Array, steps: int = _STEPS, step: float = _STEP) -> Array:
    """Return Phi after so many steps of the flow, by Runge and Kutta's fourth order."""
    for _ in range(steps):
        first = flow(phi, matrices)
        second = flow(phi + step / 2 * first, matrices)
        third = flow(phi + step / 2 * second, matrices)
        fourth = flow(phi + step * third, matrices)
        phi = phi + step / 6 * (first + 2 * second + 2 * third + fourth)
    return phi


@dataclass(frozen=True, slots=True)
class Forecaster:
    """What transitions told: features made white, an encoder, and per action a logistic readout of the next pass rate.

    Args:
        mean, whitening: of the features. phi: [features, size]. readouts: [actions, size + 1], the last a constant.
    """

    mean: Array
    whitening: Array
    phi: Array
    readouts: Array

    def logits(self, features: Array, actions: Indices) -> Array:
        """Return [problems] the log-odds of the next version's pass rates.

        Args:
            features: [problems, features]. actions: [problems] of 0 … actions - 1.
        """
        codes = _with_constant((features - self.mean) @ self.whitening @ self.phi)
        return np.asarray((codes * self.readouts[actions]).sum(axis=1))


def learn(
    features: Array, actions: Indices, after: Array, correct: Indices, judged: Indices, size: int | None, seed: int = 0
) -> Forecaster:
    """Return the forecaster of these transitions.

    Args:
        features, after: [transitions, features] at a version and at the next. actions: [transitions] of 0, 1, ….
        correct, judged: [transitions] attempts at the next version, which the readout foretells.
        size: of the representation; None takes the white features as they are, without an encoder.
    """
    mean = features.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(features - mean, rowvar=False))
    kept = values > 1e-9 * values.max()
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    x, y = (features - mean) @ whitening, (after - mean) @ whitening
    count = int(actions.max()) + 1
    matrices = np.stack([x[actions == a].T @ y[actions == a] / max(1, (actions == a).sum()) for a in range(count)])
    phi = np.eye(x.shape[1])
    if size is not None:
        start = np.linalg.qr(np.random.default_rng(seed).normal(size=(x.shape[1], size)))[0]
        phi = follow(start, matrices / max(np.abs(matrices).sum(axis=2).max(), 1.0))
    codes = _with_constant(x @ phi)
    readouts = np.stack(
        [_logistic(codes[actions == a], correct[actions == a], judged[actions == a]) for a in range(count)]
    )
    return Forecaster(mean, whitening, phi, readouts)


def _with_constant(codes: Array) -> Array:
    return np.concatenate([codes, np.ones((len(codes), 1))], axis=1)


def _logistic(codes: Array, correct: Indices, judged: Indices) -> Array:
    """Return the weights of a binomial regression by Newton's steps, with a small ridge."""
    weights, ridge = np.zeros(codes.shape[1]), _RIDGE * np.eye(codes.shape[1])
    for _ in range(_NEWTON):
        rates = 1 / (1 + np.exp(-np.clip(codes @ weights, -30, 30)))
        slope = codes.T @ (correct - judged * rates) - ridge @ weights
        curvature = (codes.T * (judged * rates * (1 - rates))) @ codes + ridge
        weights = weights + np.linalg.solve(curvature, slope)
    return weights
