"""Draw problems for the next groups.

Invariants: draws depend only on the seed and `DrawCounts`. Of k draws, each passive pool gets floor(k * share), or one
less.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from training.rollouts.curriculum.pools import Pool

PROBE_SHARE = 0.02
"""Share of the groups that are drawn from the retired."""

RETRY_SHARE = 0.05
"""Share of the groups that are drawn from the deferred."""


@dataclass(slots=True)
class DrawCounts:
    """Groups drawn in all and from each pool; part of a checkpoint."""

    total: int = 0
    by_pool: dict[str, int] = field(default_factory=lambda: {pool.value: 0 for pool in Pool})


def draw_from_pools(
    members: Mapping[Pool, Sequence[str]],
    counts: DrawCounts,
    seed: int,
) -> str:
    """Draw the next problem and advance ``counts``.

    Args:
        members: problems by pool, in a fixed order.

    Raises:
        ValueError: there is no problem.
    """
    shares = ((Pool.RETIRED, PROBE_SHARE), (Pool.DEFERRED, RETRY_SHARE))
    due_pools = [pool for pool, share in shares if int((counts.total + 1) * share) > counts.by_pool[pool]]
    for pool in (*due_pools, Pool.ACTIVE, Pool.DEFERRED, Pool.RETIRED):
        if members[pool]:
            problem = _walk(members[pool], counts.by_pool[pool], f"{seed}:{pool}")
            counts.total += 1
            counts.by_pool[pool] += 1
            return problem
    raise ValueError("no problem in any pool")


def _walk(names: Sequence[str], count: int, seed: str) -> str:
    """Return the ``count``-th problem of repeated passes, each in a new order."""
    turn, position = divmod(count, len(names))
    return _order(tuple(names), f"{seed}:{turn}")[position]


@functools.lru_cache(maxsize=8)
def _order(names: tuple[str, ...], seed: str) -> list[str]:
    return sorted(names, key=lambda name: hashlib.blake2b(f"{seed}:{name}".encode()).digest())
