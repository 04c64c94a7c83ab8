"""Runs of a package's submissions, and their compiled programs, on disk: folds and later measurements share them."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from curation.programs import execution_matrix
from curation.programs.execution_matrix import Candidate, ExecutionMatrix
from curation.sources.kattis import Package
from curation.storage.stages import atomic_replace
from curation.verify.programs.checkers import InputVerdict, ReadyValidator, check_inputs
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tools import Runner


class Memory:
    """Runs of all submissions of one package, per input, kept on disk: folds and later measurements share them."""

    def __init__(self, file: Path, everybody: Sequence[Candidate]) -> None:
        self.file, self.everybody = file, everybody
        self.kept: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
        self.asked: list[bytes] = []
        if file.is_file():
            self.kept = pickle.loads(file.read_bytes())

    def save(self) -> None:
        """Write what was run."""
        with atomic_replace(self.file) as handle:
            handle.write(pickle.dumps(self.kept))

    def key(self, problem: CodeProblem, text: bytes, expected: bytes) -> str:
        """Return what a run depends on."""
        programs = [candidate.submission.code for candidate in self.everybody]
        return hashlib.sha256(repr((programs, problem.cpu_s, text, expected)).encode()).hexdigest()

    def execute(
        self,
        runner: Runner,
        name: str,
        problem: CodeProblem,
        candidates: Sequence[Candidate],
        *,
        time_given: bool,
        indices: Sequence[int] | None = None,
        known: Sequence[bool] | None = None,
    ) -> ExecutionMatrix:
        """Stand in for `run_execution_matrix`: run everybody on what is new, return the rows of the candidates."""
        tests, numbers = problem.tests, list(indices or range(len(problem.tests)))
        keys = [self.key(problem, test.input, test.output) for test in tests]
        fresh = [place for place, key in enumerate(keys) if key not in self.kept]
        self.asked += [test.input for test in tests]
        if fresh:
            part = execution_matrix.with_tests(problem, [(tests[at].input, tests[at].output) for at in fresh])
            known_part = None if known is None else [known[at] for at in fresh]
            matrix = execution_matrix.run_execution_matrix(
                runner, name, part, self.everybody, time_given=time_given, known=known_part
            )
            for place, at in enumerate(fresh):
                here = pl.col("test") == place
                self.kept[keys[at]] = matrix.runs.filter(here).to_dicts(), matrix.outputs.filter(here).to_dicts()
        wanted = {candidate.index for candidate in candidates}
        runs, outputs = [], []
        for key, number in zip(keys, numbers, strict=True):
            rows, texts = self.kept[key]
            runs += [{**row, "problem": name, "test": number} for row in rows if row["solution"] in wanted]
            outputs += [{**row, "problem": name, "test": number} for row in texts]
        return ExecutionMatrix(
            pl.DataFrame(runs, schema=execution_matrix.MEASURED, orient="row"),
            pl.DataFrame(outputs, schema=execution_matrix.OUTPUT, orient="row"),
            problem.cpu_s, len(runs), 0, "",
        )  # fmt: skip

    def runs_on(self, problem: CodeProblem, text: bytes, expected: bytes) -> dict[int, dict[str, Any]]:
        """Return solution → its run on an input that was asked for before."""
        rows, _ = self.kept[self.key(problem, text, expected)]
        return {row["solution"]: row for row in rows}


def keep_compiled(runner: Runner, folder: Path) -> None:
    """Keep compiled programs on disk, so that a further measurement compiles nothing."""
    compile_now = runner.compile
    folder.mkdir(exist_ok=True)

    def compile_once(sources: Mapping[str, bytes], command: Sequence[str], *limits: Any) -> Any:
        digest = hashlib.sha256(repr((tuple(command), sorted(sources.items()))).encode()).hexdigest()
        file = folder / digest
        if file.is_file():
            return pickle.loads(file.read_bytes())
        compiled = compile_now(sources, command, *limits)
        if compiled.ok:
            with atomic_replace(file) as handle:
                handle.write(pickle.dumps(compiled))
        return compiled

    runner.compile = compile_once  # type: ignore[method-assign]


def tree_cpu_s() -> float:
    """Return the CPU seconds of this process and of all below it, those that have ended and were waited for too."""
    times: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        times[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below, total = [os.getpid()], 0.0
    while below:
        parent = below.pop()
        total += times[parent][1]
        below += [pid for pid, (above, _) in times.items() if above == parent]
    return total


def judge_inputs(
    runner: Runner, package: Package, judges: Sequence[ReadyValidator], inputs: Sequence[bytes]
) -> list[InputVerdict]:
    """Return the verdict of the package's validators on each input, by the flags of any of its test groups.

    A validator that reads its limits from its flags refuses all without them. One set of flags must do for an input.
    """
    verdicts = check_inputs(runner, judges, inputs)
    for flags in _group_flags(package.path):
        refused = [place for place, verdict in enumerate(verdicts) if verdict.valid is not True]
        flagged = [replace(judge, validator=replace(judge.validator, args=flags)) for judge in judges]
        for place, verdict in zip(
            refused, check_inputs(runner, flagged, [inputs[place] for place in refused]), strict=True
        ):
            verdicts[place] = verdict if verdict.valid else verdicts[place]
    return verdicts


def _group_flags(path: Path) -> list[tuple[str, ...]]:
    """Return the flags that groups of secret tests give to input validators, no two alike."""
    found: dict[tuple[str, ...], None] = {}
    for file in sorted((path / "data" / "secret").rglob("testdata.yaml")):
        value = (yaml.safe_load(file.read_text()) or {}).get("input_validator_flags")
        if isinstance(value, str) and value:
            found[tuple(value.split())] = None
    return list(found)
