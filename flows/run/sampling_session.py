"""Sample a stage's shards with one policy, without pauses.

Call `SamplingSession.shard` for each unfinished shard, in order. Priors are learnt from earlier policies and an anchor;
a problem's prior never uses its own attempts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import polars as pl

from curation.difficulty.early_stopping import Prior, StoppingRule
from curation.difficulty.item_response import prior_counts, with_domains
from curation.difficulty.pass_rates import is_doubtful, outcomes_by_problem, pass_rates
from curation.difficulty.priors import PRIOR, LearntPriors, as_priors, learn_priors
from curation.difficulty.refresh import spread_sample
from curation.difficulty.sampling import (
    ResponseTally,
    SampledProblem,
    Sampler,
    SamplingProgress,
    SamplingRequest,
    refusal_frame,
    stored_answers,
    verdict_frame,
)
from curation.options import option_letter
from curation.policies.failure_budget import FailureBudget
from curation.prompts.solving import FENCE
from curation.records import Domain, Outcome, PromptRequest
from curation.sources.procedural import made_meta
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, StageFolder, read_shard, read_table
from curation.verify.generator_scores import scorer_of
from curation.verify.math_judge import Judge
from flows.run import retries
from flows.run.policy_session import ModelSession, warn_of_responses
from flows.run.progress import METRICS, add_line, note, warn
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import StageResult, StageRun, shard_counts

ANCHOR_SHARE, ANCHOR_LEAST = 0.05, 100
"""Share and min number of anchor problems; nothing is learnt if they exceed half of all."""

_COUNTS = dict.fromkeys(("correct", "judged", "top_wrong_votes"), pl.Int64())
_RATES = pl.Schema({"problem": pl.String(), "policy": pl.String(), **_COUNTS})


@dataclass(frozen=True, slots=True)
class PriorLearner:
    """Learns a stage's priors.

    Args:
        problems: the stage's ids; ``anchor``: those sampled first.
        counts: others' attempts: problem, policy, correct, judged.
        rates: others' `RATES`.
        doubtful_is_open: doubtful verdicts count as broken.
        domains: problem, domain, if distinguished.
    """

    rule: StoppingRule
    policy: str
    problems: pl.Series
    anchor: tuple[str, ...]
    counts: pl.DataFrame
    rates: pl.DataFrame
    doubtful_is_open: bool
    domains: pl.DataFrame | None = None

    @property
    def exact(self) -> StoppingRule:
        """Return the anchor's rule, which stops at a certain decision."""
        return StoppingRule(self.rule.band)

    def learn(self, verdicts: pl.DataFrame) -> LearntPriors:
        """Return all priors outside the anchor, from the anchor's `VERDICT` rows."""
        is_open = is_doubtful() & self.doubtful_is_open
        verdicts = verdicts.with_columns(
            outcome=pl.when(is_open).then(pl.lit(Outcome.BROKEN.value)).otherwise("outcome"),
            answer_class=pl.when(~is_open).then("answer_class"),
        )
        attempts = dict(outcomes_by_problem(verdicts))
        own = pass_rates(pl.Series(list(attempts)), verdicts, self.policy).select(_RATES.names())
        counts = pl.concat([self.counts, own.select(self.counts.columns).cast(self.counts.schema)])
        counts = with_domains(counts, self.domains)
        rates = pl.concat([self.rates, own.cast(self.rates.schema)])
        return learn_priors(counts, rates, self.policy, self.problems, attempts, self.exact, self.rule.error_rate)

    def table(self, learnt: LearntPriors) -> pl.DataFrame:
        """Return the stage's `PRIOR` rows; the anchor's foresee nothing."""
        of_anchor = exact_priors(self.anchor)
        return pl.concat([of_anchor, learnt.table]) if learnt.hold else of_anchor


def stage_learner(
    run: Run, folder: Path, decided: Sequence[StageResult], rule: StoppingRule, policy: str
) -> PriorLearner | None:
    """Return the learner of a stage's priors; None if they are given or unwanted, or the anchor would exceed half."""
    if (folder / "priors").is_dir() or rule.error_rate == 0:
        return None
    stated = {source.name: source.prior_attempts for source in run.recipe.sources if source.prior_attempts}
    columns = ["id", "source", *(["meta"] if stated or run.made_sources else [])]
    problems = run.without_reserve(read_table(folder, "kept", columns))
    parts = [read_table(result.folder, "decisions", list(_RATES)) for result in decided]
    rates = pl.concat([_RATES.to_frame(), *(part.select(_RATES.names()).cast(_RATES) for part in parts if part.width)])
    counts = rates.drop("top_wrong_votes")
    if stated:
        counts = pl.concat([counts, prior_counts(problems, stated).select(counts.columns).cast(counts.schema)])
    size = max(ceil(ANCHOR_SHARE * problems.height), ANCHOR_LEAST)
    if 2 * size > problems.height:
        return None
    counts, rates = (frame.filter(pl.col("policy") != policy) for frame in (counts, rates))
    seen = counts.group_by("problem").agg(rate=pl.col("correct").sum() / pl.col("judged").sum().clip(1))
    rated = (
        problems.select(problem="id").join(seen, on="problem", how="left").with_columns(pl.col("rate").fill_null(-1.0))
    )
    anchor = tuple(spread_sample(rated, ["rate"], size, 1))
    is_open, domains = run.recipe.asks("doubtful_verdicts"), problem_domains(problems, run.made_sources)
    return PriorLearner(rule, policy, problems["id"], anchor, counts, rates, is_open, domains)


def problem_domains(problems: pl.DataFrame, made: Sequence[str]) -> pl.DataFrame:
    """Return problem and domain: a source, or a level of a procedural source.

    Args:
        made: procedural sources; without any, no column `meta` is needed.
    """
    if not made:
        return problems.select(problem="id", domain="source")
    level = made_meta(made).struct.field("level")
    of_level = pl.format("{} level {}", "source", level)
    return problems.select(problem="id", domain=pl.coalesce(of_level, "source"))


def exact_priors(problems: Sequence[str]) -> pl.DataFrame:
    """Return `PRIOR` rows that foresee nothing."""
    prior = Prior()
    row = prior.correct, prior.other, prior.agree, prior.differ, 0.0, ""
    return pl.DataFrame([(name, *row) for name in problems], PRIOR, orient="row")


REFUSED_TABLE = "refused"
"""`curation.storage.attempts.REFUSAL` rows of shards with refused problems."""


def read_priors(folder: Path, index: int) -> pl.DataFrame | None:
    """Return a shard's `PRIOR` rows, or None."""
    return read_shard(folder, "priors", index) if (folder / "priors").is_dir() else None


class SamplingSession:
    """A stage's sampling of these shards; with a ``limit`` of 0 no model is asked."""

    def __init__(
        self,
        job: StageRun,
        folder: StageFolder,
        session: ModelSession,
        store: AttemptStore,
        judge: Judge,
        rule: StoppingRule,
        shards: Sequence[int],
        learner: PriorLearner | None,
        limit: int | None,
        *,
        is_retry: bool,
    ) -> None:
        self._run, self._stage, self._problems, self._folder = job.run, job.stage, job.problems, folder
        self._session, self._store, self._judge = session, store, judge
        self._rule, self._shards, self._learner, self._limit = rule, shards, learner, limit
        self._priors: pl.DataFrame | None = None
        self._sampled: AsyncGenerator[SampledProblem, None] | None = None
        self._working: asyncio.Task[None] | None = None
        self._waiting: dict[str, SampledProblem] = {}
        self._stored_counts: dict[str, int] = {}
        self._of_anchor: dict[str, tuple[int, int]] = {}  # attempts and tokens of the anchor's sampling, by problem
        self._is_retry, self._round = is_retry, retries.last_round(folder.folder)
        most, setting = difficulty_stage(job.recipe, job.stage.part).sampling.max_failed, job.stage.part
        total, refused = job.problems.manifest.kept, folder.note(retries.REFUSED)
        self._budget = FailureBudget(most, total, f"{setting}.sampling.max_failed", refused)

    def __enter__(self) -> SamplingSession:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._working is not None or self._sampled is not None:
            self._session.run(self._end())
        if kind is None and self._sampled is not None:
            self._store.compact()

    def shard(self, index: int) -> Shard:
        """Sample until a shard's problems are decided, and store its attempts."""
        begun = time.monotonic()
        all_names = read_shard(self._problems.folder, "kept", index)["id"]
        names = self._read(index)["id"].to_list()
        if names:
            if self._sampled is None:
                if self._limit is None:
                    self._session.open()
                self._begin()
            self._session.run(self._until(names))
        sampled = [self._waiting.pop(name) for name in names]
        attempts = sum(self._stored_counts.pop(sample.problem) + sample.new_attempts for sample in sampled)
        self._store.compact([names])
        made = [(sample.new_attempts, sample.new_tokens) for sample in sampled]
        made += [self._of_anchor.pop(name) for name in names if name in self._of_anchor]
        counts = pl.DataFrame(
            [(sample.problem, len(sample.verdicts), sample.is_decided) for sample in sampled],
            schema={"problem": pl.String, "attempts": pl.Int32, "is_decided": pl.Boolean},
            orient="row",
        )
        if len(all_names) > len(names):  # the rest waits for a refresh
            whole = all_names.alias("problem").to_frame().join(counts, on="problem", how="left", maintain_order="left")
            counts = whole.with_columns(pl.col("attempts").fill_null(0), pl.col("is_decided").fill_null(False))
        verdicts = verdict_frame(sampled, self._session.policy.key, self._judge.version)
        notes = {
            "attempts": attempts,
            "counted": verdicts.height,
            "made": sum(attempts for attempts, _ in made),
            "tokens": sum(tokens for _, tokens in made),
            "ms": round(1000 * (time.monotonic() - begun)),
        }
        if left_open := sum(sample.is_open for sample in sampled):
            notes["left_open"] = left_open
        tables = {"counts": counts, "verdicts": verdicts}
        refused = refusal_frame(sampled)
        if refused.height:
            tables[REFUSED_TABLE] = refused
            notes |= retries.failure_notes(refused.height, self._round, retries.REFUSED)
        priors = self._priors_of(index)
        if priors is not None:
            tables["priors"] = priors
        return Shard(len(all_names), tables, kept_rows=len(all_names), notes=notes)

    def _read(self, index: int) -> pl.DataFrame:
        return self._run.without_reserve(read_shard(self._problems.folder, "kept", index))

    def _begin(self) -> None:
        learner = None if self._is_retry else self._learner
        before = self._session.run(self._learn(learner)) if learner is not None else None
        rows = shard_counts(self._problems.folder)
        sampler = self._sampler(self._rule, sum(rows[index] for index in self._shards), self._expected(rows))
        if before is not None:
            sampler.progress.carry_on(before)
        self._sampled = sampler.run(self._feed())

    async def _learn(self, learner: PriorLearner) -> SamplingProgress:
        """Sample the anchor, learn priors from it, and return the progress."""
        self._working = asyncio.current_task()
        wanted, folder = pl.Series(learner.anchor), self._problems.folder
        shards: list[list[str]] = []

        def requests() -> Iterator[SamplingRequest]:
            for index in range(len(shard_counts(folder))):
                frame = self._read(index).filter(pl.col("id").is_in(wanted.implode()))
                shards.append(frame["id"].to_list())
                for item in sampling_requests(frame, self._store, self._rule.band.attempts, self._judge):
                    yield replace(item, limit=self._limit)

        total, anchor = self._problems.manifest.kept, len(learner.anchor)
        expected = anchor * learner.exact.expectation().attempts + (total - anchor) * self._rule.expectation().attempts
        sampler = self._sampler(learner.exact, total, expected)
        self._sampled = sampler.run(requests())
        sampled = [item async for item in self._sampled if item.refused is None and not item.is_open]
        self._store.compact(shards)  # else each shard that is finished would write the rest of them anew
        self._of_anchor = {item.problem: (item.new_attempts, item.new_tokens) for item in sampled}
        if 2 * len(sampled) < anchor:
            note(f"{self._stage.title}: too few of the anchor's {anchor} problems are decided to learn priors from")
            return sampler.progress
        learnt = learner.learn(verdict_frame(sampled, self._session.policy.key, self._judge.version))
        self._priors = learner.table(learnt)
        note(f"{self._stage.title}: {learnt.sentence}")
        if not learnt.hold:
            warn(self._run.folder, self._stage.name, learnt.sentence)
        return sampler.progress

    def _priors_of(self, index: int) -> pl.DataFrame | None:
        if self._is_retry:  # the shard is made again, by the priors that it was made with
            return read_priors(self._folder.folder, index)
        if self._priors is None:
            return read_priors(self._problems.folder, index)
        names = read_shard(self._problems.folder, "kept", index).select(problem="id")
        return names.join(self._priors, on="problem", how="inner", maintain_order="left")

    def _expected(self, rows: Sequence[int]) -> float:
        expected = 0.0
        for index in self._shards:
            priors = self._priors_of(index)
            known = {} if priors is None else as_priors(priors)
            rule = self._rule.given(known)
            expected += sum(rule.of(name).expectation().attempts for name in known)
            expected += (rows[index] - len(known)) * self._rule.expectation().attempts
        return expected

    def _sampler(self, rule: StoppingRule, total: int, expected: float) -> Sampler:
        return Sampler(
            self._session.policy,
            self._store,
            self._judge,
            rule,
            total=total,
            expected=expected,
            watch=self._report,
            alarm=self._warn,
            budget=self._budget,
            doubtful_is_open=self._run.recipe.asks("doubtful_verdicts"),
        )

    async def _until(self, names: list[str]) -> None:
        assert self._sampled is not None
        self._working = asyncio.current_task()
        pending = {name for name in names if name not in self._waiting}
        while pending:
            sample = await anext(self._sampled)
            self._waiting[sample.problem] = sample
            pending.discard(sample.problem)

    async def _end(self) -> None:
        if self._working is not None and not self._working.done():  # a signal broke into the loop
            self._working.cancel()
            await asyncio.wait([self._working])
        if self._sampled is not None:
            await self._sampled.aclose()

    def _feed(self) -> Iterator[SamplingRequest]:
        """Yield requests by shard, with priors the most expensive problems first."""
        for index in self._shards:
            frame, rule = self._read(index), self._rule
            priors = self._priors_of(index)
            if priors is not None:
                rule = rule.given(as_priors(priors))
                needed = [rule.of(name).expectation().attempts for name in frame["id"]]
                frame = frame.with_columns(needed=pl.Series(needed)).sort(
                    "needed", descending=True, maintain_order=True
                )
            for item in sampling_requests(frame, self._store, rule.band.attempts, self._judge):
                self._stored_counts[item.request.id] = len(item.stored_answers)
                yield replace(item, rule=rule.of(item.request.id), limit=self._limit)

    def _report(self, progress: SamplingProgress) -> None:
        add_line(self._run.folder / METRICS, {"stage": self._stage.name, **progress.row()})
        note(progress_phrase(progress), None if progress.total is None else progress.total - progress.problems)

    def _warn(self, responses: ResponseTally, example: str | None) -> None:
        model = difficulty_stage(self._run.recipe, self._stage.part).model
        warn_of_responses(self._run, self._stage.name, model, responses, example)


def sampling_requests(
    frame: pl.DataFrame, store: AttemptStore, attempts: int, judge: Judge
) -> Iterator[SamplingRequest]:
    """Yield requests for `PROBLEM` rows, with stored attempts."""
    stored = stored_answers(store, frame["id"].to_list(), attempts, judge)
    columns = ("id", "statement", "domain", "lang", "answer", "raw_answer", "meta")
    for name, statement, domain, lang, answer, raw, meta in frame.select(columns).iter_rows():
        request = PromptRequest(name, statement, Domain(domain), lang, request_details(domain, meta))
        yield SamplingRequest(
            request, answer or "", option_letter(raw, answer), stored.get(name, {}), scorer=scorer_of(meta)
        )


def request_details(domain: str, meta: str | None) -> dict[str, str]:
    """Return prompt details: code's programming language."""
    return {FENCE: str(json.loads(meta or "{}").get(FENCE, "python"))} if domain == Domain.CODE else {}


def progress_phrase(progress: SamplingProgress) -> str:
    """Return the progress as one line."""
    eta = progress.eta_s
    remaining = "" if eta is None else f"{eta / 60:.0f} min left, " if eta >= 90 else f"{eta:.0f} s left, "
    speed = f", {progress.tokens_per_s:,.0f} tokens/s" if progress.tokens else ""
    dropped, servers = sum(progress.dropped.values()), progress.servers
    health = f", {progress.in_flight:,} in flight at {servers['latency_s']:g} s" if servers else ""
    if servers.get("asked_again"):
        health += f", asked again {servers['asked_again']:,} (429: {servers['busy']:,}, 5xx: {servers['failed']:,})"
    return f"{remaining}{progress.attempts:,} attempts{speed}, {progress.kept:,} kept, {dropped:,} dropped{health}"
