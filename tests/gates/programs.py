"""Programs: the sandbox's properties, foreign programs judged as outside, speed against LiveCodeBench's runner.

`GOLDILOCKS_PACKAGES` names folders of Kattis packages, `GOLDILOCKS_PEERS` a folder with a clone of LiveCodeBench.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from curation.verify.sandbox.doctor import diagnose, working_rungs
from tests.cpu_durations import cpu_s
from tests.curation.verify.programs.differential import Bare, Seen, differences, load
from tests.curation.verify.programs.foreign_styles import Style, of_data_sets, of_packages
from tests.gates.base import Limit, Measured, SkippedError, counted, gate, middle, shared

ROUNDS, MINUTES = 25, 4.0


@gate("doctor", Limit("==", 100, "%"))
def doctor() -> Measured:
    """Return the share of the isolation's properties that hold, on every rung that works on this machine."""
    found = {rung: diagnose(rung) for rung in working_rungs()}
    if not found:
        return Measured(0, note="no rung works on this machine")
    failing = [f"{one.name} ({one.by}) on {rung}" for rung, some in found.items() for one in some if not one.ok]
    held = [f"{rung} {sum(one.ok for one in some)} of {len(some)}" for rung, some in found.items()]
    count = sum(map(len, found.values()))
    note = ", ".join(held) + "".join(f"; fails: {name}" for name in failing)
    return Measured(100 * (count - len(failing)) / count, note=note)


def _packages() -> dict[str, Style]:
    folders = os.environ.get("GOLDILOCKS_PACKAGES", "")
    return {name: style for folder in folders.split(os.pathsep) if folder for name, style in of_packages(Path(folder))}


@cache
def _programs() -> tuple[dict[str, Style], str]:
    """Return all programs, and what was left out."""
    packages = _packages()
    note = f"{len(packages)} of packages" if packages else "Kattis packages left out: GOLDILOCKS_PACKAGES names none"
    return {**of_data_sets(shared("code")), **packages}, note


def _judged_otherwise(every: int, loads: Sequence[int]) -> Measured:
    """Return how many programs have another verdict or output in a box than outside, on every rung under each load.

    Each load is a number of busy processes; a program that does not end outside is left out.
    """
    programs, packages = _programs()
    truth: dict[str, tuple[Style, Seen]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder))
        for name, style in list(programs.items())[::every]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                truth[name] = style, bare.run(style)
    differ, notes, rungs = set[str](), list[str](), working_rungs()
    for rung in rungs:
        with Runner(1, rung=rung) as runner:
            for busy in loads:
                with load(busy):
                    found = differences(runner, truth)
                differ |= set(found)
                notes += [f"{name} on {rung}: {words[0]}, outside {words[2]}" for name, words in found.items()]
    if not rungs:
        return Measured(len(truth), len(truth), note="no rung works on this machine")
    verdicts = {verdict: sum(seen[0] == verdict for _, seen in truth.values()) for verdict in ("AC", "RTE")}
    summary = f"{verdicts['AC']} end well outside, {verdicts['RTE']} fail; on {', '.join(rungs)}; {packages}"
    return counted(len(differ), len(truth), "; ".join([summary, *notes[:5]]))


@gate("foreign-programs", Limit("<=", 0))
def foreign() -> Measured:
    """Compare one program in 27, without other load."""
    return _judged_otherwise(27, [0])


@gate("foreign-programs-busy", Limit("<=", 0), tier="room")
def foreign_busy() -> Measured:
    """Compare one program in nine, with one busy process and with sixteen."""
    return _judged_otherwise(9, [1, 16])


@gate("foreign-programs-all", Limit("<=", 0), tier="all")
def foreign_all() -> Measured:
    """Compare every program, without other load."""
    return _judged_otherwise(1, [0])


# Speed against LiveCodeBench's runner

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
        pairs = {"inputs": [one.input.decode() for one in tests], "outputs": [one.output.decode() for one in tests]}
        results = check({"input_output": json.dumps(pairs)}, code, timeout=6, debug=False)[0]
        assert len(results) == len(tests), results
        assert all(result is True for result in results), results

    return run


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


@gate("speed", Limit(">=", 1.2, "times LiveCodeBench"), tier="room")
def speed() -> Measured:
    """Return how many times our tests per CPU second are LiveCodeBench's, of the kind of program where it is less."""
    folder = Path(os.environ.get("GOLDILOCKS_PEERS") or "peers")
    if not (folder / PEER / "lcb_runner").is_dir():
        raise SkippedError("GOLDILOCKS_PEERS names no folder with a clone of LiveCodeBench/LiveCodeBench")
    peer = peer_runner(folder)
    with Runner(1) as runner:
        took = timed(ways_of_judging(runner, peer), ROUNDS, MINUTES)
    found = {
        kind: middle([theirs / own for own, theirs in zip(by_way[OURS], by_way[PEER], strict=True)])
        for kind, by_way in took.items()
    }
    value, interval = min(found.values())
    return Measured(value, None, interval, ", ".join(f"{kind} {ratio:.2f}" for kind, (ratio, _) in found.items()))
