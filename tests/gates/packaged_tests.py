"""Scores made tests by real problem packages, of which the stage sees the statement and the samples.

    valid   made tests whose input all validators of the package accept
    TPR     accepted submissions that pass the samples and the made tests
    TNR     wrong submissions that fail one of them; `made` counts those that the samples let pass

A package's secret tests are the truth: an accepted submission counts if it passes them, a wrong one if it fails. All
wrong submissions and, if three others vote, an accepted one are held out: tests are made, voted on and selected without
them. What was counted of a package is stored: a measurement that was stopped goes on, with the same code and settings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Candidate, Unit
from curation.programs.generation import GeneratedTests, generate_tests, vouching_of
from curation.programs.language_variants import TIME_FACTORS
from curation.records import PromptRequest
from curation.sources.code_problems import package_tables
from curation.sources.kattis import Package, PackagedSubmission
from curation.storage.stages import atomic_write
from curation.verify.programs.checkers import ReadyValidator, prepare_validator
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.tests import unit_request
from tests.benchmarks.planting import multiplier_of, packages_in
from tests.benchmarks.submission_runs import Memory, judge_inputs, tree_cpu_s

RIGHT, WRONG, MAX_S = 4, 6, 4.0
"""Accepted and wrong submissions of a package, and the longest time limit, in seconds."""
MOST_KB = 256
"""Larger secret tests are left out of the truth."""
_OTHERS = 3
"""Right submissions that vote if one is held out together with the wrong ones."""
SECRET = 20
"""Secret tests that are the truth, drawn by chance if there are more."""


@dataclass(slots=True)
class Scored:
    """What was counted of one package."""

    name: str
    valid: int = 0
    made: int = 0
    right: int = 0
    right_passed: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)  # label, what caught it: samples, made, none
    reason: str = ""  # why nothing was made
    notes: list[str] = field(default_factory=list)
    answers: int = 0
    vouched: str = ""
    cpu_s: float = 0.0

    def show(self) -> None:
        """Print what was counted."""
        counts = Counter(how for _, how in self.wrong)
        caught = counts["samples"] + counts["made"]
        print(f"{self.name}: valid {self.valid}/{self.made}, TPR {self.right_passed}/{self.right}, "
              f"TNR {caught}/{len(self.wrong)} {dict(counts)}, CPU {self.cpu_s:.1f} s, {self.answers} answers, "
              f"validators of: {self.vouched} {self.reason}", flush=True)  # fmt: skip
        for note in self.notes:
            print(f"    {note}", flush=True)


def chosen(package: Package, seed: int) -> list[PackagedSubmission]:
    """Return up to `RIGHT` accepted and `WRONG` rejected submissions, drawn by the seed."""
    draw = random.Random(f"{seed} {package.name}")
    readable = [sub for sub in package.submissions if sub.lang is not None]
    accepted, rejected = [sub for sub in readable if sub.accepted], [sub for sub in readable if sub.rejected]
    return [
        *draw.sample(accepted, min(RIGHT, len(accepted))),
        *draw.sample(rejected, min(WRONG, len(rejected))),
    ]


def code_digest(settings: str) -> str:
    """Return what names the code that makes tests, and settings: results of others are not used again."""
    root = Path(execution_matrix.__file__).parents[2]
    files = [*sorted((root / "curation" / "programs").rglob("*.py")), *(root / "flows" / "stages").glob("*.py")]
    texts = [file.read_bytes() for file in files]
    return hashlib.sha256(repr((texts, settings)).encode()).hexdigest()[:10]


def kept_result(file: Path, measure: Callable[[], Scored | None]) -> Scored | None:
    """Return what a file holds of a package, else what ``measure`` gives, written there."""
    if not file.is_file():
        scored = measure()
        atomic_write(file, json.dumps(None if scored is None else dataclasses.asdict(scored)))
        return scored
    known = json.loads(file.read_text())
    if known is None:
        return None
    wrong = [(label, how) for label, how in known.pop("wrong")]
    return Scored(**{**known, "wrong": wrong})


def truth(runner: Runner, package: Package, subs: Sequence[PackagedSubmission], file: Path) -> dict[str, Any]:
    """Return the time limit in seconds, and whether each submission passes the package's secret tests, by its code.

    Where the package names no limit, an accepted submission that would make it longer than `MAX_S` is stopped: the
    package will be left out.
    """
    if file.is_file():
        known: dict[str, Any] = json.loads(file.read_text())
        return known
    secret = [test for test in package.problem.tests[package.samples :] if len(test.input) <= MOST_KB << 10]
    secret = random.Random(package.name).sample(secret, SECRET) if len(secret) > SECRET else secret
    problem = execution_matrix.with_tests(package.problem, [(test.input, test.output) for test in secret])
    limit = package.problem.cpu_s if package.has_time_limit else MAX_S // 1 / multiplier_of(package)
    passes: dict[str, bool] = {}
    for accepted in (True, False):
        part = [sub for sub in subs if sub.accepted is accepted]
        timed = package.has_time_limit or not accepted
        jobs = [
            (dataclasses.replace(problem, cpu_s=limit * TIME_FACTORS[sub.lang.value] if timed else limit),
             Submission(sub.lang, sub.code)) for sub in part if sub.lang is not None
        ]  # fmt: skip
        results = list(judge_programs(runner, jobs))
        passes |= {_code(sub): r.verdict is CodeVerdict.AC for sub, r in zip(part, results, strict=True)}
        times = [run.cpu_s for r in results if r.verdict is CodeVerdict.AC for run in r.tests]
        if not timed:
            limit = float(max(1, -(-max(times, default=1.0) * multiplier_of(package) // 1)))
            if any(r.verdict is CodeVerdict.TLE for r in results):
                limit, passes = MAX_S + 1, dict.fromkeys(map(_code, subs), False)
                break
    told = {"limit": limit, "passes": passes}
    file.write_text(json.dumps(told))
    return told


def _code(sub: PackagedSubmission) -> str:
    return hashlib.sha256(sub.code.encode("utf-8", "surrogateescape")).hexdigest()


def unit_of(package: Package, subs: Sequence[PackagedSubmission], limit: float) -> Unit:
    """Return a package as the stages see it: its samples are its only tests, and it has no validator."""
    tables = package_tables([package.name], [package])
    rows = [(package.name, i, sub.lang.value, sub.code, sub.accepted, sub.name)
            for i, sub in enumerate(subs) if sub.lang is not None]  # fmt: skip
    judging = {**tables.judging.row(0, named=True), "time_limit_s": limit}
    judging["validator"] = judging["validator_lang"] = None
    solutions = pl.DataFrame(rows, schema=tables.solutions.schema, orient="row")
    row = {"id": package.name, "statement": package.statement, "lang": "en"}
    return Unit(row, tables.tests.filter(pl.col("origin") == "sample"), 0, solutions, judging)


def measured_run(seed: int) -> Run:
    """Return a run with the defaults of the code pipeline."""
    source = {"name": "packages", "kind": "kattis", "path": "."}
    table = {"name": "made-tests", "flow": "curate-code", "seed": seed, "sources": [source]}
    table |= {"models": {"nobody": {"kind": "recorded", "path": "none.jsonl"}}, "stage1": {"model": "nobody"}}
    return Run(Path("."), parse_recipe(table, "made-tests"), Path("."))


def score(
    run: Run, runner: Runner, package: Package, out: Path, answered: Callable[[PromptRequest], Sequence[str]]
) -> Scored | None:
    """Make tests of one package without its wrong submissions, and count; None if it cannot be measured.

    Where three others vote, an accepted submission is held out, too.

    Args:
        answered: returns what a model replied to a request, nothing if it was not asked.
    """
    begin_cpu_s = tree_cpu_s()
    subs = chosen(package, run.recipe.seed)
    if sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    if package.has_time_limit and package.problem.cpu_s > MAX_S:
        return None
    programs = hashlib.sha256(repr([sub.code for sub in subs]).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    known = truth(runner, package, subs, out / f"{package.name}.{programs}.truth.json")
    subs = [sub for sub in subs if known["passes"][_code(sub)] is sub.accepted]
    if known["limit"] > MAX_S or sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    ready = [prepare_validator(runner, validator) for validator in package.validators]
    judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
    if not judges:
        return None
    unit = unit_of(package, subs, known["limit"])
    responses = answered(unit_request(unit))
    everybody = unit.candidates()
    right = [candidate.index for candidate in everybody if candidate.right]
    held = frozenset(one.index for one in everybody if not one.right) | set(right[: len(right) > _OTHERS])
    memory = Memory(out / f"{package.name}.{programs}.runs.pkl", everybody)
    others = [candidate for candidate in everybody if candidate.index not in held]
    generated, problem, vouched = _made(run, runner, unit, memory, others, known["limit"], responses)
    scored = Scored(package.name, answers=len(responses), vouched=vouched, reason=generated.reason)
    for candidate in everybody:
        if candidate.index in held:
            max_s = problem.cpu_s * TIME_FACTORS[candidate.submission.lang.value]
            _score_one(memory, problem, unit, generated, candidate, subs[candidate.index], held, scored, max_s)
    memory.save()
    inputs = [text.encode() for _, _, text, _, _ in generated.tests]
    verdicts = judge_inputs(runner, package, judges, inputs)
    scored.made, scored.valid = len(inputs), sum(verdict.valid is True for verdict in verdicts)
    bad = [pair for pair in zip(inputs, verdicts, strict=True) if not pair[1].valid]
    scored.notes += [f"{text[:60]!r}: {verdict.words[:140]!r}" for text, verdict in bad[:3]]
    scored.cpu_s = tree_cpu_s() - begin_cpu_s
    return scored


def _made(
    run: Run,
    runner: Runner,
    unit: Unit,
    memory: Memory,
    candidates: Sequence[Candidate],
    limit: float,
    responses: Sequence[str],
) -> tuple[GeneratedTests, CodeProblem, str]:
    """Return the tests that the stage makes with these candidates, the problem under its limit, and who vouches."""
    indices = [candidate.index for candidate in candidates]
    seen = Unit(unit.row, unit.tests, 0, unit.solutions.filter(pl.col("index").is_in(indices)), unit.judging)
    problem = unit.problem(run.recipe.code, limit)
    matrix = memory.execute(
        runner, unit.name, problem, candidates, time_given=True,
        indices=unit.tests["index"].to_list(), known=[True] * unit.tests.height,
    )  # fmt: skip
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    decisions = tests_agreement.decide_tests(matrix.runs, ids)
    tests = execution_matrix.corrected(unit.tests, decisions, matrix.outputs)
    vouching = vouching_of(seen, runner, responses)
    generated = generate_tests(
        run.recipe.code,
        run.recipe.seed,
        seen,
        runner,
        matrix.runs,
        decisions,
        tests,
        limit,
        responses,
        vouching,
        memory.execute,
    )
    return generated, problem, "; ".join([vouching.by or "nobody", *vouching.aside])


def _score_one(
    memory: Memory,
    problem: CodeProblem,
    unit: Unit,
    generated: GeneratedTests,
    candidate: Candidate,
    sub: PackagedSubmission,
    held: frozenset[int],
    scored: Scored,
    max_s: float,
) -> None:
    """Count whether a submission that was held out passes the samples and the made tests, in ``max_s`` each.

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
        return not (own["valid"] and right and own["cpu_s"] <= max_s)

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


def packages_of(folders: Sequence[Path], count: int, seed: int) -> Iterator[Package]:
    """Yield packages that can be measured, in an order drawn by the seed."""
    usable = [
        _for_all_tests(package)
        for package in packages_in(folders)
        if not set(package.reasons) - {"image", "scoring"} and package.validators and package.samples
        and package.problem.test_count > package.samples
    ]  # fmt: skip
    random.Random(seed).shuffle(usable)
    yield from usable[:count]


def _for_all_tests(package: Package) -> Package:
    """Return a package as judged by all its tests: one that gives points for groups of them is refused otherwise."""
    if "scoring" not in package.reasons:
        return package
    reasons = {word: why for word, why in package.reasons.items() if word != "scoring"}
    return dataclasses.replace(package, reasons=reasons, problem=dataclasses.replace(package.problem, refused=None))
