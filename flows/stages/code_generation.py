"""New tests for one problem: inputs made in rounds, run through the solutions, and kept where these agree.

Inputs come from a model's generator programs and from the forms and changes of `curation.programs.test_generation`.
Where a package has its own input validator, and this accepts the package's inputs, it runs first: inputs that it
refuses are not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.programs import execution_matrix, test_generation, tests_agreement
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import Submission
from curation.verify.programs.tables import validators_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.programs.validators import ReadyValidator, check_inputs, prepare_validator
from curation.verify.sandbox import Ending, Limits
from flows.run.run_folder import Run
from flows.stages.units import Unit

_GENERATOR_MB = 512
_GIVEN = 20
"""Inputs of the source that a validator must accept before it is believed."""


Execute = Callable[..., execution_matrix.ExecutionMatrix]
"""`execution_matrix.run_execution_matrix`, or what stands in for it."""


@dataclass(slots=True)
class GeneratedTests:
    """What generation has so far for one problem."""

    tests: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    runs: list[pl.DataFrame] = field(default_factory=list)
    caught: frozenset[int] = frozenset()
    inputs: int = 0
    refused: int = 0
    sound: int = 0
    rounds: int = 0

    def counts(self) -> tuple[int, int, int, int, int]:
        """Return the numbers of inputs made, refused and sound, of tests kept, and of rounds, as in `POWER`."""
        return self.inputs, self.refused, self.sound, len(self.tests), self.rounds


def generate_tests(
    run: Run,
    unit: Unit,
    runner: Runner,
    runs: pl.DataFrame,
    decisions: pl.DataFrame,
    tests: pl.DataFrame,
    limit: float,
    responses: Sequence[str],
    execute: Execute = execution_matrix.run_execution_matrix,
) -> GeneratedTests:
    """Generate tests in rounds, until there are enough and no new one catches another wrong solution.

    Args:
        limit: the problem's time limit, in seconds.
        responses: of the model that writes generators.
        execute: runs solutions on tests.
    """
    settings = run.recipe.code.test_generation
    valid_decisions = decisions.filter(pl.col("decision") != "discard")
    before = failing_solutions(runs, valid_decisions)
    generated = GeneratedTests(caught=frozenset().union(*before.values()))
    voting = _voting(run, runs)
    if not settings.enabled or not lacks_tests(run, runs, valid_decisions) or len(voting) < settings.min_votes:
        return generated
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    short_inputs = [text for text in tests["input"] if len(text) <= settings.max_input_kb << 10]
    used_inputs = set(unit.tests["input"])
    model_inputs = _from_model(run, runner, responses)
    statement = unit.row["statement"]
    candidates = [
        candidate for candidate in unit.candidates(run) if candidate.index in voting or candidate.index in wrong
    ]
    validators = _fit_validators(runner, unit)
    idle = 0
    while generated.rounds < settings.rounds:
        generated.rounds += 1
        batch = [(text, "model") for text in model_inputs[: settings.batch] if text not in used_inputs]
        del model_inputs[: settings.batch]
        if short_inputs:
            seed = f"{run.recipe.seed} {unit.name} {generated.rounds}"
            new = test_generation.new_inputs(short_inputs, statement, settings.batch, seed, settings.max_input_kb << 10)
            batch += [(text, "mutation") for text in new if text not in used_inputs]
        if not batch:
            break
        used_inputs |= {text for text, _ in batch}
        generated.inputs += len(batch)
        if validators:
            verdicts = check_inputs(runner.tools, validators, [text.encode() for text, _ in batch])
            batch = [pair for pair, verdict in zip(batch, verdicts, strict=True) if verdict.valid]
            generated.refused += len(verdicts) - len(batch)
        if not batch:
            continue
        gained = _round(run, unit, runner, candidates, voting, batch, generated, tests.height, limit, execute)
        idle = 0 if gained else idle + 1
        enough = tests.height + len(generated.tests) >= settings.enough
        if enough and (idle >= settings.patience or wrong <= generated.caught):
            break
    return generated


def _voting(run: Run, runs: pl.DataFrame) -> set[int]:
    deviating = tests_agreement.deviating_solutions(runs, run.recipe.code.agreement)
    return set(runs.join(deviating, on=["problem", "solution"], how="anti")["solution"])


def _fit_validators(runner: Runner, unit: Unit) -> list[ReadyValidator]:
    """Return the problem's input validators; none where they refuse an input that the source gives."""
    prepared = [prepare_validator(runner.tools, validator) for validator in validators_of(unit.judging)]
    ready = [validator for validator in prepared if isinstance(validator, ReadyValidator)]
    given_inputs = [text.encode() for text in unit.tests["input"].head(_GIVEN)]
    return ready if all(verdict.valid for verdict in check_inputs(runner.tools, ready, given_inputs)) else []


def _round(
    run: Run,
    unit: Unit,
    runner: Runner,
    candidates: Sequence[execution_matrix.Candidate],
    voting: set[int],
    batch: Sequence[tuple[str, str]],
    generated: GeneratedTests,
    num_tests: int,
    limit: float,
    execute: Execute,
) -> bool:
    """Run the solutions on a batch of inputs and keep useful ones; return whether a new wrong solution was caught."""
    first = 1 + max(int(unit.tests["index"].max() or 0), *(test[1] for test in generated.tests), -1)  # type: ignore[arg-type]
    indices = list(range(first, first + len(batch)))
    problem = execution_matrix.with_tests(unit.problem(run, limit), [(text.encode(), b"") for text, _ in batch])
    matrix = execute(
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
    expected = agreed.select(pl.lit(unit.name).alias("problem"), "test", "output")
    failing = failing_solutions(matrix.runs, expected)
    enough = run.recipe.code.test_generation.enough
    selected = test_generation.select_tests(
        list(sound), failing, generated.caught, num_tests + len(generated.tests), enough
    )
    texts = {(test, group): text for _, test, group, text in matrix.outputs.iter_rows()}
    for test in selected:
        text, origin = batch[test - first]
        generated.tests.append((unit.name, test, text, texts[test, sound[test]], origin))
    gained = frozenset().union(*(failing.get(test, frozenset()) for test in selected)) - generated.caught
    generated.caught |= gained
    generated.sound += len(sound)
    frame = matrix.runs.filter(pl.col("test").is_in(selected))
    expected = expected.rename({"output": "wanted"}).select("test", "wanted")
    marked = frame.join(expected, on="test").with_columns(
        (pl.col("output") == pl.col("wanted")).fill_null(False).alias("expected")
    )
    generated.runs.append(marked.select(execution_matrix.MEASURED.names()).cast(execution_matrix.MEASURED))
    return bool(gained)


def _from_model(run: Run, runner: Runner, responses: Sequence[str]) -> list[str]:
    """Return the inputs that the responses' generators print and their validators accept."""
    settings = run.recipe.code.test_generation
    limits = Limits(settings.generator_s, memory_mb=_GENERATOR_MB, output_bytes=settings.max_input_kb << 10)
    inputs: list[str] = []
    for response in responses:
        programs = test_generation.programs_in(response)
        if programs is None:
            continue
        printed = _outputs(
            runner, programs.generator, [f"{k}\n".encode() for k in range(1, settings.batch + 1)], limits
        )
        outputs = [text for text in printed if text]
        if programs.validator is not None and outputs:
            checks = _outputs(runner, programs.validator, outputs, limits)
            outputs = [text for text, check in zip(outputs, checks, strict=True) if check is not None]
        inputs += [text.decode() for text in outputs if _is_text(text)]
    return list(dict.fromkeys(inputs))


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
    """Return the known wrong solutions that fail on each test that stays, by the test's index."""
    expected = decisions.select("problem", "test", pl.col("output").alias("wanted"))
    wrong = runs.filter(~pl.col("right").fill_null(True)).join(expected, on=["problem", "test"])
    fails = wrong.filter((~pl.col("valid") | (pl.col("output") != pl.col("wanted"))).fill_null(True))
    grouped = fails.group_by("test").agg("solution")
    return {int(test): frozenset(solutions) for test, solutions in grouped.iter_rows()}


def lacks_tests(run: Run, runs: pl.DataFrame, staying: pl.DataFrame) -> bool:
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    caught = frozenset().union(*failing_solutions(runs, staying).values())
    return staying.height < run.recipe.code.test_generation.enough or bool(wrong - caught)
