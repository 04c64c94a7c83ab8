"""Samples up to n attempts at each problem, as its decision needs, and judges them.

A policy with a true attribute ``instant`` is asked for all n attempts.

Invariants:
  - an attempt is stored before its problem is yielded, and never requested again;
  - attempts are judged in the order of their index, so results do not depend on speed;
  - a problem ends if its next attempt is refused, and stays open at `SamplingRequest.limit`;
  - memory holds only open problems and final answers of stored attempts.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import log, sqrt

import polars as pl

from curation.difficulty.early_stopping import OutcomeTally, StoppingRule
from curation.policies.excerpt import excerpt
from curation.policies.failure_budget import FailureBudget
from curation.records import (
    COUNTED_OUTCOMES,
    VERDICT,
    AttemptKey,
    Completion,
    DropReason,
    Outcome,
    Policy,
    PromptRequest,
    RequestRefused,
)
from curation.storage.attempts import REFUSAL, AttemptStore
from curation.verify.classes import keep_classes
from curation.verify.math_judge import Judge, JudgeTask, Response, Verdict

MIN_RESPONSES, MIN_PROBLEMS = 32, 4

ERROR_RATE = 0.01
"""Probability that one check is wrong."""

CUT_OFF, NO_ANSWER = "cut off", "no answer"


@dataclass(slots=True)
class ResponseTally:
    """Counts judged responses; keeps the last useless one of each kind."""

    judged: int = 0
    useless: dict[str, int] = field(default_factory=lambda: {CUT_OFF: 0, NO_ANSWER: 0})
    examples: dict[str, tuple[str, int]] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)  # the first of them, up to MIN_PROBLEMS

    def add(self, problem: str, index: int, *, has_answer: bool, is_cut_off: bool) -> str | None:
        """Count one response, and return how it is useless."""
        self.judged += 1
        if len(self.problems) < MIN_PROBLEMS:
            self.problems.add(problem)
        if has_answer and not is_cut_off:
            return None
        kind = CUT_OFF if is_cut_off else NO_ANSWER
        self.useless[kind] += 1
        self.examples[kind] = problem, index
        return kind

    @property
    def share(self) -> float:
        """Return the useless share of the judged responses."""
        return sum(self.useless.values()) / self.judged if self.judged else 0.0

    @property
    def most_are_useless(self) -> bool:
        """Return whether more than half are useless."""
        return self.share > 0.5

    @property
    def is_alarming(self) -> bool:
        """Return whether most responses are certainly useless."""
        if self.judged < MIN_RESPONSES or len(self.problems) < MIN_PROBLEMS:
            return False
        return self.share - sqrt(log(1 / ERROR_RATE) / (2 * self.judged)) > 0.5

    def is_likely(self, expected: float | None) -> bool:
        """Return whether most responses are useless once a tenth of the expected ones is judged."""
        is_early = expected is None or self.judged < max(MIN_RESPONSES, expected / 10)
        return not is_early and len(self.problems) >= MIN_PROBLEMS and self.most_are_useless

    @property
    def main_kind(self) -> str:
        """Return the more frequent kind of useless responses."""
        return max(self.useless, key=lambda kind: self.useless[kind])

    def sentence(self, advice: str, text: str | None) -> str:
        """Return the warning for users.

        Args:
            advice: the setting to check.
            text: example of the main kind.
        """
        total, (problem, index) = sum(self.useless.values()), self.examples[self.main_kind]
        counts = ", ".join(f"{kind} {count:,}" for kind, count in self.useless.items() if count)
        return (
            f"{total:,} of the first {self.judged:,} responses ({100 * total / self.judged:.0f} %) are of no use "
            f"({counts}): {advice}. One of them, problem {problem}, attempt {index}: {excerpt(text)}"
        )


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A problem to sample.

    Args:
        stored_answers: final answers of stored attempts, by index.
        letter, scorer: as in `JudgeTask`.
        limit: first index not to request; a problem that needs more stays open.
    """

    request: PromptRequest
    reference: str
    letter: str | None = None
    stored_answers: Mapping[int, str | None] = field(default_factory=dict)
    rule: StoppingRule | None = None
    limit: int | None = None
    scorer: str | None = None


@dataclass(frozen=True, slots=True)
class SampledProblem:
    """A problem after sampling.

    Args:
        verdicts: by index, up to the stop.
        is_decided: the sampler ended it; more attempts may exist.
        is_open: its limit ended it before its rule.
        refused: the index that ended it, and why.
    """

    problem: str
    reference: str
    verdicts: Mapping[int, Verdict]
    is_decided: bool
    new_attempts: int  # attempts made now, needed or not
    new_tokens: int  # … and their tokens, as far as the policy counts them
    refused: tuple[int, RequestRefused] | None = None
    is_open: bool = False


@dataclass(slots=True, eq=False)
class OpenProblem:
    """A problem between first request and stop."""

    sampling_request: SamplingRequest
    rule: StoppingRule
    tally: OutcomeTally = field(default_factory=OutcomeTally)
    next: int = 0  # the first index not requested
    limit: int = 0  # indices below it are needed in any case
    answers: dict[int, str | None] = field(default_factory=dict)  # final answers, not judged yet
    missing: set[int] = field(default_factory=set)  # indices that the policy does not have
    refused: dict[int, RequestRefused] = field(default_factory=dict)  # indices that will not be answered
    cut_off: set[int] = field(default_factory=set)  # those that ended at the token limit
    running: dict[int, asyncio.Task[Completion | None]] = field(default_factory=dict)
    verdict_by_answer: dict[str | None, Verdict] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    is_judging: bool = False
    is_stopped: bool = False
    new_attempts: int = 0
    new_tokens: int = 0

    @property
    def request(self) -> PromptRequest:
        """Return the problem as the policy sees it."""
        return self.sampling_request.request

    @property
    def max_attempts(self) -> int:
        """Return the first index not to request."""
        limit, attempts = self.sampling_request.limit, self.rule.band.attempts
        return attempts if limit is None else min(limit, attempts)

    def take(self, limit: int) -> int | None:
        """Return the next index to request."""
        while self.next < limit:
            index = self.next
            self.next += 1
            if index not in self.answers:
                return index
        return None


_PRIOR_ATTEMPTS = 50.0
"""Prior weight of the forecast, in attempts."""


@dataclass(slots=True)
class SamplingProgress:
    """Progress of sampling; ``kept`` and ``dropped`` count foreseen decisions."""

    problems: int = 0
    attempts: int = 0
    aborted: int = 0
    skipped: int = 0
    tokens: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    servers: Mapping[str, float] = field(default_factory=dict)
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    total: int | None = None
    expected: float | None = None  # attempts that all problems are expected to need
    foreseen: float = 0.0  # … of which the finished problems were expected to need this many
    needed: int = 0  # and needed this many
    open_needed: float = 0.0  # attempts that count so far at open problems, up to what each is expected to need

    def carry_on(self, before: SamplingProgress) -> None:
        """Add an earlier chunk's attempts and time."""
        self.attempts, self.tokens = before.attempts, before.tokens
        self.aborted, self.seconds = before.aborted, before.seconds

    @property
    def tokens_per_s(self) -> float:
        """Return tokens per second."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Return the estimated seconds left, if known."""
        if self.expected is None or not self.attempts:
            return None
        left = max(0.0, self.expected - self.foreseen - self.open_needed)
        ratio = (self.needed + _PRIOR_ATTEMPTS) / (self.foreseen + _PRIOR_ATTEMPTS)
        return self.seconds * ratio * left / self.attempts

    def row(self) -> dict[str, object]:
        """Return the figures as a JSON object."""
        eta = self.eta_s
        return {
            "problems": self.problems,
            "total": self.total,
            "attempts": self.attempts,
            "skipped": self.skipped,
            "aborted": self.aborted,
            "tokens": self.tokens,
            "tokens_per_s": round(self.tokens_per_s, 1),
            "in_flight": self.in_flight,
            **self.servers,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "seconds": round(self.seconds, 2),
            "eta_s": None if eta is None else round(eta, 1),
        }


def verdict_frame(sampled: Iterable[SampledProblem], key: AttemptKey, verifier: str) -> pl.DataFrame:
    """Return `VERDICT` rows ordered by ``sampled`` and index."""
    rows = [
        (
            result.problem,
            index,
            result.reference,
            verdict.outcome.value,
            verdict.answer,
            verdict.answer_class,
            verdict.method,
        )
        for result in sampled
        for index, verdict in sorted(result.verdicts.items())
    ]
    columns = ("problem", "index", "reference", "outcome", "answer", "answer_class", "method")
    same = {"policy": key.policy, "prompt": key.prompt, "sampling": key.sampling, "verifier": verifier}
    frame = pl.DataFrame(rows, schema={name: VERDICT[name] for name in columns}, orient="row")
    return frame.with_columns(pl.lit(value).alias(name) for name, value in same.items()).select(VERDICT.names())


def refusal_frame(sampled: Iterable[SampledProblem]) -> pl.DataFrame:
    """Return the refusals that ended problems as `REFUSAL` rows."""
    rows = [
        (result.problem, result.refused[0], result.refused[1].kind, result.refused[1].reason)
        for result in sampled
        if result.refused is not None
    ]
    return pl.DataFrame(rows, schema=REFUSAL, orient="row")


def stored_answers(
    store: AttemptStore, problems: Sequence[str], attempts: int, judge: Judge
) -> dict[str, dict[int, str | None]]:
    """Return stored final answers below ``attempts``, by problem and index."""
    answers: dict[str, dict[int, str | None]] = {}
    rows = store.read(problems, ["problem", "index", "text", "answer", "finish"]).filter(pl.col("index") < attempts)
    for problem, index, text, answer, finish in rows.iter_rows():
        answers.setdefault(problem, {})[index] = judge.final_answer(Response(text, answer, finish))
    return answers


VERSION = "sampling@1"

MIN_OPEN_PROBLEMS = 64
"""Min limit of open problems, to occupy the verifier's workers."""

PROGRESS_INTERVAL_S = 1.0
"""Seconds between reports of progress."""


class Sampler:
    """Samples and judges attempts, once; policy and judge are open.

    ``doubtful_is_open`` counts doubtful verdicts as failed.
    """

    def __init__(
        self,
        policy: Policy,
        store: AttemptStore,
        judge: Judge,
        rule: StoppingRule,
        *,
        total: int | None = None,
        expected: float | None = None,
        watch: Callable[[SamplingProgress], None] | None = None,
        alarm: Callable[[ResponseTally, str | None], None] | None = None,
        budget: FailureBudget | None = None,
        doubtful_is_open: bool = False,
    ) -> None:
        self._policy, self._store, self._judge, self._rule = policy, store, judge, rule
        self._doubtful_is_open = doubtful_is_open
        self._instant = bool(getattr(policy, "instant", False))
        self._max_open = max(MIN_OPEN_PROBLEMS, 4 * policy.in_flight)
        self._watch, self._alarm, self._budget = watch, alarm, budget or FailureBudget(0.0, total or 0, "max_failed")
        self._responses = ResponseTally()
        self.progress = SamplingProgress(total=total, expected=expected)
        self._open: dict[str, OpenProblem] = {}
        self._waiting: deque[OpenProblem] = deque()
        self._running: dict[asyncio.Task[Completion | None], tuple[OpenProblem, int]] = {}
        self._events: asyncio.Queue[
            asyncio.Task[Completion | None] | tuple[OpenProblem, list[int], Future[tuple[Verdict, ...]]]
        ] = asyncio.Queue()
        self._finished: deque[SampledProblem] = deque()
        self._completions: list[tuple[str, int, Completion]] = []
        self._refusals: list[tuple[str, int, RequestRefused]] = []

    async def run(self, problems: Iterable[SamplingRequest]) -> AsyncGenerator[SampledProblem, None]:
        """Yield each problem once done.

        Raises:
            PolicyError, VerifierError: finished attempts are in the store.
        """
        remaining = iter(problems)
        last_report = time.monotonic()
        started = last_report - self.progress.seconds
        try:
            while True:
                more_problems = await self._launch_requests(remaining)
                self._store_completions()
                if self._responses.is_alarming or self._responses.is_likely(self.progress.expected):
                    self._sound_alarm()
                self.progress.seconds = time.monotonic() - started
                while self._finished:
                    yield self._finished.popleft()
                if time.monotonic() - last_report > PROGRESS_INTERVAL_S:
                    last_report = time.monotonic()
                    self._report()
                if not self._open and not more_problems:
                    break
                if self._open or self._running:
                    await self._handle_events()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._collect_completions()
            self._store_completions()
            if self._responses.most_are_useless:
                self._sound_alarm()
            self.progress.seconds = time.monotonic() - started
            self.progress.in_flight = 0
            self._report()

    def _report(self) -> None:
        if self._watch is not None:
            self.progress.servers = getattr(self._policy, "health", {})
            self.progress.open_needed = sum(
                min(problem.tally.counts.requested, problem.rule.expectation().attempts)
                for problem in self._open.values()
            )
            self._watch(self.progress)

    async def _launch_requests(self, remaining: Iterator[SamplingRequest]) -> bool:
        """Launch requests that fit; return False if no problem is left."""
        opened = 0
        while len(self._running) < self._policy.in_flight:
            if self._waiting:
                index = self._waiting[0].take(self._waiting[0].limit)
                if index is None or self._waiting[0].is_stopped:
                    self._waiting.popleft()
                elif self._instant:
                    await self._answer_now(self._waiting.popleft(), index)
                else:
                    self._launch(self._waiting[0], index)
            elif len(self._open) < self._max_open:
                if opened >= self._max_open:  # problems that need nothing new: yield finished ones first
                    return True
                sampling_request = next(remaining, None)
                if sampling_request is None:
                    return False
                self._open_problem(sampling_request)
                opened += 1
            else:
                break
        return True

    def _open_problem(self, sampling_request: SamplingRequest) -> None:
        rule = sampling_request.rule or self._rule
        problem = OpenProblem(sampling_request, rule, answers=dict(sampling_request.stored_answers))
        self._open[problem.request.id] = problem
        self._advance(problem)

    def _launch(self, problem: OpenProblem, index: int) -> None:
        task = asyncio.ensure_future(self._policy.answer(problem.request, index))
        self._running[task] = problem, index
        problem.running[index] = task
        self.progress.in_flight = len(self._running)
        task.add_done_callback(self._events.put_nowait)

    async def _answer_now(self, problem: OpenProblem, index: int | None) -> None:
        while index is not None:
            try:
                self._take_completion(problem, index, await self._policy.answer(problem.request, index))
            except RequestRefused as refused:
                self._take_refusal(problem, index, refused)
            index = problem.take(problem.max_attempts)
        self._advance(problem)

    async def _handle_events(self) -> None:
        event = await self._events.get()
        touched: dict[int, OpenProblem] = {}
        while True:
            if isinstance(event, asyncio.Task):
                problem, index = self._running.pop(event)
                del problem.running[index]
                if not event.cancelled():
                    self._take_result(problem, index, event)
            else:
                problem, indices, verdicts = event
                problem.is_judging = False
                self._take_verdicts(problem, indices, verdicts.result())
            touched[id(problem)] = problem
            if self._events.empty():
                break
            event = self._events.get_nowait()
        self.progress.in_flight = len(self._running)
        for problem in touched.values():
            self._advance(problem)

    def _collect_completions(self) -> None:
        for task, (problem, index) in self._running.items():
            if task.done() and not task.cancelled() and isinstance(task.exception(), RequestRefused | None):
                self._take_result(problem, index, task)
        self._running.clear()

    def _take_result(self, problem: OpenProblem, index: int, task: asyncio.Task[Completion | None]) -> None:
        try:
            completion = task.result()
        except RequestRefused as refused:
            self._take_refusal(problem, index, refused)
        else:
            self._take_completion(problem, index, completion)

    def _take_refusal(self, problem: OpenProblem, index: int, refused: RequestRefused) -> None:
        self._refusals.append((problem.request.id, index, refused))
        problem.refused[index] = refused
        problem.next = problem.rule.band.attempts  # the problem ends there

    def _take_completion(self, problem: OpenProblem, index: int, completion: Completion | None) -> None:
        if completion is None:
            problem.missing.add(index)
            problem.answers[index] = None
            return
        self._budget.count_answer()
        self._completions.append((problem.request.id, index, completion))
        problem.new_attempts += 1
        problem.new_tokens += completion.tokens or 0
        self.progress.attempts += 1
        self.progress.tokens += completion.tokens or 0
        if completion.finish == "length":
            problem.cut_off.add(index)
        if not problem.is_stopped:
            response = Response(completion.text, completion.answer, completion.finish)
            problem.answers[index] = self._judge.final_answer(response)

    def _sound_alarm(self) -> None:
        if self._alarm is None:
            return
        problem, index = self._responses.examples[self._responses.main_kind]
        attempts = self._store.read([problem], ["problem", "index", "text", "answer"])
        row = attempts.filter(attempts["index"] == index).row(0, named=True)
        self._alarm(self._responses, row["text"] if row["text"] is not None else row["answer"])
        self._alarm = None

    def _store_completions(self) -> None:
        if self._completions:
            self._store.add(self._completions)
            self._completions.clear()
        if self._refusals:
            self._store.add_refusals(self._refusals)
            self._refusals.clear()

    def _advance(self, problem: OpenProblem) -> None:
        """Judge new attempts until the problem stops or waits."""
        while not problem.is_judging and not problem.is_stopped:
            position = problem.tally.counts.requested
            problem.next = max(problem.next, position)
            indices: list[int] = []
            while position + len(indices) in problem.answers and position + len(indices) < self._rule.band.attempts:
                indices.append(position + len(indices))
            if not indices and position in problem.refused:
                self._give_up(problem, position)
                return
            if not indices and position >= problem.max_attempts:
                self._finish(problem, DropReason.TOO_FEW_ATTEMPTS, True, None, is_open=True)
                return
            if not indices:
                needed = position + problem.rule.needed(problem.tally.counts)
                problem.limit = min(needed, problem.max_attempts)
                if problem.next < problem.limit:
                    self._waiting.appendleft(problem)
                return
            new_answers = [problem.answers[index] for index in indices if index not in problem.missing]
            if all(answer in problem.verdict_by_answer for answer in new_answers):
                self._count(problem, indices)
                continue
            self._submit(problem, indices, new_answers)

    def _submit(self, problem: OpenProblem, indices: list[int], new_answers: Sequence[str | None]) -> None:
        judged = [
            answer for answer, verdict in problem.verdict_by_answer.items() if verdict.outcome in COUNTED_OUTCOMES
        ]
        new = [answer for answer in new_answers if answer not in problem.verdict_by_answer]
        answers = list(dict.fromkeys([*judged, *new]))  # failed answers join no class, and would fail again
        request = problem.sampling_request
        asked = problem.request
        reference, statement = request.reference, asked.statement
        task = JudgeTask(
            asked.id, reference, asked.lang, (), request.letter, statement=statement, scorer=request.scorer
        )
        problem.is_judging = True
        future = self._judge.submit(task, answers)
        if future.done():
            problem.is_judging = False
            self._take_verdicts(problem, indices, future.result())
            return
        loop = asyncio.get_running_loop()

        def notify(verdicts: Future[tuple[Verdict, ...]]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._events.put_nowait, (problem, indices, verdicts))

        future.add_done_callback(notify)

    def _take_verdicts(self, problem: OpenProblem, indices: list[int], verdicts: Sequence[Verdict]) -> None:
        known = problem.verdict_by_answer
        before = [known[verdict.answer].answer_class if verdict.answer in known else None for verdict in verdicts]
        classes = keep_classes(before, [verdict.answer_class for verdict in verdicts])
        for verdict, answer_class in zip(verdicts, classes, strict=True):
            known.setdefault(verdict.answer, replace(verdict, answer_class=answer_class))
        self._count(problem, indices)

    def _count(self, problem: OpenProblem, indices: list[int]) -> None:
        for index in indices:
            answer = problem.answers.pop(index)
            if index in problem.missing:
                counts = problem.tally.add(None, None)
            else:
                verdict = problem.verdicts[index] = problem.verdict_by_answer[answer]
                is_open = self._doubtful_is_open and verdict.is_doubtful
                outcome, answer_class = (Outcome.BROKEN, None) if is_open else (verdict.outcome, verdict.answer_class)
                counts = problem.tally.add(outcome, answer_class)
                has_answer = verdict.outcome is not Outcome.NO_ANSWER
                is_cut_off = index in problem.cut_off
                self._responses.add(problem.request.id, index, has_answer=has_answer, is_cut_off=is_cut_off)
            if problem.rule.should_stop(counts):
                self._stop(problem)
                return

    def _stop(self, problem: OpenProblem) -> None:
        counts, rule = problem.tally.counts, problem.rule
        self.progress.skipped += rule.band.attempts - counts.requested
        is_decided = counts.requested < rule.band.attempts
        self._finish(problem, rule.decision(counts), is_decided, None)

    def _give_up(self, problem: OpenProblem, index: int) -> None:
        """End a problem whose next attempt was refused."""
        refused = problem.refused[index]
        self._finish(problem, DropReason.SAMPLING_FAILED, False, (index, refused))
        self._budget.count_refusal(problem.request.id, refused)

    def _finish(
        self,
        problem: OpenProblem,
        reason: str | None,
        is_decided: bool,
        refused: tuple[int, RequestRefused] | None,
        *,
        is_open: bool = False,
    ) -> None:
        problem.is_stopped = True
        for task in problem.running.values():
            task.cancel()
        progress = self.progress
        progress.problems += 1
        if progress.expected is not None:
            progress.foreseen += problem.rule.expectation().attempts
            progress.needed += problem.tally.counts.requested
        progress.aborted += len(problem.running)
        if reason is None:
            progress.kept += 1
        else:
            progress.dropped[str(reason)] = progress.dropped.get(str(reason), 0) + 1
        del self._open[problem.request.id]
        problem.answers.clear()
        self._finished.append(
            SampledProblem(
                problem.request.id,
                problem.sampling_request.reference,
                problem.verdicts,
                is_decided,
                problem.new_attempts,
                problem.new_tokens,
                refused,
                is_open,
            )
        )
