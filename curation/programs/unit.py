"""A code problem with all that judging needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.config import CodeSettings
from curation.programs.execution_matrix import Candidate, draw_candidates
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tables import build_problem


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

    def problem(self, code: CodeSettings, time_s: float | None = None) -> CodeProblem:
        """Return the problem for the sandbox; ``time_s`` overrides its limit."""
        judging = self.judging if time_s is None else {**self.judging, "time_limit_s": time_s}
        pairs = self.tests.select("input", "output").iter_rows()
        return build_problem(self.name, pairs, judging, code.time_s, code.memory_mb)

    def candidates(self) -> list[Candidate]:
        """Return the solutions to run, limited per language and label."""
        return draw_candidates(self.solutions.select("index", "lang", "code", "right").iter_rows())
