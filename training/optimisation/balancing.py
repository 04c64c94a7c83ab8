"""Distribute micro-batches over ranks, whose rounds each last as long as their largest micro-batch."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def distribute_micro_batches(
    micro_batches: Sequence[Sequence[int]],
    lengths: Sequence[int],
    ranks: int,
    room: int,
    prompts: Sequence[object],
) -> list[list[list[int]]]:
    """Return the sample indices of each rank's micro-batches, equally many with nearly equal work per round.

    Samples of a micro-batch with equal ``prompts`` stay together if possible. Some micro-batches may be empty; ranks
    must run a sample of weight 0 for them. Only a single sequence may exceed ``room``. The result is deterministic.
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


def waiting_share(shares: Sequence[Sequence[Sequence[int]]], lengths: Sequence[int]) -> float:
    """Return the share of the ranks' time, measured in tokens, spent waiting."""
    rounds = zip(*shares, strict=True)
    longest = sum(max(_load(part, lengths) for part in at_once) for at_once in rounds)
    return 1 - sum(lengths) / (len(shares) * longest) if longest else 0.0


def _by_prompt(part: Sequence[int], prompts: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for index in part:
        groups.setdefault(prompts[index], []).append(index)
    return list(groups.values())


def _evened(pieces: Sequence[list[int]], lengths: Sequence[int], count: int) -> list[list[int]]:
    """Return ``count`` micro-batches by longest processing time first, the fullest first."""
    loads = [(0, number) for number in range(count)]
    parts: list[list[int]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda piece: -_load(piece, lengths)):
        load, number = loads[0]
        parts[number] += piece
        heapq.heapreplace(loads, (load + _load(piece, lengths), number))
    return sorted(parts, key=lambda part: -_load(part, lengths))


def _load(part: Sequence[int], lengths: Sequence[int]) -> int:
    return sum([lengths[index] for index in part])
