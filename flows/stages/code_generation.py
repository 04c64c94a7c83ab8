"""New tests for one problem: inputs made in rounds, run through the solutions, and kept where these agree.

Inputs come from a model's generator programs and from changes to given inputs. If a validator is believed
(`curation.programs.validation`), it runs first, and what it does not accept is not run. Without one more solutions must
agree, and given inputs are changed only if no model was asked. Of the sound inputs those are kept that tell known wrong
solutions apart, and others of every kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.programs import execution_matrix, test_generation, tests_agreement
from curation.programs.language_variants import TIME_FACTORS
from curation.programs.validation import GivenInput, Vouching, vouch
from curation.verify.programs.tables import validators_of
from curation.verify.programs.tools import Runner
from flows.run.run_folder import Run
from flows.stages.hunting import DESIGNED, HUNTED, HUNTED_BYTES, Hunt, begin_hunt
from flows.stages.model_inputs import DESIGNED_INPUTS, MAX_INPUT_KB, ModelInputs, inputs_from_model
from flows.stages.sound_tests import (
    LARGE_BYTES,
    NewInput,
    SoundTest,
    agreed_tests,
    digest,
    failing_solutions,
    packed,
    unpacked,
)
from flows.stages.units import Unit

BATCH = 16
"""Inputs tried in one round."""
ROUNDS = 8
"""Most rounds for one problem."""
PATIENCE = 2
"""With enough tests, rounds without a test that distinguishes solutions after which no more are made."""
HUNTED_INPUTS = 8
"""Inputs of a round beyond `BATCH` that are chosen among many small ones: those on which wrong programs answer
otherwise than a voting one, and those with rare answers."""
MIN_VOTES, MIN_VOTES_UNVALIDATED = 2, 3
"""Solutions that must agree on a generated test; the second if no validator is believed."""
KEEP = 64
"""Sound inputs that are kept, unless the recipe asks for more tests."""
KEEP_LARGE = 3
"""Sound inputs of more than 256 KB that are kept; they ask for speed."""
MAX_TIME_SHARE = 0.7
"""A test on which a voting solution takes more than this share of its time limit is not kept: other right programs
could exceed the limit."""
EXAMPLE_ORIGINS = ("sample", "public")
"""Origins of tests whose inputs are in the statement."""
MODEL_ORIGIN = "model"
"""Origin of tests whose inputs a model's programs printed."""
MUTATED, WRITTEN = "mutated", "written"
"""Shapes of changed inputs, and of small inputs that a model's generators print."""

Execute = Callable[..., execution_matrix.ExecutionMatrix]
"""`execution_matrix.run_execution_matrix`, or what stands in for it."""


@dataclass(slots=True)
class GeneratedTests:
    """What generation gave one problem. ``tests`` are `TEST` rows, ``caught`` counts the tests that fail a solution.

    ``reason`` says why there are none; it is empty where there are.
    """

    tests: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    runs: list[pl.DataFrame] = field(default_factory=list)
    caught: Counter[int] = field(default_factory=Counter)
    inputs: int = 0
    refused: int = 0
    sound: int = 0
    rounds: int = 0
    reason: str = ""

    def counts(self) -> tuple[int, int, int, int, int, str]:
        """Return the numbers of inputs made, refused and sound, of tests kept, of rounds, and why, as in `POWER`."""
        return self.inputs, self.refused, self.sound, len(self.tests), self.rounds, self.reason


def vouching_of(unit: Unit, runner: Runner, responses: Sequence[str]) -> Vouching:
    """Return who speaks for a problem's inputs.

    Args:
        responses: of the model that writes generators and validators.
    """
    package, model = validators_of(unit.judging), test_generation.validators_in(responses)
    if not package and not model:
        return Vouching()
    rows = unit.tests.select("index", "input", "origin").iter_rows()
    given = [GivenInput(index, text, origin in EXAMPLE_ORIGINS) for index, text, origin in rows]
    return vouch(runner.tools, package, model, given)


@dataclass(slots=True)
class _Maker:
    """The making of one problem's tests."""

    run: Run
    unit: Unit
    runner: Runner
    vouching: Vouching
    limit: float
    execute: Execute
    voting: set[int]
    candidates: list[execution_matrix.Candidate]
    hunt: Hunt
    written: ModelInputs
    generated: GeneratedTests
    used: set[bytes]
    seeds: list[str]
    pool: list[SoundTest] = field(default_factory=list)
    next_index: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def batch(self) -> list[NewInput]:
        """Return new inputs that are allowed as far as a validator states it."""
        batch = [NewInput(text, MODEL_ORIGIN, DESIGNED) for text in self.written.designed[:DESIGNED_INPUTS]]
        del self.written.designed[:DESIGNED_INPUTS]
        batch = self._unused([*batch, *self._mutated(BATCH, "all", MAX_INPUT_KB << 10)])
        allowed = self._allowed(batch)
        self.generated.refused += len(batch) - len(allowed)
        if batch and not allowed:
            self.reasons["a validator refuses every input"] += 1
        hunted = self._hunted()
        self.generated.inputs += len(batch) + len(hunted)
        return [*allowed, *hunted]

    def _hunted(self) -> list[NewInput]:
        """Return the inputs that tell programs apart or have rare answers, chosen from many small ones."""
        self.hunt.renew((unpacked(one.packed), unpacked(one.output)) for one in self.pool if one.size <= HUNTED_BYTES)
        many = HUNTED * HUNTED_INPUTS
        small = [NewInput(text, MODEL_ORIGIN, WRITTEN) for text in self.written.small[:many]]
        del self.written.small[:many]
        small += self._mutated(many, "hunted", HUNTED_BYTES)
        return self.hunt.sweep(self._allowed(self._unused(small)), HUNTED_INPUTS, self.generated.caught)

    def _mutated(self, count: int, purpose: str, most_bytes: int) -> list[NewInput]:
        """Return changed inputs."""
        if not self.seeds:
            self.reasons["no given input may be changed"] += 1
            return []
        seed = f"{purpose} {self.run.recipe.seed} {self.unit.name} {self.generated.rounds}"
        bounds = test_generation.stated_bounds(self.unit.row["statement"])
        made = test_generation.mutate_input([*self.seeds, *self.hunt.classes.rare], bounds, count, seed)
        return [NewInput(text, "mutation", MUTATED) for text in made if len(text) <= most_bytes]

    def _unused(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        """Return the inputs that are new, each once, and count them as used."""
        new = {key: one for one in inputs if (key := digest(one.text)) not in self.used}
        self.used |= new.keys()
        return list(new.values())

    def _allowed(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        """Return the inputs that the validators accept; all if none is believed."""
        if not self.vouching.by:
            return list(inputs)
        allowed = self.vouching.check(self.runner.tools, [one.text for one in inputs])
        return [one for one, valid in zip(inputs, allowed, strict=True) if valid]

    def try_batch(self, batch: Sequence[NewInput]) -> bool:
        """Run the solutions on a batch, add what is sound to the pool; return whether it catches what few caught."""
        indices = list(range(self.next_index, self.next_index + len(batch)))
        self.next_index += len(batch)
        problem = execution_matrix.with_tests(
            self.unit.problem(self.run, self.limit), [(one.text.encode(), b"") for one in batch]
        )
        matrix = self.execute(
            self.runner,
            self.unit.name,
            problem,
            self.candidates,
            time_given=True,
            indices=indices,
            known=[False] * len(batch),
        )
        agreed = self._agreed(matrix.runs)
        texts = {(test, group): text for _, test, group, text in matrix.outputs.iter_rows()}
        failing = failing_solutions(matrix.runs, agreed)
        gained = False
        if agreed.is_empty():
            self.reasons["the voting solutions agree on no input, or take too long"] += 1
        sound = dict(agreed.select("test", "output").iter_rows())
        small = [
            (test, one.text)
            for test, one in zip(indices, batch, strict=True)
            if test in sound and len(one.text) <= LARGE_BYTES
        ]
        asked = [(text, texts[test, sound[test]]) for test, text in small]
        killed = dict(zip([test for test, _ in small], self.hunt.failing(asked), strict=True))
        for test, one in zip(indices, batch, strict=True):
            fails, dead = failing.get(test, frozenset()), killed.get(test, frozenset())
            fresh = any(self.generated.caught[solution] < test_generation.TIMES for solution in fails)
            fresh = self.hunt.learn(dead) or fresh
            if test not in sound:
                continue
            group = sound[test]
            if (fails or (fresh and dead)) and self.vouching.by and len(one.text) <= LARGE_BYTES:
                self.seeds.append(one.text)  # what tells programs apart is changed further
            gained |= fresh
            self.generated.caught.update(fails)
            runs = matrix.runs.filter(pl.col("test") == test).with_columns(
                (pl.col("output") == group).fill_null(False).alias("expected")
            )
            text, output = packed(one.text), packed(texts[test, group])
            self.pool.append(SoundTest(test, text, output, one.origin, one.shape, len(one.text), fails, dead, runs))
        return gained

    def _agreed(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Return the tests on which all voting solutions run through in time and agree."""
        slowest = MAX_TIME_SHARE * self.limit
        return agreed_tests(runs, self.voting, _votes_wanted(self.vouching), slowest, TIME_FACTORS)

    def work(self, wrong: set[int], have: int) -> None:
        """Make batches until there are enough sound tests and no new one catches what few caught."""
        wanted, generated, idle = self.run.recipe.code.enough_tests, self.generated, 0
        target = max(KEEP, wanted)
        while generated.rounds < ROUNDS:
            generated.rounds += 1
            batch = self.batch()
            gained = bool(batch) and self.try_batch(batch)
            idle = 0 if gained else idle + 1
            settled = self.hunt.over and all(generated.caught[one] >= test_generation.TIMES for one in wrong)
            enough = have + len(self.pool) >= (target if settled or not wrong else wanted)
            if enough and (idle >= PATIENCE or settled):
                break

    def keep(self, before: Counter[int], have: int) -> None:
        """Choose among the sound tests."""
        generated = self.generated
        sound = self.pool
        large = sorted((test for test in sound if test.size > LARGE_BYTES), key=lambda t: (-len(t.failing), t.index))
        set_aside = {test.index for test in large[KEEP_LARGE:]}
        by_index = {test.index: test for test in sound if test.index not in set_aside}
        room = max(KEEP, self.run.recipe.code.enough_tests - have)
        selected = test_generation.select_tests(
            list(by_index),
            {index: frozenset({*test.failing, *test.killed}) for index, test in by_index.items()},
            before,
            room,
            room - have,
            kinds=self.hunt.kinds(by_index),
            answers={index: test.output for index, test in by_index.items()},
        )
        generated.sound = len(sound)
        generated.caught = before.copy()
        for test in (by_index[index] for index in selected):
            row = (self.unit.name, test.index, unpacked(test.packed), unpacked(test.output), test.origin)
            generated.tests.append(row)
            generated.runs.append(test.runs.select(execution_matrix.MEASURED.names()).cast(execution_matrix.MEASURED))
            generated.caught.update(test.failing)


def generate_tests(
    run: Run,
    unit: Unit,
    runner: Runner,
    runs: pl.DataFrame,
    decisions: pl.DataFrame,
    tests: pl.DataFrame,
    limit: float,
    responses: Sequence[str],
    vouching: Vouching,
    execute: Execute = execution_matrix.run_execution_matrix,
) -> GeneratedTests:
    """Generate tests in rounds, until there are enough and no new one catches another wrong solution.

    Args:
        runs, decisions, tests: of the given tests; those of ``tests`` stay.
        limit: the problem's time limit, in seconds.
        responses: of the model that writes generators.
        vouching: who says which inputs are allowed.
        execute: runs solutions on tests.
    """
    valid_decisions = decisions.filter(pl.col("decision") != "discard")
    before: Counter[int] = Counter()
    for fails in failing_solutions(runs, valid_decisions).values():
        before.update(fails)
    generated = GeneratedTests(caught=before.copy())
    voting = _voting(runs)
    if not run.recipe.code.make_tests or not lacks_tests(run, runs, valid_decisions):
        generated.reason = "it does not lack tests"
        return generated
    if len(voting) < (least := _votes_wanted(vouching)):
        generated.reason = f"too few solutions vote: {len(voting)}, {least} wanted"
        return generated
    given = [text for text in tests["input"] if len(text) <= LARGE_BYTES]
    seeds = given if vouching.by or not responses else []
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    candidates = [one for one in unit.candidates() if one.index in voting or one.index in wrong]
    maker = _Maker(
        run,
        unit,
        runner,
        vouching,
        limit,
        execute,
        voting,
        candidates,
        begin_hunt(
            run,
            unit,
            runner,
            limit,
            [one for one in candidates if one.index in voting],
            tests,
            [one for one in candidates if one.index in wrong],
            test_generation.wrong_programs_in(responses),
        ),
        inputs_from_model(runner, responses, trusted=bool(vouching.by)),
        generated,
        set(map(digest, unit.tests["input"])),
        seeds,
        next_index=1 + int(unit.tests["index"].max() or 0),  # type: ignore[arg-type]
    )
    maker.work(wrong, tests.height)
    maker.keep(before, tests.height)
    if not generated.tests:
        generated.reason = max(maker.reasons, key=lambda why: maker.reasons[why], default="no new input was found")
    return generated


def _votes_wanted(vouching: Vouching) -> int:
    """Return how many solutions must agree."""
    return MIN_VOTES if vouching.by else MIN_VOTES_UNVALIDATED


def _voting(runs: pl.DataFrame) -> set[int]:
    deviating = tests_agreement.deviating_solutions(runs)
    return set(runs.join(deviating, on=["problem", "solution"], how="anti")["solution"])


def lacks_tests(run: Run, runs: pl.DataFrame, staying: pl.DataFrame) -> bool:
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    caught = frozenset().union(*failing_solutions(runs, staying).values())
    return staying.height < run.recipe.code.enough_tests or bool(wrong - caught)
