"""Copies of real problem packages with faults planted, through the code pipeline: what it finds and what it spoils.

Of a copy half of the secret tests are gone, a tenth of the expected outputs is changed, and the input validators are
left out; tests over `MOST_KB` are left out too, and at most `MOST_TESTS` secret ones stay. The copies go through
`goldilocks run`, whose recorded attempts are the packages' own submissions. Then the tests that stayed are compared
with the original answers; where a checker decides, it is asked.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import yaml

from curation.programs.filters import clean_statement
from curation.programs.language_variants import LINES
from curation.records import SourceError
from curation.sources.code_problems import package_row
from curation.sources.kattis import Package, find_packages, read_package
from curation.storage.stages import read_table
from curation.verify.programs.checkers import check_outputs
from curation.verify.programs.comparison import same_output
from curation.verify.programs.extraction import fenced
from curation.verify.programs.problem import CodeTest, CodeVerdict
from curation.verify.programs.tools import Runner
from flows.cli.commands import run_recipe
from tests.made_limits import made_with

COUNT, MOST_KB, MOST_TESTS, LEAST_TESTS = 40, 200, 12, 6
"""Packages, and of one: the largest test in kilobytes, secret tests that stay, tests that it must have."""
FEW = {"MAX_RIGHT": 3, "MAX_WRONG": 2, "MEASURE_S": 4.0, "GIVE_UP": 2, "ROUNDS": 1}

_SWAPPED = {b"YES": b"NO", b"NO": b"YES", b"Yes": b"No", b"No": b"Yes", b"yes": b"no", b"no": b"yes"}


def packages_in(folder: Path) -> Iterator[Package]:
    """Yield all readable packages, each name once."""
    names: set[str] = set()
    for path in find_packages(folder):
        if path.name in names:
            continue
        names.add(path.name)
        try:
            yield read_package(path)
        except SourceError as error:
            print(f"left out: {error}")


def multiplier_of(package: Package) -> float:
    """Return the factor between the slowest accepted program and the time limit."""
    metadata = yaml.safe_load((package.path / "problem.yaml").read_bytes()) or {}
    limits = metadata.get("limits") or {}
    newer = limits.get("time_multipliers")
    if isinstance(newer, dict):
        return float(newer.get("ac_to_time_limit") or 2.0)
    default = 5.0 if str(metadata.get("problem_format_version", "legacy")) == "legacy" else 2.0
    return float(limits.get("time_multiplier") or default)


def corrupt(answer: bytes, draw: random.Random) -> bytes:
    """Return another output, with one word changed."""
    words = list(re.finditer(rb"\S+", answer))
    if not words:
        return b"1\n"
    word = draw.choice(words)
    is_number = word[0].lstrip(b"-").isdigit()
    other = str(int(word[0]) + draw.choice((1, -1, 7))).encode() if is_number else _SWAPPED.get(word[0], word[0] + b"7")
    return answer[: word.start()] + other + answer[word.end() :]


@dataclass(frozen=True, slots=True)
class Planted:
    """One copy: its original, and the tests whose expected output was changed."""

    original: Package
    corrupted: frozenset[str]


def _size(test: CodeTest) -> int:
    return len(test.input) + len(test.output)


def usable(package: Package) -> bool:
    """Return whether the pipeline should keep a package: text only, a right solution, tests of a size to measure."""
    right = [submission for submission in package.submissions if submission.lang is not None and submission.accepted]
    small = [test for test in package.problem.tests if _size(test) <= MOST_KB << 10]
    return not package.reasons and bool(right) and package.samples > 0 and len(small) >= LEAST_TESTS


def plant(package: Package, target: Path, draw: random.Random) -> Planted:
    """Copy a package with faults."""
    left_out = shutil.ignore_patterns("data", ".git", "input_validators", "input_format_validators")
    shutil.copytree(package.path, target, ignore=left_out)
    for extra in package.path.joinpath("data").glob("*.yaml"):
        (target / "data").mkdir(exist_ok=True)
        shutil.copy(extra, target / "data")
    tests = list(package.problem.tests)
    secret = [test for test in tests[package.samples :] if _size(test) <= MOST_KB << 10]
    half = sorted(draw.sample(range(len(secret)), min(MOST_TESTS, (len(secret) + 1) // 2)))
    copied = tests[: package.samples] + [secret[i] for i in half]
    count = round(len(copied) / 10) or int(len(copied) >= LEAST_TESTS)
    corrupted = {copied[i].name for i in draw.sample(range(len(copied)), count)}
    for test in copied:
        file = target / "data" / f"{test.name}.in"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(test.input)
        file.with_suffix(".ans").write_bytes(corrupt(test.output, draw) if test.name in corrupted else test.output)
    (target / "data" / "secret").mkdir(parents=True, exist_ok=True)
    return Planted(package, frozenset(corrupted))


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
name = "planted-faults"
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


def faults(folder: Path, out: Path, seed: int) -> pl.DataFrame:
    """Return package, test, corrupted, decision, right and voting of each test that was judged."""
    draw = random.Random(seed)
    packages = [package for package in packages_in(folder) if usable(package)]
    packages = sorted(draw.sample(packages, min(COUNT, len(packages))), key=lambda package: package.name)
    planted = {package.name: plant(package, out / "packages" / package.name, draw) for package in packages}
    rows = attempts([out / "packages" / name for name in planted])
    (out / "attempts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with made_with(**FEW):
        run_recipe(recipe(out), [], out / "run")
    sources = read_table(out / "run" / "stages" / "01-sources", "kept", ["id", "meta"])
    names = {row["id"]: json.loads(row["meta"])["name"] for row in sources.iter_rows(named=True)}
    stage = out / "run" / "stages" / "10-tests"
    kept_tests = read_table(stage, "tests", ["problem", "index", "output"])
    outputs = {(problem, test): text for problem, test, text in kept_tests.iter_rows()}
    voting = dict(read_table(stage, "problems", ["problem", "voting"]).iter_rows())
    judged = []
    with Runner(1) as runner:
        for (problem,), group in read_table(stage, "decisions").group_by("problem"):
            name = names[str(problem)]
            original, corrupted = planted[name].original, planted[name].corrupted
            order = [test.name for test in read_package(out / "packages" / name).problem.tests]
            answers = {test.name: (test.input, test.output) for test in original.problem.tests}
            for test, decision in group.sort("test").select("test", "decision").iter_rows():
                if test < len(order):  # others are generated
                    text = outputs.get((str(problem), test))
                    right = text is not None and _right(original, *answers[order[test]], text.encode(), runner)
                    bad = order[test] in corrupted
                    judged.append((name, order[test], bad, decision, right, voting[str(problem)]))
    return pl.DataFrame(judged, ["package", "test", "corrupted", "decision", "right", "voting"], orient="row")


def _right(package: Package, test_input: bytes, answer: bytes, output: bytes, runner: Runner) -> bool:
    """Return whether an output is right by the package as it was."""
    if package.problem.checker is None:
        return same_output(answer, output, package.problem.comparison)
    ((verdict, _),) = check_outputs(runner, package.problem.checker, [(test_input, answer, output)])
    return verdict is CodeVerdict.AC
