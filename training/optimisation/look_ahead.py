"""Distribute micro-batches evenly over ranks, and collate them on a thread, a few rounds ahead.

Invariants: rounds depend only on samples, packing and ranks. A failure is raised where its round is taken.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from training.config import PackingSettings
from training.optimisation.packing import MicroBatch, TrainingSample, collate, plan_micro_batches

LOOK_AHEAD = 2
"""Rounds collated ahead."""


class Collation:
    """A minibatch on its way to the ranks, in rounds of one micro-batch per rank.

    ``shares`` holds the sample indices of each rank's micro-batches; an empty one gets a sample of weight 0.
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
        """Return an iterator over rounds, made on a thread."""
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


def distribute_micro_batches(
    micro_batches: Sequence[Sequence[int]],
    lengths: Sequence[int],
    ranks: int,
    room: int,
    prompts: Sequence[object],
) -> list[list[list[int]]]:
    """Return the sample indices of each rank's micro-batches, equally many with nearly equal work per round.

    Equal ``prompts`` stay together if possible; only a single sequence may exceed ``room``. Ranks must run a sample of
    weight 0 for an empty micro-batch.
    """
    if ranks == 1:
        return [sorted(map(list, micro_batches), key=lambda part: -_load(part, lengths))]
    together = [group for part in micro_batches for group in _by_prompt(part, prompts)]
    single = [[index] for part in micro_batches for index in part]
    rounds = max(-(-len(micro_batches) // ranks), 1)
    while True:
        for pieces in (together, single):
            parts = _evened(pieces, lengths, ranks * rounds)
            if all(len(part) < 2 or _load(part, lengths) <= room for part in parts):
                shares: list[list[list[int]]] = [[] for _ in range(ranks)]
                for place, part in enumerate(parts):
                    turn, seat = divmod(place, ranks)
                    shares[seat if turn % 2 == 0 else ranks - 1 - seat].append(part)
                return shares
        rounds += 1


def _by_prompt(part: Sequence[int], prompts: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for index in part:
        groups.setdefault(prompts[index], []).append(index)
    return list(groups.values())


def _evened(pieces: Sequence[list[int]], lengths: Sequence[int], count: int) -> list[list[int]]:
    """Fill ``count`` micro-batches, largest piece first; return the fullest first."""
    loads = [(0, number) for number in range(count)]
    parts: list[list[int]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda piece: -_load(piece, lengths)):
        load, number = loads[0]
        parts[number] += piece
        heapq.heapreplace(loads, (load + _load(piece, lengths), number))
    return sorted(parts, key=lambda part: -_load(part, lengths))


def _load(part: Sequence[int], lengths: Sequence[int]) -> int:
    return sum([lengths[index] for index in part])
