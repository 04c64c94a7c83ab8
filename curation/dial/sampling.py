"""Prefixes sampled until one brings a problem into the band: one policy, many problems at once.

Each length of a trace is a problem of its own to the sampler (`curation.difficulty.sampling`): it is filed under the
problem's id with a digest of the prefix behind it, stops by the stage's own rule, and is in the store before it counts.
What is tried next follows from verdicts alone, so a run that is killed asks nothing twice and ends where an undisturbed
one does.

A problem is done with the first prefix whose decision keeps it; else with the last one that was tried. Its pass rate is
that of the prefix it ended with: of several lengths the first in the band is taken, so it lies in the band a little
more often than fresh attempts would.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from curation.dial.bisection import Bisection
from curation.dial.cutting import Compare, Question, Trace, finer_cuts, possible_cuts, prefix_at
from curation.difficulty.early_stopping import OutcomeTally, StoppingRule
from curation.difficulty.open_problems import SampledProblem, SamplingRequest
from curation.difficulty.sampling_tables import stored_answers
from curation.records import DropReason, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import Judge

DIALLED = pl.Schema(
    {
        "problem": pl.String(),
        "prefix": pl.String(),  # what responses begin with, in the form of the house; null where none was found
        "prefix_share": pl.Float64(),  # of the thoughts of the attempt that it is the beginning of
        "prefix_from": pl.String(),  # who made that attempt: model@revision, or `solution`
        "outcome": pl.String(),  # dialled, or why not
        "traces": pl.Int32(),  # correct attempts there were
        "probes": pl.Int32(),  # lengths that were sampled
        "attempts": pl.Int32(),  # that these took
        "tokens": pl.Int64(),  # … and their new tokens; null where the policy counts none
        "without": pl.String(),  # what the problem's stage said of it without a prefix
    }
)
"""What became of each problem that was too hard."""

DIALLED_OUTCOME, NO_TRACE, NO_ROOM, TOO_HARD, NO_LENGTH, REFUSED = (
    "dialled",
    "no correct attempt",
    "the answer stands at the beginning of every correct attempt",
    "too hard with the longest prefix",
    "no length in the band",
    "refused",
)
"""What `DIALLED.outcome` may say."""


@dataclass(frozen=True, slots=True)
class DialTask:
    """A problem that is too hard, and the correct attempts at it, the best one first, each with who made it."""

    request: PromptRequest
    question: Question
    traces: Sequence[tuple[str, Trace]]
    without: str = ""


@dataclass(slots=True, eq=False)
class Dialling:
    """One problem while prefixes of it are sampled: the trace at hand, its lengths, and what was sampled so far."""

    task: DialTask
    tries: Iterator[tuple[str, Trace]]
    made_by: str = ""
    trace: Trace | None = None
    lengths: list[int] = field(default_factory=list)
    is_fine: bool = False
    state: Bisection = field(default_factory=lambda: Bisection.over(0))
    number: int = -1
    prefix: str = ""
    probes_left: int = 0
    sampled: list[SampledProblem] = field(default_factory=list)
    outcome: str = ""

    @classmethod
    def without_trace(cls, task: DialTask) -> Dialling:
        """Return the end of a problem that no correct attempt is known of."""
        return cls(task, iter(()), outcome=NO_TRACE)

    @property
    def last(self) -> SampledProblem:
        """Return the probe that it ended with."""
        return self.sampled[-1]

    def row(self, store: AttemptStore) -> dict[str, object]:
        """Return the problem's row of `DIALLED`; the store has its attempts."""
        counted = {(one.problem, index) for one in self.sampled for index in one.verdicts}
        rows = store.read([one.problem for one in self.sampled], ["problem", "index", "tokens"]).rows()
        tokens = [count for name, index, count in rows if (name, index) in counted and count is not None]
        found = self.outcome == DIALLED_OUTCOME
        share = self.lengths[self.number] / len(self.trace.body) if found and self.trace is not None else None
        return {
            "problem": self.task.request.id,
            "prefix": self.prefix if found else None,
            "prefix_share": share,
            "prefix_from": self.made_by if found else None,
            "outcome": self.outcome,
            "traces": len(self.task.traces),
            "probes": len(self.sampled),
            "attempts": len(counted),
            "tokens": sum(tokens) if tokens or not counted else None,
            "without": self.task.without,
        }


def name_of(problem: str, prefix: str) -> str:
    """Return what attempts at a problem with a prefix are filed under.

    Example: ``name_of("5f0c2ab19e7d00aa11bb", "<think>")`` begins with ``5f0c2ab19e7d00aa11bb~``
    """
    return f"{problem}~{hashlib.blake2b(prefix.encode(), digest_size=6).hexdigest()}"


class Dialler:
    """Finds prefixes for problems.

    Args:
        rule: of the stage that found the problems too hard, without suspicions of labels: somebody solved them.
        compare: the verifier on pairs, in a problem's language.
        sample: samples requests until each is decided (`curation.difficulty.sampling.Sampler.run`); called anew
            whenever it has ended and lengths are left to try.
    """

    def __init__(
        self,
        store: AttemptStore,
        judge: Judge,
        rule: StoppingRule,
        compare: Callable[[str], Compare],
        sample: Callable[[Iterable[SamplingRequest]], AsyncGenerator[SampledProblem, None]],
        *,
        max_share: float,
        probes: int,
        tries: int,
    ) -> None:
        self._store, self._judge, self._rule, self._compare, self._sample = store, judge, rule, compare, sample
        self._max_share, self._probes, self._tries = max_share, probes, tries
        self._waiting: deque[SamplingRequest] = deque()
        self._open: dict[str, Dialling] = {}

    async def run(self, tasks: Iterable[DialTask]) -> list[Dialling]:
        """Return what became of each problem, in the order of ``tasks``."""
        dialled = [Dialling(task, iter(task.traces[: self._tries])) for task in tasks]
        for one in dialled:
            self._next_trace(one, NO_TRACE)
        while self._waiting:
            async for sampled in self._sample(_Queue(self._waiting)):
                self._take(self._open.pop(sampled.problem), sampled)
        return dialled

    def _next_trace(self, one: Dialling, outcome: str) -> None:
        """Go on with the next correct attempt that may be cut; where there is none the problem is done."""
        compare = self._compare(one.task.question.lang)
        for made_by, trace in one.tries:
            one.made_by, one.trace = made_by, trace
            one.lengths = possible_cuts(one.trace, one.task.question, self._max_share, compare)
            one.state, one.is_fine, one.probes_left = Bisection.over(len(one.lengths)), False, self._probes
            if self._ask(one):
                return
            outcome = NO_ROOM if outcome == NO_TRACE else outcome
        one.outcome = outcome

    def _ask(self, one: Dialling) -> bool:
        """Have the next length sampled; return whether there is one."""
        assert one.trace is not None
        compare = self._compare(one.task.question.lang)
        while one.probes_left and (number := _next_length(one)) is not None:
            prefix = prefix_at(one.trace, one.lengths[number], one.task.question, compare)
            if prefix is None:  # all longer ones hold the answer too
                one.state = one.state.after(number, too_hard=False)
                continue
            one.number, one.prefix = number, prefix
            one.probes_left -= 1
            name, question = name_of(one.task.request.id, prefix), one.task.question
            stored = stored_answers(self._store, [name], self._rule.band.attempts, self._judge)
            request = replace(one.task.request, id=name, prefix=prefix)
            asked = SamplingRequest(request, question.reference, question.letter, stored.get(name, {}), self._rule)
            self._open[name] = one
            self._waiting.append(asked)
            return True
        return False

    def _take(self, one: Dialling, sampled: SampledProblem) -> None:
        """Take in a length that was sampled: the problem is in the band, or another length is tried."""
        one.sampled.append(sampled)
        if sampled.refused is not None:
            one.outcome = REFUSED
            return
        tally = OutcomeTally()
        for _, verdict in sorted(sampled.verdicts.items()):
            tally.add(verdict.outcome, verdict.answer_class)
        reason = self._rule.decision(tally.counts)
        if reason is None:
            one.outcome = DIALLED_OUTCOME
            return
        too_hard = reason != DropReason.TOO_EASY
        longest = one.number == len(one.lengths) - 1 and not one.is_fine
        one.state = one.state.after(one.number, too_hard=too_hard)
        if not self._ask(one):
            self._next_trace(one, TOO_HARD if too_hard and longest else NO_LENGTH)


def _next_length(one: Dialling) -> int | None:
    """Return the number of the next length; between a too short and a too long one finer ones are made, once."""
    number, state = one.state.next(), one.state
    if number is not None or one.is_fine or one.trace is None or state.long == len(one.lengths):
        return number
    short = one.lengths[state.short] if state.short >= 0 else 0
    one.lengths = finer_cuts(one.trace.body, short, one.lengths[state.long])
    one.state, one.is_fine = Bisection.over(len(one.lengths)), True
    return one.state.next()


class _Queue:
    """An iterator over what waits now, and over what is put there while it is used."""

    def __init__(self, waiting: deque[SamplingRequest]) -> None:
        self._waiting = waiting

    def __iter__(self) -> _Queue:
        return self

    def __next__(self) -> SamplingRequest:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()
