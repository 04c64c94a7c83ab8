"""A group of the trainer and the workers of one vLLM server, through which the trainer broadcasts weights.

`nccl` is vLLM's communicator between GPUs, `gloo` torch's between CPUs, for machines without GPUs. The trainer is rank
0 and listens; a server's workers follow in order.

There is no key: any process that reaches the port while a group opens may join it, so use addresses of a private
network.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

Backend = Literal["nccl", "gloo"]

SILENCE_S = 600.0
"""Seconds that gloo waits for the other ends, of a group that is opened or of a tensor; NCCL waits until its group is
closed.
"""


class Group:
    """One process's end of an open group.

    Raises:
        RuntimeError: of `open_group` and `broadcast`: another end is gone, or does not come.
    """

    def __init__(self, backend: Backend, end: Any) -> None:
        self._backend, self._end = backend, end

    def broadcast(self, tensor: Any) -> None:
        """Send a tensor from rank 0, or receive it in place; on a GPU it is queued on the current stream."""
        if self._end is None:
            raise RuntimeError("the group is closed")
        if self._backend == "nccl":
            self._end.broadcast(tensor, src=0)
        else:
            self._end.broadcast(tensor, 0).wait()

    def close(self) -> None:
        """Leave the group; whoever still waits for this end gets an error."""
        end, self._end = self._end, None
        if end is not None and self._backend == "nccl":
            end.destroy()
        elif end is not None:
            end.abort()


def open_group(backend: Backend, address: str, port: int, rank: int, world_size: int, device: int | None) -> Group:
    """Return an end of a group once all have come; rank 0 listens at the address.

    Args:
        device: number of the GPU that sends or receives; None with gloo.
    """
    if backend == "gloo":
        from vllm.distributed.utils import stateless_init_torch_distributed_process_group as join

        patience = timedelta(seconds=SILENCE_S)
        return Group("gloo", join(address, port, rank, world_size, "gloo", timeout=patience))
    from vllm.distributed.weight_transfer.nccl_common import stateless_init_process_group

    return Group("nccl", stateless_init_process_group(address, port, rank, world_size, device))
