"""Micro-batches collated while those before them are trained on.

Collating reads every token of the samples, on rank 0, which has them: seconds for a batch of many million tokens. So a
thread there collates a few rounds ahead of the step, and the step waits for the first alone. With several ranks each
round is sent when it is taken: rank 0 gathers arrays of 8 bytes a token (`training.optimisation.collating`), and each
rank makes its own micro-batch of them.

Invariants: what is collated, and in which order it is taken, depends on nothing but samples, packing and ranks. At most
`LOOK_AHEAD` rounds are made and not taken. A failure of the thread is raised by whoever takes the round, on all ranks
at the same one. When the taking ends, in whatever way, so has the thread.

Not here: what is done with a micro-batch (`training.optimisation.trainer`).
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import torch

from training.config import PackingSettings
from training.optimisation.balancing import deal_samples
from training.optimisation.collating import SampleArrays, gather
from training.optimisation.packing import MicroBatch, TrainingSample, plan_micro_batches

LOOK_AHEAD = 2
"""Rounds that may be ready before they are taken: enough, since collating one takes less time than training on one."""

Share = MicroBatch | bytes
"""A rank's part of a round: the micro-batch, or the pickled `SampleArrays` that it is made of."""


class Collation:
    """A minibatch on its way to the ranks (`training.optimisation.distributed.RankRounds`).

    Args:
        samples: those of all ranks.
        settings: how they are packed.
        ranks: how many there are.

    ``shares`` holds, for each rank, the indices of the samples in its micro-batches. An empty micro-batch is made of a
    sample that does not count.

    Raises:
        PackingError: a sample is longer than a micro-batch.
    """

    def __init__(self, samples: Sequence[TrainingSample], settings: PackingSettings, ranks: int) -> None:
        self._samples, self._settings, self._ranks = samples, settings, ranks
        self.shares = deal_samples(samples, plan_micro_batches(samples, settings), ranks, settings)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.shares[0])

    @contextmanager
    def made(self) -> Iterator[Iterator[list[Share]]]:
        """Return the rounds, each a share for each rank, made on a thread until the block ends.

        Raises:
            PackingError: by the iterator; samples do not go together.
        """
        thread = ThreadPoolExecutor(1, "collation")
        try:
            yield self._ahead(thread)
        finally:
            thread.shutdown(cancel_futures=True)

    def _ahead(self, thread: ThreadPoolExecutor) -> Iterator[list[Share]]:
        left = iter(range(len(self)))
        pending = deque(thread.submit(self._round, number) for number in islice(left, LOOK_AHEAD))
        while pending:
            shares = pending.popleft().result()
            pending.extend(thread.submit(self._round, number) for number in islice(left, 1))
            yield shares

    def _round(self, number: int) -> list[Share]:
        arrays = [self._gathered(share[number]) for share in self.shares]
        if self._ranks == 1:
            return [one.micro_batch() for one in arrays]
        return [pickle.dumps(one, pickle.HIGHEST_PROTOCOL) for one in arrays]

    def _gathered(self, indices: Sequence[int]) -> SampleArrays:
        samples = [self._samples[index] for index in indices]
        if not samples:
            shortest = min(self._samples, key=lambda sample: sample.length)
            unmarked = [False] * len(shortest.response_ids)
            samples = [replace(shortest, advantage=0.0, token_weight=0.0, mask=unmarked)]
        return gather(samples, tuple(indices))


class Arrivals:
    """A rank's micro-batches on its device, as they come; ``waited_s`` are the seconds that the taking took.

    Args:
        shares: see `Collation`.
        device: the rank's.
    """

    def __init__(self, shares: Iterator[Share], device: torch.device) -> None:
        self._shares, self._device, self.waited_s = shares, device, 0.0

    def __iter__(self) -> Iterator[MicroBatch]:
        """Return this."""
        return self

    def __next__(self) -> MicroBatch:
        """Return the next micro-batch."""
        begun = time.perf_counter()
        share = next(self._shares)
        part = share if isinstance(share, MicroBatch) else _unpickled(share).micro_batch()
        moved = part.to(self._device)
        self.waited_s += time.perf_counter() - begun
        return moved


def _unpickled(share: bytes) -> SampleArrays:
    arrays: SampleArrays = pickle.loads(share)
    return arrays
