"""Made tests, judged by real packages: are they valid, do right programs pass them, are wrong programs caught?

    python -m tests.benchmarks.bench_made_tests FOLDER [FOLDER …] [--out DIR] [--validators hidden|given|both]

The folders hold packages of the Kattis format at any depth. Of each package the samples are given, and the pipeline's
own stage makes tests from these alone. The packages' input validators are hidden from it, or given; either way they
judge what it kept:

    valid   made tests kept whose input all validators of the package accept
    TPR     accepted submissions that pass the samples and the made tests
    TNR     wrong submissions that fail one of them; `made` counts those that the samples let pass

A package's secret tests are the truth: an accepted submission counts where it passes them, a wrong one where it fails.
As in the product, a program in Python has `TIME_FACTORS` times the problem's limit, here and there.
Programs are held out: a submission is scored on tests that were made, voted on and chosen without it. Each accepted
one is left out by itself; the wrong ones too, or in ``--folds`` parts. Programs are run once on each input, whatever
the fold.

Packages are split by a hash of their names: those that the generators' authors may look at, and those that are only
scored on. Both are printed. Where nothing is made, the reason is.

A model may help, as `[questions.test_programs]` lets it: ``--write-prompts DIR`` writes down what the stage would ask
about each package (the statement and its samples) and runs nothing; ``--answers DIR`` takes what somebody answered to
it through the recorded policy. All behind it is the product's.

What was counted of a package is written beside its runs as soon as it ends (``--out``): a measurement that was stopped
goes on behind it, as long as the code that makes tests and the settings are the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Candidate
from curation.programs.language_variants import TIME_FACTORS
from curation.questions.test_programs import PROMPT as TESTING
from curation.questions.test_programs import TEST_PROGRAMS
from curation.records import PromptRequest
from curation.sources.code_problems import package_tables
from curation.sources.kattis import Package, PackagedSubmission
from curation.storage.stages import atomic_write
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from curation.verify.programs.validators import ReadyValidator, prepare_validator
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.code_generation import GeneratedTests, generate_tests, vouching_of
from flows.stages.units import Unit
from tests.benchmarks.made_tests_report import PARTS, Scored, part_of, report, show
from tests.benchmarks.planting import packages_in
from tests.benchmarks.prompted_answers import answers_to, request_of, write_prompt
from tests.benchmarks.submission_runs import Memory, judge_inputs, keep_compiled, tree_cpu_s
from tests.made_limits import made_with

KNOWLEDGE = ("hidden", "given")
LEFT_OUT = "too slow, too few right programs, no wrong one, or no validator"
MOST_KB = 256
"""Larger secret tests are left out of the truth."""
_OTHERS = 3
"""Right submissions that vote where one is held out together with the wrong ones."""
SECRET = 20
"""Secret tests that are the truth, drawn by chance where there are more."""


def chosen(package: Package, right: int, wrong: int, seed: int) -> list[PackagedSubmission]:
    """Return up to so many accepted and rejected submissions, drawn by the seed."""
    draw = random.Random(f"{seed} {package.name}")
    readable = [sub for sub in package.submissions if sub.lang is not None]
    accepted, rejected = [sub for sub in readable if sub.accepted], [sub for sub in readable if sub.rejected]
    return [
        *draw.sample(accepted, min(right, len(accepted))),
        *draw.sample(rejected, min(wrong, len(rejected))),
    ]


def code_digest(settings: Sequence[object]) -> str:
    """Return what names the code that makes tests, and settings: results of others are not taken up again."""
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


def truth(
    run: Run, runner: Runner, package: Package, subs: Sequence[PackagedSubmission], file: Path, most_s: float
) -> dict[str, Any]:
    """Return the time limit in seconds, and whether each submission passes the package's secret tests, by its code.

    Where the package names no limit, an accepted submission that would make it longer than ``most_s`` is stopped: the
    package will be left out.
    """
    if file.is_file():
        known: dict[str, Any] = json.loads(file.read_text())
        return known
    secret = [test for test in package.problem.tests[package.samples :] if len(test.input) <= MOST_KB << 10]
    secret = random.Random(package.name).sample(secret, SECRET) if len(secret) > SECRET else secret
    problem = execution_matrix.with_tests(package.problem, [(test.input, test.output) for test in secret])
    limit = package.problem.cpu_s if package.has_time_limit else most_s // 1 / package.multiplier
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
            limit = float(max(1, -(-max(times, default=1.0) * package.multiplier // 1)))
            if any(r.verdict is CodeVerdict.TLE for r in results):
                limit, passes = most_s + 1, dict.fromkeys(map(_code, subs), False)
                break
    told = {"limit": limit, "passes": passes}
    file.write_text(json.dumps(told))
    return told


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
    row = {"id": package.name, "statement": package.statement, "lang": "en"}
    return Unit(row, tables.tests.filter(pl.col("origin") == "sample"), 0, solutions, judging)


def measured_run(settings: Sequence[str], seed: int) -> Run:
    """Return a run with the defaults of the code pipeline, its settings changed by ``settings``."""
    from flows.run.recipe import override_recipe

    table = {
        "name": "made-tests",
        "flow": "curate-code",
        "seed": seed,
        "sources": [{"name": "packages", "kind": "kattis", "path": "."}],
        "models": {"none": {"kind": "recorded", "path": "none.jsonl"}},
        "stage1": {"model": "none"},
    }
    recipe = override_recipe(parse_recipe(table, "bench_made_tests"), settings)
    return Run(Path("."), recipe, Path("."))


def score(
    run: Run,
    runner: Runner,
    package: Package,
    subs: Sequence[PackagedSubmission],
    out: Path,
    args: argparse.Namespace,
    answered: Callable[[PromptRequest], Sequence[str]],
    *,
    validators: bool,
) -> Scored | None:
    """Make tests of one package for each fold, and count; None where it cannot be measured.

    Args:
        answered: returns what a model replied to a request, nothing if it was not asked.
    """
    begin, begin_cpu_s = time.monotonic(), tree_cpu_s()
    if sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    if package.has_time_limit and package.problem.cpu_s > args.most_s:
        return None
    programs = hashlib.sha256(repr([sub.code for sub in subs]).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    file = out / f"{package.name}.{programs}.truth.json"
    known = truth(run, runner, package, subs, file, args.most_s)
    subs = [sub for sub in subs if known["passes"][_code(sub)] is sub.accepted]
    if known["limit"] > args.most_s or sum(sub.accepted for sub in subs) < 2 or all(sub.accepted for sub in subs):
        return None
    ready = [prepare_validator(runner.tools, validator) for validator in package.validators]
    judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
    if not judges:
        return None
    unit = unit_of(package, subs, known["limit"], validators=validators)
    responses = answered(request_of(unit))
    everybody = unit.candidates()
    memory = Memory(out / f"{package.name}.{programs}.runs.pkl", everybody)
    scored = Scored(package.name, answers=len(responses))
    inputs: set[str] = set()
    parts = _parts(everybody, args)
    for held in parts:
        others = [candidate for candidate in everybody if candidate.index not in held]
        generated, problem, said = _fold(run, runner, unit, memory, others, known["limit"], responses)
        scored.vouched[said] = scored.vouched.get(said, 0) + 1
        scored.reasons[generated.reason] = scored.reasons.get(generated.reason, 0) + 1
        inputs |= {text for _, _, text, _, _ in generated.tests}
        scored.made += len(generated.tests)
        for candidate in everybody:
            if candidate.index in held:
                most_s = problem.cpu_s * TIME_FACTORS[candidate.submission.lang.value]
                _score_one(memory, problem, unit, generated, candidate, subs[candidate.index], held, scored, most_s)
        memory.save()
    asked = list(dict.fromkeys(text for text in memory.asked if text.decode() not in set(unit.tests["input"])))
    verdicts = dict(zip(asked, judge_inputs(runner, package, judges, asked), strict=True))
    scored.run, scored.run_valid = len(asked), sum(verdict.valid is True for verdict in verdicts.values())
    bad = [text for text in sorted(inputs) if not verdicts[text.encode()].valid]
    scored.valid, scored.made = len(inputs) - len(bad), len(inputs)
    scored.notes += [f"{text[:60]!r}: {verdicts[text.encode()].words[:140]!r}" for text in bad[:3]]
    scored.seconds, scored.cpu_s = time.monotonic() - begin, tree_cpu_s() - begin_cpu_s
    return scored


def _parts(everybody: Sequence[Candidate], args: argparse.Namespace) -> list[frozenset[int]]:
    """Return what each fold holds out: one right submission, at most so many of them, or a part of the wrong ones;
    ``together``: all wrong ones and, where three others vote, a right one.
    """
    right = [candidate.index for candidate in everybody if candidate.right]
    wrong = [candidate.index for candidate in everybody if not candidate.right]
    if args.held == "together":
        return [frozenset([*wrong, *right[: 1 if len(right) >= _OTHERS + 1 else 0]])]
    singles = [frozenset({one}) for one in right[: args.hold_right]]
    if args.held == "right":
        return singles
    parts: list[set[int]] = [set() for _ in range(args.folds or len(wrong))]
    for number, index in enumerate(wrong):
        parts[number % len(parts)].add(index)
    return [*singles, *(frozenset(part) for part in parts if part)]


def _fold(
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
    problem = unit.problem(run, limit)
    matrix = memory.execute(
        runner, unit.name, problem, candidates, time_given=True,
        indices=unit.tests["index"].to_list(), known=[True] * unit.tests.height,
    )  # fmt: skip
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    decisions = tests_agreement.decide_tests(matrix.runs, run.recipe.code, ids)
    tests = execution_matrix.corrected(unit.tests, decisions, matrix.outputs)
    vouching = vouching_of(seen, runner, responses)
    generated = generate_tests(
        run, seen, runner, matrix.runs, decisions, tests, limit, responses, vouching, memory.execute
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


def packages_of(folders: Sequence[Path], count: int, seed: int, parts: Sequence[str] = PARTS) -> Iterator[Package]:
    """Yield packages that can be measured, in an order drawn by the seed."""
    usable = [
        _for_all_tests(package)
        for package in packages_in(folders)
        if not set(package.reasons) - {"image", "scoring"} and package.validators and package.samples
        and package.problem.test_count > package.samples and part_of(package.name) in parts
    ]  # fmt: skip
    random.Random(seed).shuffle(usable)
    yield from usable[:count]


def _for_all_tests(package: Package) -> Package:
    """Return a package as judged by all its tests: one that gives points for groups of them is refused otherwise."""
    if "scoring" not in package.reasons:
        return package
    reasons = {word: why for word, why in package.reasons.items() if word != "scoring"}
    return dataclasses.replace(package, reasons=reasons, problem=dataclasses.replace(package.problem, refused=None))


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="what was run is kept here, for a further measurement")
    parser.add_argument("--packages", type=int, default=24)
    parser.add_argument("--part", choices=PARTS, help="those that were looked at, or only scored on; without it both")
    parser.add_argument("--only", nargs="+", default=(), help="names of packages; all that can be measured without it")
    parser.add_argument("--seed", type=int, default=7, help="draws packages and submissions")
    parser.add_argument("--folds", type=int, default=0, help="parts of the wrong ones; 0: each by itself")
    parser.add_argument("--right", type=int, default=4, help="accepted submissions of a package at most")
    parser.add_argument("--wrong", type=int, default=6, help="wrong submissions of a package at most")
    parser.add_argument("--hold-right", type=int, help="right ones held out, one by one, at most; all without it")
    parser.add_argument("--held", choices=["each", "right", "together"], default="each", help="what folds hold out: "
                        "each right one and parts of the wrong ones; right ones alone; in one fold all wrong ones and "
                        "one right one")  # fmt: skip
    parser.add_argument("--most-s", type=float, default=2.0, help="packages with a longer time limit are left out")
    parser.add_argument("--minutes", type=float, default=0, help="begin no package later; 0: no end")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--validators", choices=[*KNOWLEDGE, "both"], default="hidden", help="the package's, of which "
                        "the stage knows or not; both: one after the other, on the same runs")  # fmt: skip
    parser.add_argument("--write-prompts", type=Path, help="write what the stage would ask into this folder, no more")
    parser.add_argument("--answers", type=Path, help="answers to such prompts, files of the same names")
    parser.add_argument("--set", action="append", default=[], help="a setting, as in code.enough_tests=20")
    args = parser.parse_args()
    out = (args.out or Path(tempfile.mkdtemp(prefix="goldilocks-made-tests-"))).absolute()
    out.mkdir(parents=True, exist_ok=True)
    run = measured_run(args.set, args.seed)
    ways = KNOWLEDGE if args.validators == "both" else (args.validators,)
    all_scored: dict[str, list[Scored]] = {way: [] for way in ways}
    asked = [args.seed, args.folds, args.right, args.wrong, args.most_s, args.answers, args.held, args.hold_right]
    digest = code_digest([run.recipe.code.model_dump_json(), *asked])
    begin = time.monotonic()

    def answered(request: PromptRequest) -> Sequence[str]:
        count = TEST_PROGRAMS.each
        found = answers_to([request], TESTING, args.answers, out, count) if args.answers is not None else {}
        return found.get(request.id, [])

    with Runner(args.workers) as runner, made_with(GIVE_UP=1):
        keep_compiled(runner, out / "compiled")
        for package in packages_of(args.folders, args.packages, args.seed, [args.part] if args.part else PARTS):
            if args.only and package.name not in args.only:
                continue
            if args.minutes and time.monotonic() - begin > 60 * args.minutes:
                print(f"{package.name} and those behind it: not begun within {args.minutes} minutes", flush=True)
                break
            subs = chosen(package, args.right, args.wrong, args.seed)
            if args.write_prompts is not None:
                unit = unit_of(package, subs, args.most_s, validators=False)
                file = write_prompt(args.write_prompts, TESTING, request_of(unit))
                print(f"{package.name} ({part_of(package.name).replace('_', ' ')}): {file}", flush=True)
                continue
            for way in ways:
                file = out / f"{package.name}.{way}.{digest}.scored.json"
                measure = partial(score, run, runner, package, subs, out, args, answered, validators=way == "given")
                scored = kept_result(file, measure)
                if scored is None:
                    print(f"{package.name}: left out: {LEFT_OUT}", flush=True)
                    break
                all_scored[way].append(scored)
                show(scored, way)
    for way, those in all_scored.items():
        for part in PARTS:
            report(f"validators {way}, {part.replace('_', ' ')}", [one for one in those if part_of(one.name) == part])
        report(f"validators {way}, all", those)


if __name__ == "__main__":
    main()
