"""Attempts of simulated policies, whose abilities and differences are known."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

COUNTS = pl.Schema({"problem": pl.String(), "policy": pl.String(), "correct": pl.Int64(), "judged": pl.Int64()})


def counts_of(rows: Iterable[tuple[str, str, int, int]]) -> pl.DataFrame:
    """(problem, policy, correct, judged) as a frame."""
    return pl.DataFrame(list(rows), schema=COUNTS, orient="row")


def simulated_rates(
    problems: int,
    abilities: Mapping[str, float],
    concentration: float | None,
    seed: int,
    slopes: Sequence[float] = (1.0,),
) -> dict[str, np.ndarray]:
    """The true pass rates of each policy at problems of N(0, 2.5^2) difficulty; None: as the mean says."""
    rng = np.random.default_rng(seed)
    difficulty, slope = rng.normal(0, 2.5, problems), rng.choice(slopes, problems)
    rates = {}
    for name, ability in abilities.items():
        mean = 1 / (1 + np.exp(-slope * (ability - difficulty)))
        rates[name] = mean if concentration is None else rng.beta(mean * concentration, (1 - mean) * concentration)
    return rates


def simulated(
    problems: int,
    abilities: Mapping[str, float],
    attempts: int,
    concentration: float | None,
    seed: int,
    slopes: Sequence[float] = (1.0,),
) -> pl.DataFrame:
    """Counts of all attempts of each policy at each problem."""
    rng = np.random.default_rng(seed + 1)
    rates = simulated_rates(problems, abilities, concentration, seed, slopes)
    frames = [
        pl.DataFrame(
            {
                "problem": [f"p{number:04}" for number in range(problems)],
                "policy": [name] * problems,
                "correct": rng.binomial(attempts, rate),
                "judged": [attempts] * problems,
            },
            schema=COUNTS,
        )
        for name, rate in rates.items()
    ]
    return pl.concat(frames)
