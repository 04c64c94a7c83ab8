"""Made tests, judged by real packages: are they valid, do right programs pass them, are wrong programs caught?

    python -m tests.benchmarks.bench_made_tests FOLDER [FOLDER …] [--out DIR] [--validators]

The folders hold packages of the Kattis format at any depth. Of each package the samples are given, and the pipeline's
own stage makes tests from these alone. The packages' input validators are hidden from it, unless ``--validators``
gives them; either way they judge what it kept:

    valid   made tests kept whose input all validators of the package accept
    TPR     accepted submissions that pass the samples and the made tests
    TNR     wrong submissions that fail one of them; `made` counts those that the samples let pass

A package's secret tests are the truth: an accepted submission counts where it passes them, a wrong one where it fails.
As in the product, a program in Python has `language_variants.python_factor` times the problem's limit, here and there.
Programs are held out: a submission is scored on tests that were made, voted on and chosen without it. Each accepted
one is left out by itself; the wrong ones too, or in ``--folds`` parts. Programs are run once on each input, whatever
the fold.

Packages are split by a hash of their names: those that the generators' authors may look at, and those that are only
scored on. Both are printed. Where nothing is made, the reason is.

``--truncate`` instead gives all tests of up to 100 KB, a few of their inputs cut somewhere so that the package's
validators refuse them, and counts which of them stay, corrected or as they are, and which sound tests are lost.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import pickle
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Candidate, ExecutionMatrix
from curation.programs.language_variants import time_factor
from curation.sources.code_problems import package_tables
from curation.sources.kattis import Package, PackagedSubmission
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from curation.verify.programs.validators import ReadyValidator, check_inputs, prepare_validator
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.code_generation import GeneratedTests, generate_tests, vouching_of
from flows.stages.units import Unit
from tests.benchmarks.planting import packages_in

PARTS = ("looked_at", "held_out")
MOST_KB = 256
"""Larger secret tests are left out of the truth."""
SECRET = 20
"""Secret tests that are the truth, drawn by chance where there are more."""


@dataclass(slots=True)
class Scored:
    """What was counted of one package."""

    name: str
    valid: int = 0
    made: int = 0
    run: int = 0
    run_valid: int = 0
    right: int = 0
    right_passed: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)  # label, what caught it: samples, made, none
    seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


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
        self.file.write_bytes(pickle.dumps(self.kept))

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
        settings: Any,
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
                runner, name, part, self.everybody, settings, time_given=time_given, known=known_part
            )
            for place, at in enumerate(fresh):
                here = pl.col("test") == place
                self.kept[keys[at]] = matrix.runs.filter(here).to_dicts(), matrix.outputs.filter(here).to_dicts()
            self.save()
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


def chosen(package: Package, right: int, wrong: int, seed: int) -> list[PackagedSubmission]:
    """Return up to so many accepted and rejected submissions, drawn by the seed."""
    draw = random.Random(f"{seed} {package.name}")
    readable = [sub for sub in package.submissions if sub.lang is not None]
    accepted, rejected = [sub for sub in readable if sub.accepted], [sub for sub in readable if sub.rejected]
    return [
        *draw.sample(accepted, min(right, len(accepted))),
        *draw.sample(rejected, min(wrong, len(rejected))),
    ]


def truth(run: Run, runner: Runner, package: Package, subs: Sequence[PackagedSubmission], file: Path) -> dict[str, Any]:
    """Return the time limit in seconds, and whether each submission passes the package's secret tests, by its code."""
    if file.is_file():
        known: dict[str, Any] = json.loads(file.read_text())
        return known
    secret = [test for test in package.problem.tests[package.samples :] if len(test.input) <= MOST_KB << 10]
    secret = random.Random(package.name).sample(secret, SECRET) if len(secret) > SECRET else secret
    problem = execution_matrix.with_tests(package.problem, [(test.input, test.output) for test in secret])
    limit = package.problem.cpu_s if package.has_time_limit else 4.0
    passes: dict[str, bool] = {}
    for accepted in (True, False):
        part = [sub for sub in subs if sub.accepted is accepted]
        jobs = [
            (dataclasses.replace(problem, cpu_s=limit * factor_of(run, sub.lang)), Submission(sub.lang, sub.code))
            for sub in part if sub.lang is not None
        ]  # fmt: skip
        results = list(judge_programs(runner, jobs))
        passes |= {_code(sub): r.verdict is CodeVerdict.AC for sub, r in zip(part, results, strict=True)}
        times = [run.cpu_s for r in results if r.verdict is CodeVerdict.AC for run in r.tests]
        if accepted and not package.has_time_limit:
            limit = float(max(1, -(-max(times, default=1.0) * package.multiplier // 1)))
    told = {"limit": limit, "passes": passes}
    file.write_text(json.dumps(told))
    return told


def factor_of(run: Run, lang: CodeLang) -> float:
    """Return what multiplies the problem's limit for programs in a language."""
    return time_factor(lang.value, run.recipe.code.language_variants)


def _code(sub: PackagedSubmission) -> str:
    return hashlib.sha256(sub.code.encode("utf-8", "surrogateescape")).hexdigest()


def unit_of(package: Package, subs: Sequence[PackagedSubmission], limit: float, *, validators: bool) -> Unit:
    """Return a package as the stages see it, with its samples as its only tests."""
    tables = package_tables([package.name], [package])
    rows = [(package.name, i, sub.lang.value, sub.code, sub.accepted, sub.name)
            for i, sub in enumerate(subs) if sub.lang is not None]  # fmt: skip
    judging = {**tables.judging.row(0, named=True), "time_limit_s": limit}
    if not validators:
        judging["validator"] = judging["validator_lang"] = None
    solutions = pl.DataFrame(rows, schema=tables.solutions.schema, orient="row")
    row = {"id": package.name, "statement": package.statement}
    return Unit(row, tables.tests.filter(pl.col("origin") == "sample"), 0, solutions, judging)


def measured_run(settings: Sequence[str], seed: int) -> Run:
    """Return a run with the defaults of the code pipeline, its settings changed by ``settings``."""
    from flows.run.recipe import override_recipe

    policy = {"kind": "recorded", "name": "nobody@none", "path": "none.jsonl", "columns": {"text": "text"}}
    source = {"name": "packages", "kind": "kattis", "path": ".", "domain": "code"}
    table = {"name": "made-tests", "flow": "curate-code", "seed": seed, "sources": [source]}
    table["stage1"] = {"policy": policy}
    recipe = override_recipe(parse_recipe(table, "bench_made_tests"), settings)
    return Run(Path("."), recipe, Path("."))


def score(
    run: Run, runner: Runner, package: Package, subs: Sequence[PackagedSubmission], out: Path, args: argparse.Namespace
) -> Scored | None:
    """Make tests of one package for each fold, and count."""
    begin = time.monotonic()
    if package.has_time_limit and package.problem.cpu_s > args.most_s:
        return None
    programs = hashlib.sha256(repr([sub.code for sub in subs]).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    file = out / f"{package.name}.{programs}.truth.json"
    known = truth(run, runner, package, subs, file)
    subs = [sub for sub in subs if known["passes"][_code(sub)] is sub.accepted]
    if known["limit"] > args.most_s or sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    ready = [prepare_validator(runner.tools, validator) for validator in package.validators]
    judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
    if not judges:
        return None
    unit = unit_of(package, subs, known["limit"], validators=args.validators)
    everybody = unit.candidates(run)
    memory = Memory(out / f"{package.name}.{programs}.runs.pkl", everybody)
    scored = Scored(package.name)
    inputs: set[str] = set()
    parts = _parts(everybody, args.folds)
    for held in parts:
        others = [candidate for candidate in everybody if candidate.index not in held]
        generated, problem = _fold(run, runner, unit, memory, others, known["limit"])
        scored.reasons[generated.reason] += 1
        inputs |= {text for _, _, text, _, _ in generated.tests}
        scored.made += len(generated.tests)
        for candidate in everybody:
            if candidate.index in held:
                most_s = problem.cpu_s * factor_of(run, candidate.submission.lang)
                _score_one(memory, problem, unit, generated, candidate, subs[candidate.index], held, scored, most_s)
    memory.save()
    asked = list(dict.fromkeys(text for text in memory.asked if text.decode() not in set(unit.tests["input"])))
    verdicts = dict(zip(asked, check_inputs(runner.tools, judges, asked), strict=True))
    scored.run, scored.run_valid = len(asked), sum(verdict.valid is True for verdict in verdicts.values())
    bad = [text for text in sorted(inputs) if not verdicts[text.encode()].valid]
    scored.valid, scored.made = len(inputs) - len(bad), len(inputs)
    scored.notes += [f"{text[:60]!r}: {verdicts[text.encode()].words[:140]!r}" for text in bad[:3]]
    scored.seconds = time.monotonic() - begin
    return scored


def _parts(everybody: Sequence[Candidate], folds: int) -> list[frozenset[int]]:
    """Return what each fold holds out: one right submission, or a part of the wrong ones, ``folds`` parts in all."""
    right = [frozenset({candidate.index}) for candidate in everybody if candidate.right]
    wrong = [candidate.index for candidate in everybody if not candidate.right]
    parts: list[set[int]] = [set() for _ in range(folds or len(wrong))]
    for number, index in enumerate(wrong):
        parts[number % len(parts)].add(index)
    return [*right, *(frozenset(part) for part in parts if part)]


def _fold(
    run: Run, runner: Runner, unit: Unit, memory: Memory, candidates: Sequence[Candidate], limit: float
) -> tuple[GeneratedTests, CodeProblem]:
    """Return the tests that the stage makes with these candidates, and the problem under its limit."""
    settings = run.recipe.code
    indices = [candidate.index for candidate in candidates]
    seen = Unit(unit.row, unit.tests, 0, unit.solutions.filter(pl.col("index").is_in(indices)), unit.judging)
    problem = unit.problem(run, limit)
    matrix = memory.execute(
        runner, unit.name, problem, candidates, settings.execution_matrix, time_given=True,
        indices=unit.tests["index"].to_list(), known=[True] * unit.tests.height,
    )  # fmt: skip
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    decisions = tests_agreement.decide_tests(matrix.runs, settings.agreement, ids)
    tests = execution_matrix.corrected(unit.tests, decisions, matrix.outputs)
    vouching = vouching_of(run, seen, runner, ())
    generated = generate_tests(run, seen, runner, matrix.runs, decisions, tests, limit, (), vouching, memory.execute)
    return generated, problem


def _score_one(
    memory: Memory,
    problem: CodeProblem,
    unit: Unit,
    generated: GeneratedTests,
    candidate: Candidate,
    sub: PackagedSubmission,
    held: frozenset[int],
    scored: Scored,
    most_s: float,
) -> None:
    """Count whether a submission that was held out passes the samples and the made tests, in ``most_s`` each.

    A wrong one in Python is run within the problem's own limit, as the pipeline does.
    """

    def fails(text: str, expected: str, *, given: bool) -> bool:
        runs = memory.runs_on(problem, text.encode(), expected.encode())
        own = runs.get(candidate.index)
        if own is None or own["ended"] == "skipped":
            return False
        wanted = {runs[c.index]["output"] for c in memory.everybody
                  if c.right and c.index not in held and c.index in runs and runs[c.index]["valid"]}  # fmt: skip
        right = own["expected"] if given else own["output"] in wanted
        return not (own["valid"] and right and own["cpu_s"] <= most_s)

    by_samples = any(fails(*pair, given=True) for pair in unit.tests.select("input", "output").iter_rows())
    failed = [text for _, _, text, _, _ in generated.tests if fails(text, "", given=False)]
    if candidate.right:
        scored.right += 1
        scored.right_passed += not by_samples and not failed
        if failed and not by_samples:
            scored.notes.append(f"accepted {sub.name} fails on {failed[0][:60]!r}")
        return
    how = "samples" if by_samples else "made" if failed else "none"
    scored.wrong.append((sub.name.split("/")[0], how))
    if how == "none":
        scored.notes.append(f"{sub.name} passes everything, {len(generated.tests)} tests")


def report(title: str, all_scored: Sequence[Scored]) -> None:
    """Print the totals."""
    made, valid = sum(s.made for s in all_scored), sum(s.valid for s in all_scored)
    ran, ran_valid = sum(s.run for s in all_scored), sum(s.run_valid for s in all_scored)
    right, passed = sum(s.right for s in all_scored), sum(s.right_passed for s in all_scored)
    wrong = [entry for s in all_scored for entry in s.wrong]
    hows = Counter(how for _, how in wrong)
    caught = hows["samples"] + hows["made"]
    passing = hows["made"] + hows["none"]
    seconds = sorted(s.seconds for s in all_scored)
    print(f"== {title}: {len(all_scored)} packages, {sum(seconds):.0f} s, half of them within "
          f"{seconds[len(seconds) // 2] if seconds else 0:.0f} s; nothing made for "
          f"{sum(not s.made for s in all_scored)}")  # fmt: skip
    print(f"inputs that were run: {ran_valid} of {ran} valid ({ran_valid / max(1, ran):.1%})")
    print(f"inputs that were kept: {valid} of {made} valid ({valid / max(1, made):.1%})")
    print(f"TPR {passed} of {right} ({passed / max(1, right):.1%})")
    print(f"TNR {caught} of {len(wrong)} ({caught / max(1, len(wrong)):.1%}); the samples alone {hows['samples']}; "
          f"of the {passing} that these let pass {hows['made']} ({hows['made'] / max(1, passing):.1%})")  # fmt: skip
    for label in sorted({label for label, _ in wrong}):
        own = Counter(how for kind, how in wrong if kind == label)
        print(f"  {label}: samples {own['samples']}, made {own['made']}, none {own['none']}")
    reasons = Counter(max(s.reasons, key=lambda why: s.reasons[why]).split(":")[0] for s in all_scored if s.reasons)
    print(
        "  packages by how the making ended: " + "; ".join(f"{why or 'made'} {n}" for why, n in reasons.most_common())
    )


def part_of(name: str) -> str:
    """Return whether the generators' authors may look at a package, or only score on it: by its name's hash."""
    return PARTS[hashlib.sha256(name.encode()).digest()[0] % 2]


def packages_of(folders: Sequence[Path], count: int, seed: int, parts: Sequence[str] = PARTS) -> Iterator[Package]:
    """Yield packages that can be measured, in an order drawn by the seed."""
    usable = [
        package
        for package in packages_in(folders)
        if not set(package.reasons) - {"image"} and package.validators and package.samples
        and package.problem.test_count > package.samples and part_of(package.name) in parts
    ]  # fmt: skip
    random.Random(seed).shuffle(usable)
    yield from usable[:count]


def keep_compiled(runner: Runner, folder: Path) -> None:
    """Keep compiled programs on disk, so that a further measurement compiles nothing."""
    compile_now = runner.tools.compile
    folder.mkdir(exist_ok=True)

    def compile_once(sources: Mapping[str, bytes], command: Sequence[str], *limits: Any) -> Any:
        digest = hashlib.sha256(repr((tuple(command), sorted(sources.items()))).encode()).hexdigest()
        file = folder / digest
        if file.is_file():
            return pickle.loads(file.read_bytes())
        compiled = compile_now(sources, command, *limits)
        if compiled.ok:
            file.write_bytes(pickle.dumps(compiled))
        return compiled

    runner.tools.compile = compile_once  # type: ignore[method-assign]


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="what was run is kept here, for a further measurement")
    parser.add_argument("--packages", type=int, default=24)
    parser.add_argument("--part", choices=PARTS, help="those that were looked at, or only scored on; without it both")
    parser.add_argument("--seed", type=int, default=7, help="draws packages and submissions")
    parser.add_argument("--folds", type=int, default=0, help="parts of the wrong ones; 0: each by itself")
    parser.add_argument("--right", type=int, default=4, help="accepted submissions of a package at most")
    parser.add_argument("--wrong", type=int, default=6, help="wrong submissions of a package at most")
    parser.add_argument("--most-s", type=float, default=2.0, help="packages with a longer time limit are left out")
    parser.add_argument("--minutes", type=float, default=0, help="begin no package later; 0: no end")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--validators", action="store_true", help="give the stage the package's validators")
    parser.add_argument("--set", action="append", default=[], help="a setting, as in code.test_generation.rounds=4")
    args = parser.parse_args()
    out = (args.out or Path(tempfile.mkdtemp(prefix="goldilocks-made-tests-"))).absolute()
    out.mkdir(parents=True, exist_ok=True)
    run = measured_run(["code.execution_matrix.give_up=1", *args.set], args.seed)
    all_scored = []
    begin = time.monotonic()
    with Runner(args.workers) as runner:
        keep_compiled(runner, out / "compiled")
        for package in packages_of(args.folders, args.packages, args.seed, [args.part] if args.part else PARTS):
            if args.minutes and time.monotonic() - begin > 60 * args.minutes:
                print(f"{package.name} and those behind it: not begun within {args.minutes} minutes", flush=True)
                break
            scored = score(run, runner, package, chosen(package, args.right, args.wrong, args.seed), out, args)
            if scored is None:
                print(
                    f"{package.name}: left out: too slow, too few right programs, no wrong one, or no validator",
                    flush=True,
                )
                continue
            all_scored.append(scored)
            _print(scored)
    for part in PARTS:
        report(part.replace("_", " "), [scored for scored in all_scored if part_of(scored.name) == part])
    report("all", all_scored)


def _print(scored: Scored) -> None:
    counts = Counter(how for _, how in scored.wrong)
    caught = counts["samples"] + counts["made"]
    share = scored.valid / max(1, scored.made)
    name = f"{scored.name} ({part_of(scored.name).replace('_', ' ')})"
    print(f"{name}: valid {scored.valid}/{scored.made} ({share:.0%}), TPR {scored.right_passed}/{scored.right}, "
          f"TNR {caught}/{len(scored.wrong)} {dict(counts)}, {scored.seconds:.0f} s", flush=True)  # fmt: skip
    for why, folds in scored.reasons.items():
        if why:
            print(f"    {folds} of {sum(scored.reasons.values())} folds: {why}", flush=True)
    for note in scored.notes:
        print(f"    {note}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
