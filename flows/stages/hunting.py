"""What hunts made tests beside known wrong submissions: mutants of the voting solutions, and rare answers.

Mutants that pass every given test stand in for wrong submissions nobody has: an input on which one of them fails is
worth keeping, its shape worth making more of. They say nothing of the problem and are never counted as solutions.
Of many small inputs that a voting solution answers, those with the rarest answers are run by everybody.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.programs import execution_matrix, test_generation
from curation.programs.execution_matrix import Candidate
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import CodeProblem, Submission
from curation.verify.programs.tools import Runner
from flows.run.run_folder import Run
from flows.stages.units import Unit

HUNTED, HUNTED_BYTES = 6, 2048
"""Inputs that are answered for each one hunted, and the size of the largest."""
_DRAWN = 2
"""Mutants drawn for each that is wanted: most fail a given test, or do not compile."""
_ENOUGH = 2
"""Tests that should fail a mutant."""


@dataclass(slots=True)
class Hunt:
    """The mutants of one problem that pass its given tests, and the kinds of answers seen.

    ``killed`` counts the tests that fail each mutant.
    """

    run: Run
    unit: Unit
    runner: Runner
    problem: CodeProblem
    mutants: list[Candidate] = field(default_factory=list)
    scout: Candidate | None = None
    classes: test_generation.OutputClasses = field(default_factory=test_generation.OutputClasses)
    killed: Counter[int] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        """Return whether every mutant fails on enough tests."""
        return all(self.killed[mutant.index] >= _ENOUGH for mutant in self.mutants)

    def runs(self, candidates: Sequence[Candidate], tests: Sequence[tuple[str, str]]) -> pl.DataFrame:
        """Return the runs of mutants on tests: input and right output."""
        settings = self.run.recipe.code.execution_matrix.model_copy(update={"give_up": 1})
        pairs = [(text.encode("utf-8", "surrogatepass"), output.encode("utf-8", "replace")) for text, output in tests]
        problem = execution_matrix.with_tests(self.problem, pairs)
        return execution_matrix.run_execution_matrix(
            self.runner, self.unit.name, problem, candidates, settings, time_given=True
        ).runs

    def failing(self, tests: Sequence[tuple[str, str]]) -> list[frozenset[int]]:
        """Return for each test, input and right output, the mutants that give another output or crash.

        Running out of time says nothing: the program that was changed may be slow itself.
        """
        fails: list[set[int]] = [set() for _ in tests]
        if self.mutants and tests:
            runs = self.runs(self.mutants, tests).filter(~pl.col("expected") & pl.col("ended").is_in(["ok", "RTE"]))
            for mutant, test in runs.select("solution", "test").iter_rows():
                fails[test].add(mutant)
        return [frozenset(mutants) for mutants in fails]

    def learn(self, failing: frozenset[int]) -> bool:
        """Count the mutants that a test fails; return whether few tests failed one of them before."""
        fresh = any(self.killed[mutant] < _ENOUGH for mutant in failing)
        self.killed.update(failing)
        return fresh

    def rarest(self, made: Sequence[test_generation.MadeInput], count: int) -> list[test_generation.MadeInput]:
        """Return up to ``count`` inputs whose answers by a voting solution are of the rarest kinds."""
        if self.scout is None or not made:
            return []
        settings = self.run.recipe.code.execution_matrix.model_copy(update={"give_up": 1})
        problem = execution_matrix.with_tests(self.problem, [(one.text.encode(), b"") for one in made])
        matrix = execution_matrix.run_execution_matrix(
            self.runner, self.unit.name, problem, [self.scout], settings, time_given=True, known=[False] * len(made)
        )
        outputs = {test: text for _, test, _, text in matrix.outputs.iter_rows()}
        texts = [one.text for one in made]
        return [made[at] for at in self.classes.choose(texts, [outputs.get(at) for at in range(len(made))], count)]


def begin_hunt(
    run: Run,
    unit: Unit,
    runner: Runner,
    problem: CodeProblem,
    voters: Sequence[Candidate],
    tests: Sequence[tuple[str, str]],
) -> Hunt:
    """Return a hunt by the mutants of the voting solutions that pass the given tests.

    Args:
        tests: inputs and outputs of the given tests that stay.
    """
    hunt = Hunt(run, unit, runner, problem)
    hunt.scout = min(
        voters, key=lambda one: (one.submission.lang is not CodeLang.CPP, len(one.submission.code)), default=None
    )
    wanted = run.recipe.code.test_generation.mutants
    longest = {one.submission.lang: one for one in sorted(voters, key=lambda one: len(one.submission.code))}
    drawn: list[Candidate] = []
    for lang, one in sorted(longest.items()):
        share = wanted * _DRAWN // len(longest)
        for mutant in test_generation.mutants_of(
            one.submission.code, lang.value, share, f"{run.recipe.seed} {unit.name}"
        ):
            # numbers below 0 are no solution's
            drawn.append(Candidate(-1 - len(drawn), Submission(lang, mutant.code), right=False))
    if drawn and tests:
        runs = hunt.runs(drawn, tests).group_by("solution").agg(pl.col("expected").all(), pl.len())
        passing = set(runs.filter(pl.col("expected") & (pl.col("len") == len(tests)))["solution"])
        left = [mutant for mutant in drawn if mutant.index in passing]
        hunt.mutants = random.Random(unit.name).sample(left, min(wanted, len(left)))
    return hunt
