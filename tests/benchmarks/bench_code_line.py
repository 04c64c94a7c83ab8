"""The code line on real problem packages, with faults planted: what it finds, what it spoils, and how long it takes.

    python -m tests.benchmarks.bench_code_line FOLDER [--packages 40] [--samples-only] [--out DIR]

FOLDER holds packages of the Kattis format at any depth; they are copied, never changed. Of each copy half of the
secret tests are deleted and the expected outputs of a tenth of the rest (at least one of six or more) are corrupted.
The copies go through `goldilocks run`: filter, matrix, agreement, generation, twins, difficulty by recorded attempts
(the package's own submissions), curated set. Then the tests that stayed are compared with the original answers.

With ``--samples-only`` all secret tests are deleted and nothing is corrupted: how many of the known wrong submissions
that pass the samples are caught by tests that were generated from these samples alone?
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.code_filters import clean_statement
from curation.code_sources import package_row, samples_of
from curation.kattis import Package, find_packages, read_package
from curation.store import read_manifest, read_table
from curation.twins import LINES
from curation.verify.code_judging import fenced
from curation.verify.comparison import same_output
from flows.commands import run_recipe

MOST_BYTES = 3 << 20
MOST_TESTS = 12


@dataclass(frozen=True, slots=True)
class Planted:
    """What a copy holds: original answers by test name, and the tests whose expected output was corrupted."""

    package: Package
    answers: dict[str, bytes]
    corrupted: frozenset[str]


def usable(package: Package) -> bool:
    """Whether the line should keep a package: text only, with a right solution, not too large for a measurement."""
    size = sum(len(test.input) + len(test.output) for test in package.problem.tests)
    right = [one for one in package.submissions if one.lang is not None and one.accepted]
    return not package.reasons and bool(right) and size <= MOST_BYTES and len(package.problem.tests) >= 6


def corrupt(answer: bytes, draw: random.Random) -> bytes:
    """Another output of the same form: one number changed, else one letter, never equal in tokens."""
    tokens = answer.split(b"\n")
    places = [i for i, line in enumerate(tokens) if line.strip()]
    if not places:
        return b"1\n"
    row = draw.choice(places)
    words = tokens[row].split(b" ")
    index = draw.choice([i for i, word in enumerate(words) if word])
    word = words[index]
    try:
        words[index] = str(int(word) + draw.choice((1, -1, 7))).encode()
    except ValueError:
        try:
            words[index] = repr(float(word) * 1.5 + 1).encode()
        except ValueError:
            swap = {b"YES": b"NO", b"NO": b"YES", b"Yes": b"No", b"No": b"Yes", b"yes": b"no", b"no": b"yes"}
            words[index] = swap.get(word, word + draw.choice((b"x", b"q")))
    tokens[row] = b" ".join(words)
    return b"\n".join(tokens)


def plant(package: Package, target: Path, draw: random.Random, samples_only: bool) -> Planted:
    """Copy a package with half of its secret tests, a tenth of the expected outputs corrupted."""
    shutil.copytree(package.path, target, symlinks=False, ignore=shutil.ignore_patterns("data", ".git"))
    for extra in package.path.joinpath("data").glob("*.yaml"):
        (target / "data").mkdir(exist_ok=True)
        shutil.copy(extra, target / "data")
    tests = list(package.problem.tests)
    secret = tests[package.samples :]
    half = [] if samples_only else sorted(draw.sample(range(len(secret)), min(MOST_TESTS, (len(secret) + 1) // 2)))
    kept = tests[: package.samples] + [secret[i] for i in half]
    count = 0 if samples_only else round(len(kept) / 10) or (1 if len(kept) >= 6 else 0)
    chosen = {kept[i].name for i in draw.sample(range(len(kept)), count)}
    for test in kept:
        file = target / "data" / f"{test.name}.in"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(test.input)
        file.with_suffix(".ans").write_bytes(corrupt(test.output, draw) if test.name in chosen else test.output)
    (target / "data" / "secret").mkdir(parents=True, exist_ok=True)
    return Planted(package, {test.name: test.output for test in kept}, frozenset(chosen))


def attempts(copies: list[Path]) -> list[dict[str, str]]:
    """The packages' own submissions as recorded attempts at both twins: two right and two wrong ones, as far as there
    are any."""
    rows = []
    for path in copies:
        package = read_package(path)
        row = package_row(package)
        statement = clean_statement(f"{row['statement']}\n\n{samples_of(package)}".rstrip())
        for language, line in LINES.items():
            own = [sub for sub in package.submissions if sub.lang is not None and sub.lang.value == language]
            drawn = [sub for sub in own if sub.accepted][:2] + [sub for sub in own if sub.rejected][:2]
            for number in range(4):
                sub = drawn[number % len(drawn)] if drawn else None
                text = "I do not know." if sub is None or sub.lang is None else fenced(sub.lang, sub.code)
                rows.append({"problem": f"{statement}\n\n{line}", "text": text})
    return rows


def recipe(packages: Path, file: Path, out: Path) -> Path:
    """A recipe for the copies."""
    out.write_text(f"""\
name = "bench-code-line"
flow = "curate-code"
shard_rows = 4
[[sources]]
name = "packages"
kind = "kattis"
path = "{packages}"
domain = "code"
[near_duplicates]
enabled = false
[code.matrix]
right_solutions = 3
wrong_solutions = 2
measure_s = 4.0
give_up = 2
[stage1.policy]
kind = "recorded"
name = "submissions@package"
path = "{file}"
columns = {{ problem = "problem", text = "text", domain = "code" }}
[stage1.band]
attempts = 4
""")
    return out


def run(folder: Path, out: Path, most: int, seed: int, samples_only: bool) -> None:
    """Copy, plant, run, and print what came of it."""
    draw = random.Random(seed)
    found = [package for path in find_packages(folder) if usable(package := read_package(path))]
    found = sorted(draw.sample(found, min(most, len(found))), key=lambda package: package.name)
    copies = out / "packages"
    planted = {package.name: plant(package, copies / package.name, draw, samples_only) for package in found}
    file = out / "attempts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in attempts([copies / name for name in planted])))
    settings = ["code.agreement.min_tests=1"] if samples_only else []
    start = time.monotonic()
    run_recipe(recipe(copies, file, out / "recipe.toml"), settings, out / "run")
    seconds = time.monotonic() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(planted)} packages end to end in {seconds:.0f} s; peak memory of the run itself {memory:.0f} MB")
    matrix = read_manifest(out / "run" / "stages" / "08-matrix")
    assert matrix is not None
    print(f"matrix: {matrix.notes['judged']} runs, {matrix.notes['broken']} broken")
    report_power(out / "run")
    if not samples_only:
        report_faults(out / "run", planted)


def report_power(folder: Path) -> None:
    """What generated tests catch beyond those that were given."""
    power = read_table(folder / "stages" / "10-tests", "power")
    wrong, given, caught = (int(power[name].sum()) for name in ("wrong", "caught_given", "caught"))
    print(
        f"known wrong submissions: {wrong}; caught by the tests given {given}, with generated ones {caught}: "
        f"{caught - given} of the {wrong - given} let pass ({(caught - given) / max(1, wrong - given):.1%}); "
        f"{int(power['made'].sum())} tests kept of {int(power['sound'].sum())} sound of "
        f"{int(power['tried'].sum())} tried"
    )


def report_faults(folder: Path, planted: dict[str, Planted]) -> None:
    """Corrupted tests found and corrected; sound tests discarded or changed."""
    names = {
        row["id"]: json.loads(row["meta"])["name"]
        for row in read_table(folder / "stages" / "01-sources", "kept", ["id", "meta"]).iter_rows(named=True)
    }
    decisions = read_table(folder / "stages" / "10-tests", "decisions")
    problems = read_table(folder / "stages" / "10-tests", "problems")
    voting = dict(problems.select("problem", "voting").iter_rows())
    sources = read_table(folder / "stages" / "01-sources", "tests")
    outputs = {
        (p, t): o
        for p, t, o in read_table(folder / "stages" / "10-tests", "tests", ["problem", "index", "output"]).iter_rows()
    }
    order = {}
    for problem in sources["problem"].unique(maintain_order=True):
        package = read_package(folder.parent / "packages" / names[problem]) if problem not in order else None
        if package is not None:
            order[problem] = [test.name for test in package.problem.tests]
    rows = []
    for problem, test, decision, why in decisions.select("problem", "test", "decision", "why").iter_rows():
        if test >= len(order[problem]):
            continue  # generated
        one = planted[names[problem]]
        name = order[problem][test]
        how = one.package.problem.comparison
        text = outputs.get((problem, test))
        right = text is not None and same_output(one.answers[name], text.encode(), how)
        rows.append(
            (
                names[problem],
                name,
                name in one.corrupted,
                decision,
                why,
                right,
                voting[problem],
                one.package.problem.checker is not None,
            )
        )
    schema = ["package", "test", "corrupted", "decision", "why", "right", "voting", "checker"]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    for label, part in (("compared", table.filter(~pl.col("checker"))), ("by a checker", table.filter("checker"))):
        bad = part.filter(pl.col("corrupted") & (pl.col("voting") >= 3))
        few = part.filter(pl.col("corrupted") & (pl.col("voting") < 3))
        sound = part.filter(~pl.col("corrupted"))
        hurt = sound.filter(pl.col("decision") != "keep")
        fixed = bad.filter((pl.col("decision") == "correct") & pl.col("right"))
        print(
            f"{label}: with three or more voting solutions {bad.height} corrupted tests, "
            f"{bad.filter(pl.col('decision') != 'keep').height} found, {fixed.height} corrected to the right output; "
            f"with fewer {few.height}, {few.filter(pl.col('decision') != 'keep').height} found. "
            f"Sound tests {sound.height}, discarded or changed {hurt.height} ({hurt.height / max(1, sound.height):.2%})"
        )
        for row in [*bad.filter((pl.col("decision") != "correct") | ~pl.col("right")).rows(), *hurt.rows()][:30]:
            print("   ", row)
    print(problems.group_by("keep", "reason").len().sort("len"))


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--samples-only", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        out = (given.out or Path(aside)).absolute()
        out.mkdir(parents=True, exist_ok=True)
        run(given.folder, out, given.packages, given.seed, given.samples_only)


if __name__ == "__main__":
    sys.exit(main())
