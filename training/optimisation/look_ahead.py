"""Collate micro-batches on a thread of rank 0, a few rounds ahead.

Invariants: rounds depend only on samples, packing and ranks; at most `LOOK_AHEAD` wait to be taken.
A failure is raised where its round is taken; the thread ends with the block.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import torch

from training.config import PackingSettings
from training.optimisation.balancing import distribute_micro_batches
from training.optimisation.collating import collate
from training.optimisation.packing import MicroBatch, TrainingSample, plan_micro_batches

LOOK_AHEAD = 2
"""Rounds that may be ready before they are taken: enough, since collating one takes less time than training on one."""


class Collation:
    """A minibatch on its way to the ranks (see `RankRounds`).

    ``shares`` holds the sample indices of each rank's micro-batches; an empty one gets a sample of weight 0.

    Raises:
        PackingError: a sample is longer than a micro-batch.
    """

    def __init__(self, samples: Sequence[TrainingSample], settings: PackingSettings, ranks: int) -> None:
        self._samples = samples
        planned = plan_micro_batches(samples, settings)
        lengths, prompts = [one.length for one in samples], [tuple(one.prompt_ids) for one in samples]
        self.shares = distribute_micro_batches(planned, lengths, ranks, settings.micro_batch_tokens, prompts)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.shares[0])

    @contextmanager
    def made(self) -> Iterator[Iterator[list[MicroBatch]]]:
        """Return an iterator over rounds of one share per rank, made on a thread.

        Raises:
            PackingError: by the iterator, if samples do not fit together.
        """
        thread = ThreadPoolExecutor(1, "collation")
        try:
            yield self._ahead(thread)
        finally:
            thread.shutdown(cancel_futures=True)

    def _ahead(self, thread: ThreadPoolExecutor) -> Iterator[list[MicroBatch]]:
        left = iter(range(len(self)))
        pending = deque(thread.submit(self._round, number) for number in islice(left, LOOK_AHEAD))
        while pending:
            shares = pending.popleft().result()
            pending.extend(thread.submit(self._round, number) for number in islice(left, 1))
            yield shares

    def _round(self, number: int) -> list[MicroBatch]:
        return [self._collated(share[number]) for share in self.shares]

    def _collated(self, indices: Sequence[int]) -> MicroBatch:
        samples = [self._samples[index] for index in indices]
        if not samples:
            shortest = min(self._samples, key=lambda sample: sample.length)
            unmarked = [False] * len(shortest.response_ids)
            samples = [replace(shortest, advantage=0.0, token_weight=0.0, mask=unmarked)]
        return collate(samples, tuple(indices))


class Arrivals:
    """Iterate over a rank's micro-batches on its device; ``waited_s`` is the time spent waiting."""

    def __init__(self, shares: Iterator[MicroBatch], device: torch.device) -> None:
        self._shares, self._device, self.waited_s = shares, device, 0.0

    def __iter__(self) -> Iterator[MicroBatch]:
        """Return this."""
        return self

    def __next__(self) -> MicroBatch:
        """Return the next micro-batch."""
        begun = time.perf_counter()
        moved = next(self._shares).to(self._device)
        self.waited_s += time.perf_counter() - begun
        return moved
