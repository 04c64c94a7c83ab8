"""What torchrun starts in every process of a test of one step: the step, and what rank 0 found, written down.

Where a test compares gradients, no step clips them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.training.optimisation.test_trainer import recipe
from training.optimisation import trainer
from training.optimisation.distributed import DistributedContext


def unclipped() -> AbstractContextManager[Any]:
    """Return a block within which no gradient is clipped."""
    return mock.patch.object(trainer, "MAX_GRAD_NORM", 1e9)


def run_step(step: Callable[[DistributedContext, int], dict[str, Any] | None], out: Path, room: int = 60) -> None:
    """Take the step on all ranks; write gradient.pt and step.json on rank 0."""
    ranks = DistributedContext(recipe().compute)
    found = step(ranks, room)
    ranks.close()
    if found is not None:
        torch.save(found.pop("gradient"), out / "gradient.pt")
        (out / "step.json").write_text(json.dumps(found))
