"""What hunts made tests beside known wrong submissions: mutants of the voting solutions, and rare answers.

Mutants that pass every given test stand in for wrong submissions nobody has: an input on which one of them fails is
worth keeping, its shape worth making more of. They say nothing of the problem and are never counted as solutions.
Of many small inputs that a voting solution answers, those with the rarest answers are run by everybody.
"""

from __future__ import annotations

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
_DRAWN = 3
"""Mutants of a Python program drawn for each that is wanted: most fail a given test. Of C++ as many as are wanted are
drawn, for compiling one takes a second."""
_ENOUGH = 2
"""Tests that should fail a mutant."""


@dataclass(slots=True)
class Hunt:
    """The mutants of one problem that pass its given tests, and the kinds of answers seen.

    ``changed`` is the solution whose mutants hunt, ``scout`` the one that answers many inputs. Mutants are made when
    the first sound tests want them; ``killed`` counts the tests that fail each.
    """

    run: Run
    unit: Unit
    runner: Runner
    problem: CodeProblem
    changed: Candidate
    scout: Candidate
    given: Sequence[tuple[str, str]]
    mutants: list[Candidate] | None = None
    classes: test_generation.OutputClasses = field(default_factory=test_generation.OutputClasses)
    killed: Counter[int] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        """Return whether every mutant fails on enough tests."""
        return all(self.killed[mutant.index] >= _ENOUGH for mutant in self.mutants or ())

    def find_mutants(self) -> list[Candidate]:
        """Return the mutants that pass the given tests, as many as the recipe wants at most."""
        wanted, lang = self.run.recipe.code.test_generation.mutants, self.changed.submission.lang
        count = wanted * _DRAWN if lang is CodeLang.PYTHON else wanted
        seed = f"{self.run.recipe.seed} {self.unit.name}"
        codes = [one.code for one in test_generation.mutants_of(self.changed.submission.code, lang.value, count, seed)]
        # numbers below 0 are no solution's
        drawn = [Candidate(-1 - at, Submission(lang, code), right=False) for at, code in enumerate(codes)]
        if not drawn or not self.given:
            return drawn[:wanted]
        passing = self.runs(drawn, self.given).group_by("solution").agg(pl.col("expected").all(), pl.len())
        all_passed = pl.col("expected") & (pl.col("len") == len(self.given))
        passed = set(passing.filter(all_passed)["solution"])
        return [mutant for mutant in drawn if mutant.index in passed][:wanted]

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
        if tests and self.mutants is None:
            self.mutants = self.find_mutants()
        if tests and self.mutants:
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
        if not made:
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
    run: Run, unit: Unit, runner: Runner, limit: float, voters: Sequence[Candidate], tests: pl.DataFrame
) -> Hunt:
    """Return a hunt by the mutants of a voting solution: of the longest in Python, where nothing is compiled, if any.

    Args:
        limit: the problem's time limit, in seconds.
        tests: the given tests that stay, `TEST` rows.
    """
    ordered = sorted(voters, key=lambda one: (one.submission.lang is CodeLang.CPP, -len(one.submission.code)))
    compiled = sorted(voters, key=lambda one: (one.submission.lang is not CodeLang.CPP, len(one.submission.code)))
    given = list(tests.select("input", "output").iter_rows())
    return Hunt(run, unit, runner, unit.problem(run, limit), ordered[0], compiled[0], given)
