"""Which problems of a curated set are judged again when a new checkpoint comes. The paper refreshes by hand."""

from __future__ import annotations

from pydantic import Field

from curation.config.base import Settings


class RefreshSettings(Settings):
    """What `goldilocks refresh` judges again; the rest keeps its pass rates."""

    max_pass_rate: float = Field(
        0.99,
        ge=0,
        le=1,
        description="Highest pass rate with which a problem that a refresh judges stays or comes in, where the band's "
        "is lower: the paper removes completely solved problems (section 5), and what leaves sooner is forgotten. 0: "
        "the band's own. The figure is not in the paper.",
    )
    error_rate: float = Field(
        0.025,
        gt=0,
        le=0.2,
        description="With an anchor: share of all decisions that may differ from those of judging everything again, as "
        "far as can be foreseen. Attempts go where they settle most. Not in the paper.",
    )
    change_probability: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Without an anchor: a problem is judged again where fresh attempts would decide otherwise with at "
        "least this probability, as far as its pass rate is known. Not in the paper.",
    )
    anchor_share: float = Field(
        0.05,
        ge=0,
        le=0.5,
        description="Share of all problems that every refresh judges, to learn how much stronger the policy is; what "
        "is known of all others moves by that. 0: nothing is learnt, and the old pass rates count as they are. Not in "
        "the paper.",
    )
    anchor_least: int = Field(
        50,
        ge=1,
        description="At least so many problems are the anchor; where they are more than half of all, there is none. "
        "Not in the paper.",
    )
    probe_share: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Without an anchor: share of the too easy problems that a refresh judges again, another share each "
        "time. Not in the paper.",
    )
    retry_share: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Without an anchor: the same of problems that were never solved, or whose label is suspected. Not "
        "in the paper.",
    )
    half_life: float = Field(
        100.0,
        gt=0,
        description="Steps after which an attempt made in training counts half. Not in the paper.",
    )
    min_attempts: float = Field(
        8.0,
        gt=0,
        description="Attempts made in training, counted by age, that must be there before they say more than the old "
        "pass rate. Not in the paper.",
    )
