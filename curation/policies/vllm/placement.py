"""Which GPUs each engine gets: the machine's GPUs in equal shares of neighbours. Pure, but for `visible_gpus`.

Invariants:
  - no GPU belongs to two shares, and each share has exactly as many GPUs as an engine's layers are spread over;
  - shares are neighbours in the machine's own order, in which GPUs that are joined closely stand side by side;
  - what `CUDA_VISIBLE_DEVICES` hides from a run is nobody's.

On a machine without GPUs an engine's share is empty, and as many engines start as the recipe says.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal

from curation.config import TorchPolicySettings, VllmPolicy
from curation.config.policies import ModelSettings
from curation.records import PolicyError

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The environment variable that says which GPUs a process sees."""

_LIST_S = 60.0
"""Seconds that the driver may take to list its GPUs."""


def visible_gpus(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` takes them.

    Args:
        environment: that of this process where absent.
    """
    said = (os.environ if environment is None else environment).get(VISIBLE)
    if said is not None:
        return visible_names(said)
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


def visible_names(said: str) -> tuple[str, ...]:
    """Return the GPUs that a value of `CUDA_VISIBLE_DEVICES` names; those behind a ``-1`` do not count."""
    names: list[str] = []
    for name in said.split(","):
        if name.strip() in ("", "-1"):
            break
        names.append(name.strip())
    return tuple(names)


def replica_count(replicas: int | Literal["auto"], engine_gpus: int, gpus: int) -> int:
    """Return how many engines to start.

    Args:
        replicas: as the recipe says; ``auto``: as many as the GPUs are enough for, one where there are none.
        engine_gpus: GPUs of one engine.
        gpus: how many the machine has.
    """
    if replicas == "auto":
        return max(1, gpus // engine_gpus)
    return replicas


def policy_gpus(policy: ModelSettings, gpus: int) -> int:
    """Return how many GPUs a policy keeps busy on a machine that has so many.

    Servers elsewhere are taken to have them all; attempts of a file, which need none, too.
    """
    if isinstance(policy, VllmPolicy):
        return policy.engine_gpus * replica_count(policy.replicas, policy.engine_gpus, gpus)
    return 1 if isinstance(policy, TorchPolicySettings) else max(1, gpus)


def gpu_shares(gpus: Sequence[str], replicas: int, engine_gpus: int) -> list[tuple[str, ...]]:
    """Return the GPUs of each engine; empty shares where the machine has no GPU.

    Raises:
        PolicyError: there are GPUs, and not enough.
    """
    if not gpus:
        return [()] * replicas
    if replicas * engine_gpus > len(gpus):
        raise PolicyError(
            f"replicas = {replicas} of {engine_gpus} GPUs each need {replicas * engine_gpus} GPUs, "
            f'and this machine has {len(gpus)}; lower replicas, or write replicas = "auto".'
        )
    return [tuple(gpus[n * engine_gpus : (n + 1) * engine_gpus]) for n in range(replicas)]
