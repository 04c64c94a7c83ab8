"""What verl's real trainer lacks on a machine without GPUs, given to it by its own points of extension.

    a platform (`verl.plugin.platform`)            the CPU, with gloo; Ray is told of GPUs that are not there
    a rollout server and its adapter               torch instead of vLLM, registered under vLLM's name
    a checkpoint engine                            weights in a file, registered in the place of nccl's

verl loads this module in each of its processes by an entry point of the group `verl.plugins`, which
`tests.training.engines.verl.cpu_environment` puts into an environment over verl's own. Everything else of a run is
what is shipped.
"""

from __future__ import annotations

from tests.training.engines.verl.on_cpu import cpu_platform, rollout, weights

__all__ = ["cpu_platform", "rollout", "weights"]
