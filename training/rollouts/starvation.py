"""Whether a collector's bounds will starve its generators: simulated before a run, in a second, by the real scheduler.

A batch waits for its slowest due group, and admission stops at ``max_staleness`` and at the queue's end. Where that
admits too few rollouts, places of the n_async stay empty however fast the trainer is. How many depends on how lengths
spread, which nobody knows beforehand: so two spreads are simulated (`LENGTHS`), with an instant trainer and verifier.
What is left idle then is the bounds' doing alone, and no engine can mend it.

Invariants: a pure function of the settings, the same on every machine; sizes beyond `PLACES` are simulated smaller, in
the same proportions. A synchronous collector (max_staleness = 0) idles on purpose and gets no warning.

Not here: the simulation (`training.rollouts.simulation`), and what the paper advises (`CollectorSettings.warnings`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from functools import lru_cache

from training.config import CollectorSettings
from training.rollouts.curriculum.settings import CurriculumSettings
from training.rollouts.simulation import SimulationCosts, simulate_asynchronous

PLACES = 256
"""Places of a simulated collector at most, or four groups where those are more."""

WORTH_SAYING = 0.05
"""Idle share of narrow lengths that is told of."""

WORTH_SAYING_HEAVY = 0.2
"""Idle share of wide lengths that is told of."""

BATCHES, WARMUP = 24, 8
_MOST_STALENESS = 64


def narrow_lengths(seed: int, group_size: int) -> Callable[[], int]:
    """Return a draw of lengths spread evenly between 1 and 5 times the shortest."""
    chance, _ = random.Random(seed), group_size
    return lambda: chance.randint(200, 1000)


def wide_lengths(seed: int, group_size: int) -> Callable[[], int]:
    """Return a draw of log-normal lengths (sigma .7), half of whose variance is the problem's, cut at 8 times the mean.

    Eight times is what the paper's limits allow: responses of 5,000 tokens in the mean, of 40,000 at most.
    """
    chance, drawn, ours = random.Random(seed), 0, 0.0

    def draw() -> int:
        nonlocal drawn, ours
        if drawn % group_size == 0:
            ours = chance.gauss(0, 0.5)
        drawn += 1
        return min(int(300 * math.exp(ours + chance.gauss(0, 0.5))) + 1, 8 * 385)

    return draw


LENGTHS: Mapping[str, Callable[[int, int], Callable[[], int]]] = {"narrow": narrow_lengths, "wide": wide_lengths}
"""Spreads of lengths, by name: a seed and the group's size in, a draw out."""


def scaled_down(settings: CollectorSettings) -> CollectorSettings:
    """Return a collector of at most `PLACES` places in the same proportions; batches are whole groups, two at least."""
    group = settings.group_size
    share = max(PLACES, 4 * group) / settings.n_async
    if share >= 1:
        return settings
    n_batch = max(round(settings.n_batch * share / group), 1) * group
    places = max(round(settings.n_async * n_batch / settings.n_batch), 1)
    return settings.model_copy(update={"n_async": places, "n_batch": n_batch, "n_minibatch": None})


@lru_cache(maxsize=256)
def _idle(sizes_json: str, lengths: str) -> float:
    sizes = CollectorSettings.model_validate_json(sizes_json)
    instant = SimulationCosts(train_ticks=0.0, verify_ticks=0.0, update_ticks=0.0)
    draw = LENGTHS[lengths](0, sizes.group_size)
    return simulate_asynchronous(sizes, draw, batches=BATCHES, warmup=WARMUP, costs=instant).generator_idle


def simulated_idle(settings: CollectorSettings, lengths: str) -> float:
    """Return the share of their time that places idle with an instant trainer, for one of the spreads in `LENGTHS`."""
    return _idle(scaled_down(settings).model_dump_json(), lengths)


def starvation_warning(settings: CollectorSettings) -> str | None:
    """Return what the bounds will cost and which would not, in one sentence; None where it is little."""
    if settings.max_staleness == 0:
        return None
    narrow, wide = (simulated_idle(settings, name) for name in LENGTHS)
    if narrow < WORTH_SAYING and wide < WORTH_SAYING_HEAVY:
        return None
    return (
        f"generators will wait for groups to finish: with max_staleness = {settings.max_staleness}, n_async = "
        f"{settings.n_async} and n_batch = {settings.n_batch}, simulated ones idle {narrow:.0%} of their time where "
        f"lengths spread from 1 to 5, {wide:.0%} where they are log-normal up to 8 times the mean, however fast the "
        f"trainer is; {_advice(settings)}."
    )


def collector_warnings(settings: CollectorSettings, curriculum: CurriculumSettings | None = None) -> tuple[str, ...]:
    """Return all that is to be said of a collector before a run: what the paper advises against, and starvation.

    The stages of the run's ``curriculum`` may set other sizes; what was said of some is not said again.
    """
    advice, starving = settings.warnings(), {starvation_warning(settings): ""}
    for number, stage in enumerate(curriculum.stages if curriculum is not None else (), 1):
        sizes = {"n_async": stage.n_async or settings.n_async, "n_batch": stage.n_batch or settings.n_batch}
        settings = settings.model_copy(update={**sizes, "n_minibatch": None})
        starving.setdefault(starvation_warning(settings), f"stage {number}: ")
    return (*advice, *(where + said for said, where in starving.items() if said is not None))


def _advice(settings: CollectorSettings) -> str:
    """Return the smallest bounds tried under which little is idle, or the fewest places where no bound helps."""

    def little(one: CollectorSettings) -> bool:
        return simulated_idle(one, "narrow") < WORTH_SAYING and simulated_idle(one, "wide") < WORTH_SAYING_HEAVY

    staleness = 2 * settings.max_staleness
    while staleness <= _MOST_STALENESS:
        if little(settings.model_copy(update={"max_staleness": staleness})):
            return f"max_staleness = {staleness} would do"
        staleness *= 2
    places = settings.n_async // 2
    while places >= settings.group_size:
        if little(settings.model_copy(update={"n_async": places})):
            return f"n_async = {places} would do"
        places //= 2
    return "lower n_async"
