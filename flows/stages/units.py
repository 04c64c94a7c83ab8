"""Read code problems one at a time, with all that judging needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.programs import execution_matrix
from curation.programs.execution_matrix import MAX_TESTS
from curation.storage.stages import read_shard
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tables import build_problem
from flows.run.run_folder import Run
from flows.stages.base import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE
from flows.stages.sources import SOURCES


@dataclass(frozen=True, slots=True)
class Unit:
    """A problem with its ``tests`` and ``solutions`` from the sources, and limits."""

    row: dict[str, Any]
    tests: pl.DataFrame
    beyond: int  # tests beyond `MAX_TESTS`
    solutions: pl.DataFrame
    judging: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the problem's id."""
        return str(self.row["id"])

    def problem(self, run: Run, time_s: float | None = None) -> CodeProblem:
        """Return the problem for the sandbox; ``time_s`` overrides its limit."""
        code = run.recipe.code
        judging = self.judging if time_s is None else {**self.judging, "time_limit_s": time_s}
        pairs = self.tests.select("input", "output").iter_rows()
        return build_problem(self.name, pairs, judging, code.time_s, code.memory_mb)

    def candidates(self) -> list[execution_matrix.Candidate]:
        """Return the solutions to run, limited per language and label."""
        rows = self.solutions.select("index", "lang", "code", "right").iter_rows()
        return execution_matrix.draw_candidates(rows)


def units(run: Run, problems: Path, index: int) -> Iterator[Unit]:
    """Yield a shard's problems, with up to `MAX_TESTS` tests."""
    folder = SOURCES.folder_in(run)
    frame = read_shard(problems, "kept", index)
    names = frame["id"].to_list()
    tests = read_shard(folder, TESTS_TABLE, index).filter(pl.col("problem").is_in(names))
    solutions = read_shard(folder, SOLUTIONS_TABLE, index).filter(pl.col("problem").is_in(names))
    judging = {row["problem"]: row for row in read_shard(folder, JUDGING_TABLE, index).iter_rows(named=True)}
    for row in frame.iter_rows(named=True):
        name = row["id"]
        own = tests.filter(pl.col("problem") == name).sort("index")
        yield Unit(
            row,
            own.head(MAX_TESTS),
            max(0, own.height - MAX_TESTS),
            solutions.filter(pl.col("problem") == name).sort("index"),
            judging[name],
        )
