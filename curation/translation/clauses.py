"""Whether a clause only moved to another place of its sentence, and took its names and numbers along.

"How many have A, B and C if C has 20?" may be asked as "If C has 20, how many have A, B and C?". Names and numbers, in
their order, are then those of the original with two neighbouring runs exchanged. Two that changed places by themselves
are never that: runs of one thing each do not count. Outside of questions two names and a number do not count either:
"A owes B 20" and "B owes 20 to A" look the same.

Invariants: pure functions over the things in their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

_FEWEST = 3
"""Things in the two runs together; two alone may as well be an exchange."""


def clause_moved(
    before: Sequence[Hashable], after: Sequence[Hashable], fewest: int = _FEWEST, shortest: int = 1
) -> bool:
    """Return whether two neighbouring runs have changed places, and everything else has kept its own.

    Args:
        fewest: things in the two runs together.
        shortest: things in the shorter run.

    >>> clause_moved(["A", "B", "C", "C", 20], ["C", 20, "A", "B", "C"])
    True
    >>> clause_moved(["A", 5, "B", 3], ["A", 3, "B", 5])
    False
    """
    if len(before) != len(after):
        return False
    differ = [at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    if not differ:
        return False
    # A run may begin or end with what stands there on both sides, so that the part that differs is a little short.
    for start in range(differ[0] + 1):
        for end in range(differ[-1] + 1, len(before) + 1):
            mine, others = list(before[start:end]), list(after[start:end])
            if len(mine) >= fewest and len(set(mine)) > 1:
                turned = (mine[cut:] + mine[:cut] for cut in range(shortest, len(mine) - shortest + 1))
                if any(run == others for run in turned) and len(set(mine)) >= fewest:
                    return True
    return False
