"""Writes a Slurm script or a Kubernetes manifest that restarts a run after a lost node."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.records import ConfigError

GRACE_S = 120
"""Seconds between the signal to end and the kill."""

RESTARTS = 20
"""Max restarts by Kubernetes after lost pods."""

MOUNT = "/workspace"
IMAGE = "goldilocks:latest"
CLAIM = "goldilocks"


@dataclass(frozen=True, slots=True)
class Launch:
    """A `goldilocks run` or `train` on one node's GPUs.

    Example: ``Launch("run", "my-set", Path("my_set.toml"), Path("runs/my-set"), 8, ("seed=1",))``
    """

    subcommand: str
    name: str
    recipe: Path
    out: Path
    gpus: int
    overrides: Sequence[str] = ()
    trainer_gpus: int | None = None

    @property
    def command(self) -> list[str]:
        """Return the words of the command."""
        words = ["goldilocks", self.subcommand, str(self.recipe), "--gpus", str(self.gpus), "--out", str(self.out)]
        if self.trainer_gpus is not None:
            words += ["--trainer-gpus", str(self.trainer_gpus)]
        return words + [word for override in self.overrides for word in ("--set", override)]


def slurm_script(launch: Launch) -> str:
    """Return a batch script for ``sbatch FILE``."""
    return f"""\
#!/bin/bash
#SBATCH --job-name=goldilocks-{launch.name}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node={launch.gpus}
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=goldilocks-{launch.name}-%j.log
#SBATCH --signal=TERM@{GRACE_S}
# Add --partition, --account and --time as your cluster wants them. Submit it where the recipe's paths hold:
# the run folder must be visible to all nodes, because a preempted run resumes there.
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
srun --kill-on-bad-exit=1 {shlex.join(launch.command)}
"""


def kubernetes_manifest(launch: Launch) -> str:
    """Return a JobSet with one pod, for ``kubectl apply -f FILE``.

    Users change `IMAGE`, with Goldilocks and vLLM, and `CLAIM`, the volume at `MOUNT` with all files.

    Raises:
        ConfigError: the name is invalid in Kubernetes, or a path is outside the volume.
    """
    import yaml

    for path in (launch.recipe, launch.out):
        if path.is_absolute() and not path.is_relative_to(MOUNT):
            raise ConfigError(
                f"--batch kubernetes: {path} is outside of the volume; give a path relative to its root, {MOUNT}."
            )
    resources = {"nvidia.com/gpu": launch.gpus}
    container = {
        "name": "run",
        "image": IMAGE,
        "command": launch.command,
        "workingDir": MOUNT,
        "resources": {"limits": resources, "requests": dict(resources)},
        "volumeMounts": [{"name": "work", "mountPath": MOUNT}, {"name": "memory", "mountPath": "/dev/shm"}],
    }
    pod = {
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [container],
        "volumes": [
            {"name": "work", "persistentVolumeClaim": {"claimName": CLAIM}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
        ],
    }
    job = {"parallelism": 1, "completions": 1, "backoffLimit": RESTARTS, "template": {"spec": pod}}
    manifest: dict[str, Any] = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": _kubernetes_name(launch.name)},
        "spec": {
            "failurePolicy": {"maxRestarts": RESTARTS},
            "replicatedJobs": [{"name": "run", "replicas": 1, "template": {"spec": job}}],
        },
    }
    return str(yaml.safe_dump(manifest, sort_keys=False, width=120))


def _kubernetes_name(name: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"goldilocks-{words}"[:50].rstrip("-")


BATCH_FILES: Mapping[str, Callable[[Launch], str]] = {"slurm": slurm_script, "kubernetes": kubernetes_manifest}
"""By `--batch`."""
