"""The anchor of a refresh: how strong a policy is that has judged few problems, and what that says of all others.

The item response model is fitted on the anchor's problems first, for only there two policies meet, and on others as far
as its size allows; then it must bear itself out on the anchor, where what it would have expected is compared with what
was seen. Where it does not, nothing may be concluded from the model; then the anchor's own old and new decisions tell
which old ones stand (`observed_changes`).

Pure functions over frames. Not here: who is the anchor, and what is done with the probabilities
(`curation.difficulty.refresh`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.item_response import MOST_PROBLEMS, ItemResponseModel, fit
from curation.difficulty.posteriors import SIDES, Calibration, band_sides, calibration
from curation.difficulty.refresh import expected_side

_HELD_TO_SIDE = 10.0

_FEW = 2_000
"""So many of the anchor's problems tell enough; with fewer, others are drawn too."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the anchor tells.

    Args:
        policy: who judged it; ``before`` is who judged the set.
        problems: how many are its problems.
        shift: by how many logits the policy is stronger; None where ``before`` made no attempt that is known.
    """

    policy: str
    before: str
    problems: int
    shift: float | None
    calibration: Calibration
    model: ItemResponseModel
    counts: pl.DataFrame

    def sides(self, band: Band, problems: pl.Series) -> pl.DataFrame:
        """Return `curation.difficulty.posteriors.SIDES` rows of the policy, in the order of ``problems``."""
        return band_sides(self.model, self.counts, self.policy, band, problems)


def anchored(counts: pl.DataFrame, policy: str, before: str) -> Anchor | None:
    """Return what the anchor tells; None where the verifier failed on all of it.

    Args:
        counts: problem, policy, correct, judged: everyone's; the policy's own are the anchor's.
        policy, before: who judged the anchor, and who judged the set.
    """
    own = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))
    if not own.height:
        return None
    met = counts.join(own.select("problem"), on="problem", how="semi")
    model = fit(met if own.height >= _FEW else counts, always=own["problem"], most_problems=MOST_PROBLEMS)
    abilities = model.abilities
    shift = abilities[policy] - abilities[before] if before in abilities else None
    return Anchor(policy, before, own.height, shift, calibration(model, counts, policy), model, counts)


@dataclass(frozen=True, slots=True)
class ObservedChanges:
    """What the anchor's own decisions say of all others, without any model.

    Args:
        sides: `SIDES` rows of all problems.
        threshold: probability of another decision from which a problem is judged again.
        lost: expected share of all decisions that will not be a full judgement's.
    """

    sides: pl.DataFrame
    threshold: float
    lost: float

    @property
    def sentence(self) -> str:
        """Return in one sentence what the refresh is expected to come to."""
        return (
            f"anchor: by its old and new decisions {100 * self.lost:.1f} % of all are expected to differ from a full "
            f"judgement's; problems are judged again that change with probability {self.threshold:.2f} or more"
        )


def observed_changes(decisions: pl.DataFrame, judged: Mapping[str, str | None], error_rate: float) -> ObservedChanges:
    """Return what the anchor's decisions say: how often each kind of old decision came to which side of the band.

    Kinds are the sides of the band, and within the band thirds of the pass rate; their shares are held to their side's
    by `_HELD_TO_SIDE` problems, and these by half a problem of each. As many problems are left as they are as lose at
    most ``error_rate`` of all decisions.

    Args:
        decisions: `DECISION` rows of the set's last version.
        judged: the policy's reason, by problem of the anchor.
    """
    rows = decisions.select("problem", "reason", "correct", "judged").iter_rows()
    kinds = {name: _kind(reason, correct, made) for name, reason, correct, made in rows}
    of_side = {side: np.full(3, 0.5) for side in (-1, 0, 1)}
    of_kind = {kind: np.zeros(3) for kind in kinds.values()}
    for name, reason in judged.items():
        for counts in (of_side[kinds[name][0]], of_kind[kinds[name]]):
            counts[1 + expected_side(reason)] += 1
    shares = {}
    for kind, counts in of_kind.items():
        whole = of_side[kind[0]] / of_side[kind[0]].sum()
        shares[kind] = (counts + _HELD_TO_SIDE * whole) / (counts.sum() + _HELD_TO_SIDE)
    change = np.array([0.0 if name in judged else 1 - shares[kind][1 + kind[0]] for name, kind in kinds.items()])
    ordered = np.sort(change)
    left = int(np.searchsorted(np.cumsum(ordered) / len(ordered), error_rate, side="right"))
    threshold = float(ordered[left]) if left < len(ordered) else 1.0
    lost = float(change[change < threshold].sum() / len(change))
    sides = [(name, *shares[kind].tolist()) for name, kind in kinds.items()]
    return ObservedChanges(pl.DataFrame(sides, schema=SIDES, orient="row"), threshold, lost)


def _kind(reason: str | None, correct: int, judged: int) -> tuple[int, int]:
    """Return the side of the band of an old decision, and the third of its pass rate inside the band."""
    side = expected_side(reason)
    return side, min(2, 3 * correct // max(1, judged)) if side == 0 else 0


def anchor_lines(anchor: Anchor | None) -> list[str]:
    """Return in words what the anchor told: how much stronger the policy is, or that the model does not hold."""
    if anchor is None:
        return []
    shift = f"{anchor.shift:+.2f} logits against {anchor.before}" if anchor.shift is not None else "of unknown strength"
    lines = [f"anchor: {anchor.problems:,} problems judged by {anchor.policy}: {shift}"]
    if not anchor.calibration.holds:
        refused = anchor.calibration.worst_tenth(anchor.policy)
        lines.append(f"anchor: {refused}, so the anchor itself tells which old decisions stand")
    return [*lines, *(f"  {line}" for line in anchor.calibration.lines)]
