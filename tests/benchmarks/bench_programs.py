"""How fast and how right programs are judged.

    python tests/benchmarks/bench_programs.py speed [--rounds 9] [--minutes 1.5] [--peers FOLDER] [--kind cpp]
    python tests/benchmarks/bench_programs.py accuracy FOLDER [--minutes 20] [--workers 2] [--out OUT.jsonl]
    python tests/benchmarks/bench_programs.py functions FOLDER [--workers 2] [--only humaneval]

``speed`` judges 20-test programs, one core, rounds interleaved, beside a bare `subprocess.run` per test and beside
the runners of LiveCodeBench and verl where FOLDER holds their repositories (``LiveCodeBench``, ``verl``); nothing of
them is part of the project. ``accuracy`` judges every submission of the Kattis packages in FOLDER on all tests and
lists each disagreement with the verdict that the package promises. ``functions`` judges the canonical solutions of
HumanEval, HumanEval-X and MBPP in FOLDER.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import importlib.util
import json
import math
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from curation.records import GoldilocksError
from curation.sources.kattis import MAX_TIME_LIMIT_S, Package, PackagedSubmission, find_packages, read_package
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, CodeVerdict, ProgramResult, Submission
from curation.verify.programs.tools import Runner
from tests.benchmarks.function_benchmarks import human_eval, mbpp
from tests.benchmarks.planting import multiplier_of

PROGRAMS = 4
OURS, BARE = "this judge", "bare subprocess.run"
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
TRIVIAL_CPP = "#include <bits/stdc++.h>\nint main() { long a, s = 0; while (std::cin >> a) s += a; std::cout << s; }\n"


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


def _bare(argv: list[str], tests: tuple[CodeTest, ...]) -> None:
    for test in tests:
        completed = subprocess.run(argv, input=test.input, capture_output=True, check=True)
        assert completed.stdout.split() == test.output.split()


Run = Callable[[str, tuple[CodeTest, ...]], object]


def peer_runners(folder: Path | None) -> dict[str, Run]:
    """Return other projects' runners, read from their sources: what they call per program, and their core alone.

    ``…'s core``: one process per program, forked here as cheaply as can be. Both projects' own `check_correctness`
    starts a manager process besides.
    """
    runners: dict[str, Run] = {}
    if folder is None:
        return runners
    lcb, prime = folder / "LiveCodeBench", folder / "verl" / "verl" / "utils" / "reward_score" / "prime_code"
    if (lcb / "lcb_runner").is_dir():
        sys.path.append(str(lcb))
        check = importlib.import_module("lcb_runner.evaluation.compute_code_generation_metrics").check_correctness
        core = importlib.import_module("lcb_runner.evaluation.testing_util").run_test

        def sample(tests: tuple[CodeTest, ...]) -> dict[str, str]:
            return {"input_output": json.dumps(_pairs(tests))}

        runners["LiveCodeBench"] = lambda code, tests: _all(
            check(sample(tests), code, timeout=6, debug=False)[0], tests
        )
        runners["LiveCodeBench's core"] = _forked(lambda code, tests: core(sample(tests), code, False, 6)[0])
    if prime.is_dir():
        if importlib.util.find_spec("pyext") is None:
            sys.modules["pyext"] = _pyext()
        package = sys.modules["prime_code"] = types.ModuleType("prime_code")
        package.__path__ = [str(prime)]
        whole = importlib.import_module("prime_code.utils").check_correctness
        inner = importlib.import_module("prime_code.testing_util").run_test
        runners["verl prime_code"] = lambda code, tests: _all(
            whole(_pairs(tests), code, timeout=6, debug=False)[0], tests
        )
        runners["verl prime_code's core"] = _forked(lambda code, tests: inner(_pairs(tests), code, False, 6)[0])
    return runners


def _pyext() -> types.ModuleType:
    """Return what verl uses of the package pyext, where that is not installed: a module made of its source."""

    class RuntimeModule:
        @staticmethod
        def from_string(name: str, doc: str, source: str) -> types.ModuleType:
            module = types.ModuleType(name, doc)
            exec(source, module.__dict__)
            return module

    module = types.ModuleType("pyext")
    module.RuntimeModule = RuntimeModule  # type: ignore[attr-defined]
    return module


def _all(results: Sequence[object], tests: tuple[CodeTest, ...]) -> None:
    assert len(results) == len(tests), results
    assert all(result is True for result in results), results


def _pairs(tests: tuple[CodeTest, ...]) -> dict[str, list[str]]:
    return {"inputs": [test.input.decode() for test in tests], "outputs": [test.output.decode() for test in tests]}


def _forked(judge: Callable[[str, tuple[CodeTest, ...]], Sequence[object]]) -> Run:
    """Return a runner loaded here, in a forked process per program."""
    fork = multiprocessing.get_context("fork")

    def child(code: str, tests: tuple[CodeTest, ...], queue: Any) -> None:
        with open(os.devnull, "w") as nowhere:
            sys.stdout = sys.stderr = nowhere
            queue.put(list(judge(code, tests)))

    def run(code: str, tests: tuple[CodeTest, ...]) -> None:
        queue: Any = fork.Queue()
        process = fork.Process(target=child, args=(code, tests, queue))
        process.start()
        results = queue.get(timeout=120)
        process.join()
        _all(results, tests)

    return run


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from _descendants(int(child))


def cpu_s() -> float:
    """Return CPU seconds so far of this process, of its ended children and of all that live below it (10 ms steps)."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(own.ru_utime + own.ru_stime for own in usage)
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def speed(rounds: int, minutes: float, peers: Path | None, only: str | None = None) -> None:
    """Print tests per second of each way on one core, and per CPU second, which the machine's load changes less.

    ``of this judge``: the median over the rounds of this judge's speed divided by the other's in the same round.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with Runner(1) as runner, tempfile.TemporaryDirectory() as folder:
        print(runner.description)
        kinds = {**ways_of_judging(runner, peer_runners(peers), Path(folder)), **cpp_ways(runner, Path(folder))}
        took = timed({kind: ways for kind, ways in kinds.items() if only in (None, kind)}, rounds, minutes)
    for kind, by_way in took.items():
        mine = by_way[OURS]
        for way, theirs in by_way.items():
            wall, cpu = (statistics.median(sample[which] for sample in theirs) for which in (0, 1))
            count = 20 * PROGRAMS
            line = f"{kind:8} {way:24} {count / wall:6.0f} tests/s {count / cpu:6.0f} per CPU second"
            pairs = list(zip(mine, theirs, strict=True))
            ratios = [statistics.median(other[which] / own[which] for own, other in pairs) for which in (0, 1)]
            print(line if way == OURS else f"{line}   this judge {ratios[0]:.2f} x, by CPU {ratios[1]:.2f} x")


Ways = dict[str, Callable[[], object]]


def timed(kinds: dict[str, Ways], rounds: int, minutes: float) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return wall and CPU seconds of four programs in each round, by kind and way.

    Rounds are interleaved, until their number or the time is reached; one more comes first, and warms.
    """
    until = time.monotonic() + 60 * minutes
    took: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for round_number in range(rounds + 1):
        for kind, ways in kinds.items():
            for way, act in ways.items():
                start, cpu = time.perf_counter(), cpu_s()
                for _ in range(PROGRAMS):
                    act()
                spent = time.perf_counter() - start, cpu_s() - cpu
                if round_number:
                    took.setdefault(kind, {}).setdefault(way, []).append(spent)
        if round_number and time.monotonic() > until:
            print(f"stopped after {round_number} rounds", file=sys.stderr)
            break
    return took


def ways_of_judging(runner: Runner, peers: Mapping[str, Run], folder: Path) -> dict[str, Ways]:
    """Return what is timed in Python: by kind of program, by way of judging it."""
    kinds: dict[str, Ways] = {}
    for kind, code in (("trivial", TRIVIAL), ("typical", TYPICAL)):
        tests, script = _tests(kind), folder / f"{kind}.py"
        script.write_text(code)
        kinds[kind] = {
            OURS: partial(_accepted, runner, CodeProblem(kind, tests), Submission(CodeLang.PYTHON, code)),
            BARE: partial(_bare, [sys.executable, str(script)], tests),
            **{name: partial(run, code, tests) for name, run in peers.items()},
        }
    return kinds


def cpp_ways(runner: Runner, folder: Path) -> dict[str, Ways]:
    """Return what is timed in C++."""
    binary, tests = folder / "bare", _tests("cpp")
    build = ["g++", "-O2", "-std=gnu++20", "-o", binary, "-x", "c++", "-"]
    subprocess.run(build, input=TRIVIAL_CPP.encode(), check=True)
    submission = Submission(CodeLang.CPP, TRIVIAL_CPP)
    return {
        "cpp": {
            OURS: partial(_accepted, runner, CodeProblem("cpp", tests), submission),
            BARE: partial(_bare, [str(binary)], tests),
        }
    }


def _accepted(runner: Runner, problem: CodeProblem, submission: Submission) -> None:
    (result,) = judge_programs(runner, [(problem, submission)])
    assert result.verdict is CodeVerdict.AC, result


def accuracy(
    folder: Path, minutes: float, workers: int, out: Path | None, only: str, most: tuple[float, float]
) -> None:
    """Compare every judged submission of every package with the verdict it is filed under.

    Packages that ``out`` already holds are not judged again; the counts are of all that it holds.
    """
    counts: Counter[str] = Counter()
    before = [json.loads(line) for line in out.read_text().splitlines()] if out is not None and out.is_file() else []
    for line in before:
        _count(counts, line)
    judged = {line["package"] for line in before}
    counts["packages judged"] = len(judged)
    until = time.monotonic() + 60 * minutes
    with Runner(workers) as runner:
        print(runner.description)
        for path in find_packages(folder):
            name = str(path.relative_to(folder))
            if only not in str(path) or name in judged:
                continue
            if time.monotonic() > until:
                counts["packages not reached"] += 1
                continue
            try:
                package = read_package(path)
            except GoldilocksError as error:
                print(f"unreadable: {error}")
                continue
            if package.problem.refused is not None or not package.problem.tests:
                counts["packages refused"] += 1
                continue
            if sum(len(test.input) for test in package.problem.tests) > most[0] * 1e6:
                counts["packages too big for this run"] += 1
                continue
            kind = "checker" if package.problem.checker is not None else "default"
            counts["packages judged"] += 1
            lines = [{"package": name, "kind": kind, **line} for line in _judged(runner, package, most[1])]
            for line in lines:
                _count(counts, line)
                if not line["agree"]:
                    print(json.dumps(line), flush=True)
            if out is not None:
                with out.open("a") as file:
                    file.write("".join(json.dumps(line) + "\n" for line in lines))
    for name, count in sorted(counts.items()):
        print(f"{name:40} {count}")


def _count(counts: Counter[str], line: dict[str, Any]) -> None:
    counts[f"{line['kind']} {line['expected']} {'agree' if line['agree'] else 'DISAGREE'}"] += 1


def _judged(runner: Runner, package: Package, generous_s: float) -> Iterator[dict[str, Any]]:
    problem = package.problem if package.has_time_limit else dataclasses.replace(package.problem, cpu_s=generous_s)
    right = [submission for submission in package.submissions if submission.lang is not None and submission.accepted]
    wrong = [submission for submission in package.submissions if submission.lang is not None and submission.rejected]
    results = list(judge_programs(runner, ((problem, _program(submission)) for submission in right)))
    if not package.has_time_limit:  # what was accepted under a generous limit is so under the one derived from it
        times = [run.cpu_s for result in results if result.verdict is CodeVerdict.AC for run in result.tests]
        limit = max(1, math.ceil(max(times, default=0.4) * multiplier_of(package)))  # the format's rule
        problem = dataclasses.replace(problem, cpu_s=float(limit))
    results += judge_programs(runner, ((problem, _program(submission)) for submission in wrong))
    for submission, result in zip((*right, *wrong), results, strict=True):
        accepted = result.verdict is CodeVerdict.AC
        agree = accepted == submission.accepted and result.verdict not in (CodeVerdict.BROKEN, CodeVerdict.CE)
        yield {
            "name": submission.name,
            "expected": "accepted" if submission.accepted else "rejected",
            "agree": agree,
            "verdict": result.verdict.value,
            "test": _name(problem, result),
            "method": result.how[:200],
            "limit_s": problem.cpu_s,
            "slowest_s": round(max((run.cpu_s for run in result.tests), default=0.0), 2),
        }


def _program(submission: PackagedSubmission) -> Submission:
    assert submission.lang is not None
    return Submission(submission.lang, submission.code)


def _name(problem: CodeProblem, result: ProgramResult) -> str | None:
    return None if result.first_failed is None else problem.tests[result.first_failed].name


def functions(folder: Path, workers: int, only: str) -> None:
    """Print the share of canonical solutions accepted, and those that are not."""
    with Runner(workers) as runner:
        for path in sorted(folder.glob("*.jsonl")):
            if only not in path.name:
                continue
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            jobs = [mbpp(row) if "test_list" in row else human_eval(row) for row in rows]
            start, accepted = time.monotonic(), 0
            for (problem, submission), result in zip(jobs, judge_programs(runner, jobs), strict=True):
                accepted += result.verdict is CodeVerdict.AC
                if result.verdict is not CodeVerdict.AC:
                    print(problem.id, submission.lang.value, result.verdict.value, result.how[:300], flush=True)
            print(f"{path.name}: {accepted} of {len(jobs)} accepted, {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    """Read the command line and run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    fast = ways.add_parser("speed")
    fast.add_argument("--rounds", type=int, default=9)
    fast.add_argument("--minutes", type=float, default=1.5, help="no round begins after these")
    fast.add_argument("--peers", type=Path)
    fast.add_argument("--kind", choices=("trivial", "typical", "cpp"), help="this kind of program alone")
    right = ways.add_parser("accuracy")
    right.add_argument("folder", type=Path)
    right.add_argument("--minutes", type=float, default=20.0)
    right.add_argument("--workers", type=int, default=2)
    right.add_argument("--out", type=Path)
    right.add_argument("--only", default="", help="packages whose path contains this")
    right.add_argument("--most-mb", type=float, default=1e6, help="packages with more input are left out")
    right.add_argument(
        "--generous-s", type=float, default=MAX_TIME_LIMIT_S, help="limit for measuring the accepted ones"
    )
    whole = ways.add_parser("functions")
    whole.add_argument("folder", type=Path)
    whole.add_argument("--workers", type=int, default=2)
    whole.add_argument("--only", default="")
    args = parser.parse_args()
    if args.way == "functions":
        functions(args.folder, args.workers, args.only)
    elif args.way == "speed":
        speed(args.rounds, args.minutes, args.peers, args.kind)
    else:
        accuracy(args.folder, args.minutes, args.workers, args.out, args.only, (args.most_mb, args.generous_s))


if __name__ == "__main__":
    main()
