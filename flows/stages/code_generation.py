"""New tests for one problem: inputs made in rounds, run through the solutions, and kept where these agree.

Inputs come from a model's generator programs and from the forms and changes of `curation.programs.test_generation`. A
package's own input validator, where it has one that lets its given inputs pass, is asked first: what it refuses is not
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.programs import execution_matrix, test_generation, tests_agreement
from curation.verify.programs.checkers import valid_inputs
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import Checker, Submission
from curation.verify.programs.tables import validator_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits
from flows.run.run_folder import Run
from flows.stages.units import Unit

_GENERATOR_MB = 512
_GIVEN = 20
"""Given inputs that a validator must let pass before it is believed."""


@dataclass(slots=True)
class GeneratedTests:
    """What generation has so far for one problem."""

    tests: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    runs: list[pl.DataFrame] = field(default_factory=list)
    caught: frozenset[int] = frozenset()
    tried: int = 0
    refused: int = 0
    sound: int = 0
    rounds: int = 0

    def counts(self) -> tuple[int, int, int, int, int]:
        """Return inputs tried, refused and sound, tests made, and rounds."""
        return self.tried, self.refused, self.sound, len(self.tests), self.rounds


def generate_tests(
    run: Run,
    unit: Unit,
    runner: Runner,
    runs: pl.DataFrame,
    decisions: pl.DataFrame,
    tests: pl.DataFrame,
    limit: float,
    said: Sequence[str],
) -> GeneratedTests:
    """Return rounds of new tests, until there are enough and no new one tells solutions apart."""
    settings = run.recipe.code.test_generation
    staying = decisions.filter(pl.col("decision") != "discard")
    before = failing_solutions(runs, staying)
    made = GeneratedTests(caught=frozenset().union(*before.values()))
    voting = _voting(run, runs)
    if not settings.enabled or not lacks_tests(run, runs, staying) or len(voting) < settings.min_votes:
        return made
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    seen = [text for text in tests["input"] if len(text) <= settings.max_input_kb << 10]
    known = set(unit.tests["input"])
    ready = _from_model(run, runner, said)
    statement = unit.row["statement"]
    candidates = [one for one in unit.candidates(run) if one.index in voting or one.index in wrong]
    validator = _fit_validator(runner, unit)
    idle = 0
    while made.rounds < settings.rounds:
        made.rounds += 1
        batch = [(text, "model") for text in ready[: settings.batch] if text not in known]
        del ready[: settings.batch]
        if seen:
            seed = f"{run.recipe.seed} {unit.name} {made.rounds}"
            new = test_generation.new_inputs(seen, statement, settings.batch, seed, settings.max_input_kb << 10)
            batch += [(text, "mutation") for text in new if text not in known]
        if not batch:
            break
        known |= {text for text, _ in batch}
        made.tried += len(batch)
        if validator is not None:
            valid = valid_inputs(runner.tools, validator, [text.encode() for text, _ in batch])
            made.refused += valid.count(False)
            batch = [one for one, passes in zip(batch, valid, strict=True) if passes]
        if not batch:
            continue
        gained = _round(run, unit, runner, candidates, voting, batch, made, tests.height, limit)
        idle = 0 if gained else idle + 1
        enough = tests.height + len(made.tests) >= settings.enough
        if enough and (idle >= settings.patience or wrong <= made.caught):
            break
    return made


def _voting(run: Run, runs: pl.DataFrame) -> set[int]:
    aside = tests_agreement.deviating_solutions(runs, run.recipe.code.agreement)
    return set(runs.join(aside, on=["problem", "solution"], how="anti")["solution"])


def _fit_validator(runner: Runner, unit: Unit) -> Checker | None:
    """Return the problem's input validator; None where it has none, or refuses an input that the source gives."""
    validator = validator_of(unit.judging)
    given = [text.encode() for text in unit.tests["input"].head(_GIVEN)]
    return validator if validator is not None and all(valid_inputs(runner.tools, validator, given)) else None


def _round(
    run: Run,
    unit: Unit,
    runner: Runner,
    candidates: Sequence[execution_matrix.Candidate],
    voting: set[int],
    batch: Sequence[tuple[str, str]],
    made: GeneratedTests,
    have: int,
    limit: float,
) -> bool:
    """Run the solutions on a batch of inputs and keep what is worth it; whether a new wrong solution was caught."""
    first = 1 + max(int(unit.tests["index"].max() or 0), *(test[1] for test in made.tests), -1)  # type: ignore[arg-type]
    indices = list(range(first, first + len(batch)))
    problem = execution_matrix.with_tests(unit.problem(run, limit), [(text.encode(), b"") for text, _ in batch])
    matrix = execution_matrix.run_execution_matrix(
        runner,
        unit.name,
        problem,
        candidates,
        run.recipe.code.execution_matrix,
        time_given=True,
        indices=indices,
        known=[False] * len(batch),
    )
    votes = matrix.runs.filter(pl.col("solution").is_in(list(voting)))
    agreed = (
        votes.group_by("test")
        .agg(
            pl.col("valid").all().alias("valid"),
            pl.col("output").n_unique().alias("classes"),
            pl.col("output").first(),
            pl.len().alias("votes"),
        )
        .filter(pl.col("valid") & (pl.col("classes") == 1))
        .filter(pl.col("votes") >= max(len(voting), run.recipe.code.test_generation.min_votes))
        .sort("test")
    )
    sound = dict(agreed.select("test", "output").iter_rows())
    wanted = agreed.select(pl.lit(unit.name).alias("problem"), "test", "output")
    failing = failing_solutions(matrix.runs, wanted)
    enough = run.recipe.code.test_generation.enough
    kept = test_generation.select_tests(list(sound), failing, made.caught, have + len(made.tests), enough)
    texts = {(test, group): text for _, test, group, text in matrix.outputs.iter_rows()}
    for test in kept:
        text, origin = batch[test - first]
        made.tests.append((unit.name, test, text, texts[test, sound[test]], origin))
    gained = frozenset().union(*(failing.get(test, frozenset()) for test in kept)) - made.caught
    made.caught |= gained
    made.sound += len(sound)
    frame = matrix.runs.filter(pl.col("test").is_in(kept))
    wanted = wanted.rename({"output": "wanted"}).select("test", "wanted")
    marked = frame.join(wanted, on="test").with_columns(
        (pl.col("output") == pl.col("wanted")).fill_null(False).alias("expected")
    )
    made.runs.append(marked.select(execution_matrix.MEASURED.names()).cast(execution_matrix.MEASURED))
    return bool(gained)


def _from_model(run: Run, runner: Runner, said: Sequence[str]) -> list[str]:
    """Return inputs that the generators of some responses print and their validators let pass."""
    settings = run.recipe.code.test_generation
    limits = Limits(settings.generator_s, memory_mb=_GENERATOR_MB, output_bytes=settings.max_input_kb << 10)
    found: list[str] = []
    for response in said:
        programs = test_generation.programs_in(response)
        if programs is None:
            continue
        made = _outputs(runner, programs.generator, [f"{k}\n".encode() for k in range(1, settings.batch + 1)], limits)
        inputs_made = [text for text in made if text]
        if programs.validator is not None and inputs_made:
            passed = _outputs(runner, programs.validator, inputs_made, limits)
            inputs_made = [text for text, said in zip(inputs_made, passed, strict=True) if said is not None]
        found += [text.decode() for text in inputs_made if _is_text(text)]
    return list(dict.fromkeys(found))


def _outputs(runner: Runner, code: str, stdins: Sequence[bytes], limits: Limits) -> list[bytes | None]:
    """Return what a program prints for each standard input; None where it does not end by itself with exit code 0."""
    program = runner.tools.prepare(Submission(CodeLang.PYTHON, code))
    if not isinstance(program, Program):
        return [None] * len(stdins)
    return [
        ran.stdout if ran.ending is Ending.EXITED and ran.exit_code == 0 else None
        for ran in runner.tools.run(program, stdins, limits)
    ]


def _is_text(output: bytes) -> bool:
    try:
        return output.decode().strip() != ""
    except UnicodeDecodeError:
        return False


def failing_solutions(runs: pl.DataFrame, decisions: pl.DataFrame) -> dict[int, frozenset[int]]:
    """Per test that stays, the known wrong solutions that fail on it."""
    wanted = decisions.select("problem", "test", pl.col("output").alias("wanted"))
    wrong = runs.filter(~pl.col("right").fill_null(True)).join(wanted, on=["problem", "test"])
    fails = wrong.filter((~pl.col("valid") | (pl.col("output") != pl.col("wanted"))).fill_null(True))
    grouped = fails.group_by("test").agg("solution")
    return {int(test): frozenset(solutions) for test, solutions in grouped.iter_rows()}


def lacks_tests(run: Run, runs: pl.DataFrame, staying: pl.DataFrame) -> bool:
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    caught = frozenset().union(*failing_solutions(runs, staying).values())
    return staying.height < run.recipe.code.test_generation.enough or bool(wrong - caught)
