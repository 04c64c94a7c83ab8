"""Make tests for a problem in rounds, and keep inputs on which its solutions agree.

Without a trusted validator, given inputs are not mutated and more solutions must agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.config import CodeSettings
from curation.programs import execution_matrix, tests_agreement
from curation.programs.hunting import DESIGNED, HUNTED, HUNTED_BYTES, Hunt, begin_hunt
from curation.programs.language_variants import TIME_FACTORS
from curation.programs.model_inputs import DESIGNED_INPUTS, MAX_INPUT_KB, WRITTEN, ModelInputs, inputs_from_model
from curation.programs.mutation import mutate_input, stated_bounds
from curation.programs.selecting import TIMES, select_tests
from curation.programs.sound_tests import (
    LARGE_BYTES,
    NewInput,
    SoundTest,
    agreed_tests,
    digest,
    doubted_tests,
    failing_solutions,
    packed,
    unpacked,
)
from curation.programs.unit import Unit
from curation.programs.validation import GivenInput, Vouching, vouch
from curation.questions.test_programs import validators_in, wrong_programs_in
from curation.verify.programs.tables import validators_of
from curation.verify.programs.tools import Runner

BATCH = 16
"""Inputs tried in one round."""
ROUNDS = 8
"""Max rounds for a problem."""
PATIENCE = 2
"""Fruitless rounds after which generation ends, if there are enough tests."""
HUNTED_INPUTS = 8
"""Further inputs of a round, selected by `Hunt.sweep`."""
MIN_VOTES, MIN_VOTES_UNVALIDATED = 2, 3
"""Solutions that must agree, with and without a trusted validator."""
MIN_SHARE_UNVALIDATED = 2 / 3
"""Without a validator, share of solutions not known to be wrong that must agree."""
KEEP = 64
"""Max sound inputs that are kept."""
KEEP_LARGE = 3
"""Max kept inputs above `LARGE_BYTES`, which test speed."""
MAX_TIME_SHARE = 0.7
"""Max share of its time limit that a voting solution takes on a kept test."""
EXAMPLE_ORIGINS = ("sample", "public")
"""Origins of tests in the statement."""
ENOUGH_TESTS = 10
"""Tests are made for problems with fewer, or if a known wrong solution passes all."""

MODEL_ORIGIN, CHANGED_ORIGIN = "model", "mutation"
"""Origins of tests with inputs printed by a model's programs, or mutated."""
CHANGED = "changed"
"""The shape of changed inputs."""
MIN_DOUBTS, DOUBTFUL_SHARE, DOUBTFUL_RATE = 2, 0.03, 0.25
"""Min doubted inputs, and their share of all, from which shapes with this rate of doubted inputs are dropped."""

Execute = Callable[..., execution_matrix.ExecutionMatrix]
"""`execution_matrix.run_execution_matrix` or a replacement."""


@dataclass(slots=True)
class GeneratedTests:
    """A problem's generated tests; ``reason`` explains why there are none.

    ``tests`` are `TEST` rows; ``caught`` counts each solution's failed tests.
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
        """Return the last columns of `POWER`."""
        return self.inputs, self.refused, self.sound, len(self.tests), self.rounds, self.reason


def vouching_of(unit: Unit, runner: Runner, responses: Sequence[str]) -> Vouching:
    """Return which validator, if any, is trusted with a problem's inputs."""
    package, model = validators_of(unit.judging), validators_in(responses)
    if not package and not model:
        return Vouching()
    rows = unit.tests.select("index", "input", "origin").iter_rows()
    given = [GivenInput(index, text, origin in EXAMPLE_ORIGINS) for index, text, origin in rows]
    return vouch(runner, package, model, given)


@dataclass(slots=True)
class _Maker:
    code: CodeSettings
    seed: int
    unit: Unit
    runner: Runner
    vouching: Vouching
    limit: float
    execute: Execute
    voting: set[int]
    votes_wanted: int
    candidates: list[execution_matrix.Candidate]
    hunt: Hunt
    written: ModelInputs
    generated: GeneratedTests
    used: set[bytes]
    changeable: list[str]
    pool: list[SoundTest] = field(default_factory=list)
    doubted: Counter[str] = field(default_factory=Counter)
    next_index: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def batch(self) -> list[NewInput]:
        generated = self.generated
        seed = f"{self.seed} {self.unit.name} {generated.rounds}"
        batch = [NewInput(text, MODEL_ORIGIN, DESIGNED) for text in self.written.designed[:DESIGNED_INPUTS]]
        del self.written.designed[:DESIGNED_INPUTS]
        if not self.changeable:
            self.reasons["no given input stays that is small enough and may be changed"] += 1
        batch = self._unused([*batch, *self._changed(BATCH, seed, MAX_INPUT_KB << 10)])
        allowed = self._allowed(batch)
        hunted = self._hunted(seed)
        generated.inputs += len(batch) + len(hunted)
        generated.refused += len(batch) - len(allowed)
        if batch and not allowed:
            self.reasons["a validator refuses every input"] += 1
        return [*allowed, *hunted]

    def _changed(self, count: int, seed: str, max_bytes: int) -> list[NewInput]:
        if not self.changeable:
            return []
        bounds = stated_bounds(self.unit.row["statement"])
        texts = mutate_input([*self.changeable, *self.hunt.classes.rare], bounds, count, seed)
        return [NewInput(text, CHANGED_ORIGIN, CHANGED) for text in texts if len(text) <= max_bytes]

    def _unused(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        fresh = [one for one in inputs if digest(one.text) not in self.used]
        self.used |= {digest(one.text) for one in fresh}
        return fresh

    def _allowed(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        if not self.vouching.by or not inputs:
            return list(inputs)
        allowed = self.vouching.check(self.runner, [one.text for one in inputs])
        return [one for one, valid in zip(inputs, allowed, strict=True) if valid]

    def _hunted(self, seed: str) -> list[NewInput]:
        count = HUNTED * HUNTED_INPUTS
        self.hunt.renew((unpacked(one.packed), unpacked(one.output)) for one in self.pool if one.size <= HUNTED_BYTES)
        made = [NewInput(text, MODEL_ORIGIN, WRITTEN) for text in self.written.small[:count]]
        del self.written.small[:count]
        made += self._changed(count, f"hunted {seed}", HUNTED_BYTES)
        fresh = self._allowed([one for one in made if digest(one.text) not in self.used])
        return self._unused(self.hunt.sweep(fresh, HUNTED_INPUTS, self.generated.caught))

    def try_batch(self, batch: Sequence[NewInput]) -> bool:
        """Pool a batch's sound inputs; return whether any catches what few tests caught."""
        indices = list(range(self.next_index, self.next_index + len(batch)))
        self.next_index += len(batch)
        problem = execution_matrix.with_tests(
            self.unit.problem(self.code, self.limit), [(one.text.encode(), b"") for one in batch]
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
        agreed = agreed_tests(
            matrix.runs, self.voting, self.votes_wanted, MAX_TIME_SHARE * self.limit, TIME_FACTORS
        )  # fmt: skip
        if agreed.is_empty():
            self.reasons["the voting solutions agree on no input, or take too long"] += 1
        made = dict(zip(indices, batch, strict=True))
        self.doubted.update(made[test].shape for test in doubted_tests(matrix.runs, self.voting))
        outputs = {(test, group): text for _, test, group, text in matrix.outputs.iter_rows()}
        sound = dict(agreed.select("test", "output").iter_rows())
        failing = failing_solutions(matrix.runs, agreed)
        small = [test for test in indices if test in sound and len(made[test].text) <= LARGE_BYTES]
        asked = [(made[test].text, outputs[test, sound[test]]) for test in small]
        killed = dict(zip(small, self.hunt.failing(asked), strict=True))
        gained = False
        for test, group in sound.items():
            one, fails, dead = made[test], failing.get(test, frozenset()), killed.get(test, frozenset())
            fresh = any(self.generated.caught[solution] < TIMES for solution in fails)
            fresh = self.hunt.learn(dead) or fresh
            if (fails or (fresh and dead)) and self.vouching.by and len(one.text) <= LARGE_BYTES:
                self.changeable.append(one.text)  # what tells programs apart is changed further
            gained |= fresh
            self.generated.caught.update(fails)
            runs = matrix.runs.filter(pl.col("test") == test).with_columns(
                (pl.col("output") == group).fill_null(False).alias("expected")
            )
            text, output = packed(one.text), packed(outputs[test, group])
            self.pool.append(SoundTest(test, text, output, one.origin, one.shape, len(one.text), fails, dead, runs))
        return gained

    def _without_doubts(self) -> list[SoundTest]:
        """Return sound tests, without shapes on which solutions often disagree or crash."""
        if self.doubted.total() < max(MIN_DOUBTS, DOUBTFUL_SHARE * (self.doubted.total() + len(self.pool))):
            return self.pool
        sound = Counter(one.shape for one in self.pool)
        doubtful = {
            shape
            for shape, doubts in self.doubted.items()
            if doubts >= DOUBTFUL_RATE * (doubts + sound[shape] + 1)
        }  # fmt: skip
        if doubtful & sound.keys():
            self.reasons["the solutions disagree on inputs of its kind"] += 1
        return [one for one in self.pool if one.shape not in doubtful]

    def work(self, wrong: set[int], have: int) -> None:
        wanted, generated, idle = ENOUGH_TESTS, self.generated, 0
        target = max(KEEP, wanted)
        while generated.rounds < ROUNDS:
            generated.rounds += 1
            batch = self.batch()
            gained = bool(batch) and self.try_batch(batch)
            idle = 0 if gained else idle + 1
            settled = self.hunt.over and all(generated.caught[one] >= TIMES for one in wrong)
            enough = have + len(self.pool) >= (target if settled or not wrong else wanted)
            if enough and (idle >= PATIENCE or settled):
                break

    def keep(self, before: Counter[int], have: int) -> None:
        generated = self.generated
        sound = self._without_doubts()
        large = sorted((test for test in sound if test.size > LARGE_BYTES), key=lambda t: (-len(t.failing), t.index))
        set_aside = {test.index for test in large[KEEP_LARGE:]}
        by_index = {test.index: test for test in sound if test.index not in set_aside}
        room = max(KEEP, ENOUGH_TESTS - have)
        selected = select_tests(
            list(by_index),
            {index: test.failing | test.killed for index, test in by_index.items()},
            before,
            room,
            room - have,
            kinds={at: f"{one.shape} {at}" if one.shape == DESIGNED else one.shape for at, one in by_index.items()},
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
    code: CodeSettings,
    seed: int,
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
        runs, decisions, tests: of the given tests; ``tests`` stay.
        limit: the problem's time limit, in seconds.
        responses: a model's, with generators.
    """
    valid_decisions = decisions.filter(pl.col("decision") != "discard")
    before: Counter[int] = Counter()
    for fails in failing_solutions(runs, valid_decisions).values():
        before.update(fails)
    generated = GeneratedTests(caught=before.copy())
    voting = _voting(runs)
    if not code.make_tests:
        generated.reason = "code.make_tests is false"
        return generated
    if unit.judging["function"] is not None:
        generated.reason = "inputs are made for programs, not for functions"
        return generated
    if not lacks_tests(runs, valid_decisions):
        generated.reason = "it does not lack tests"
        return generated
    votes_wanted = _votes_wanted(vouching, runs)
    if len(voting) < votes_wanted:
        generated.reason = f"too few solutions vote: {len(voting)}, {votes_wanted} wanted"
        return generated
    if not vouching.by and not responses:
        generated.reason = "no validator is believed, and no model wrote inputs"
        return generated
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    candidates = [one for one in unit.candidates() if one.index in voting or one.index in wrong]
    voters, known_wrong = ([one for one in candidates if one.index in part] for part in (voting, wrong))
    maker = _Maker(
        code,
        seed,
        unit,
        runner,
        vouching,
        limit,
        execute,
        voting,
        votes_wanted,
        candidates,
        begin_hunt(code, seed, unit, runner, limit, voters, tests, known_wrong, wrong_programs_in(responses)),
        inputs_from_model(runner, responses, trusted=bool(vouching.by)),
        generated,
        set(map(digest, unit.tests["input"])),
        [text for text in tests["input"] if len(text) <= LARGE_BYTES and vouching.by],
        next_index=1 + int(unit.tests["index"].max() or 0),  # type: ignore[arg-type]
    )
    maker.work(wrong, tests.height)
    maker.keep(before, tests.height)
    if not generated.tests:
        generated.reason = max(maker.reasons, key=lambda why: maker.reasons[why], default="no new input was found")
    return generated


def _votes_wanted(vouching: Vouching, runs: pl.DataFrame) -> int:
    if vouching.by:
        return MIN_VOTES
    right = runs.filter(pl.col("right").fill_null(True))["solution"].n_unique()
    return max(MIN_VOTES_UNVALIDATED, math.ceil(MIN_SHARE_UNVALIDATED * right))


def _voting(runs: pl.DataFrame) -> set[int]:
    deviating = tests_agreement.deviating_solutions(runs)
    return set(runs.join(deviating, on=["problem", "solution"], how="anti")["solution"])


def lacks_tests(runs: pl.DataFrame, staying: pl.DataFrame) -> bool:
    wrong = set(runs.filter(~pl.col("right").fill_null(True))["solution"])
    caught = frozenset().union(*failing_solutions(runs, staying).values())
    return staying.height < ENOUGH_TESTS or bool(wrong - caught)
