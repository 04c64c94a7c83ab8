"""What a model judge says of a problem's premises: votes read, counted, and weighed against a threshold.

No rule sees that a quantity is missing or that two conditions exclude each other. A policy is asked n times with the
prompt `curation.prompts.premises`; its responses lie in the attempt store under that prompt's version, so a vote is a
measurement that is made once. `tally_votes` counts the votes, `decide_premises` applies a threshold (`votes.py`): a new
threshold asks nobody.

Invariants: pure functions; a response without a readable verdict is no vote (`PremiseVote.UNREADABLE`); a problem
with fewer readable votes than asked for is kept, and its evidence says so.

Not here: who is asked, and the statements themselves.
"""

from __future__ import annotations

from enum import StrEnum

import polars as pl

from curation.filters.votes import Ballot

VERSION = "premises@1"


class PremiseVote(StrEnum):
    """What one response says of the problem."""

    SOUND = "sound"
    MISSING = "missing"  # something that the answer depends on is not given
    CONTRADICTORY = "contradictory"  # conditions that exclude each other
    UNDETERMINED = "undetermined"  # nothing asked, or several answers
    UNREADABLE = "unreadable"  # the response holds no verdict


BALLOT = Ballot(PremiseVote.SOUND.value, ("missing", "contradictory", "undetermined"))
TALLY = BALLOT.schema


def read_vote(text: str | None) -> PremiseVote:
    """Return the verdict of a response, `PremiseVote.UNREADABLE` where it gives none."""
    return PremiseVote(BALLOT.read(text))


def tally_votes(problems: pl.Series, attempts: pl.DataFrame) -> pl.DataFrame:
    """Count the votes, as `Ballot.tally` does."""
    return BALLOT.tally(problems, attempts)


def decide_premises(tallies: pl.DataFrame, threshold: float, least: int) -> pl.DataFrame:
    """Return problem, keep and evidence, as `Ballot.decide` does."""
    return BALLOT.decide(tallies, threshold, least).drop("enough")
