"""Tests that are made with a model, judged by real problem packages whose validators are hidden.

    GOLDILOCKS_PACKAGES=FOLDER python -m tests.gates.made_tests OUT [--minutes 60]

prints a line a package and the totals, and keeps what was run in OUT. The folder holds problem packages of public
contests in the Kattis format (`PACKAGES` names them), which are not in the project.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import polars as pl

from curation.questions.test_programs import PROMPT as TESTING
from curation.records import PromptRequest
from curation.sources.kattis import Package
from curation.verify.programs.tools import Runner
from flows.stages.tests import unit_request
from tests.benchmarks import bench_code_pipeline
from tests.benchmarks.submission_runs import keep_compiled
from tests.gates.base import Limit, Measured, SkippedError, StaleError, gate, wilson
from tests.gates.packaged_tests import (
    MAX_S,
    Scored,
    chosen,
    code_digest,
    kept_result,
    measured_run,
    packages_of,
    score,
    unit_of,
)
from tests.gates.stored import Asked, answers_to, prompts, rendered
from tests.made_limits import made_with

PACKAGES = """\
absurdistan2 additiongame altosinging alternativearchitecture bank basicbrewing blackfriday busplanning candypacking
chaoticconstruction climbing cowcrane emergencyexit enjoyableentree evenodd falling flappy forgottenhomework
globalwarming haybales indexcase joinedsessions killjoys kokids mathemagicians peasoup pizzaproblems racetrack
skilifts typecharts uuu vacuum wolf workout2""".split()
"""Packages on which no rule of test generation was worked out."""
SEED = 7


def packages() -> list[Package]:
    """Return the packages that are at hand.

    Raises:
        SkippedError: none is.
    """
    folder = os.environ.get("GOLDILOCKS_PACKAGES", "")
    found = [one for one in packages_of([Path(folder)], 10_000, SEED) if one.name in PACKAGES] if folder else []
    if not found:
        raise SkippedError("needs GOLDILOCKS_PACKAGES: a folder of contest packages, which are not in the shared data")
    return found


@prompts("made-tests")
def made_tests_prompts() -> Asked:
    """Return what is asked about each package."""
    units = [unit_of(one, chosen(one, SEED), MAX_S) for one in packages()]
    return [(TESTING, unit_request(unit)) for unit in units]


def scored(out: Path, *, minutes: float = 0, partly: bool = False) -> list[Scored]:
    """Return what was counted of each package that can be measured, in the order of their names.

    Args:
        partly: packages without an answer are left out, with a line.
        minutes: no package is begun later; 0: no end.
    """
    run = measured_run(SEED)
    digest, started, found = code_digest(run.recipe.code.model_dump_json()), time.monotonic(), []

    def answered(request: PromptRequest) -> Sequence[str]:
        return answers_to("made-tests", [rendered(TESTING, request)])[0]

    with Runner(1) as runner, made_with(GIVE_UP=1, ROUNDS=4):
        keep_compiled(runner, out / "compiled")
        for package in sorted(packages(), key=lambda one: one.name):
            if minutes and time.monotonic() - started > 60 * minutes:
                break
            measure = partial(score, run, runner, package, out, answered)
            try:
                one = kept_result(out / f"{package.name}.{digest}.json", measure)
            except StaleError as why:
                if not partly:
                    raise
                print(f"{package.name}: {why}", flush=True)
                continue
            if one is not None:
                found.append(one)
                one.show()
    return found


@cache
def all_scored() -> list[Scored]:
    """Return the counts of all packages; GOLDILOCKS_MADE_TESTS names a folder that keeps what was run."""
    out = Path(os.environ.get("GOLDILOCKS_MADE_TESTS") or mkdtemp(prefix="goldilocks-made-tests-"))
    out.mkdir(parents=True, exist_ok=True)
    return scored(out)


def caught(found: Sequence[Scored]) -> tuple[int, int]:
    """Return how many wrong programs fail a sample or a made test, and of how many."""
    fates = [how for one in found for _, how in one.wrong]
    return sum(how != "none" for how in fates), len(fates)


@gate("inputs-valid", Limit("==", 100, "%"), tier="all")
def inputs_valid() -> Measured:
    """Inputs of made tests that the packages' own validators accept."""
    valid, made = (sum(getattr(one, name) for one in all_scored()) for name in ("valid", "made"))
    return Measured(100 * valid / made, interval=wilson(valid, made, scale=100), note=f"{valid:,} of {made:,}")


@gate("wrong-programs-caught", Limit(">=", 93.75, "%"), tier="all")
def wrong_programs_caught() -> Measured:
    """Wrong programs that the samples and the made tests catch."""
    hits, count = caught(all_scored())
    note = f"{hits} of {count}, {len(all_scored())} packages"
    return Measured(100 * hits / count, interval=wilson(hits, count, scale=100), note=note)


@cache
def faults() -> pl.DataFrame:
    """Return the tests of 40 packages that three or more solutions judge, a tenth of them corrupted before the run."""
    packages()
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        bench_code_pipeline.run([Path(os.environ["GOLDILOCKS_PACKAGES"])], Path(folder), 40, SEED, (200, 12), False)
        return pl.read_parquet(Path(folder) / "faults.parquet").filter(pl.col("voting") >= 3)


@gate("corrupted-corrected", Limit(">=", 97, "%"), tier="all")
def corrupted_corrected() -> Measured:
    """Corrupted tests that are corrected to a right output."""
    bad = faults().filter("corrupted")
    fixed = bad.filter((pl.col("decision") == "correct") & pl.col("right")).height
    note = f"{fixed} of {bad.height}"
    return Measured(100 * fixed / bad.height, interval=wilson(fixed, bad.height, scale=100), note=note)


@gate("sound-hurt", Limit("==", 0), tier="all")
def sound_hurt() -> Measured:
    """Sound tests that are discarded or changed."""
    sound = faults().filter(~pl.col("corrupted"))
    hurt = sound.filter(pl.col("decision") != "keep").height
    return Measured(hurt, sound.height, wilson(hurt, sound.height, scale=sound.height))


def main() -> None:
    """Print what is counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=0)
    parsed = parser.parse_args()
    parsed.out.mkdir(parents=True, exist_ok=True)
    found = scored(parsed.out.absolute(), minutes=parsed.minutes, partly=True)
    hits, count = caught(found)
    valid, made, right, passed = (
        sum(getattr(one, name) for one in found) for name in ("valid", "made", "right", "right_passed")
    )
    print(f"{len(found)} packages: valid {valid:,} of {made:,}, TPR {passed} of {right}, TNR {hits} of {count}")


if __name__ == "__main__":
    main()
