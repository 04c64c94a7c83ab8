"""Votes of a model that name one of several faults, or none: read, counted, and weighed against a threshold.

Who asks brings a `Ballot`, the words that a vote may hold. `tally` counts the votes, `decide` applies a threshold: a
new threshold asks nobody.

Invariants: pure functions; a response without a readable word is no vote (`UNREADABLE`); with fewer readable votes than
asked for nothing is dropped, and the evidence says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from curation.prompts.verdicts import read_verdict

UNREADABLE = "unreadable"
"""In the place of a word, where a response holds none."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a vote may say.

    Example: ``Ballot("sound", ("missing", "contradictory", "undetermined"))``
    """

    sound: str
    """That nothing is wrong."""
    faults: tuple[str, ...]
    """What is; among equals the first counts."""

    @property
    def words(self) -> tuple[str, ...]:
        """Return what a response is counted as."""
        return (self.sound, *self.faults, UNREADABLE)

    @property
    def schema(self) -> pl.Schema:
        """Return the schema of `tally`."""
        return pl.Schema(
            {
                "problem": pl.String(),
                **{word: pl.Int32() for word in self.words},
                "readable": pl.Int32(),
                "share": pl.Float64(),  # of the readable votes, those that name a fault; null where none is readable
                "fault": pl.String(),  # the fault that most votes name, the first among equals; null where none does
            }
        )

    def read(self, text: str | None) -> str:
        """Return the word of a response, `UNREADABLE` where it gives none."""
        verdict = read_verdict(text, tuple(word.upper() for word in (self.sound, *self.faults)))
        return verdict.lower() if verdict is not None else UNREADABLE

    def tally(self, problems: pl.Series, attempts: pl.DataFrame) -> pl.DataFrame:
        """Count the votes: return one row of the `schema` per problem, in the order of ``problems``; without attempts
        all counts are 0.

        Args:
            attempts: `ATTEMPT` rows made with the prompt that asks for these words.
        """
        votes = attempts.select(
            "problem", vote=pl.Series([self.read(text) for text in attempts["text"]], dtype=pl.String)
        )
        counted = votes.group_by("problem").agg((pl.col("vote") == word).sum().alias(word) for word in self.words)
        frame = problems.alias("problem").to_frame().join(counted, on="problem", how="left", maintain_order="left")
        frame = frame.with_columns(pl.col(word).fill_null(0).cast(pl.Int32) for word in self.words)
        num_faults = pl.sum_horizontal(self.faults)
        frame = frame.with_columns(readable=(num_faults + pl.col(self.sound)).cast(pl.Int32))
        most = pl.max_horizontal(self.faults)
        main = pl.coalesce(pl.when((pl.col(fault) == most) & (most > 0)).then(pl.lit(fault)) for fault in self.faults)
        share = pl.when(pl.col("readable") > 0).then(num_faults / pl.col("readable"))
        return frame.with_columns(share=share, fault=main).match_to_schema(self.schema)

    def decide(self, tallies: pl.DataFrame, threshold: float, least: int) -> pl.DataFrame:
        """Return problem, enough, keep and evidence; a problem is dropped where the share of votes that name a fault
        reaches the threshold.

        Args:
            threshold: least share, above 0 and at most 1.
            least: fewest readable votes for a decision; with fewer (``enough`` is false) the problem is kept.
        """
        enough = pl.col("readable") >= max(1, least)
        is_dropped = (enough & (pl.col("share") >= threshold - 1e-9)).fill_null(False)
        fault_share = pl.format(
            "{} of {} votes name a fault, most often: {}",
            pl.sum_horizontal(self.faults),
            "readable",
            pl.col("fault").fill_null("none"),
        )
        evidence = pl.when(enough).then(fault_share).otherwise(pl.format("only {} readable votes", "readable"))
        return tallies.select("problem", enough=enough, keep=~is_dropped, evidence=evidence)
