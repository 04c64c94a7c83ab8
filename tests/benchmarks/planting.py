"""Copies of real problem packages with faults planted: half of the secret tests gone, a tenth of the expected outputs
changed. The packages' input validators are left out, so that what was made without them can be held against them. What
was planted is written beside the copies, so that a measurement can be taken up again.

The caps are honest ones: tests over ``most_kb`` are left out of a copy, and at most ``most_tests`` secret ones stay.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from curation.records import SourceError
from curation.sources.kattis import Package, find_packages, read_package
from curation.verify.programs.problem import CodeTest

LEAST_TESTS = 6


def corrupt(answer: bytes, draw: random.Random) -> bytes:
    """Return another output, with one word changed."""
    words = list(re.finditer(rb"\S+", answer))
    if not words:
        return b"1\n"
    word = draw.choice(words)
    is_number = word[0].lstrip(b"-").isdigit()
    other = str(int(word[0]) + draw.choice((1, -1, 7))).encode() if is_number else _SWAPPED.get(word[0], word[0] + b"7")
    return answer[: word.start()] + other + answer[word.end() :]


_SWAPPED = {b"YES": b"NO", b"NO": b"YES", b"Yes": b"No", b"No": b"Yes", b"yes": b"no", b"no": b"yes"}


@dataclass(frozen=True, slots=True)
class Planted:
    """One copy: where the original lies, the tests that were copied, and those whose expected output was changed."""

    name: str
    original: Path
    tests: tuple[str, ...]
    corrupted: frozenset[str]


def usable(package: Package, most_kb: int, samples_only: bool) -> bool:
    """Return whether the pipeline should keep a package: text only, a right solution, tests of a size to measure."""
    right = [submission for submission in package.submissions if submission.lang is not None and submission.accepted]
    small = [test for test in package.problem.tests if _size(test) <= most_kb << 10]
    least = package.samples if samples_only else LEAST_TESTS
    return not package.reasons and bool(right) and package.samples > 0 and len(small) >= least


def _size(test: CodeTest) -> int:
    return len(test.input) + len(test.output)


def multiplier_of(package: Package) -> float:
    """Return the factor between the slowest accepted program and the time limit."""
    metadata = yaml.safe_load((package.path / "problem.yaml").read_bytes()) or {}
    limits = metadata.get("limits") or {}
    newer = limits.get("time_multipliers")
    if isinstance(newer, dict):
        return float(newer.get("ac_to_time_limit") or 2.0)
    default = 5.0 if str(metadata.get("problem_format_version", "legacy")) == "legacy" else 2.0
    return float(limits.get("time_multiplier") or default)


def packages_in(folders: Iterable[Path]) -> Iterator[Package]:
    """Yield all readable packages, each name once."""
    names: set[str] = set()
    for folder in folders:
        for path in find_packages(folder):
            if path.name in names:
                continue
            names.add(path.name)
            try:
                yield read_package(path)
            except SourceError as error:
                print(f"left out: {error}")


def plant(package: Package, target: Path, draw: random.Random, most: tuple[int, int], samples_only: bool) -> Planted:
    """Copy a package. ``most``: kilobytes of a test, secret tests kept."""
    shutil.copytree(
        package.path,
        target,
        ignore=shutil.ignore_patterns("data", ".git", "input_validators", "input_format_validators"),
    )
    for extra in package.path.joinpath("data").glob("*.yaml"):
        (target / "data").mkdir(exist_ok=True)
        shutil.copy(extra, target / "data")
    tests = list(package.problem.tests)
    secret = [test for test in tests[package.samples :] if _size(test) <= most[0] << 10]
    half = [] if samples_only else sorted(draw.sample(range(len(secret)), min(most[1], (len(secret) + 1) // 2)))
    copied = tests[: package.samples] + [secret[i] for i in half]
    count = 0 if samples_only else round(len(copied) / 10) or int(len(copied) >= LEAST_TESTS)
    corrupted = {copied[i].name for i in draw.sample(range(len(copied)), count)}
    for test in copied:
        file = target / "data" / f"{test.name}.in"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(test.input)
        file.with_suffix(".ans").write_bytes(corrupt(test.output, draw) if test.name in corrupted else test.output)
    (target / "data" / "secret").mkdir(parents=True, exist_ok=True)
    return Planted(package.name, package.path, tuple(test.name for test in copied), frozenset(corrupted))


def plant_all(
    folders: Iterable[Path], out: Path, count: int, seed: int, most: tuple[int, int], samples_only: bool
) -> list[Planted]:
    """Plant once; a second call reads what was planted."""
    record = out / "planted.json"
    if not record.is_file():
        draw = random.Random(seed)
        shutil.rmtree(out / "packages", ignore_errors=True)
        packages = [package for package in packages_in(folders) if usable(package, most[0], samples_only)]
        packages = sorted(draw.sample(packages, min(count, len(packages))), key=lambda package: package.name)
        planted = [plant(item, out / "packages" / item.name, draw, most, samples_only) for item in packages]
        rows = [(item.name, str(item.original.absolute()), item.tests, sorted(item.corrupted)) for item in planted]
        record.write_text(json.dumps(rows, indent=1))
    rows = json.loads(record.read_text())
    return [Planted(name, Path(path), tuple(tests), frozenset(bad)) for name, path, tests, bad in rows]
