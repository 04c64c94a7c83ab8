"""The code pipeline on real problem packages with planted faults: what it finds, what it spoils, how long it takes.

    python -m tests.benchmarks.bench_code_pipeline FOLDER [FOLDER …] --out DIR [--packages 40] [--samples-only]

The folders hold packages of the Kattis format at any depth; they are copied, never changed (`planting`). The copies go
through `goldilocks run`: filter, matrix, agreement, generation, language variants, difficulty by recorded attempts (the
package's own submissions), curated set. Then the tests that stayed are compared with the original answers; where a
checker decides, it is asked. Killed, it goes on where it stopped when it is started again with the same DIR.

With ``--samples-only`` all secret tests are deleted and nothing is corrupted: how many of the known wrong submissions
that pass the samples are caught by tests that were generated from these samples alone? Do the packages' own input
validators, which the pipeline is not given here, let those tests pass?
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from curation.programs.filters import clean_statement
from curation.programs.language_variants import LINES
from curation.sources.code_problems import package_row
from curation.sources.kattis import Package, read_package
from curation.storage.stages import read_manifest, read_table
from curation.verify.programs.checkers import ReadyValidator, check_outputs, prepare_validator
from curation.verify.programs.comparison import same_output
from curation.verify.programs.extraction import fenced
from curation.verify.programs.problem import CodeVerdict
from curation.verify.programs.tools import Runner
from flows.cli.commands import run_recipe
from tests.benchmarks.planting import Planted, plant_all
from tests.benchmarks.submission_runs import judge_inputs
from tests.made_limits import made_with

_FEW = 40


def attempts(copies: list[Path]) -> list[dict[str, str]]:
    """Return the packages' own submissions as recorded attempts at both language variants.

    Two right and two wrong ones each, as far as there are any.
    """
    rows = []
    for path in copies:
        package = read_package(path)
        statement = clean_statement(package_row(package)["statement"])
        for language, line in LINES.items():
            own = [sub for sub in package.submissions if sub.lang is not None and sub.lang.value == language]
            drawn = [sub for sub in own if sub.accepted][:2] + [sub for sub in own if sub.rejected][:2]
            for number in range(4):
                sub = drawn[number % len(drawn)] if drawn else None
                text = "I do not know." if sub is None or sub.lang is None else fenced(sub.lang, sub.code)
                rows.append({"problem": f"{statement}\n\n{line}", "text": text})
    return rows


def recipe(out: Path) -> Path:
    """Write a recipe for the copies."""
    file = out / "recipe.toml"
    file.write_text(f"""\
name = "bench-code-line"
flow = "curate-code"
shard_rows = 1
workers = 1
[[sources]]
name = "packages"
kind = "kattis"
path = "{out / "packages"}"
[near_dedup]
enabled = false
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "submissions@package"
path = "{out / "attempts.jsonl"}"
columns = {{ problem = "problem", text = "text" }}
[stage1.band]
attempts = 4
""")
    return file


@contextmanager
def clocked(file: Path) -> Iterator[None]:
    """Write this process's time and peak memory to a file, every second, so that a kill loses none of it."""
    start, finished = time.monotonic(), threading.Event()

    def write() -> None:
        while True:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            file.write_text(json.dumps({"seconds": time.monotonic() - start, "peak_mb": peak}))
            if finished.wait(1.0):
                return

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def run(folders: list[Path], out: Path, count: int, seed: int, most: tuple[int, int], samples_only: bool) -> None:
    """Copy, plant, run, and print the results."""
    planted = plant_all(folders, out, count, seed, most, samples_only)
    file = out / "attempts.jsonl"
    if not file.is_file():
        rows = attempts([out / "packages" / item.name for item in planted])
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["code.min_tests=1"] if samples_only else []
    right, wrong = (2, 8) if samples_only else (3, 2)
    few = {"MAX_RIGHT": right, "MAX_WRONG": wrong, "MEASURE_S": 4.0, "GIVE_UP": 2, "ROUNDS": 4 if samples_only else 1}
    (out / "pieces").mkdir(exist_ok=True)
    with clocked(out / "pieces" / f"{time.time_ns()}.json"), made_with(**few):
        run_recipe(recipe(out), settings, out / "run")
    pieces = [json.loads(piece.read_text()) for piece in sorted((out / "pieces").glob("*.json"))]
    print(
        f"{len(planted)} packages end to end in {sum(piece['seconds'] for piece in pieces):.0f} s, "
        f"{len(pieces)} piece(s); peak memory of the run itself {max(piece['peak_mb'] for piece in pieces):.0f} MB"
    )
    matrix = read_manifest(out / "run" / "stages" / "08-execution-matrix")
    assert matrix is not None
    runs = read_table(out / "run" / "stages" / "08-execution-matrix", "runs")
    programs = runs.select("problem", "solution").n_unique()
    print(
        f"matrix: {programs} programs on {runs.select('problem', 'test').n_unique()} tests, "
        f"{matrix.notes['judged']} runs, {matrix.notes['broken']} broken"
    )
    names = names_of(out / "run")
    report_power(out / "run", names, {item.name: item for item in planted})
    with Runner(1) as runner:
        report_validity(out, names, {item.name: item for item in planted}, runner)
        if not samples_only:
            report_faults(out, names, {item.name: item for item in planted}, runner)


def names_of(folder: Path) -> dict[str, str]:
    """Return problem id → package."""
    sources = read_table(folder / "stages" / "01-sources", "kept", ["id", "meta"])
    return {row["id"]: json.loads(row["meta"])["name"] for row in sources.iter_rows(named=True)}


def report_power(folder: Path, names: dict[str, str], planted: dict[str, Planted]) -> None:
    """Print what generated tests catch beyond the given ones, in all and by the folder of the submission."""
    stage = folder / "stages" / "10-tests"
    power = read_table(stage, "power")
    wrong, caught_given, caught = (int(power[name].sum()) for name in ("wrong", "caught_given", "caught"))
    print(
        f"known wrong submissions: {wrong}; caught by the tests given {caught_given}, with generated ones {caught}: "
        f"{caught - caught_given} of the {wrong - caught_given} let pass "
        f"({(caught - caught_given) / max(1, wrong - caught_given):.1%}); "
        f"{int(power['made'].sum())} tests kept of {int(power['sound'].sum())} sound of "
        f"{int(power['tried'].sum())} tried"
    )
    runs, decisions = read_table(stage, "runs"), read_table(stage, "decisions")
    origin = read_table(stage, "tests").select("problem", pl.col("index").alias("test"), "origin")
    expected = decisions.filter(pl.col("decision") != "discard").select(
        "problem", "test", pl.col("output").alias("want")
    )
    failing = (
        runs.filter(~pl.col("right").fill_null(True))
        .join(expected, on=["problem", "test"])
        .join(origin, on=["problem", "test"], how="left")
        .with_columns(
            fails=(~pl.col("valid") | (pl.col("output") != pl.col("want"))).fill_null(True),
            new=pl.col("origin").is_in(["mutation", "model"]).fill_null(False),
        )
        .group_by("problem", "solution")
        .agg(
            (pl.col("fails") & ~pl.col("new")).any().alias("given"),
            (pl.col("fails") & pl.col("new")).any().alias("made"),
        )
    )
    codes = read_table(folder / "stages" / "01-sources", "solutions").select("problem", "index", "code")
    table = failing.join(codes, left_on=["problem", "solution"], right_on=["problem", "index"])
    counts: Counter[tuple[str, str]] = Counter()
    for problem, _, was, now, code in table.sort("problem", "solution").iter_rows():
        package = read_package(planted[names[problem]].original)
        name = next((sub.name for sub in package.submissions if sub.code == code), "?/?")
        counts[name.split("/")[0], "by the tests given" if was else "by generated ones" if now else "by none"] += 1
        if not was:
            print(f"    {names[problem]}/{name}: {'caught' if now else 'passes everything'}")
    for (folder_name, how), number in sorted(counts.items()):
        print(f"  {folder_name}, caught {how}: {number}")


def report_validity(out: Path, names: dict[str, str], planted: dict[str, Planted], runner: Runner) -> None:
    """Print how the packages' own validators judge the generated tests kept, where they let the given ones pass."""
    tests = read_table(out / "run" / "stages" / "10-tests", "tests").filter(pl.col("origin") == "mutation")
    counts: Counter[str] = Counter()
    for problem, generated in sorted(tests.group_by("problem").agg("input").iter_rows()):
        package = read_package(planted[names[problem]].original)
        samples = [test.input for test in package.problem.tests[: package.samples]]
        ready = [prepare_validator(runner, validator) for validator in package.validators]
        judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
        if not judges or not all(one.valid for one in judge_inputs(runner, package, judges, samples)):
            counts["of packages without a usable validator"] += len(generated)
            continue
        texts = [text.encode() for text in generated]
        verdicts = [one.valid is True for one in judge_inputs(runner, package, judges, texts)]
        counts["valid"] += verdicts.count(True)
        counts["invalid"] += verdicts.count(False)
        if not all(verdicts):
            print(f"    {names[problem]}: {verdicts.count(False)} of {len(verdicts)} kept inputs are not valid")
    print(f"generated tests kept, by the packages' input validators: {dict(counts)}")


def report_faults(out: Path, names: dict[str, str], planted: dict[str, Planted], runner: Runner) -> None:
    """Print the corrupted tests found and corrected, and the sound tests discarded or changed."""
    stage = out / "run" / "stages" / "10-tests"
    decisions, problems = read_table(stage, "decisions"), read_table(stage, "problems")
    kept_tests = read_table(stage, "tests", ["problem", "index", "output"])
    outputs = {(problem, test): text for problem, test, text in kept_tests.iter_rows()}
    voting = dict(problems.select("problem", "voting").iter_rows())
    rows = []
    for (problem,), group in decisions.group_by("problem"):
        fault = planted[names[str(problem)]]
        original, copy = read_package(fault.original), read_package(out / "packages" / fault.name)
        order = [test.name for test in copy.problem.tests]
        answers = {test.name: (test.input, test.output) for test in original.problem.tests}
        for test, decision, why in group.sort("test").select("test", "decision", "why").iter_rows():
            if test >= len(order):
                continue  # generated
            text = outputs.get((str(problem), test))
            right = text is not None and _right(original, *answers[order[test]], text.encode(), runner)
            kind = "by a checker" if original.problem.checker is not None else "compared"
            bad = order[test] in fault.corrupted
            rows.append((fault.name, order[test], bad, decision, why, right, voting[str(problem)], kind))
    schema = ["package", "test", "corrupted", "decision", "why", "right", "voting", "kind"]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    table.write_parquet(out / "faults.parquet")
    print(f"tests that were judged: {table.height} of {table['package'].n_unique()} packages")
    for kind, of_kind in sorted(table.partition_by("kind", as_dict=True).items()):
        for label, part in (
            ("three or more votes", of_kind.filter(pl.col("voting") >= 3)),
            ("fewer votes", of_kind.filter(pl.col("voting") < 3)),
        ):
            _print_part(f"{kind[0]}, {label}", part)
    dropped = problems.filter(~pl.col("keep"))
    print(f"problems kept {problems.filter('keep').height}, dropped {dropped.height}:")
    for problem, reason, evidence in dropped.select("problem", "reason", "evidence").iter_rows():
        print(f"    {names[problem]}: {reason}: {evidence}")


def _print_part(label: str, part: pl.DataFrame) -> None:
    bad, sound = part.filter("corrupted"), part.filter(~pl.col("corrupted"))
    hurt = sound.filter(pl.col("decision") != "keep")
    caught = bad.filter(pl.col("decision") != "keep")
    fixed = bad.filter((pl.col("decision") == "correct") & pl.col("right"))
    harmless = bad.filter((pl.col("decision") == "keep") & pl.col("right"))
    print(
        f"{label}: {part['package'].n_unique()} packages, {bad.height} corrupted tests, {caught.height} found, "
        f"{fixed.height} corrected to a right output; {harmless.height} kept whose changed output is right too. "
        f"Sound tests {sound.height}, discarded or changed {hurt.height} ({hurt.height / max(1, sound.height):.2%})"
    )
    amiss = bad.filter((pl.col("decision") != "correct") | ~pl.col("right"))
    for row in [*amiss.rows(), *hurt.rows()][:_FEW]:
        print("   ", row)


def _right(package: Package, test_input: bytes, answer: bytes, output: bytes, runner: Runner) -> bool:
    """Return whether an output is right by the package as it was."""
    if package.problem.checker is None:
        return same_output(answer, output, package.problem.comparison)
    ((verdict, _),) = check_outputs(runner, package.problem.checker, [(test_input, answer, output)])
    return verdict is CodeVerdict.AC


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--packages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most-kb", type=int, default=200, help="larger tests are left out of the copies")
    parser.add_argument("--most-tests", type=int, default=12, help="secret tests kept of a package")
    parser.add_argument("--samples-only", action="store_true")
    parsed = parser.parse_args()
    out = parsed.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    most = (parsed.most_kb, parsed.most_tests)
    run(parsed.folders, out, parsed.packages, parsed.seed, most, parsed.samples_only)


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.exit(main())
