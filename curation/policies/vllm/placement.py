"""GPUs of each engine, in equal shares."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from itertools import takewhile

from curation.config import TorchModel, VllmModel
from curation.config.policies import ModelSettings
from curation.records import PolicyError

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The environment variable of a process's visible GPUs."""

_LIST_S = 60.0


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs for this process."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        named = (name.strip() for name in visible.split(","))
        return tuple(takewhile(lambda name: name not in ("", "-1"), named))  # "-1" hides those after it
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_LIST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(listed.stdout.split()) if listed.returncode == 0 else ()


def policy_gpus(policy: ModelSettings, gpus: int) -> int:
    """Return how many GPUs a policy can use."""
    if isinstance(policy, VllmModel):
        return policy.tensor_parallel * policy.copies(gpus)
    return 1 if isinstance(policy, TorchModel) else max(1, gpus)


def gpu_shares(gpus: Sequence[str], engines: int, engine_gpus: int) -> list[tuple[str, ...]]:
    """Return each engine's GPUs, none without GPUs.

    Raises:
        PolicyError: there are too few.
    """
    if not gpus:
        return [()] * engines
    if engines * engine_gpus > len(gpus):
        raise PolicyError(
            f"{engines} engines of {engine_gpus} GPUs each need {engines * engine_gpus} GPUs, and this machine has "
            f"{len(gpus)}; start fewer."
        )
    return [tuple(gpus[n * engine_gpus : (n + 1) * engine_gpus]) for n in range(engines)]
