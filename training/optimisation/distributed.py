"""Coordinate the trainer's processes: rank 0 runs the loop and starts tasks of all ranks."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from curation.records import GoldilocksError
from training.config import ComputeSettings

if TYPE_CHECKING:
    from training.optimisation.packing import Collation

RankTask = Callable[[Any, Any], Any]
"""Takes an iterator over this rank's shares, and a common value."""

_STOP = "stop"
_NOT_MADE = "not made"

CPU_THREADS = 1
"""Torch's threads on a CPU; more change the rounding of sums."""

TASK_TIMEOUT = timedelta(minutes=15)
"""Max wait within a task."""

ANNOUNCEMENT_TIMEOUT = timedelta(days=7)
"""Max wait for rank 0's next task."""


class ShareNotMade(GoldilocksError):
    """Rank 0 failed to make a round's shares."""


class DistributedContext:
    """This process among the trainer's, with the GPU of its local rank."""

    def __init__(self, compute: ComputeSettings) -> None:
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        cuda = compute.device.startswith("cuda")
        local = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device(f"cuda:{local}" if cuda and self.world_size > 1 else compute.device)
        if cuda:
            torch.cuda.set_device(self.device)
        else:
            torch.set_num_threads(CPU_THREADS)
        self.sharded = self.world_size > 1 or compute.dtype != "float32"
        self._owner = self.sharded and not dist.is_initialized()
        if self._owner:
            backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
            if self.world_size > 1:
                dist.init_process_group(backend, timeout=TASK_TIMEOUT)
            else:
                dist.init_process_group(backend, store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
        if self.world_size > 1:
            self._announcements = dist.new_group(backend="gloo", timeout=ANNOUNCEMENT_TIMEOUT)

    @property
    def loading_device(self) -> str:
        """Return where to load a model: a single process's device, else the host on rank 0, ``meta`` on others."""
        if self.world_size == 1:
            return str(self.device)
        return "cpu" if self.is_rank_zero else "meta"

    @cached_property
    def background_group(self) -> dist.ProcessGroup | None:
        """Return a group for background work; all ranks must first access it together."""
        return dist.new_group(backend="gloo", timeout=ANNOUNCEMENT_TIMEOUT) if self.sharded else None

    @property
    def is_rank_zero(self) -> bool:
        return self.rank == 0

    def run_on_all_ranks(self, name: str, tasks: Mapping[str, RankTask], rounds: Collation | None, value: Any) -> Any:
        """Run a task on all ranks with their shares of ``rounds``; only rank 0 calls this, and gets its result."""
        with rounds.made() if rounds is not None else nullcontext() as made:
            if self.world_size == 1:
                return tasks[name](None if made is None else (shares[0] for shares in made), value)
            count = None if rounds is None else len(rounds)
            dist.broadcast_object_list([(name, count, value)], src=0, group=self._announcements)
            return tasks[name](None if count is None else self._scattered(name, count, made), value)

    def follow(self, tasks: Mapping[str, RankTask]) -> None:
        """Run the tasks that rank 0 announces until it closes."""
        while True:
            message: list[Any] = [None]
            dist.broadcast_object_list(message, src=0, group=self._announcements)
            name, count, value = message[0]
            if name == _STOP:
                return
            tasks[name](None if count is None else self._scattered(name, count), value)

    def _scattered(self, name: str, count: int, made: Iterator[list[Any]] | None = None) -> Iterator[Any]:
        for number in range(count):
            share: list[Any] = [None]
            shares: list[Any] | None = [_NOT_MADE] * self.world_size if made is not None else None
            try:
                shares = next(made) if made is not None else None
            finally:  # no rank waits for a share that never comes
                dist.scatter_object_list(share, shares, src=0)
            if share[0] == _NOT_MADE:
                raise ShareNotMade(f"rank 0 failed to make share {number} of task `{name}`; see its own error")
            yield share[0]

    def close(self) -> None:
        """Leave the process group; rank 0 ends the other ranks' `follow`."""
        if self.world_size > 1 and self.is_rank_zero:
            dist.broadcast_object_list([(_STOP, None, None)], src=0, group=self._announcements)
        if self._owner:
            dist.destroy_process_group()
            self._owner = False

    def all_reduce(self, values: Tensor, *, maximum: bool = False) -> Tensor:
        """Return the sum over all ranks, or the elementwise maximum."""
        if self.world_size > 1:
            dist.all_reduce(values, dist.ReduceOp.MAX if maximum else dist.ReduceOp.SUM)
        return values

    def gather(self, value: Any) -> list[Any]:
        """Return all ranks' objects on rank 0."""
        if self.world_size == 1:
            return [value]
        values: list[Any] | None = [None] * self.world_size if self.is_rank_zero else None
        dist.gather_object(value, values, dst=0)
        return values or []


def end_process(status: int) -> NoReturn:
    """End this process, without finalisation if there are several (pytorch/pytorch#179291)."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
