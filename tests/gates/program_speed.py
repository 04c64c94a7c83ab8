"""How many of its own tests per CPU second a judge runs: ours, and LiveCodeBench's runner read from a clone."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from tests.cpu_durations import cpu_s

PROGRAMS = 4
OURS, PEER = "this judge", "LiveCodeBench"
TRIVIAL = "print(sum(map(int, input().split())))\n"
TYPICAL = """import sys
def main():
    data = list(map(int, sys.stdin.read().split()))
    n, values = data[0], data[1:]
    seen = {}
    best = 0
    for place, value in enumerate(values):
        best = max(best, place - seen.setdefault(value, place))
    print(best, sum(sorted(values)[: n // 2]))
main()
"""


def _tests(kind: str) -> tuple[CodeTest, ...]:
    if kind != "typical":
        return tuple(CodeTest(f"{n} {n + 1}\n".encode(), f"{2 * n + 1}\n".encode()) for n in range(20))
    tests = []
    for n in range(20):
        values = [(7919 * place + n) % 1009 for place in range(2000)]
        first_places: dict[int, int] = {}
        best = max(place - first_places.setdefault(value, place) for place, value in enumerate(values))
        text = f"{len(values)}\n{' '.join(map(str, values))}\n"
        tests.append(CodeTest(text.encode(), f"{best} {sum(sorted(values)[:1000])}\n".encode()))
    return tuple(tests)


Run = Callable[[str, tuple[CodeTest, ...]], object]


def peer_runner(folder: Path) -> Run:
    """Return LiveCodeBench's runner, read from the clone in a folder: what it calls per program."""
    sys.path.append(str(folder / PEER))
    check = importlib.import_module("lcb_runner.evaluation.compute_code_generation_metrics").check_correctness

    def run(code: str, tests: tuple[CodeTest, ...]) -> None:
        results = check({"input_output": json.dumps(_pairs(tests))}, code, timeout=6, debug=False)[0]
        assert len(results) == len(tests), results
        assert all(result is True for result in results), results

    return run


def _pairs(tests: tuple[CodeTest, ...]) -> dict[str, list[str]]:
    return {"inputs": [test.input.decode() for test in tests], "outputs": [test.output.decode() for test in tests]}


Ways = dict[str, Callable[[], object]]


def timed(kinds: dict[str, Ways], rounds: int, minutes: float) -> dict[str, dict[str, list[float]]]:
    """Return the CPU seconds of four programs in each round, by kind and way.

    Rounds are interleaved, until their number or the time is reached; one more comes first, and warms.
    """
    until = time.monotonic() + 60 * minutes
    took: dict[str, dict[str, list[float]]] = {}
    for round_number in range(rounds + 1):
        for kind, ways in kinds.items():
            for way, act in ways.items():
                before = cpu_s()
                for _ in range(PROGRAMS):
                    act()
                if round_number:
                    took.setdefault(kind, {}).setdefault(way, []).append(cpu_s() - before)
        if round_number and time.monotonic() > until:
            print(f"stopped after {round_number} rounds", file=sys.stderr)
            break
    return took


def ways_of_judging(runner: Runner, peer: Run) -> dict[str, Ways]:
    """Return what is timed in Python: by kind of program, by way of judging it."""
    kinds: dict[str, Ways] = {}
    for kind, code in (("trivial", TRIVIAL), ("typical", TYPICAL)):
        tests = _tests(kind)
        ours = partial(_accepted, runner, CodeProblem(kind, tests), Submission(CodeLang.PYTHON, code))
        kinds[kind] = {OURS: ours, PEER: partial(peer, code, tests)}
    return kinds


def _accepted(runner: Runner, problem: CodeProblem, submission: Submission) -> None:
    (result,) = judge_programs(runner, [(problem, submission)])
    assert result.verdict is CodeVerdict.AC, result
