"""Tests that are made with a model, judged by real problem packages whose validators are hidden.

`GOLDILOCKS_PACKAGES` names a folder with problem packages of public contests in the Kattis format (`PACKAGES` names
them), which are not in the project.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from curation.questions.test_programs import PROMPT as TESTING
from curation.records import PromptRequest
from curation.sources.kattis import Package
from curation.verify.programs.tools import Runner
from flows.stages.tests import unit_request
from tests.gates import planted_faults
from tests.gates.base import Limit, Measured, SkippedError, counted, gate, share
from tests.gates.packaged_tests import (
    MAX_S,
    Scored,
    chosen,
    keep_compiled,
    measurable_packages,
    measured_run,
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
    found = [one for one in measurable_packages(Path(folder)) if one.name in PACKAGES] if folder else []
    if not found:
        raise SkippedError("needs GOLDILOCKS_PACKAGES: a folder of contest packages, which are not in the shared data")
    return found


@prompts("made-tests")
def made_tests_prompts() -> Asked:
    """Return what is asked about each package."""
    units = [unit_of(one, chosen(one, SEED), MAX_S) for one in packages()]
    return [(TESTING, unit_request(unit)) for unit in units]


@cache
def all_scored() -> list[Scored]:
    """Return what was counted of each package that can be measured, in the order of their names."""
    run = measured_run(SEED)

    def answered(request: PromptRequest) -> Sequence[str]:
        return answers_to("made-tests", [rendered(TESTING, request)])[0]

    found = []
    with Runner(1) as runner, made_with(GIVE_UP=1, ROUNDS=4):
        keep_compiled(runner)
        for package in sorted(packages(), key=lambda one: one.name):
            if (one := score(run, runner, package, answered)) is not None:
                found.append(one)
                one.show()
    return found


@gate("inputs-valid", Limit("==", 100, "%"), tier="all")
def inputs_valid() -> Measured:
    """Inputs of made tests that the packages' own validators accept."""
    valid, made = (sum(getattr(one, name) for one in all_scored()) for name in ("valid", "made"))
    return share(valid, made, f"{valid:,} of {made:,}")


@gate("wrong-programs-caught", Limit(">=", 93.75, "%"), tier="all")
def wrong_programs_caught() -> Measured:
    """Wrong programs that the samples and the made tests catch."""
    fates = [how for one in all_scored() for _, how in one.wrong]
    hits = sum(how != "none" for how in fates)
    return share(hits, len(fates), f"{hits} of {len(fates)}, {len(all_scored())} packages")


@cache
def faults() -> pl.DataFrame:
    """Return the tests of 40 packages that three or more solutions judge, a tenth of them corrupted before the run."""
    packages()
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        judged = planted_faults.faults(Path(os.environ["GOLDILOCKS_PACKAGES"]), Path(folder), SEED)
    return judged.filter(pl.col("voting") >= 3)


@gate("corrupted-corrected", Limit(">=", 97, "%"), tier="all")
def corrupted_corrected() -> Measured:
    """Corrupted tests that are corrected to a right output."""
    bad = faults().filter("corrupted")
    fixed = bad.filter((pl.col("decision") == "correct") & pl.col("right")).height
    return share(fixed, bad.height, f"{fixed} of {bad.height}")


@gate("sound-hurt", Limit("==", 0), tier="all")
def sound_hurt() -> Measured:
    """Sound tests that are discarded or changed."""
    sound = faults().filter(~pl.col("corrupted"))
    return counted(sound.filter(pl.col("decision") != "keep").height, sound.height)
