"""The difficulty dial: problems that are too hard, made as hard as the band wants by a prefix of a correct attempt."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from curation.config.base import Settings


class DialSettings(Settings):
    """Never-solved problems with the beginning of a correct attempt. Nothing of it is in the paper; off by default."""

    traces: tuple[Literal["attempts", "solutions"], ...] = Field(
        (),
        strict=False,
        description="Where correct attempts at them come from: `attempts` of this run's policies, its grader's "
        "training and `runs`; `solutions`, those that the sources give. The dial is off where empty. Not in the paper.",
    )
    runs: tuple[str, ...] = Field(
        (),
        description="Further folders of curation and training runs whose attempts are looked through, relative to the "
        "recipe's. Not in the paper.",
    )
    max_share: float = Field(
        0.75, gt=0, lt=1, description="A prefix is at most this share of the attempt's thoughts. Not in the paper."
    )
    probes: int = Field(
        6, ge=1, description="At most so many lengths of a correct attempt are sampled, by bisection. Not in the paper."
    )
    tries: int = Field(
        2,
        ge=1,
        description="So many correct attempts at a problem are tried, one after the other, until a prefix brings it "
        "into the band. Not in the paper.",
    )

    @property
    def is_on(self) -> bool:
        """Return whether too hard problems get prefixes."""
        return bool(self.traces)
