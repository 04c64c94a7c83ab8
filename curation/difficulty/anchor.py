"""The anchor of a refresh: how strong a policy is that has judged few problems, and what that says of all others.

The item response model is fitted on the anchor's problems first, for only there two policies meet, and on others as far
as its size allows; then what it would have expected of the anchor is compared with what was seen. What follows from it
is corrected by the anchor first, more so the less it bears itself out (`curation.difficulty.recalibration`).

Pure functions over frames. Not here: who is the anchor, and what is done with the probabilities
(`curation.difficulty.refresh`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from curation.difficulty.item_response import MOST_PROBLEMS, ItemResponseModel, fit
from curation.difficulty.posteriors import Calibration, calibration

FEW = 2_000
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


def anchored(counts: pl.DataFrame, policy: str, before: str) -> Anchor | None:
    """Return what the anchor tells; None where the verifier failed on all of it.

    Args:
        counts: problem, policy, correct, judged: everyone's; the policy's own are the anchor's. Where these are at
            least `FEW`, only rows of its problems are read.
        policy, before: who judged the anchor, and who judged the set.
    """
    own = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))
    if not own.height:
        return None
    met = counts.join(own.select("problem"), on="problem", how="semi")
    model = fit(met if own.height >= FEW else counts, always=own["problem"], most_problems=MOST_PROBLEMS)
    abilities = model.abilities
    shift = abilities[policy] - abilities[before] if before in abilities else None
    return Anchor(policy, before, own.height, shift, calibration(model, counts, policy), model, counts)


def anchor_lines(anchor: Anchor | None) -> list[str]:
    """Return in words what the anchor told: how much stronger the policy is, or that the model does not hold."""
    if anchor is None:
        return []
    shift = f"{anchor.shift:+.2f} logits against {anchor.before}" if anchor.shift is not None else "of unknown strength"
    lines = [f"anchor: {anchor.problems:,} problems judged by {anchor.policy}: {shift}"]
    if not anchor.calibration.holds:
        refused = anchor.calibration.worst_tenth(anchor.policy)
        lines.append(f"anchor: {refused}, so little is concluded from others")
    return [*lines, *(f"  {line}" for line in anchor.calibration.lines)]
