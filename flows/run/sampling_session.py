"""Sampling of one stage across its shards: one policy, one event loop, and no pause between the shards.

`SamplingSession.shard` is called once per shard that is not finished, in order; while a shard's last problems are
waited for, requests of the next ones are under way. The policy is opened with the first shard that needs it, so a
finished stage starts no engine, nor does one that no problem reached. Progress goes to the bar and, as JSON lines, to
``metrics.jsonl`` in the run folder.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator
from types import TracebackType

import polars as pl

from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.progress import SamplingProgress
from curation.difficulty.sampling import SampledProblem, Sampler, SamplingRequest
from curation.difficulty.sampling_tables import stored_answers, verdict_frame
from curation.difficulty.unanswered import CUT_OFF, UselessResponses
from curation.filters.multiple_choice.resolving import named_letter
from curation.prompts.solving import FENCE
from curation.records import Domain, Policy, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, StageFolder, read_shard
from curation.verify.math_judge import Judge
from flows.run.progress import METRICS, note, warn
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Stage, StageResult, shard_counts


class SamplingSession:
    """The attempts of a stage, shard by shard. A context manager; leaving it ends the policy and closes the store."""

    def __init__(
        self,
        run: Run,
        stage: Stage,
        problems: StageResult,
        folder: StageFolder,
        policy: Policy,
        store: AttemptStore,
        judge: Judge,
        rule: StoppingRule,
    ) -> None:
        self._run, self._stage, self._problems, self._folder = run, stage, problems, folder
        self._policy, self._store, self._judge, self._rule = policy, store, judge, rule
        self._metrics = run.folder / METRICS
        self._runner: asyncio.Runner | None = None
        self._entered = False
        self._sampled: AsyncGenerator[SampledProblem, None] | None = None
        self._working: asyncio.Task[None] | None = None
        self._waiting: dict[str, SampledProblem] = {}
        self._stored_counts: dict[str, int] = {}

    def __enter__(self) -> SamplingSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._runner is not None:
                self._runner.run(self._end(kind, error, trace))
                self._runner.close()
            if kind is None and self._sampled is not None:
                self._store.compact()
        finally:
            self._store.close()

    def shard(self, index: int) -> Shard:
        """Sample until all problems of the shard are decided; its attempts become a part of the store."""
        begun = time.monotonic()
        names = read_shard(self._problems.folder, "kept", index)["id"].to_list()
        if names:
            if self._runner is None:
                self._runner = asyncio.Runner()
                self._runner.run(self._begin())
            self._runner.run(self._until(names))
        sampled = [self._waiting.pop(name) for name in names]
        attempts = sum(self._stored_counts.pop(sample.problem) + sample.new_attempts for sample in sampled)
        self._store.compact(names)
        counts = pl.DataFrame(
            [(sample.problem, len(sample.verdicts), sample.is_decided) for sample in sampled],
            schema={"problem": pl.String, "attempts": pl.Int32, "is_decided": pl.Boolean},
            orient="row",
        )
        verdicts = verdict_frame(sampled, self._policy.key, self._judge.version)
        notes = {
            "attempts": attempts,
            "counted": verdicts.height,
            "made": sum(sample.new_attempts for sample in sampled),
            "tokens": sum(sample.new_tokens for sample in sampled),
            "ms": round(1000 * (time.monotonic() - begun)),
        }
        return Shard(len(names), {"counts": counts, "verdicts": verdicts}, kept_rows=len(names), notes=notes)

    async def _begin(self) -> None:
        settings = difficulty_stage(self._run.recipe, self._stage.part).sampling
        rows = shard_counts(self._problems.folder)
        unfinished = [index for index in range(len(rows)) if not self._folder.is_finished(index)]
        await self._policy.__aenter__()
        self._entered = True
        sampler = Sampler(
            self._policy,
            self._store,
            self._judge,
            self._rule,
            ahead=settings.ahead,
            open_problems=settings.open_problems,
            total=sum(rows[index] for index in unfinished),
            watch=self._report,
            alarm=self._warn,
            doubtful_is_open=self._run.recipe.llm_judge.policy is not None,
        )
        self._sampled = sampler.run(self._feed(unfinished))

    async def _until(self, names: list[str]) -> None:
        assert self._sampled is not None
        self._working = asyncio.current_task()
        pending = {name for name in names if name not in self._waiting}
        while pending:
            sample = await anext(self._sampled)
            self._waiting[sample.problem] = sample
            pending.discard(sample.problem)

    async def _end(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._working is not None and not self._working.done():  # a signal broke into the loop
            self._working.cancel()
            await asyncio.wait([self._working])
        if self._sampled is not None:
            await self._sampled.aclose()
        if self._entered:
            await self._policy.__aexit__(kind, error, trace)

    def _feed(self, shards: list[int]) -> Iterator[SamplingRequest]:
        """Yield the problems of these shards, each shard read when its turn comes."""
        for index in shards:
            frame = read_shard(self._problems.folder, "kept", index)
            for item in sampling_requests(frame, self._store, self._rule.band.attempts, self._judge):
                self._stored_counts[item.request.id] = len(item.stored_answers)
                yield item

    def _report(self, progress: SamplingProgress) -> None:
        row = {"at": round(time.time(), 2), "stage": self._stage.name, **progress.row()}
        with self._metrics.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        note(progress_phrase(progress))

    def _warn(self, responses: UselessResponses) -> None:
        part = self._stage.part
        kind = difficulty_stage(self._run.recipe, part).policy.kind
        warn(self._run.folder, self._stage.name, responses.sentence(response_advice(responses.kind, kind, part)))


def response_advice(response_kind: str, policy_kind: str, place: str) -> str:
    """Return which setting to look at where most responses are cut off, or hold no answer that can be read.

    Args:
        place: the table of the recipe that has the policy.
    """
    if policy_kind == "recorded":
        return f"look at `{place}.policy.columns`, which name where the file has text and answer"
    if response_kind == CUT_OFF:
        return f"raise `{place}.policy.decoding.max_tokens`, or ask for less by `{place}.policy.prompt`"
    return f"look at `{place}.policy.prompt` and at the model's chat template: answers are not in the form asked for"


def sampling_requests(
    frame: pl.DataFrame, store: AttemptStore, attempts: int, judge: Judge
) -> Iterator[SamplingRequest]:
    """Yield `PROBLEM` rows as the sampler takes them, with the attempts that the store holds."""
    stored = stored_answers(store, frame["id"].to_list(), attempts, judge)
    columns = ("id", "statement", "domain", "lang", "answer", "raw_answer", "meta")
    for name, statement, domain, lang, answer, raw, meta in frame.select(columns).iter_rows():
        request = PromptRequest(name, statement, Domain(domain), lang, request_details(domain, meta))
        yield SamplingRequest(request, answer or "", option_letter(raw, answer), stored.get(name, {}))


def request_details(domain: str, meta: str | None) -> dict[str, str]:
    """Return the details of a prompt: for code, the language that the problem is asked for in."""
    return {FENCE: str(json.loads(meta or "{}").get(FENCE, "python"))} if domain == Domain.CODE else {}


def option_letter(raw_answer: str | None, answer: str) -> str | None:
    """Return the right option's letter where the format filter opened a multiple-choice problem, else None.

    Attempts may still answer with the letter.
    """
    if raw_answer is None:
        return None
    letter = named_letter(raw_answer.partition("\\\\")[0])  # up to a LaTeX line break, behind which debris stands
    return letter if letter != answer else None


def progress_phrase(progress: SamplingProgress) -> str:
    """Return the progress as one line."""
    eta = progress.eta_s
    remaining = "" if eta is None else f", {eta / 60:.0f} min left" if eta >= 90 else f", {eta:.0f} s left"
    speed = f", {progress.tokens_per_s:,.0f} tokens/s" if progress.tokens else ""
    dropped = sum(progress.dropped.values())
    return f"{progress.attempts:,} attempts{speed}, {progress.kept:,} kept, {dropped:,} dropped{remaining}"
