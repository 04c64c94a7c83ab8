"""Distribute micro-batches over ranks, whose rounds each last as long as their largest micro-batch."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from training.config import PackingSettings
from training.optimisation.packing import TrainingSample

ROUNDS_EVENED = 6
"""How many of the last rounds are tried to be evened out, besides all of them."""


def deal_samples(
    samples: Sequence[TrainingSample], micro_batches: Sequence[Sequence[int]], ranks: int, settings: PackingSettings
) -> list[list[list[int]]]:
    """Return the sample indices of each rank's micro-batches."""
    lengths = [sample.length for sample in samples]
    prompts = [tuple(sample.prompt_ids) for sample in samples] if ranks > 1 else None
    return distribute_micro_batches(micro_batches, lengths, ranks, settings.micro_batch_tokens, prompts)


def distribute_micro_batches(
    micro_batches: Sequence[Sequence[int]],
    lengths: Sequence[int],
    ranks: int,
    room: int,
    prompts: Sequence[object] | None = None,
) -> list[list[list[int]]]:
    """Return equally many micro-batches for each rank, with nearly equal work per round.

    Equal ``prompts`` stay together if possible. Some may be empty; ranks must run a sample of weight 0 for them. Only a
    single sequence may exceed ``room``. The result is deterministic.
    """
    parts = sorted(map(list, micro_batches), key=lambda part: -_load(part, lengths))
    if ranks == 1:
        return [parts]
    rounds = max(-(-len(parts) // ranks), 1)
    while not (dealt := _ways_to_deal(parts, lengths, ranks, rounds, room, prompts)):
        rounds += 1
    best = min(dealt, key=lambda way: (way.count([]), _tokens_waited_for(way, lengths, ranks)))
    shares: list[list[list[int]]] = [[] for _ in range(ranks)]
    for place, part in enumerate(best):
        turn, seat = divmod(place, ranks)
        shares[seat if turn % 2 == 0 else ranks - 1 - seat].append(part)
    return shares


def _ways_to_deal(
    parts: list[list[int]],
    lengths: Sequence[int],
    ranks: int,
    rounds: int,
    room: int,
    prompts: Sequence[object] | None,
) -> list[list[list[int]]]:
    """Return candidate lists of ``ranks * rounds`` micro-batches, fullest first."""
    ways = []
    by_longest = sorted(parts, key=lambda part: -max((lengths[index] for index in part), default=0))
    numbers = sorted({0, *range(max(rounds - ROUNDS_EVENED, 0), rounds)})
    for order, kept in [(parts, kept) for kept in numbers] + [(by_longest, kept) for kept in numbers if kept]:
        rest = order[kept * ranks :]
        single = [[index] for part in rest for index in part]
        whole = [piece for part in rest for piece in _pieces(part, prompts)] if prompts is not None else single
        for pieces in (whole, single):
            evened = _evened(pieces, lengths, (rounds - kept) * ranks)
            if all(len(part) < 2 or _load(part, lengths) <= room for part in evened):
                ways.append(sorted(order[: kept * ranks] + evened, key=lambda part: -_load(part, lengths)))
                break
    return ways


def _pieces(part: Sequence[int], prompts: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for index in part:
        groups.setdefault(prompts[index], []).append(index)
    return list(groups.values())


def _evened(pieces: Sequence[list[int]], lengths: Sequence[int], count: int) -> list[list[int]]:
    """Return ``count`` micro-batches by longest processing time first."""
    loads = [(0, number) for number in range(count)]
    parts: list[list[int]] = [[] for _ in range(count)]
    sizes = [_load(piece, lengths) for piece in pieces]
    for place in sorted(range(len(pieces)), key=lambda place: -sizes[place]):
        load, number = loads[0]
        parts[number] += pieces[place]
        heapq.heapreplace(loads, (load + sizes[place], number))
    return parts


def _load(part: Sequence[int], lengths: Sequence[int]) -> int:
    return lengths[part[0]] if len(part) == 1 else sum([lengths[index] for index in part])


def _tokens_waited_for(parts: Sequence[Sequence[int]], lengths: Sequence[int], ranks: int) -> int:
    """Return the sum of each round's largest micro-batch; ``parts`` must be sorted."""
    return sum(_load(parts[place], lengths) for place in range(0, len(parts), ranks))


def waiting_share(shares: Sequence[Sequence[Sequence[int]]], lengths: Sequence[int]) -> float:
    """Return the share of the ranks' time, measured in tokens, spent waiting."""
    rounds = zip(*shares, strict=True)
    longest = sum(max(_load(part, lengths) for part in at_once) for at_once in rounds)
    return 1 - sum(lengths) / (len(shares) * longest) if longest else 0.0
