"""Scores made tests by real problem packages, of which the stage sees the statement and the samples.

    valid   made tests whose input all validators of the package accept
    TPR     accepted submissions that pass the samples and the made tests
    TNR     wrong submissions that fail one of them; `made` counts those that the samples let pass

A package's secret tests are the truth: an accepted submission counts if it passes them, a wrong one if it fails. All
wrong submissions and, if three others vote, an accepted one are held out: tests are made, voted on and selected without
them.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Candidate, ExecutionMatrix, Unit
from curation.programs.generation import GeneratedTests, generate_tests, vouching_of
from curation.programs.language_variants import TIME_FACTORS
from curation.records import PromptRequest
from curation.sources.code_problems import package_tables
from curation.sources.kattis import Package, PackagedSubmission
from curation.verify.programs.checkers import InputVerdict, ReadyValidator, check_inputs, prepare_validator
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.tests import unit_request
from tests.gates.planted_faults import multiplier_of, packages_in

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

    def show(self) -> None:
        """Print what was counted."""
        counts = Counter(how for _, how in self.wrong)
        caught = counts["samples"] + counts["made"]
        print(f"{self.name}: valid {self.valid}/{self.made}, TPR {self.right_passed}/{self.right}, "
              f"TNR {caught}/{len(self.wrong)} {dict(counts)}, {self.answers} answers, "
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


def truth(runner: Runner, package: Package, subs: Sequence[PackagedSubmission]) -> tuple[float, dict[str, bool]]:
    """Return the time limit in seconds, and whether each submission passes the package's secret tests, by its code.

    Where the package names no limit, an accepted submission that would make it longer than `MAX_S` is stopped: the
    package will be left out.
    """
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
        passes |= {sub.code: r.verdict is CodeVerdict.AC for sub, r in zip(part, results, strict=True)}
        times = [run.cpu_s for r in results if r.verdict is CodeVerdict.AC for run in r.tests]
        if not timed:
            limit = float(max(1, -(-max(times, default=1.0) * multiplier_of(package) // 1)))
            if any(r.verdict is CodeVerdict.TLE for r in results):
                return MAX_S + 1, {}
    return limit, passes


class Memory:
    """Runs of all submissions of one package, per input: making tests and scoring them share them."""

    def __init__(self, everybody: Sequence[Candidate]) -> None:
        self.everybody = everybody
        self.kept: dict[tuple[float, bytes, bytes], tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}

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
        keys = [(problem.cpu_s, test.input, test.output) for test in tests]
        fresh = [place for place, key in enumerate(keys) if key not in self.kept]
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
        rows, _ = self.kept[problem.cpu_s, text, expected]
        return {row["solution"]: row for row in rows}


def judge_inputs(
    runner: Runner, package: Package, judges: Sequence[ReadyValidator], inputs: Sequence[bytes]
) -> list[InputVerdict]:
    """Return the verdict of the package's validators on each input, by the flags of any of its test groups.

    A validator that reads its limits from its flags refuses all without them. One set of flags must do for an input.
    """
    verdicts = check_inputs(runner, judges, inputs)
    for flags in _group_flags(package.path):
        refused = [place for place, verdict in enumerate(verdicts) if verdict.valid is not True]
        flagged = [
            dataclasses.replace(judge, validator=dataclasses.replace(judge.validator, args=flags)) for judge in judges
        ]
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


def keep_compiled(runner: Runner) -> None:
    """Let the runner compile each program once."""
    compile_now, known = runner.compile, dict[Any, Any]()

    def compile_once(sources: Mapping[str, bytes], command: Sequence[str], *limits: Any) -> Any:
        key = (tuple(command), tuple(sorted(sources.items())))
        if key not in known or not known[key].ok:
            known[key] = compile_now(sources, command, *limits)
        return known[key]

    runner.compile = compile_once  # type: ignore[method-assign]


def score(
    run: Run, runner: Runner, package: Package, answered: Callable[[PromptRequest], Sequence[str]]
) -> Scored | None:
    """Make tests of one package without its wrong submissions, and count; None if it cannot be measured.

    Where three others vote, an accepted submission is held out, too.

    Args:
        answered: returns what a model replied to a request, nothing if it was not asked.
    """
    subs = chosen(package, run.recipe.seed)
    if sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    if package.has_time_limit and package.problem.cpu_s > MAX_S:
        return None
    limit, passes = truth(runner, package, subs)
    subs = [sub for sub in subs if limit <= MAX_S and passes[sub.code] is sub.accepted]
    if sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    ready = [prepare_validator(runner, validator) for validator in package.validators]
    judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
    if not judges:
        return None
    unit = unit_of(package, subs, limit)
    responses = answered(unit_request(unit))
    everybody = unit.candidates()
    right = [candidate.index for candidate in everybody if candidate.right]
    held = frozenset(one.index for one in everybody if not one.right) | set(right[: len(right) > _OTHERS])
    memory = Memory(everybody)
    others = [candidate for candidate in everybody if candidate.index not in held]
    generated, problem, vouched = _made(run, runner, unit, memory, others, limit, responses)
    scored = Scored(package.name, answers=len(responses), vouched=vouched, reason=generated.reason)
    for candidate in everybody:
        if candidate.index in held:
            max_s = problem.cpu_s * TIME_FACTORS[candidate.submission.lang.value]
            _score_one(memory, problem, unit, generated, candidate, subs[candidate.index], held, scored, max_s)
    inputs = [text.encode() for _, _, text, _, _ in generated.tests]
    verdicts = judge_inputs(runner, package, judges, inputs)
    scored.made, scored.valid = len(inputs), sum(verdict.valid is True for verdict in verdicts)
    bad = [pair for pair in zip(inputs, verdicts, strict=True) if not pair[1].valid]
    scored.notes += [f"{text[:60]!r}: {verdict.words[:140]!r}" for text, verdict in bad[:3]]
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


def measurable_packages(folder: Path) -> Iterator[Package]:
    """Yield packages that can be measured."""
    yield from (
        _for_all_tests(package)
        for package in packages_in(folder)
        if not set(package.reasons) - {"image", "scoring"} and package.validators and package.samples
        and package.problem.test_count > package.samples
    )  # fmt: skip


def _for_all_tests(package: Package) -> Package:
    """Return a package as judged by all its tests: one that gives points for groups of them is refused otherwise."""
    if "scoring" not in package.reasons:
        return package
    reasons = {word: why for word, why in package.reasons.items() if word != "scoring"}
    return dataclasses.replace(package, reasons=reasons, problem=dataclasses.replace(package.problem, refused=None))
