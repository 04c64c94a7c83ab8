"""Find inputs on which mutants of voting solutions or known wrong submissions fail.

Invariant: mutants never count as solutions.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.config import CodeSettings
from curation.programs import execution_matrix
from curation.programs.execution_matrix import Candidate
from curation.programs.language_variants import TIME_FACTORS
from curation.programs.mutants import mutants_of
from curation.programs.selecting import TIMES, OutputClasses, output_kind
from curation.programs.sound_tests import NewInput
from curation.programs.unit import Unit
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Limits

HUNTED, HUNTED_BYTES = 6, 2048
"""Inputs tried per hunted one, and their max bytes."""
DESIGNED = "designed"
"""Shape of inputs that a model designed, each its own kind."""
MUTANTS = 8
"""Max mutants of a draw that pass the given tests."""
_DRAWN = 3
"""Python mutants drawn per wanted one, as most fail a given test."""
_ENOUGH = 2
"""Tests that each mutant should fail."""
_RENEWALS = {CodeLang.PYTHON: 3, CodeLang.CPP: 1}
"""How often mutants are drawn again."""
_MADE = 24
"""Newest made tests, which later mutants must pass."""
_FRUITLESS = 3
"""Sweeps without failure after which a program is swept no more."""
_SWEEP_S = 2.0
"""CPU seconds of a sweep, for the scout and for all suspects."""
_EXCEEDED = [CodeVerdict.TLE.value, CodeVerdict.MLE.value, CodeVerdict.OLE.value]
_SLOW = 2
"""Batches over its limits after which a mutant hunts no more."""
_ANSWERED_OTHERWISE = frozenset({CodeVerdict.WA, CodeVerdict.RTE})


@dataclass(slots=True)
class Hunt:
    """Finds inputs for a problem, with mutants that pass its given tests.

    ``voters`` are mutated in turn; ``scout`` answers many inputs; ``written`` are a model's wrong Python programs.
    ``killed`` counts failed tests per mutant, ``idle`` sweeps without a failure, ``slow`` batches over limits; ``pace``
    is the scout's CPU seconds per input.
    """

    seed: int
    unit: Unit
    runner: Runner
    problem: CodeProblem
    voters: Sequence[Candidate]
    scout: Candidate
    given: Sequence[tuple[str, str]]
    wrong: Sequence[Candidate] = ()
    written: Sequence[str] = ()
    mutants: list[Candidate] | None = None
    classes: OutputClasses = field(default_factory=OutputClasses)
    killed: Counter[int] = field(default_factory=Counter)
    idle: Counter[int] = field(default_factory=Counter)
    slow: Counter[int] = field(default_factory=Counter)
    drawn: set[str] = field(default_factory=set)
    renewals: int = 0
    pace: float = 0.0

    @property
    def over(self) -> bool:
        """Return whether every mutant fails on enough tests."""
        return all(self.killed[mutant.index] >= _ENOUGH for mutant in self.mutants or ())

    def find_mutants(self, made: Sequence[tuple[str, str]] = ()) -> list[Candidate]:
        """Return mutants that pass the given tests and ``made``, at first also a model's programs."""
        changed = self.voters[self.renewals % len(self.voters)].submission
        count = MUTANTS * _DRAWN if changed.lang is CodeLang.PYTHON else MUTANTS
        seed = f"{self.seed} {self.unit.name} {self.renewals}"
        # numbers below 0 are no solution's
        mutants = mutants_of(changed.code, changed.lang.value, count, seed)
        written = [Submission(CodeLang.PYTHON, code) for code in (self.written if self.mutants is None else ())]
        drawn = [
            Candidate(-1 - len(self.drawn) - at, submission, right=False)
            for at, submission in enumerate([*written, *(Submission(changed.lang, one.code) for one in mutants)])
        ]
        drawn = [mutant for mutant in drawn if mutant.submission.code not in self.drawn]
        self.drawn |= {mutant.submission.code for mutant in drawn}
        failures = self.first_failures(drawn, [*self.given, *made])
        return [mutant for mutant in drawn if failures[mutant.index] is None][: MUTANTS + len(written)]

    def renew(self, made: Iterable[tuple[str, str]]) -> None:
        """Once all mutants fail enough tests, add some that pass the newest small ones."""
        if self.mutants and self.over and self.renewals < _RENEWALS[self.voters[0].submission.lang]:
            self.renewals += 1
            self.mutants = [*self.mutants, *self.find_mutants(list(made)[-_MADE:])]

    def first_failures(
        self, candidates: Sequence[Candidate], tests: Sequence[tuple[str, str]], *, answered: bool = False
    ) -> dict[int, int | None]:
        """Return each program's first failed test (input, correct output), or None.

        Args:
            answered: exceeding a limit is no failure.
        """
        if not tests:
            return dict.fromkeys((one.index for one in candidates), None)
        problem = execution_matrix.with_tests(self.problem, _encoded(tests))
        results = judge_programs(self.runner, [(problem, one.submission) for one in candidates])
        return {
            one.index: None if answered and result.verdict not in _ANSWERED_OTHERWISE else result.first_failed
            for one, result in zip(candidates, results, strict=True)
        }

    def runs(self, candidates: Sequence[Candidate], tests: Sequence[tuple[str, str]]) -> pl.DataFrame:
        """Return mutants' runs on tests (input, correct output)."""
        problem = execution_matrix.with_tests(self.problem, _encoded(tests))
        return execution_matrix.run_execution_matrix(
            self.runner, self.unit.name, problem, candidates, time_given=True, give_up=1
        ).runs

    def failing(self, tests: Sequence[tuple[str, str]]) -> list[frozenset[int]]:
        """Return the mutants that answer each test (input, correct output) otherwise or crash; timeouts are ignored."""
        fails: list[set[int]] = [set() for _ in tests]
        if tests and self.mutants is None:
            self.mutants = self.find_mutants()
        alive = [one for one in self.mutants or () if self.killed[one.index] < TIMES]
        if tests and alive:
            all_runs = self.runs(alive, tests)
            self.slow.update(all_runs.filter(pl.col("ended").is_in(_EXCEEDED))["solution"].unique())
            self.mutants = [one for one in self.mutants or () if self.slow[one.index] < _SLOW]
            runs = all_runs.filter(~pl.col("expected") & pl.col("ended").is_in(["ok", "RTE"]))
            for mutant, test in runs.select("solution", "test").iter_rows():
                fails[test].add(mutant)
        return [frozenset(mutants) for mutants in fails]

    def learn(self, failing: frozenset[int]) -> bool:
        """Count the mutants that a test fails; return whether few tests had failed one."""
        fresh = any(self.killed[mutant] < _ENOUGH for mutant in failing)
        self.killed.update(failing)
        return fresh

    def sweep(self, made: Sequence[NewInput], count: int, caught: Counter[int]) -> list[NewInput]:
        """Return up to ``count`` inputs: up to half distinguish barely tested programs from the scout, the others have
        the rarest answers.

        Args:
            caught: failed tests per known wrong solution.
        """
        if not made:
            return []
        if self.written and self.mutants is None:
            self.mutants = self.find_mutants()
        answers = self.answers([one.text for one in made])
        outputs = {at: output for at, output in enumerate(answers) if output is not None}
        telling = self._telling(made, outputs, caught)[: -(-count // 2)]
        rest = [at for at in range(len(made)) if at not in telling]
        kinds = [output_kind(outputs[at]) if at in outputs else None for at in rest]
        rare = self.classes.choose([made[at].text for at in rest], kinds, count - len(telling))
        return [made[at] for at in [*telling, *(rest[at] for at in rare)]]

    def answers(self, texts: Sequence[str]) -> list[str | None]:
        """Return the scout's outputs: None for failures, and after a timeout or all time spent."""
        program = self.runner.prepare(self.scout.submission) if texts else None
        if not isinstance(program, Program):
            return [None] * len(texts)
        limits = Limits(self.problem.cpu_s * TIME_FACTORS[program.lang.value], memory_mb=self.problem.memory_mb)
        stdins = [text.encode("utf-8", "surrogatepass") for text in texts]
        results = self.runner.run(program, stdins, limits, processes=self.problem.processes)
        answers: list[str | None] = []
        spent = 0.0
        with contextlib.closing(results):
            for result in results:
                failure = failure_of(result)
                answers.append(result.stdout.decode("utf-8", "replace") if failure is None else None)
                spent += result.cpu_s
                if spent > _SWEEP_S or (failure is not None and failure[0] is CodeVerdict.TLE):  # so may be the others
                    break
        self.pace = spent / max(1, len(answers))
        return [*answers, *[None] * (len(texts) - len(answers))]

    def _telling(self, made: Sequence[NewInput], outputs: Mapping[int, str], caught: Counter[int]) -> list[int]:
        """Return an input for each barely tested program that answers otherwise."""
        suspects = [one for one in self.mutants or () if self.killed[one.index] < _ENOUGH]
        suspects += [one for one in self.wrong if caught[one.index] < TIMES]
        suspects = [one for one in suspects if self.idle[one.index] < _FRUITLESS]
        places = sorted(outputs)
        room = max(4, int(_SWEEP_S / (max(self.pace, 1e-3) * max(1, len(suspects)))))
        places = places[:: max(1, -(-len(places) // room))]
        tests = [(made[at].text, outputs[at]) for at in places]
        failures = self.first_failures(suspects, tests, answered=True) if suspects else {}
        self.idle.update(index for index, failed in failures.items() if failed is None)
        return list(dict.fromkeys(places[failed] for failed in failures.values() if failed is not None))


def _encoded(tests: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(text.encode("utf-8", "surrogatepass"), output.encode("utf-8", "replace")) for text, output in tests]


def begin_hunt(
    code: CodeSettings,
    seed: int,
    unit: Unit,
    runner: Runner,
    limit: float,
    voters: Sequence[Candidate],
    tests: pl.DataFrame,
    wrong: Sequence[Candidate] = (),
    written: Sequence[str] = (),
) -> Hunt:
    """Return a hunt with mutants of voting solutions, the longest in Python first.

    Args:
        limit: the problem's time limit, in seconds.
        tests: given tests that stay.
    """
    ordered = sorted(voters, key=lambda one: (one.submission.lang is CodeLang.CPP, -len(one.submission.code)))
    scout = min(voters, key=lambda one: (one.submission.lang is not CodeLang.CPP, len(one.submission.code)))
    given = list(tests.select("input", "output").iter_rows())
    return Hunt(seed, unit, runner, unit.problem(code, limit), ordered, scout, given, wrong, written)
