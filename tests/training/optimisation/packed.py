"""Micro-batches of samples at once, for one process."""

from __future__ import annotations

from collections.abc import Sequence

from training.config import PackingSettings
from training.optimisation.packing import MicroBatch, TrainingSample, collate, plan_micro_batches


def pack_samples(samples: Sequence[TrainingSample], settings: PackingSettings) -> list[MicroBatch]:
    """Return micro-batches that hold every sample once."""
    plan = plan_micro_batches(samples, settings)
    return [collate([samples[index] for index in indices], tuple(indices)) for indices in plan]
