"""Runs each test in its own box, and compares outputs outside.

Invariants: expected outputs never enter a program's box; only exit code 0 is accepted; failures of the sandbox or a
checker are BROKEN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import closing

from curation.verify.programs.checkers import check_outputs
from curation.verify.programs.comparison import same_output
from curation.verify.programs.problem import CaseRun, CodeProblem, CodeVerdict
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits, RunResult

_MIN_OUTPUT_BYTES = 16 << 20
_MAX_OUTPUT_BYTES = 64 << 20

_ENDED = {
    Ending.SIGNALED: CodeVerdict.RTE,
    Ending.CPU_LIMIT: CodeVerdict.TLE,
    Ending.WALL_LIMIT: CodeVerdict.TLE,
    Ending.MEMORY_LIMIT: CodeVerdict.MLE,
    Ending.OUTPUT_LIMIT: CodeVerdict.OLE,
    Ending.BROKEN: CodeVerdict.BROKEN,
}


def failure_of(ran: RunResult) -> tuple[CodeVerdict, str] | None:
    """Return a failed run's verdict and reason."""
    if ran.ending is Ending.EXITED:
        if ran.exit_code == 0:
            return None
        if _is_syntax_error(ran.stderr):
            return CodeVerdict.CE, _last_line(ran.stderr)
        return CodeVerdict.RTE, f"exit code {ran.exit_code}: {_last_line(ran.stderr)}".rstrip(": ")
    verdict = _ENDED[ran.ending]
    if ran.ending is Ending.SIGNALED:
        return verdict, f"signal {ran.signal}"
    if ran.ending is Ending.BROKEN:
        return verdict, f"the sandbox failed: {ran.note}"
    return verdict, ran.ending.value


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _is_syntax_error(stderr: bytes) -> bool:
    kind = _last_line(stderr).partition(":")[0]
    return kind in {"SyntaxError", "IndentationError", "TabError"} and not stderr.startswith(b"Traceback")


def run_tests(
    runner: Runner,
    problem: CodeProblem,
    program: Program,
    indices: Sequence[int],
    *,
    every: bool = False,
) -> list[CaseRun]:
    """Run tests to the first failure unless ``every``."""
    runs: list[CaseRun] = []
    count = 0
    size = len(indices) if problem.checker is None else 1
    while count < len(indices):
        batch = indices[count : count + size]
        _run_batch(runner, problem, program, batch, runs, every)
        count += len(batch)
        size = min(2 * size, 16)
        if not every and runs[-1].verdict is not CodeVerdict.AC:
            break
    if reason := runner.lacking(program, problem.processes):
        runs = [_with_reason(run, reason) for run in runs]
    return runs


def _with_reason(run: CaseRun, why: str) -> CaseRun:
    return run if run.verdict is CodeVerdict.AC else dataclasses.replace(run, how=f"{run.how}; {why}")


def _run_batch(
    runner: Runner,
    problem: CodeProblem,
    program: Program,
    indices: Sequence[int],
    runs: list[CaseRun],
    every: bool,
) -> None:
    expected = max((len(problem.tests[index].output) for index in indices), default=0)
    limits = Limits(
        cpu_s=problem.cpu_s,
        memory_mb=problem.memory_mb,
        output_bytes=min(_MAX_OUTPUT_BYTES, max(_MIN_OUTPUT_BYTES, 4 * expected)),
    )
    unchecked: list[tuple[int, RunResult]] = []

    stdins = [problem.tests[index].input for index in indices]
    with closing(runner.run(program, stdins, limits, processes=problem.processes)) as results:
        for index, ran in zip(indices, results, strict=False):
            outcome = failure_of(ran)
            if outcome is None and problem.checker is not None:
                unchecked.append((len(runs), ran))
                outcome = CodeVerdict.AC, ""
            elif outcome is None:
                right = same_output(problem.tests[index].output, ran.stdout, problem.comparison)
                outcome = (CodeVerdict.AC, "") if right else (CodeVerdict.WA, _excerpt(ran.stdout))
            runs.append(CaseRun(index, outcome[0], ran.cpu_s, ran.wall_s, ran.memory_mb, outcome[1]))
            if outcome[0] is not CodeVerdict.AC and not every:
                break
    if problem.checker is None or not unchecked:
        return
    triples = [
        (problem.tests[runs[position].index].input, problem.tests[runs[position].index].output, ran.stdout)
        for position, ran in unchecked
    ]
    for (position, _), (verdict, how) in zip(unchecked, check_outputs(runner, problem.checker, triples), strict=True):
        runs[position] = dataclasses.replace(runs[position], verdict=verdict, how=how)
        if verdict is not CodeVerdict.AC and not every:
            del runs[position + 1 :]
            break


def _excerpt(output: bytes) -> str:
    text = output[:200].decode("utf-8", "replace")
    return f"it printed {text!r}{'…' if len(output) > 200 else ''}"
