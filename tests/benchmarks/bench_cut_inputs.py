"""Given tests whose inputs were cut: which of them stay, and which sound tests are lost for it?

    python -m tests.benchmarks.bench_cut_inputs FOLDER [FOLDER …] [--out DIR] [--packages 12] [--validators]

Of each package of the Kattis format up to 12 tests of at most 20 KB are given; of a third of them the input is cut
somewhere, so that the package's validators refuse it, and the expected output stays. Solutions run on all of them, and
the rules of the pipeline decide. With ``--validators`` they are given the package's validators, else these are hidden.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl

from curation.programs import tests_agreement
from curation.records import TEST
from curation.sources.kattis import Package
from curation.verify.programs.tools import Runner
from curation.verify.programs.validators import ReadyValidator, check_inputs, prepare_validator
from flows.run.run_folder import Run
from flows.stages.code_generation import vouching_of
from flows.stages.tests import known_inputs
from flows.stages.units import Unit
from tests.benchmarks.bench_made_tests import chosen, measured_run, packages_of, unit_of
from tests.benchmarks.submission_runs import Memory, keep_compiled
from tests.made_limits import made_with

_TESTS = 12
_MOST_BYTES = 20_000


def cut_some(runner: Runner, package: Package, draw: random.Random) -> tuple[list[tuple[str, str]], set[int]]:
    """Return tests of a package, and which of them have an input that was cut and is not allowed any more."""
    small = [test for test in package.problem.tests if len(test.input) <= _MOST_BYTES]
    tests = draw.sample(small, min(_TESTS, len(small)))
    ready = [prepare_validator(runner.tools, validator) for validator in package.validators]
    judges = [validator for validator in ready if isinstance(validator, ReadyValidator)]
    pairs = [(test.input.decode(), test.output.decode()) for test in tests]
    spoiled: set[int] = set()
    for place in range(0, len(pairs), 3):
        text = pairs[place][0]
        cuts = [text[: draw.randint(1, len(text) - 1)].rstrip() + "\n" for _ in range(5) if len(text) > 2]
        verdicts = check_inputs(runner.tools, judges, [cut.encode() for cut in cuts])
        refused = [cut for cut, verdict in zip(cuts, verdicts, strict=True) if verdict.valid is False]
        if refused:
            pairs[place] = refused[0], pairs[place][1]
            spoiled.add(place)
    return pairs, spoiled


def measure(run: Run, runner: Runner, package: Package, out: Path, args: argparse.Namespace) -> Counter[str]:
    """Decide on the tests of one package, and count."""
    subs = chosen(package, args.right, 0, args.seed)
    limit = package.problem.cpu_s if package.has_time_limit else 1.0
    pairs, spoiled = cut_some(runner, package, random.Random(f"{args.seed} {package.name}"))
    whole = unit_of(package, subs, limit, validators=args.validators)
    rows = [(package.name, index, *pair, "secret") for index, pair in enumerate(pairs)]
    unit = Unit(whole.row, pl.DataFrame(rows, schema=TEST, orient="row"), 0, whole.solutions, whole.judging)
    everybody = unit.candidates()
    memory = Memory(out / f"{package.name}.cut.pkl", everybody)
    matrix = memory.execute(runner, unit.name, unit.problem(run, limit), everybody, time_given=True)
    memory.save()
    settings = run.recipe.code
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    vouching = vouching_of(unit, runner, ())
    inputs = known_inputs(unit, vouching, tests_agreement.decide_tests(matrix.runs, settings, ids))
    decisions = tests_agreement.decide_tests(matrix.runs, settings, ids, inputs)
    before = tests_agreement.decide_tests(matrix.runs, settings, ids)
    counts: Counter[str] = Counter()
    for name, table in (("agreement alone", before), ("now", decisions)):
        for test, decision, why in table.select("test", "decision", "why").iter_rows():
            kind = "cut" if test in spoiled else "sound"
            counts[f"{name}: {kind}, {decision}" + (f" ({why})" if decision == "discard" else "")] += 1
    return counts


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="what was run is kept here, for a further measurement")
    parser.add_argument("--packages", type=int, default=12)
    parser.add_argument("--seed", type=int, default=7, help="draws packages, tests and cuts")
    parser.add_argument("--right", type=int, default=4, help="accepted submissions of a package at most")
    parser.add_argument("--most-s", type=float, default=2.0, help="packages with a longer time limit are left out")
    parser.add_argument("--validators", action="store_true", help="give the rules the package's validators")
    args = parser.parse_args()
    out = (args.out or Path(tempfile.mkdtemp(prefix="goldilocks-cut-inputs-"))).absolute()
    out.mkdir(parents=True, exist_ok=True)
    run = measured_run([], args.seed)
    total: Counter[str] = Counter()
    with Runner(1) as runner, made_with(GIVE_UP=1):
        keep_compiled(runner, out / "compiled")
        for package in packages_of(args.folders, args.packages, args.seed):
            if package.has_time_limit and package.problem.cpu_s > args.most_s:
                continue
            counts = measure(run, runner, package, out, args)
            total.update(counts)
            print(
                package.name,
                {name: count for name, count in sorted(counts.items()) if name.startswith("now")},
                flush=True,
            )
    for name, count in sorted(total.items()):
        print(f"{name}: {count}")


if __name__ == "__main__":
    sys.exit(main())
