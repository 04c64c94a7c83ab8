"""Make tests for a problem in rounds, and keep inputs on which its solutions agree.

Without a trusted validator, given inputs are not mutated and more solutions must agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress

import polars as pl

from curation.config import CodeSettings
from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import Unit
from curation.programs.hunting import (
    DESIGNED_INPUTS,
    HUNTED,
    HUNTED_BYTES,
    MAX_INPUT_KB,
    WRITTEN,
    Hunt,
    ModelInputs,
    inputs_from_model,
)
from curation.programs.language_variants import TIME_FACTORS
from curation.programs.mutation import mutate_input, stated_bounds
from curation.programs.selecting import (
    DESIGNED,
    LARGE_BYTES,
    TIMES,
    NewInput,
    SoundTest,
    agreed_tests,
    digest,
    doubted_tests,
    failing_solutions,
    packed,
    select_tests,
    unpacked,
)
from curation.programs.validation import GivenInput, Vouching, vouch
from curation.questions.test_programs import validators_in, wrong_programs_in
from curation.verify.programs.problem import CodeProblem
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
"""Min number and share of doubted inputs from which shapes with this rate of them are dropped."""

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
    rounds: int = 0
    reason: str = ""


def vouching_of(unit: Unit, runner: Runner, responses: Sequence[str]) -> Vouching:
    """Return which validator, if any, is trusted with a problem's inputs."""
    package, model = validators_of(unit.judging), validators_in(responses)
    if not package and not model:
        return Vouching()
    rows = unit.tests.select("index", "input", "origin").iter_rows()
    given = [GivenInput(index, text, origin in EXAMPLE_ORIGINS) for index, text, origin in rows]
    return vouch(runner, package, model, given)


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
    staying = decisions.filter(pl.col("decision") != "discard")
    before = Counter(solution for fails in failing_solutions(runs, staying).values() for solution in fails)
    voting, wrong = _voting(runs), _wrong(runs)
    min_votes = _min_votes(vouching, runs)
    hindrances = {
        "code.make_tests is false": not code.make_tests,
        "inputs are made for programs, not for functions": unit.judging["function"] is not None,
        "it does not lack tests": not lacks_tests(runs, staying),
        f"too few solutions vote: {len(voting)}, {min_votes} wanted": len(voting) < min_votes,
        "no validator is believed, and no model wrote inputs": not vouching.by and not responses,
    }
    if hindrance := next((why for why, applies in hindrances.items() if applies), None):
        return GeneratedTests(caught=before, reason=hindrance)
    candidates = [candidate for candidate in unit.candidates() if candidate.index in voting | wrong]
    voters, known_wrong = (
        [candidate for candidate in candidates if candidate.index in indices] for indices in (voting, wrong)
    )
    problem, written = unit.problem(code, limit), wrong_programs_in(responses)
    maker = _Maker(
        unit,
        runner,
        vouching,
        execute,
        problem,
        seed,
        voting,
        min_votes,
        candidates,
        Hunt(seed, runner, problem, voters, tests, known_wrong, written),
        inputs_from_model(runner, responses, trusted=bool(vouching.by)),
        GeneratedTests(caught=before.copy()),
        set(map(digest, unit.tests["input"])),
        [text for text in tests["input"] if len(text) <= LARGE_BYTES and vouching.by],
        next_index=1 + int(unit.tests["index"].max() or 0),  # type: ignore[arg-type]
    )
    maker.work(wrong, tests.height)
    maker.keep(before, tests.height)
    if not maker.generated.tests:
        reasons = maker.reasons
        maker.generated.reason = max(reasons, key=lambda why: reasons[why], default="no new input was found")
    return maker.generated


def lacks_tests(runs: pl.DataFrame, staying: pl.DataFrame) -> bool:
    """Return whether a problem has few tests, or a known wrong solution that passes them all."""
    caught = frozenset[int]().union(*failing_solutions(runs, staying).values())
    return staying.height < ENOUGH_TESTS or bool(_wrong(runs) - caught)


def _min_votes(vouching: Vouching, runs: pl.DataFrame) -> int:
    if vouching.by:
        return MIN_VOTES
    right = runs.filter(pl.col("right").fill_null(True))["solution"].n_unique()
    return max(MIN_VOTES_UNVALIDATED, math.ceil(MIN_SHARE_UNVALIDATED * right))


def _voting(runs: pl.DataFrame) -> set[int]:
    deviating = tests_agreement.deviating_solutions(runs)
    return set(runs.join(deviating, on=["problem", "solution"], how="anti")["solution"])


def _wrong(runs: pl.DataFrame) -> set[int]:
    return set(runs.filter(~pl.col("right").fill_null(True))["solution"])


@dataclass(slots=True)
class _Maker:
    unit: Unit
    runner: Runner
    vouching: Vouching
    execute: Execute
    problem: CodeProblem  # under its limit
    seed: int
    voting: set[int]
    min_votes: int
    candidates: list[execution_matrix.Candidate]
    hunt: Hunt
    written: ModelInputs
    generated: GeneratedTests
    used: set[bytes]
    changeable: list[str]
    next_index: int
    pool: list[SoundTest] = field(default_factory=list)
    doubted: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def work(self, wrong: set[int], have: int) -> None:
        """Try batches of inputs until there are enough sound ones."""
        generated, idle = self.generated, 0
        target = max(KEEP, ENOUGH_TESTS)
        while generated.rounds < ROUNDS:
            generated.rounds += 1
            batch = self.batch()
            idle = 0 if batch and self.try_batch(batch) else idle + 1
            settled = self.hunt.over and all(generated.caught[solution] >= TIMES for solution in wrong)
            enough = have + len(self.pool) >= (target if settled or not wrong else ENOUGH_TESTS)
            if enough and (idle >= PATIENCE or settled):
                break

    def batch(self) -> list[NewInput]:
        """Return a round's inputs: a model's, changed ones, and those that the hunt selects."""
        generated = self.generated
        seed = f"{self.seed} {self.unit.name} {generated.rounds}"
        made = [NewInput(text, MODEL_ORIGIN, DESIGNED) for text in self.written.designed[:DESIGNED_INPUTS]]
        del self.written.designed[:DESIGNED_INPUTS]
        if not self.changeable:
            self.reasons["no given input stays that is small enough and may be changed"] += 1
        made = self._unused([*made, *self._changed(BATCH, seed, MAX_INPUT_KB << 10)])
        allowed = self._allowed(made)
        hunted = self._hunted(seed)
        generated.inputs += len(made) + len(hunted)
        generated.refused += len(made) - len(allowed)
        if made and not allowed:
            self.reasons["a validator refuses every input"] += 1
        return [*allowed, *hunted]

    def _changed(self, count: int, seed: str, max_bytes: int) -> list[NewInput]:
        if not self.changeable:
            return []
        bounds = stated_bounds(self.unit.row["statement"])
        texts = mutate_input([*self.changeable, *self.hunt.classes.rare], bounds, count, seed)
        return [NewInput(text, CHANGED_ORIGIN, CHANGED) for text in texts if len(text) <= max_bytes]

    def _unused(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        fresh = [new for new in inputs if digest(new.text) not in self.used]
        self.used |= {digest(new.text) for new in fresh}
        return fresh

    def _allowed(self, inputs: Sequence[NewInput]) -> list[NewInput]:
        if not self.vouching.by or not inputs:
            return list(inputs)
        allowed = self.vouching.check(self.runner, [new.text for new in inputs])
        return list(compress(inputs, allowed))

    def _hunted(self, seed: str) -> list[NewInput]:
        count = HUNTED * HUNTED_INPUTS
        self.hunt.renew(
            (unpacked(test.packed), unpacked(test.output)) for test in self.pool if test.size <= HUNTED_BYTES
        )
        made = [NewInput(text, MODEL_ORIGIN, WRITTEN) for text in self.written.small[:count]]
        del self.written.small[:count]
        made += self._changed(count, f"hunted {seed}", HUNTED_BYTES)
        fresh = self._allowed([new for new in made if digest(new.text) not in self.used])
        return self._unused(self.hunt.sweep(fresh, HUNTED_INPUTS, self.generated.caught))

    def try_batch(self, batch: Sequence[NewInput]) -> bool:
        """Pool a batch's sound inputs; return whether any catches what few tests caught."""
        indices = list(range(self.next_index, self.next_index + len(batch)))
        self.next_index += len(batch)
        made = dict(zip(indices, batch, strict=True))
        problem = execution_matrix.with_tests(self.problem, [(new.text.encode(), b"") for new in batch])
        known = [False] * len(batch)
        matrix = self.execute(
            self.runner, self.unit.name, problem, self.candidates, time_given=True, indices=indices, known=known
        )
        slowest = MAX_TIME_SHARE * self.problem.cpu_s
        agreed = agreed_tests(matrix.runs, self.voting, self.min_votes, slowest, TIME_FACTORS)
        if agreed.is_empty():
            self.reasons["the voting solutions agree on no input, or take too long"] += 1
        self.doubted.update(made[test].shape for test in doubted_tests(matrix.runs, self.voting))
        outputs = {(test, group): text for _, test, group, text in matrix.outputs.iter_rows()}
        outputs_of = {test: outputs[test, group] for test, group in agreed.select("test", "output").iter_rows()}
        failing = failing_solutions(matrix.runs, agreed)
        small = [test for test in indices if test in outputs_of and len(made[test].text) <= LARGE_BYTES]
        killed = dict(
            zip(small, self.hunt.failing([(made[test].text, outputs_of[test]) for test in small]), strict=True)
        )
        runs = matrix.runs.join(agreed.select("test", agreed="output"), on="test", maintain_order="left")
        runs = runs.with_columns(expected=(pl.col("output") == pl.col("agreed")).fill_null(False))
        runs = runs.select(execution_matrix.MEASURED.names()).cast(execution_matrix.MEASURED)
        gained = False
        for test, output in outputs_of.items():
            new, fails, killed_mutants = made[test], failing.get(test, frozenset()), killed.get(test, frozenset())
            is_useful = any(self.generated.caught[solution] < TIMES for solution in fails)
            is_useful = self.hunt.learn(killed_mutants) or is_useful
            if (fails or (is_useful and killed_mutants)) and self.vouching.by and len(new.text) <= LARGE_BYTES:
                self.changeable.append(new.text)  # inputs that distinguish programs are changed further
            gained |= is_useful
            self.generated.caught.update(fails)
            own = runs.filter(pl.col("test") == test)
            texts = packed(new.text), packed(output)
            self.pool.append(SoundTest(test, *texts, new.origin, new.shape, len(new.text), fails, killed_mutants, own))
        return gained

    def keep(self, before: Counter[int], have: int) -> None:
        """Select the sound tests to keep."""
        generated, sound = self.generated, self._without_doubts()
        large = sorted((test for test in sound if test.size > LARGE_BYTES), key=lambda t: (-len(t.failing), t.index))
        left_out = {test.index for test in large[KEEP_LARGE:]}
        room = max(KEEP, ENOUGH_TESTS - have)
        generated.caught = before.copy()
        for test in select_tests([test for test in sound if test.index not in left_out], before, room, room - have):
            row = (self.unit.name, test.index, unpacked(test.packed), unpacked(test.output), test.origin)
            generated.tests.append(row)
            generated.runs.append(test.runs)
            generated.caught.update(test.failing)

    def _without_doubts(self) -> list[SoundTest]:
        """Return sound tests, without shapes on which solutions often disagree or crash."""
        doubts = self.doubted.total()
        if doubts < max(MIN_DOUBTS, DOUBTFUL_SHARE * (doubts + len(self.pool))):
            return self.pool
        sound = Counter(test.shape for test in self.pool)
        doubtful = {
            shape for shape, count in self.doubted.items() if count >= DOUBTFUL_RATE * (count + sound[shape] + 1)
        }
        if doubtful & sound.keys():
            self.reasons["the solutions disagree on inputs of its kind"] += 1
        return [test for test in self.pool if test.shape not in doubtful]
