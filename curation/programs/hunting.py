"""Find inputs on which mutants of voting solutions or known wrong submissions fail.

Invariant: mutants never count as solutions.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.programs import execution_matrix
from curation.programs.execution_matrix import Candidate
from curation.programs.language_variants import TIME_FACTORS
from curation.programs.mutants import mutants_of
from curation.programs.selecting import TIMES, NewInput, OutputClasses, output_kind
from curation.questions.test_programs import programs_in
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeVerdict, Submission
from curation.verify.programs.running import failure_of
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Limits

HUNTED, HUNTED_BYTES = 6, 2048
"""Inputs tried per hunted one, and their max bytes."""
MUTANTS = 8
"""Max mutants of a draw that pass the given tests."""
_DRAWN = 3
"""Python mutants drawn per needed one, as most fail a given test."""
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


class Hunt:
    """Finds inputs for a problem, with mutants that pass its given tests.

    Args:
        problem: under its limit.
        voters: voting solutions, mutated in turn.
        tests: given tests that stay.
        wrong: known wrong solutions.
        written: a model's wrong Python programs.
    """

    def __init__(
        self,
        seed: int,
        runner: Runner,
        problem: CodeProblem,
        voters: Sequence[Candidate],
        tests: pl.DataFrame,
        wrong: Sequence[Candidate] = (),
        written: Sequence[str] = (),
    ) -> None:
        self._seed, self._runner, self._problem, self._wrong, self._written = seed, runner, problem, wrong, written
        self._voters = sorted(
            voters, key=lambda candidate: (candidate.submission.lang is CodeLang.CPP, -len(candidate.submission.code))
        )
        # the fastest one, for many inputs
        self._scout = min(
            voters,
            key=lambda candidate: (candidate.submission.lang is not CodeLang.CPP, len(candidate.submission.code)),
        )
        self._given = list(tests.select("input", "output").iter_rows())
        self._mutants: list[Candidate] | None = None
        self._killed: Counter[int] = Counter()  # failed tests, by mutant
        self._idle: Counter[int] = Counter()  # sweeps without a failure, by mutant
        self._slow: Counter[int] = Counter()  # batches over the limits, by mutant
        self._drawn: set[str] = set()
        self._renewals = 0
        self._pace = 0.0  # the scout's CPU seconds an input
        self.classes = OutputClasses()

    @property
    def over(self) -> bool:
        """Return whether every mutant fails on enough tests."""
        return all(self._killed[mutant.index] >= _ENOUGH for mutant in self._mutants or ())

    def _find_mutants(self, made: Sequence[tuple[str, str]] = ()) -> list[Candidate]:
        """Return mutants, at first also a model's programs, that pass all tests."""
        changed = self._voters[self._renewals % len(self._voters)].submission
        count = MUTANTS * _DRAWN if changed.lang is CodeLang.PYTHON else MUTANTS
        mutants = mutants_of(
            changed.code, changed.lang.value, count, f"{self._seed} {self._problem.id} {self._renewals}"
        )
        written = [Submission(CodeLang.PYTHON, code) for code in (self._written if self._mutants is None else ())]
        submissions = [*written, *(Submission(changed.lang, mutant.code) for mutant in mutants)]
        drawn = [  # numbers below 0 are no solutions
            Candidate(-1 - len(self._drawn) - at, submission, right=False)
            for at, submission in enumerate(submissions)
            if submission.code not in self._drawn
        ]
        self._drawn |= {mutant.submission.code for mutant in drawn}
        failures = self._first_failures(drawn, [*self._given, *made])
        return [mutant for mutant in drawn if failures[mutant.index] is None][: MUTANTS + len(written)]

    def renew(self, made: Iterable[tuple[str, str]]) -> None:
        """Once all mutants fail enough tests, add some that pass the newest small ones."""
        if self._mutants and self.over and self._renewals < _RENEWALS[self._voters[0].submission.lang]:
            self._renewals += 1
            self._mutants = [*self._mutants, *self._find_mutants(list(made)[-_MADE:])]

    def _first_failures(
        self, candidates: Sequence[Candidate], tests: Sequence[tuple[str, str]], *, answered: bool = False
    ) -> dict[int, int | None]:
        """Return each program's first failed test (input, correct output), or None.

        Args:
            answered: exceeding a limit is no failure.
        """
        if not tests:
            return dict.fromkeys((candidate.index for candidate in candidates), None)
        problem = execution_matrix.with_tests(self._problem, _encoded(tests))
        results = judge_programs(self._runner, [(problem, candidate.submission) for candidate in candidates])
        return {
            candidate.index: None if answered and result.verdict not in _ANSWERED_OTHERWISE else result.first_failed
            for candidate, result in zip(candidates, results, strict=True)
        }

    def failing(self, tests: Sequence[tuple[str, str]]) -> list[frozenset[int]]:
        """Return the mutants that answer each test (input, correct output) otherwise or crash; timeouts are ignored."""
        fails: list[set[int]] = [set() for _ in tests]
        if tests and self._mutants is None:
            self._mutants = self._find_mutants()
        alive = [candidate for candidate in self._mutants or () if self._killed[candidate.index] < TIMES]
        if tests and alive:
            problem = execution_matrix.with_tests(self._problem, _encoded(tests))
            all_runs = execution_matrix.run_execution_matrix(
                self._runner, problem.id, problem, alive, time_given=True, give_up=1
            ).runs
            self._slow.update(all_runs.filter(pl.col("ended").is_in(_EXCEEDED))["solution"].unique())
            self._mutants = [candidate for candidate in self._mutants or () if self._slow[candidate.index] < _SLOW]
            runs = all_runs.filter(~pl.col("expected") & pl.col("ended").is_in(["ok", "RTE"]))
            for mutant, test in runs.select("solution", "test").iter_rows():
                fails[test].add(mutant)
        return [frozenset(mutants) for mutants in fails]

    def learn(self, failing: frozenset[int]) -> bool:
        """Count the mutants that a test fails; return whether few tests had failed one."""
        fresh = any(self._killed[mutant] < _ENOUGH for mutant in failing)
        self._killed.update(failing)
        return fresh

    def sweep(self, made: Sequence[NewInput], count: int, caught: Counter[int]) -> list[NewInput]:
        """Return up to ``count`` inputs: up to half distinguish barely tested programs, others have rare answers.

        Args:
            caught: failed tests per known wrong solution.
        """
        if not made:
            return []
        if self._written and self._mutants is None:
            self._mutants = self._find_mutants()
        answers = self._answers([new.text for new in made])
        outputs = {at: output for at, output in enumerate(answers) if output is not None}
        telling = self._telling(made, outputs, caught)[: -(-count // 2)]
        rest = [at for at in range(len(made)) if at not in telling]
        kinds = [output_kind(outputs[at]) if at in outputs else None for at in rest]
        rare = self.classes.choose([made[at].text for at in rest], kinds, count - len(telling))
        return [made[at] for at in [*telling, *(rest[at] for at in rare)]]

    def _answers(self, texts: Sequence[str]) -> list[str | None]:
        """Return the scout's outputs: None for failures, and after a timeout or all time spent."""
        problem, submission = self._problem, self._scout.submission
        limits = Limits(problem.cpu_s * TIME_FACTORS[submission.lang.value], memory_mb=problem.memory_mb)
        stdins = [text.encode("utf-8", "surrogatepass") for text in texts]
        outputs, self._pace = outputs_within(
            self._runner, submission, stdins, limits, _SWEEP_S, processes=problem.processes, until_timeout=True
        )
        return [None if output is None else output.decode("utf-8", "replace") for output in outputs]

    def _telling(self, made: Sequence[NewInput], outputs: Mapping[int, str], caught: Counter[int]) -> list[int]:
        """Return an input for each barely tested program that answers otherwise."""
        suspects = [candidate for candidate in self._mutants or () if self._killed[candidate.index] < _ENOUGH]
        suspects += [candidate for candidate in self._wrong if caught[candidate.index] < TIMES]
        suspects = [candidate for candidate in suspects if self._idle[candidate.index] < _FRUITLESS]
        indices = sorted(outputs)
        room = max(4, int(_SWEEP_S / (max(self._pace, 1e-3) * max(1, len(suspects)))))
        indices = indices[:: max(1, -(-len(indices) // room))]
        tests = [(made[at].text, outputs[at]) for at in indices]
        failures = self._first_failures(suspects, tests, answered=True) if suspects else {}
        self._idle.update(index for index, failed in failures.items() if failed is None)
        return list(dict.fromkeys(indices[failed] for failed in failures.values() if failed is not None))


def _encoded(tests: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(text.encode("utf-8", "surrogatepass"), output.encode("utf-8", "replace")) for text, output in tests]


def outputs_within(
    runner: Runner,
    submission: Submission,
    stdins: Sequence[bytes],
    limits: Limits,
    max_s: float = math.inf,
    *,
    processes: bool = False,
    until_timeout: bool = False,
) -> tuple[list[bytes | None], float]:
    """Return a program's outputs, None unless it ends with exit code 0, and its mean CPU seconds.

    Args:
        max_s: CPU seconds after which no more runs start.
        until_timeout: no more runs start after a timeout.
    """
    program = runner.prepare(submission)
    if not isinstance(program, Program):
        return [None] * len(stdins), 0.0
    outputs: list[bytes | None] = []
    spent = 0.0
    with contextlib.closing(runner.run(program, stdins, limits, processes=processes)) as results:
        for result in results:
            failure = failure_of(result)
            outputs.append(result.stdout if failure is None else None)
            spent += result.cpu_s
            if spent > max_s or (until_timeout and failure is not None and failure[0] is CodeVerdict.TLE):
                break
    return [*outputs, *[None] * (len(stdins) - len(outputs))], spent / max(1, len(outputs))


WRITTEN = "written"
"""Shape of a model's small inputs."""
MAX_INPUT_KB = 4096
"""Larger inputs are not made."""
DESIGNED_INPUTS = 24
"""Designed inputs per generator."""
GENERATOR_S = 10.0
"""CPU seconds of a generator's or validator's run."""
_GENERATOR_MB = 512
_SMALL = 48
"""Small inputs per generator."""
_SMALL_S = 10.0
"""CPU seconds for all small inputs."""


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Distinct printed inputs: ``designed`` and ``small`` ones."""

    designed: list[str] = field(default_factory=list)
    small: list[str] = field(default_factory=list)


def inputs_from_model(runner: Runner, responses: Sequence[str], *, trusted: bool) -> ModelInputs:
    """Return the generators' inputs that, unless ``trusted``, their own validators accept."""
    limits = Limits(GENERATOR_S, memory_mb=_GENERATOR_MB, output_bytes=MAX_INPUT_KB << 10)
    designed: dict[str, None] = {}
    small: dict[str, None] = {}
    for response in responses:
        programs = programs_in(response)
        if programs is None:
            continue
        numbers = range(1, DESIGNED_INPUTS + _SMALL + 1)
        stdins = [f"{k}\n".encode() for k in numbers]
        generator = Submission(CodeLang.PYTHON, programs.generator)
        printed = outputs_within(runner, generator, stdins[:DESIGNED_INPUTS], limits)[0]
        printed += outputs_within(runner, generator, stdins[DESIGNED_INPUTS:], limits, _SMALL_S)[0]
        outputs = [(k, text) for k, text in zip(numbers, printed, strict=True) if text and _is_text(text)]
        if programs.validator is not None and outputs and not trusted:
            validator = Submission(CodeLang.PYTHON, programs.validator)
            checks = outputs_within(runner, validator, [text for _, text in outputs], limits)[0]
            outputs = [output for output, check in zip(outputs, checks, strict=True) if check is not None]
        designed |= {text.decode(): None for k, text in outputs if k <= DESIGNED_INPUTS}
        small |= {text.decode(): None for k, text in outputs if k > DESIGNED_INPUTS and len(text) <= HUNTED_BYTES}
    return ModelInputs(list(designed), [text for text in small if text not in designed])


def _is_text(output: bytes) -> bool:
    try:
        return output.decode().strip() != ""
    except UnicodeDecodeError:
        return False
