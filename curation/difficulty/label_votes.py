"""Stores policies' answers as votes on each problem's label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from curation.difficulty.item_response import Array, Indices
from curation.records import COUNTED_OUTCOMES
from curation.storage.stages import compact

VOTES = pl.Schema(
    {
        "problem": pl.String(),
        "policy": pl.String(),
        "answer_class": pl.Int32(),  # 0: the reference's; 1, 2, … other answers; null: attempts without an answer
        "votes": pl.Int64(),  # how many attempts, above 0
    }
)

REFERENCE = 0
"""Class and place of the reference."""

SOURCE = "source:"
"""Prefix of voters that are sources with another reference."""


@dataclass(frozen=True, slots=True)
class VotePatterns:
    """Votes as arrays: a cell is a policy's votes for an answer, a ballot its votes on a problem.

    Args:
        pattern: [problems]; ``problems`` are sorted ids.
        classes: problem, place, answer_class; place 0 is the reference.
        answers: [patterns] number of other answers.
        policies: names; ``cell_*`` and ``ballot_*`` are sorted by pattern.
    """

    problems: pl.Series
    pattern: Indices
    classes: pl.DataFrame
    answers: Indices
    is_settled: Array
    policies: tuple[str, ...]
    cell_pattern: Indices
    cell_place: Indices
    cell_votes: Indices
    cell_ballot: Indices
    ballot_pattern: Indices
    ballot_policy: Indices
    ballot_judged: Indices
    ballot_answered: Indices

    @property
    def frequency(self) -> Array:
        """Return [patterns] how many problems have each."""
        return np.bincount(self.pattern, minlength=len(self.answers)).astype(np.float64)


def vote_patterns(votes: pl.DataFrame, problems: pl.Series, settled: Sequence[str] = ()) -> VotePatterns:
    """Return `VOTES` on these problems as arrays; repeated rows are summed."""
    ids = problems.unique().sort().alias("problem").to_frame()
    rows = (
        votes.filter(pl.col("votes") > 0)
        .join(ids, on="problem", how="semi")
        .group_by("problem", "policy", "answer_class")
        .agg(pl.col("votes").sum())
        .sort("problem", "answer_class", "policy")
    )
    named = rows.group_by("problem", "answer_class", maintain_order=True).agg(
        pl.format("{} {}", "policy", "votes").str.join(",").alias("name")
    )
    rivals = named.filter(pl.col("answer_class") > REFERENCE).sort("problem", "name", "answer_class")
    classes = rivals.select(
        "problem", pl.int_range(1, pl.len() + 1).over("problem").cast(pl.Int32).alias("place"), "answer_class"
    )
    whole = (
        ids.join(named.filter(pl.col("answer_class") == REFERENCE), on="problem", how="left")
        .join(
            rivals.group_by("problem").agg(pl.col("name").str.join(";").alias("rest"), pl.len().alias("answers")),
            on="problem",
            how="left",
        )
        .join(named.filter(pl.col("answer_class").is_null()).select("problem", none="name"), on="problem", how="left")
        .with_columns(pl.col("problem").is_in(list(settled)).alias("settled"), pl.col("answers").fill_null(0))
        .with_columns(
            pl.concat_str(pl.col("name", "rest", "none", "settled").cast(pl.String).fill_null(""), separator="|").alias(
                "key"
            )
        )
        .sort("problem")
    )
    first = whole.unique("key", keep="first", maintain_order=True).sort("key").with_row_index("pattern")
    of_problem = whole.join(first.select("key", "pattern"), on="key", how="left", maintain_order="left")
    return _as_arrays(ids["problem"], of_problem["pattern"], classes, first, rows)


def _as_arrays(
    problems: pl.Series, pattern: pl.Series, classes: pl.DataFrame, first: pl.DataFrame, rows: pl.DataFrame
) -> VotePatterns:
    shown = (
        rows.join(first.select("problem", "pattern"), on="problem", how="inner")
        .join(classes, on=["problem", "answer_class"], how="left")
        .with_columns(pl.when(pl.col("answer_class") == REFERENCE).then(0).otherwise("place").alias("place"))
    )
    policies = rows["policy"].unique().sort()
    numbers = policies.to_frame().with_columns(pl.int_range(pl.len()).alias("number"))
    ballots = (
        shown.group_by("pattern", "policy")
        .agg(
            pl.col("votes").sum().alias("judged"),
            pl.col("votes").filter(pl.col("place").is_not_null()).sum().alias("answered"),
        )
        .join(numbers, on="policy", how="left")
        .sort("pattern", "number")
        .with_columns(pl.int_range(pl.len()).alias("ballot"))
    )
    cells = (
        shown.filter(pl.col("place").is_not_null())
        .join(ballots.select("pattern", "policy", "ballot"), on=["pattern", "policy"], how="left")
        .sort("pattern", "place", "ballot")
    )

    def numbers_of(frame: pl.DataFrame, name: str) -> Indices:
        return frame[name].to_numpy().astype(np.int64)

    return VotePatterns(
        problems,
        pattern.to_numpy().astype(np.int64),
        classes,
        numbers_of(first, "answers"),
        first["settled"].to_numpy().astype(np.float64),
        tuple(policies.to_list()),
        numbers_of(cells, "pattern"),
        numbers_of(cells, "place"),
        numbers_of(cells, "votes"),
        numbers_of(cells, "ballot"),
        numbers_of(ballots, "pattern"),
        numbers_of(ballots, "number"),
        numbers_of(ballots, "judged"),
        numbers_of(ballots, "answered"),
    )


ANSWERS = pl.Schema(
    {"problem": pl.String(), "answer_class": pl.Int32(), "answer": pl.String(), "policies": pl.String()}
)
"""A problem's answer classes: first writing, and policies' counts, as ``policy 12, other 3``."""


def label_votes(verdicts: Sequence[pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `VERDICT` rows of several stages as `VOTES` and `ANSWERS`.

    Failed verdicts and classes with a doubtful answer do not vote.
    """
    known = pl.DataFrame(schema={"problem": pl.String, "answer": pl.String, "answer_class": pl.Int32})
    frames = []
    for frame in verdicts:
        counted = frame.filter(pl.col("outcome").is_in([outcome.value for outcome in COUNTED_OUTCOMES])).select(
            "problem", "policy", "index", "answer", "answer_class", doubted=pl.col("method").str.ends_with("(doubtful)")
        )
        in_class = pl.col("answer_class") > REFERENCE
        is_doubted = (pl.col("doubted").any().over("problem", "answer_class") & in_class).fill_null(False)
        renamed = _renamed(counted.filter(~is_doubted), known)
        frames.append(renamed)
        known = pl.concat([known, renamed.filter(in_class).select(known.columns)]).unique(maintain_order=True)
    rows = pl.concat(frames) if frames else pl.DataFrame(schema={**VOTES, "index": pl.Int32, "answer": pl.String})
    votes = rows.group_by("problem", "policy", "answer_class").agg(pl.len().cast(pl.Int64).alias("votes"))
    votes = votes.sort("problem", "answer_class", "policy")
    first = (
        rows.filter(pl.col("answer_class").is_not_null())
        .group_by("problem", "answer_class", maintain_order=True)
        .agg(pl.col("answer").first())
    )
    policies = votes.group_by("problem", "answer_class", maintain_order=True).agg(
        pl.format("{} {}", "policy", "votes").str.join(", ").alias("policies")
    )
    answers = first.join(policies, on=["problem", "answer_class"], how="left").sort("problem", "answer_class")
    return votes.select(VOTES.names()).cast(VOTES), answers.select(ANSWERS.names()).cast(ANSWERS)


def _renamed(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return rows with known classes' numbers, and new numbers for new classes."""
    classes = rows.filter(pl.col("answer_class") > REFERENCE).select("problem", "answer", "answer_class").unique()
    same = (
        classes.join(known.rename({"answer_class": "old"}), on=["problem", "answer"], how="left")
        .group_by("problem", "answer_class")
        .agg(pl.col("old").min())
        .sort("problem", "answer_class")
    )
    last = known.group_by("problem").agg(pl.col("answer_class").max().alias("last"))
    same = same.join(last, on="problem", how="left", maintain_order="left").with_columns(
        new=pl.coalesce(
            "old", pl.col("last").fill_null(0) + pl.col("old").is_null().cum_sum().over("problem").cast(pl.Int32)
        ).cast(pl.Int32)
    )
    joined = rows.join(
        same.select("problem", "answer_class", "new"), on=["problem", "answer_class"], how="left", maintain_order="left"
    )
    return joined.select(
        "problem", "policy", "index", "answer", pl.coalesce("new", "answer_class").alias("answer_class")
    )


def source_votes(references: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return conflicting copies' references (problem, source, answer) as `VOTES`."""
    last = answers.group_by("problem").agg(pl.col("answer_class").max().alias("last"))
    written = references.join(answers.select("problem", "answer", "answer_class"), on=["problem", "answer"], how="left")
    placed = written.join(last, on="problem", how="left").with_columns(
        (pl.col("last").fill_null(0) + 1 + pl.col("answer").rank("dense").over("problem")).cast(pl.Int32).alias("new")
    )
    return placed.select(
        "problem",
        pl.format(SOURCE + "{}", "source").alias("policy"),
        pl.coalesce("answer_class", "new").alias("answer_class"),
        pl.lit(1, pl.Int64).alias("votes"),
    ).unique(["problem", "policy"], keep="first", maintain_order=True)


PART = pl.Schema({"problem": pl.String(), "part": pl.UInt32()})


class VoteParts:
    """Stores votes and answers in an empty folder, which the caller removes.

    Args:
        parts: `VOTES` and `ANSWERS` rows; each problem is in one chunk only.
    """

    def __init__(self, parts: Iterable[tuple[pl.DataFrame, pl.DataFrame]], folder: Path) -> None:
        self._folder, self._count, self.top = folder, 0, 0
        index = [PART.to_frame()]
        for votes, answers in parts:
            votes.match_to_schema(VOTES).write_parquet(self._file("votes", self._count))
            answers.match_to_schema(ANSWERS).write_parquet(self._file("answers", self._count))
            index.append(compact(votes.select(pl.col("problem").unique(), part=pl.lit(self._count, pl.UInt32))))
            self.top = max([self.top, *votes["answer_class"].drop_nulls()])
            self._count += 1
        self._index = pl.concat(index).sort("problem")

    @property
    def ids(self) -> pl.Series:
        """Return the sorted distinct problems with votes."""
        return self._index["problem"]

    def of(self, problems: pl.Series) -> pl.DataFrame:
        """Return the votes (`VOTES`) on some problems."""
        return self._read("votes", VOTES, problems)

    def answers_of(self, problems: pl.Series) -> pl.DataFrame:
        """Return the answers (`ANSWERS`) to some problems."""
        return self._read("answers", ANSWERS, problems)

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield all votes, each problem's together."""
        for part in range(self._count):
            yield pl.read_parquet(self._file("votes", part))

    def _read(self, table: str, schema: pl.Schema, problems: pl.Series) -> pl.DataFrame:
        requested = problems.alias("problem").to_frame()
        parts = self._index.join(requested, on="problem", how="semi")["part"].unique().sort()
        read = (pl.read_parquet(self._file(table, part)).join(requested, on="problem", how="semi") for part in parts)
        return pl.concat([schema.to_frame(), *read]).sort("problem", "answer_class", maintain_order=True)

    def _file(self, table: str, part: int) -> Path:
        return self._folder / f"{table}-{part:05}.parquet"
