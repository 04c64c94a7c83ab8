"""Votes on labels that lie on disk: of all problems their ids are held, of the rest a part at a time.

What is learnt from votes needs a few thousand problems (`VoteParts.of`), what is said of each problem its own votes
alone (`VoteParts.parts`). Some 50 bytes a problem are held.

Invariants: all votes on a problem are in one part; reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import polars as pl

from curation.difficulty.label_votes import ANSWERS, VOTES

PART = pl.Schema({"problem": pl.String(), "part": pl.UInt32()})


class Votes(Protocol):
    """Votes on the labels of problems, whole or in parts."""

    @property
    def ids(self) -> pl.Series:
        """Return the problems that have votes, each once, sorted."""

    @property
    def top(self) -> int:
        """Return the largest number of a class of answers."""

    def of(self, problems: pl.Series) -> pl.DataFrame:
        """Return the votes (`VOTES`) on some problems."""

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield all votes, each problem's together."""


class WholeVotes:
    """Votes in memory."""

    def __init__(self, votes: pl.DataFrame) -> None:
        self._votes = votes

    @property
    def ids(self) -> pl.Series:
        """Return the problems that have votes, each once, sorted."""
        return self._votes["problem"].unique().sort()

    @property
    def top(self) -> int:
        """Return the largest number of a class of answers."""
        return _top(self._votes)

    def of(self, problems: pl.Series) -> pl.DataFrame:
        """Return the votes (`VOTES`) on some problems."""
        return self._votes.join(problems.alias("problem").to_frame(), on="problem", how="semi")

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield all votes at once."""
        yield self._votes


class VoteParts:
    """Votes and the answers voted for, in files of a folder.

    Args:
        parts: `VOTES` and `ANSWERS` rows; all rows on a problem are in one part.
        folder: an empty one; who made it removes it.
    """

    def __init__(self, parts: Iterable[tuple[pl.DataFrame, pl.DataFrame]], folder: Path) -> None:
        self._folder, self._count, self.top = folder, 0, 0
        places = [PART.to_frame()]
        for votes, answers in parts:
            votes.match_to_schema(VOTES).write_parquet(self._file("votes", self._count))
            answers.match_to_schema(ANSWERS).write_parquet(self._file("answers", self._count))
            places.append(votes.select(pl.col("problem").unique(), part=pl.lit(self._count, pl.UInt32)))
            self.top = max(self.top, _top(votes))
            self._count += 1
        self._places = pl.concat(places).sort("problem")

    @property
    def ids(self) -> pl.Series:
        """Return the problems that have votes, each once, sorted."""
        return self._places["problem"]

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
        wanted = problems.alias("problem").to_frame()
        parts = self._places.join(wanted, on="problem", how="semi")["part"].unique().sort()
        read = (pl.read_parquet(self._file(table, part)).join(wanted, on="problem", how="semi") for part in parts)
        return pl.concat([schema.to_frame(), *read]).sort("problem", "answer_class", maintain_order=True)

    def _file(self, table: str, part: int) -> Path:
        return self._folder / f"{table}-{part:05}.parquet"


def _top(votes: pl.DataFrame) -> int:
    return int(votes["answer_class"].max() or 0)  # type: ignore[arg-type]
