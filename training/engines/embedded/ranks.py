"""Run the embedded engine in one process, or in ranks of torchrun."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from curation.policies.vllm.placement import VISIBLE
from training.engines.placement import EmbeddedPlacement
from training.engines.processes import failure, run_processes

LOG = "ranks.txt"
"""In the run's folder: the output of its processes."""


def rank_command(placement: EmbeddedPlacement, module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that trains: the module itself, or torchrun with one rank per process."""
    if placement.processes == 1:
        return [sys.executable, "-m", module, *arguments]
    ranks = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={placement.processes}", "--tee=3"]
    return [sys.executable, "-m", "torch.distributed.run", *ranks, "-m", module, *arguments]


def rank_environment(placement: EmbeddedPlacement, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without another torchrun's, and with the visible GPUs."""
    others = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    kept = {name: value for name, value in variables.items() if name not in others}
    if placement.visible:
        kept[VISIBLE] = ",".join(placement.visible)
    return kept


def train_in_ranks(
    placement: EmbeddedPlacement,
    module: str,
    arguments: Sequence[str],
    out: Path,
    say: Callable[[str], None] | None = None,
) -> None:
    """Train in separate processes, whose output replaces the folder's `LOG`.

    Raises:
        EngineError: names the failed process and its last lines.
    """
    log = out / LOG
    log.unlink(missing_ok=True)  # what an earlier start said would be taken for this one's failure
    status = run_processes(
        rank_command(placement, module, arguments), rank_environment(placement, os.environ), log, say=say
    )
    if status:
        raise failure(f"training in {out}", status, log)
