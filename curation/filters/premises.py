"""What a model judge says of a problem's premises: votes read, counted, and weighed against a threshold.

No rule sees that a quantity is missing or that two conditions exclude each other. A policy is asked n times with the
prompt `curation.prompts.premises`; its responses lie in the attempt store under that prompt's version, so a vote is a
measurement that is made once. `tally_votes` counts the votes, `decide_premises` applies a threshold: a new threshold
asks nobody.

Invariants: pure functions; a response without a readable verdict is no vote (`PremiseVote.UNREADABLE`); a problem
with fewer readable votes than asked for is kept, and its evidence says so.

Not here: who is asked, and the statements themselves.
"""

from __future__ import annotations

from enum import StrEnum

import polars as pl

from curation.prompts.verdicts import read_verdict

VERSION = "premises@1"


class PremiseVote(StrEnum):
    """What one response says of the problem."""

    SOUND = "sound"
    MISSING = "missing"  # something that the answer depends on is not given
    CONTRADICTORY = "contradictory"  # conditions that exclude each other
    UNDETERMINED = "undetermined"  # nothing asked, or several answers
    UNREADABLE = "unreadable"  # the response holds no verdict


FAULTS = (PremiseVote.MISSING, PremiseVote.CONTRADICTORY, PremiseVote.UNDETERMINED)

TALLY = pl.Schema(
    {
        "problem": pl.String(),
        **{vote.value: pl.Int32() for vote in PremiseVote},
        "readable": pl.Int32(),
        "share": pl.Float64(),  # of the readable votes, those that name a fault; null where none is readable
        "fault": pl.String(),  # the fault that most votes name; the first of `FAULTS` among equals, null where none
    }
)


def read_vote(text: str | None) -> PremiseVote:
    """Return the verdict of a response, `PremiseVote.UNREADABLE` where it gives none."""
    verdict = read_verdict(text, tuple(vote.upper() for vote in (PremiseVote.SOUND, *FAULTS)))
    return PremiseVote(verdict.lower()) if verdict is not None else PremiseVote.UNREADABLE


def tally_votes(problems: pl.Series, attempts: pl.DataFrame) -> pl.DataFrame:
    """Count the votes: return one `TALLY` row per problem, in the order of ``problems``; without attempts all counts
    are 0.

    Args:
        attempts: `ATTEMPT` rows made with the prompt of premises.
    """
    votes = attempts.select(
        "problem",
        vote=pl.Series([read_vote(text).value for text in attempts["text"]], dtype=pl.String),
    )
    counted = votes.group_by("problem").agg((pl.col("vote") == vote).sum().alias(vote.value) for vote in PremiseVote)
    frame = problems.alias("problem").to_frame().join(counted, on="problem", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col(vote.value).fill_null(0).cast(pl.Int32) for vote in PremiseVote)
    faults = pl.sum_horizontal(fault.value for fault in FAULTS)
    frame = frame.with_columns(readable=(faults + pl.col(PremiseVote.SOUND.value)).cast(pl.Int32))
    most = pl.max_horizontal(fault.value for fault in FAULTS)
    main_fault = pl.coalesce(pl.when((pl.col(f.value) == most) & (most > 0)).then(pl.lit(f.value)) for f in FAULTS)
    share = pl.when(pl.col("readable") > 0).then(faults / pl.col("readable"))
    return frame.with_columns(share=share, fault=main_fault).match_to_schema(TALLY)


def decide_premises(tallies: pl.DataFrame, threshold: float, least: int) -> pl.DataFrame:
    """Return problem, keep and evidence; a problem is dropped where the share of votes that name a fault reaches the
    threshold.

    Args:
        threshold: least share, above 0 and at most 1.
        least: fewest readable votes for a decision; with fewer the problem is kept.
    """
    enough = pl.col("readable") >= max(1, least)
    is_dropped = (enough & (pl.col("share") >= threshold - 1e-9)).fill_null(False)
    faults = pl.sum_horizontal(fault.value for fault in FAULTS)
    fault_share = pl.format(
        "{} of {} votes name a fault, most often: {}", faults, "readable", pl.col("fault").fill_null("none")
    )
    too_few = pl.format("only {} readable votes", "readable")
    return tallies.select("problem", keep=~is_dropped, evidence=pl.when(enough).then(fault_share).otherwise(too_few))
