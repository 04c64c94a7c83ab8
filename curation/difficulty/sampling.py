"""n attempts at each problem, and no more than its decision needs: requests in flight, verdicts beside them.

A problem is open from its first request to its stop. At each moment those indices of it are asked for that are needed
whatever the ones before them say (`Rule.needed`); verdicts come in as prefixes are finished, and either need more or
stop the problem. Other problems fill the gaps meanwhile, so that ``policy.in_flight`` requests are under way as long as
there is anything to ask: long and short answers share the engine, nothing waits for a wave to end.

Invariants:
  - an attempt is in the store before its problem is handed over; one that is in the store is not asked for again;
  - attempts are judged in the order of their index, and a problem stops at the first prefix where the rule does: its
    verdicts and its stop are a function of its attempts, not of which of them was quick;
  - a problem at which more was asked for than needed (``ahead``) has the rest cancelled at its stop;
  - memory is bounded by the open problems: judging that falls behind keeps problems open, and open problems keep new
    ones from being read. Of a stored attempt only its final answer is kept in memory.

A policy with a true attribute ``instant`` answers at no cost: all n attempts at a problem are asked for one after
another, and stored; the rule still says which of them count. Nothing here decides on a problem: that is the rule's.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import polars as pl

from curation.difficulty.early_stopping import OutcomeTally, StoppingRule
from curation.difficulty.progress import SamplingProgress
from curation.records import VERDICT, AttemptKey, Completion, Policy, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import Judge, JudgeTask, Response, Verdict, final_answer

VERSION = "sampling@1"

MIN_OPEN_PROBLEMS = 64
"""Problems that may be open however few requests a policy takes, so that the verifier's workers have work."""

PROGRESS_INTERVAL_S = 1.0
"""Seconds between two reports of progress."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A problem to sample: what the policy sees, what its answers are compared with, and what is held already.

    ``held`` maps an index to the final answer of the stored attempt. ``letter`` is as in `JudgeTask`.

    Example: ``Asked(Prompted("5f0c2ab19e7d00aa11bb", "1 + 1?", Domain.MATH, "en"), "2")``
    """

    request: PromptRequest
    reference: str
    letter: str | None = None
    stored_answers: Mapping[int, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampledProblem:
    """A problem that has its attempts. ``verdicts`` maps the indices up to the stop, less those that could not be had.

    ``sealed`` says that sampling stopped of its own accord: there may be more attempts to be had.
    """

    problem: str
    reference: str
    verdicts: Mapping[int, Verdict]
    is_decided: bool
    new_attempts: int  # attempts made for it now, needed or not
    new_tokens: int  # … and their tokens, as far as the policy counts them


@dataclass(slots=True, eq=False)
class _Open:
    asked: SamplingRequest
    tally: OutcomeTally = field(default_factory=OutcomeTally)
    next: int = 0  # the first index that has not been asked for
    limit: int = 0  # indices below it are needed whatever comes
    answers: dict[int, str | None] = field(default_factory=dict)  # final answers, not judged yet
    missing: set[int] = field(default_factory=set)  # indices that the policy does not have
    running: dict[int, asyncio.Task[Completion | None]] = field(default_factory=dict)
    known: dict[str | None, Verdict] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    judging: bool = False
    stopped: bool = False
    made: int = 0
    tokens: int = 0

    def take(self, limit: int) -> int | None:
        """Return the next index below the limit that is still to be asked for."""
        while self.next < limit:
            index = self.next
            self.next += 1
            if index not in self.answers:
                return index
        return None


class Sampler:
    """Attempts at problems, judged. The policy and the judge are open; `run` may be called once."""

    def __init__(
        self,
        policy: Policy,
        store: AttemptStore,
        judge: Judge,
        rule: StoppingRule,
        *,
        ahead: bool = False,
        open_problems: int | None = None,
        total: int | None = None,
        watch: Callable[[SamplingProgress], None] | None = None,
    ) -> None:
        self._policy, self._store, self._judge, self._rule = policy, store, judge, rule
        self._ahead = ahead
        self._instant = bool(getattr(policy, "instant", False))
        self._most_open = open_problems or max(MIN_OPEN_PROBLEMS, 4 * policy.in_flight)
        self._watch = watch
        self.progress = SamplingProgress(total=total)
        self._open: dict[str, _Open] = {}
        self._needy: deque[_Open] = deque()
        self._running: dict[asyncio.Task[Completion | None], tuple[_Open, int]] = {}
        self._events: asyncio.Queue[
            asyncio.Task[Completion | None] | tuple[_Open, list[int], Future[tuple[Verdict, ...]]]
        ] = asyncio.Queue()
        self._done: deque[SampledProblem] = deque()
        self._made: list[tuple[str, int, Completion]] = []

    async def run(self, problems: Iterable[SamplingRequest]) -> AsyncGenerator[SampledProblem, None]:
        """Yield each problem once, as it is done; the order is that of being done.

        Raises:
            PolicyError, VerifierError: what was finished until then is in the store.
        """
        feed = iter(problems)
        begun = watched = time.monotonic()
        try:
            while True:
                more = await self._fill(feed)
                self._keep()
                self.progress.seconds = time.monotonic() - begun
                while self._done:
                    yield self._done.popleft()
                if self._watch is not None and time.monotonic() - watched > PROGRESS_INTERVAL_S:
                    watched = time.monotonic()
                    self._watch(self.progress)
                if not self._open and not more:
                    break
                if self._open or self._running:
                    await self._hear()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._collect()
            self._keep()
            self.progress.seconds = time.monotonic() - begun
            self.progress.in_flight = 0
            if self._watch is not None:
                self._watch(self.progress)

    async def _fill(self, feed: Iterator[SamplingRequest]) -> bool:
        """Launch as many requests as fit; False when there is no problem left to open."""
        opened = 0
        while len(self._running) < self._policy.in_flight:
            if self._needy:
                index = self._needy[0].take(self._needy[0].limit)
                if index is None or self._needy[0].stopped:
                    self._needy.popleft()
                elif self._instant:
                    await self._answer_now(self._needy.popleft(), index)
                else:
                    self._launch(self._needy[0], index)
            elif len(self._open) < self._most_open:
                if opened >= self._most_open:  # problems that need nothing new: let what is done be handed over
                    return True
                asked = next(feed, None)
                if asked is None:
                    self._launch_ahead()
                    return False
                self._begin(asked)
                opened += 1
            else:
                self._launch_ahead()
                break
        return True

    def _begin(self, asked: SamplingRequest) -> None:
        one = _Open(asked, answers=dict(asked.stored_answers))
        self._open[asked.request.id] = one
        self._extend(one)

    def _launch(self, one: _Open, index: int) -> None:
        task = asyncio.ensure_future(self._policy.answer(one.asked.request, index))
        self._running[task] = one, index
        one.running[index] = task
        self.progress.in_flight = len(self._running)
        task.add_done_callback(self._events.put_nowait)

    def _launch_ahead(self) -> None:
        """Where nothing certain is left to ask for, ask for what may be needed, oldest problem first."""
        if not self._ahead or self._instant:
            return
        for one in list(self._open.values()):
            while len(self._running) < self._policy.in_flight:
                index = one.take(self._rule.band.attempts)
                if index is None:
                    break
                self._launch(one, index)

    async def _answer_now(self, one: _Open, index: int | None) -> None:
        """All attempts at a problem from a policy that need not work for them."""
        while index is not None:
            self._answered(one, index, await self._policy.answer(one.asked.request, index))
            index = one.take(self._rule.band.attempts)
        self._extend(one)

    async def _hear(self) -> None:
        """Wait for something to be finished, and take in all that is."""
        event = await self._events.get()
        touched: dict[int, _Open] = {}
        while True:
            if isinstance(event, asyncio.Task):
                one, index = self._running.pop(event)
                del one.running[index]
                if not event.cancelled():
                    self._answered(one, index, event.result())
            else:
                one, indices, judged = event
                one.judging = False
                self._judged(one, indices, judged.result())
            touched[id(one)] = one
            if self._events.empty():
                break
            event = self._events.get_nowait()
        self.progress.in_flight = len(self._running)
        for one in touched.values():
            self._extend(one)

    def _collect(self) -> None:
        """Take in answers that came while everything was being ended."""
        for task, (one, index) in self._running.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                self._answered(one, index, task.result())
        self._running.clear()

    def _answered(self, one: _Open, index: int, answered: Completion | None) -> None:
        if answered is None:
            one.missing.add(index)
            one.answers[index] = None
            return
        self._made.append((one.asked.request.id, index, answered))
        one.made += 1
        one.tokens += answered.tokens or 0
        self.progress.attempts += 1
        self.progress.tokens += answered.tokens or 0
        if not one.stopped:
            one.answers[index] = self._judge.final_answer(Response(answered.text, answered.answer))

    def _keep(self) -> None:
        if self._made:
            self._store.add(self._made)
            self._made.clear()

    def _extend(self, one: _Open) -> None:
        """Judge what the prefix has gained, until the problem stops, waits for the verifier, or needs more."""
        while not one.judging and not one.stopped:
            at = one.tally.counts.requested
            one.next = max(one.next, at)
            indices: list[int] = []
            while at + len(indices) in one.answers and at + len(indices) < self._rule.band.attempts:
                indices.append(at + len(indices))
            if not indices:
                one.limit = at + self._rule.needed(one.tally.counts)
                if one.next < one.limit:
                    self._needy.appendleft(one)
                return
            new = [one.answers[index] for index in indices if index not in one.missing]
            if all(answer in one.known for answer in new):
                self._count(one, indices)
                continue
            self._submit(one, indices, new)

    def _submit(self, one: _Open, indices: list[int], new: Sequence[str | None]) -> None:
        found = list(dict.fromkeys([*one.known, *new]))
        asked = one.asked
        task = JudgeTask(asked.request.id, asked.reference, asked.request.lang, (), asked.letter)
        one.judging = True
        future = self._judge.submit(task, found)
        if future.done():
            one.judging = False
            self._judged(one, indices, future.result(), found)
            return
        loop = asyncio.get_running_loop()

        def heard(done: Future[tuple[Verdict, ...]]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._events.put_nowait, (one, indices, done))

        future.add_done_callback(heard)

    def _judged(
        self, one: _Open, indices: list[int], judged: Sequence[Verdict], found: Sequence[str | None] | None = None
    ) -> None:
        answers = found if found is not None else [verdict.answer for verdict in judged]
        for answer, verdict in zip(answers, judged, strict=True):
            one.known.setdefault(answer, verdict)
        self._count(one, indices)

    def _count(self, one: _Open, indices: list[int]) -> None:
        """Let judged attempts count, one after the other, up to the stop."""
        for index in indices:
            answer = one.answers.pop(index)
            if index in one.missing:
                counts = one.tally.add(None, None)
            else:
                verdict = one.verdicts[index] = one.known[answer]
                counts = one.tally.add(verdict.outcome, verdict.answer_class)
            if self._rule.should_stop(counts):
                self._stop(one)
                return

    def _stop(self, one: _Open) -> None:
        one.stopped = True
        for task in one.running.values():
            task.cancel()
        counts, rule = one.tally.counts, self._rule
        reason: str | None = rule.reason(counts.correct, counts.top_wrong, counts.judged, counts.attempts)
        if rule.error_rate > 0 and not rule.is_decided(counts):
            reason = rule.likely_decision(counts)[0]
        progress = self.progress
        progress.problems += 1
        progress.aborted += len(one.running)
        progress.skipped += rule.band.attempts - counts.requested
        if reason is None:
            progress.kept += 1
        else:
            progress.dropped[str(reason)] = progress.dropped.get(str(reason), 0) + 1
        del self._open[one.asked.request.id]
        one.answers.clear()
        sealed = counts.requested < rule.band.attempts
        self._done.append(
            SampledProblem(one.asked.request.id, one.asked.reference, one.verdicts, sealed, one.made, one.tokens)
        )


def verdict_frame(sampled: Iterable[SampledProblem], key: AttemptKey, verifier: str) -> pl.DataFrame:
    """Return the verdicts in the `VERDICT` schema, in the order of the problems given and by index."""
    rows = [
        (one.problem, index, one.reference, judged.outcome.value, judged.answer, judged.answer_class, judged.method)
        for one in sampled
        for index, judged in sorted(one.verdicts.items())
    ]
    columns = ("problem", "index", "reference", "outcome", "answer", "answer_class", "method")
    same = {"policy": key.policy, "prompt": key.prompt, "sampling": key.sampling, "verifier": verifier}
    frame = pl.DataFrame(rows, schema={name: VERDICT[name] for name in columns}, orient="row")
    return frame.with_columns(pl.lit(value).alias(name) for name, value in same.items()).select(VERDICT.names())


def stored_answers(
    store: AttemptStore, problems: Sequence[str], attempts: int, judge: Judge | None = None
) -> dict[str, dict[int, str | None]]:
    """Per problem, the final answers of its stored attempts below ``attempts``, as `Asked.held` takes them."""
    read = final_answer if judge is None else judge.final_answer
    held: dict[str, dict[int, str | None]] = {}
    rows = store.read(problems, ["problem", "index", "text", "answer"]).filter(pl.col("index") < attempts)
    for problem, index, text, answer in rows.iter_rows():
        held.setdefault(problem, {})[index] = read(Response(text, answer))
    return held
