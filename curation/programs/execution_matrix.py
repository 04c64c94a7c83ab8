"""Runs every solution of a problem on every test in the sandbox.

Invariants: one row per solution and test, none for a broken run; classes of outputs never depend on timing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import wait
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curation.config import CodeSettings
from curation.records import VerifierError
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.output_equivalence import Classes, Spill, canonical
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.tables import build_problem
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Limits

VERSION = "execution_matrix@6"

MEASURED = pl.Schema(
    {
        "problem": pl.String(),
        "solution": pl.Int32(),
        "right": pl.Boolean(),
        "test": pl.Int32(),
        "valid": pl.Boolean(),
        "output": pl.String(),
        "expected": pl.Boolean(),
        "lang": pl.String(),
        "cpu_s": pl.Float64(),  # null if it was not run
        "ended": pl.String(),  # ok, or why the run is not valid: TLE, RTE, CE …; skipped after too many failures
        "standard": pl.String(),  # of C++ with which it was compiled; null for Python and if it did not compile
    }
)
"""A `tests_agreement.RUN` row with its measurements."""

OUTPUT = pl.Schema({"problem": pl.String(), "test": pl.Int32(), "class": pl.String(), "output": pl.String()})
"""The voters' most frequent unexpected outputs per test."""

_OUTPUT_BYTES = 64 << 20

MAX_TESTS = 200
"""Max tests run per problem, from the first."""

MAX_RIGHT = MAX_WRONG = 8
"""Max solutions run per language: of voters, and of known wrong ones."""

MULTIPLIER = 5.0
"""Derived time limit over the slowest right solution's worst time (Kattis format)."""

MEASURE_S = 10.0
"""CPU seconds per test while a limit is measured."""

SLACK = 2.0
"""Voters' factor on a given time limit; this machine may be slower."""

GIVE_UP = 3
"""Tests over the limits after which a solution counts as failing the rest."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A solution with its index and the source's label (``right``)."""

    index: int
    submission: Submission
    right: bool | None


@dataclass(frozen=True, slots=True)
class ExecutionMatrix:
    """A problem's runs; ``broken`` counts runs without a result, ``why`` explains one."""

    runs: pl.DataFrame
    outputs: pl.DataFrame
    time_limit_s: float
    judged: int
    broken: int
    why: str


def draw_candidates(solutions: Iterable[tuple[int, str, str, bool | None]]) -> list[Candidate]:
    """Return the first distinct (index, lang, code, right) per language and label."""
    counts: dict[tuple[str, bool], int] = {}
    programs: set[tuple[str, str]] = set()
    candidates = []
    for index, lang, code, right in solutions:
        wrong = right is False
        limit = MAX_WRONG if wrong else MAX_RIGHT
        if (lang, code) in programs or counts.get((lang, wrong), 0) >= limit:
            continue
        programs.add((lang, code))
        counts[lang, wrong] = counts.get((lang, wrong), 0) + 1
        candidates.append(Candidate(index, Submission(CodeLang(lang), code), right))
    return candidates


@dataclass(slots=True)
class _Bench:
    """A problem's runs, as `MEASURED` rows with the digests of their outputs and the tests' positions."""

    runner: Runner
    problem: CodeProblem
    give_up: int
    spill: Spill
    expected_digests: list[str | None]  # digests of the expected outputs
    rows: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    why: str = ""

    @property
    def exact(self) -> bool:
        return self.problem.checker is None and not self.problem.comparison.tolerant

    def run(self, candidates: Sequence[Candidate], cpu_s: float) -> None:
        futures = [self.runner.threads.submit(self._solution, candidate, cpu_s) for candidate in candidates]
        try:
            wait(futures)
        finally:
            for future in futures:
                future.cancel()
        for future in futures:
            self.rows += future.result()

    def _solution(self, candidate: Candidate, cpu_s: float) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        program, tests = self.runner.prepare(candidate.submission), self.problem.tests

        def add(position: int, ended: str, seconds: float | None = None, digest: str | None = None) -> None:
            about = {"solution": candidate.index, "right": candidate.right, "lang": candidate.submission.lang.value}
            standard = program.standard if isinstance(program, Program) else None
            run = {"valid": ended == "ok", "output": digest, "cpu_s": seconds, "ended": ended}
            rows.append({**about, "standard": standard or None, "test": position, **run})

        if not isinstance(program, Program):
            if program.verdict is CodeVerdict.BROKEN:
                self._broke(len(tests), program.how)
            else:
                for position in range(len(tests)):
                    add(position, program.verdict.value)
            return rows
        expected = max((len(test.output) for test in tests), default=0)
        limits = Limits(
            cpu_s, memory_mb=self.problem.memory_mb, output_bytes=min(_OUTPUT_BYTES, (16 << 20) + 4 * expected)
        )
        done = exceeded = 0
        stdins = [test.input for test in tests]
        with closing(self.runner.run(program, stdins, limits, processes=self.problem.processes)) as results:
            for position, result in enumerate(results):
                failure, done = failure_of(result), position + 1
                if failure is None:
                    digest = canonical(result.stdout, self.problem.comparison)
                    if digest != self.expected_digests[position] and (candidate.right is not False or not self.exact):
                        self.spill.put(digest, result.stdout)
                    add(position, "ok", result.cpu_s, digest)
                elif failure[0] is CodeVerdict.BROKEN:
                    self._broke(1, failure[1])
                else:
                    add(position, failure[0].value, result.cpu_s)
                    exceeded += failure[0] in (CodeVerdict.TLE, CodeVerdict.MLE, CodeVerdict.OLE)
                    if exceeded >= self.give_up:
                        break
        for skipped in range(done, len(tests)):
            add(skipped, "skipped")
        return rows

    def _broke(self, count: int, why: str) -> None:
        self.broken += count
        self.why = why

    def limit_s(self, fallback: float) -> float:
        """Return the slowest right solution's limit, else a voter's, else ``fallback``."""
        ended_early = {row["solution"] for row in self.rows if row["ended"] in ("TLE", "skipped", "CE")}
        right = {row["solution"] for row in self.rows if row["right"]} or {row["solution"] for row in self.rows}
        timed = [row for row in self.rows if row["cpu_s"] is not None and row["solution"] in right - ended_early]
        return float(max(1, math.ceil(max(row["cpu_s"] for row in timed) * MULTIPLIER))) if timed else fallback

    def classify(self) -> None:
        """Put the outputs' classes in place of their digests; leave out runs on which the checker failed."""
        classes = Classes(self.runner, self.problem, self.spill, self.expected_digests)
        if not self.exact:
            ordered = sorted(self.rows, key=lambda row: (row["right"] is False, row["solution"]))
            classes.find(self._digests(ordered), self._digests(row for row in ordered if row["right"] is not False))
            self.broken += classes.broken
            self.why = classes.why or self.why
        for row in self.rows:
            if row["output"] is not None:
                row["output"] = classes.of(row["test"], row["output"])
            row["expected"] = row["output"] is not None and row["output"] == self.expected_digests[row["test"]]
        self.rows = [row for row in self.rows if row["output"] is not None or not row["valid"]]

    def _digests(self, rows: Iterable[dict[str, Any]]) -> list[list[str]]:
        digests = [dict[str, None]() for _ in self.problem.tests]
        for row in rows:
            if row["output"] is not None:
                digests[row["test"]][row["output"]] = None
        return list(map(list, digests))


def run_execution_matrix(
    runner: Runner,
    name: str,
    problem: CodeProblem,
    candidates: Sequence[Candidate],
    *,
    time_given: bool,
    indices: Sequence[int] | None = None,
    known: Sequence[bool] | None = None,
    give_up: int | None = None,
) -> ExecutionMatrix:
    """Run a problem's solutions on its tests.

    Args:
        problem: ``cpu_s`` is a fall-back unless ``time_given``.
        indices: of the tests, else their positions.
        known: whether each test has an expected output.
        give_up: as `GIVE_UP`.
    """
    if problem.refused is not None:
        raise VerifierError(f"problem {name}: {problem.refused}")
    if problem.function is not None:
        return _function_matrix(runner, name, problem, candidates, time_given=time_given)
    has_output = list(known) if known is not None else [True] * len(problem.tests)
    expected_digests = [
        canonical(test.output, problem.comparison) if has_expected else None
        for test, has_expected in zip(problem.tests, has_output, strict=True)
    ]
    numbers = list(indices or range(len(problem.tests)))
    with closing(Spill()) as spill:
        bench = _Bench(runner, problem, give_up or GIVE_UP, spill, expected_digests)
        voters = [candidate for candidate in candidates if candidate.right is not False]
        bench.run(voters, problem.cpu_s * SLACK if time_given else MEASURE_S)
        limit = problem.cpu_s if time_given else bench.limit_s(problem.cpu_s)
        bench.run([candidate for candidate in candidates if candidate.right is False], limit)
        judged = sum(row["cpu_s"] is not None for row in bench.rows)
        bench.classify()
        order = {candidate.index: position for position, candidate in enumerate(candidates)}
        rows = sorted(bench.rows, key=lambda row: order[row["solution"]])
        runs = pl.DataFrame([{**row, "problem": name, "test": numbers[row["test"]]} for row in rows], MEASURED)
        return ExecutionMatrix(runs, _modal_outputs(name, spill, runs), limit, judged, bench.broken, bench.why)


def _function_matrix(
    runner: Runner, name: str, problem: CodeProblem, candidates: Sequence[Candidate], *, time_given: bool
) -> ExecutionMatrix:
    """Judge solutions of a function problem; wrong results form a class per solution."""
    measured = dataclasses.replace(problem, cpu_s=problem.cpu_s * SLACK if time_given else MEASURE_S)
    rows: list[tuple[object, ...]] = []
    slowest: float | None = None
    broken, why = 0, ""
    jobs = ((measured, candidate.submission) for candidate in candidates)
    for candidate, result in zip(candidates, judge_programs(runner, jobs, every=True), strict=True):
        ends: list[tuple[int, CodeVerdict, float | None]]
        ends = [(run.index, run.verdict, run.cpu_s) for run in result.tests]
        for test, verdict, seconds in ends or [(test, result.verdict, None) for test in range(problem.test_count)]:
            if verdict is CodeVerdict.BROKEN:
                broken, why = broken + 1, result.how
                continue
            is_right, is_valid = verdict is CodeVerdict.AC, verdict in (CodeVerdict.AC, CodeVerdict.WA)
            output = "expected" if is_right else f"of solution {candidate.index}" if is_valid else None
            lang, ended = candidate.submission.lang.value, "ok" if is_valid else verdict.value
            rows.append(
                (name, candidate.index, candidate.right, test, is_valid, output, is_right, lang, seconds, ended, None)
            )
            if is_right and candidate.right is not False and seconds is not None:
                slowest = max(seconds, slowest or 0.0)
    derived = problem.cpu_s if slowest is None else float(max(1, math.ceil(slowest * MULTIPLIER)))
    runs = pl.DataFrame(rows, schema=MEASURED, orient="row")
    limit = problem.cpu_s if time_given else derived
    return ExecutionMatrix(runs, OUTPUT.to_frame(), limit, runs["cpu_s"].count(), broken, why)


def _modal_outputs(name: str, spill: Spill, runs: pl.DataFrame) -> pl.DataFrame:
    """Return the voters' two most frequent unexpected outputs per test."""
    votes = runs.filter(pl.col("valid") & pl.col("right").fill_null(True) & ~pl.col("expected"))
    counted = votes.group_by("test", "output").len().sort("test", "len", "output", descending=[False, True, False])
    rows = []
    for test, group, _ in counted.group_by("test", maintain_order=True).head(2).iter_rows():
        text = spill.get(group).decode("utf-8", "replace")
        rows.append((name, test, group, text))
    return pl.DataFrame(rows, schema=OUTPUT, orient="row")


def corrected(tests: pl.DataFrame, decisions: pl.DataFrame, outputs: pl.DataFrame) -> pl.DataFrame:
    """Return the remaining `TEST` rows, corrected by agreed outputs."""
    staying = decisions.filter(pl.col("decision") != "discard").select("problem", "test", "decision", "output")
    agreed = outputs.rename({"class": "group", "output": "agreed"})
    joined = tests.join(
        staying.rename({"output": "group"}), left_on=["problem", "index"], right_on=["problem", "test"]
    ).join(agreed, left_on=["problem", "index", "group"], right_on=["problem", "test", "group"], how="left")
    incomplete = joined.filter((pl.col("decision") == "correct") & pl.col("agreed").is_null())
    if incomplete.height:
        problem, test = incomplete.row(0, named=True)["problem"], incomplete.row(0, named=True)["index"]
        raise VerifierError(f"problem {problem}, test {test}: the output that solutions agree on was not kept")
    output = pl.when(pl.col("decision") == "correct").then("agreed").otherwise("output")
    return joined.with_columns(output.alias("output")).select(tests.columns).sort("problem", "index")


def with_tests(problem: CodeProblem, tests: Iterable[tuple[bytes, bytes]]) -> CodeProblem:
    """Return the problem with other tests."""
    code_tests = tuple(CodeTest(test_input, expected, str(i)) for i, (test_input, expected) in enumerate(tests))
    return dataclasses.replace(problem, tests=code_tests)


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
