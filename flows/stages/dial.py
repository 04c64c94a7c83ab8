"""The difficulty dial: problems that the last stage never solved come back with the beginning of a correct attempt.

The prefix is as long as the band of the last difficulty stage needs (`curation.dial`): lengths are sampled with its
policy, its band and its stopping rule. What it keeps is what the last stage kept and, in their places among them, the
problems that a prefix brought into the band; its decisions are those of the last stage, with theirs in place. They
carry the dial's name as their stage, and the number of attempts made with the prefix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from curation.config import DifficultyStage
from curation.config.policies import LivePolicy
from curation.dial.cutting import VERSION, Question, trace_of
from curation.dial.sampling import DIALLED, DIALLED_OUTCOME, Dialler, Dialling, DialTask
from curation.dial.traces import CorrectAttempts
from curation.difficulty import early_stopping, pass_rates, sampling
from curation.difficulty.failed_verdicts import failed_verdicts
from curation.difficulty.open_problems import SampledProblem, SamplingRequest
from curation.difficulty.sampling import Sampler
from curation.difficulty.sampling_tables import verdict_frame
from curation.option_letters import option_letter
from curation.policies.failure_budget import FailureBudget
from curation.records import AttemptKey, Domain, DropReason, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, read_shard
from curation.thinking import NONE
from curation.verify.math_judge import MathJudge
from flows.run.lookup import rows_of
from flows.run.policies import open_sampling_policy
from flows.run.policy_session import PolicySession, policy_session
from flows.run.run_folder import Run, difficulty_stage, grader_folder
from flows.run.stage import MATH, Kind, Stage, StageResult, StageRun
from flows.stages.attempts import attempt_store, attempts_of, stopping_digest, stopping_rule
from flows.stages.base import split_rows
from flows.stages.judging import open_judge
from training.stored.sources import stored_sources

PREFIXES = "prefixes"
"""The stage's table of `DIALLED` rows."""


def dial_problems(job: StageRun) -> StageResult:
    """Find prefixes for the problems that the last difficulty stage never solved."""
    run, settings = job.run, _band_of_solved(difficulty_stage(job.run.recipe, job.run.parts[-1]))
    decided = job.results.decisions[-1]
    policy = open_sampling_policy(settings, run.recipe_folder)
    assert isinstance(settings.policy, LivePolicy)  # the recipe refuses others
    key = AttemptKey(policy.key.policy, f"{DIAL.name} {policy.key.prompt}", policy.key.sampling)
    budget = FailureBudget(
        settings.sampling.max_failed, job.problems.manifest.kept, f"{run.parts[-1]}.sampling.max_failed"
    )
    sources: list[AttemptStore] = []
    if "attempts" in run.recipe.dial.traces:
        sources = [attempt_store(run, job.results[attempts_of(part)]) for part in reversed(run.parts)]
        sources += [source.store for place in _further_runs(run) for source in stored_sources([place])]
    with open_judge(run) as judge, policy_session(policy, settings.policy) as session:
        assert isinstance(judge, MathJudge)
        made_by = [run.recipe.dial.digest(), key.policy, key.prompt, key.sampling, settings.band.digest()]
        made_by += [stopping_digest(settings), judge.version, run.recipe.verify.digest()]
        seen = [result for part in run.parts if (result := job.results.get(attempts_of(part))) is not None]
        version = f"{VERSION} {sampling.VERSION} {early_stopping.VERSION} {pass_rates.VERSION}"
        digests = {str(place): _contents(place) for place in _further_runs(run)}
        verifier = decided.folder.name
        folder = job.open(
            version, json.dumps(made_by), job.problems, decided, *seen, verifier=verifier, digests=digests
        )
        store = AttemptStore(run.folder / "attempts", key, {**policy.about, "prompt": key.prompt})
        try:
            dial = _Dial(run, settings, store, judge, session, budget, CorrectAttempts(sources, judge))

            def work(index: int) -> Shard:
                frame = read_shard(job.problems.folder, "kept", index)
                return dial.shard(frame, read_shard(decided.folder, "decisions", index))

            return job.shard_by_shard(folder, work)
        finally:
            store.close()


class _Dial:
    """The dial on the shards of a run."""

    def __init__(
        self,
        run: Run,
        settings: DifficultyStage,
        store: AttemptStore,
        judge: MathJudge,
        session: PolicySession,
        budget: FailureBudget,
        correct: CorrectAttempts,
    ) -> None:
        self._run, self._settings, self._store, self._judge, self._session = run, settings, store, judge, session
        self._budget, self._correct, self._rule = budget, correct, stopping_rule(settings)
        self._thinks = getattr(settings.policy, "thinking", NONE) != NONE

    def shard(self, problems: pl.DataFrame, decisions: pl.DataFrame) -> Shard:
        """Return the shard's rows, kept and dropped, with what became of those that were too hard."""
        hard = (pl.col("reason") == DropReason.NEVER_SOLVED.value).fill_null(False)
        names = decisions.filter(hard).select("problem", without="evidence")
        too_hard = problems.filter(domain=Domain.MATH.value).join(names, left_on="id", right_on="problem", how="inner")
        dialled = self._dialled(too_hard)
        table = pl.DataFrame([one.row(self._store) for one in dialled], schema=DIALLED)
        new = self._decisions(dialled)
        failed = table["problem"].is_in(new.filter(~pl.col("keep"))["problem"].implode())
        table = table.with_columns(
            prefix=pl.when(~failed).then("prefix"),
            outcome=pl.when(failed).then(pl.lit(DropReason.VERIFIER_FAILED.value)).otherwise("outcome"),
        )
        both = _in_place(decisions, new.filter("keep"), table)
        reasons, evidence = both["reason"].to_list(), both["evidence"].to_list()
        kept, dropped = split_rows(problems, self._run.parts[-1], reasons, evidence)
        self._store.compact([sample.problem for one in dialled for sample in one.sampled])
        notes = {
            "too hard": table.height,
            "dialled": table["prefix"].count(),
            "attempts": int(table["attempts"].sum()),
            "tokens": int(table["tokens"].sum()),
        }
        return Shard(
            problems.height, {"kept": kept, "dropped": dropped, "decisions": both, PREFIXES: table}, notes=notes
        )

    def _dialled(self, too_hard: pl.DataFrame) -> list[Dialling]:
        tasks = list(self._tasks(too_hard))
        if not any(task.traces for task in tasks):  # then no policy need be started
            return [Dialling.without_trace(task) for task in tasks]
        self._session.open()
        settings = self._run.recipe.dial
        dialler = Dialler(
            self._store,
            self._judge,
            self._rule,
            lambda lang: partial(self._judge.compare_pairs, lang=lang),
            self._sample,
            max_share=settings.max_share,
            probes=settings.probes,
            tries=settings.tries,
        )
        return self._session.run(dialler.run(tasks))

    def _sample(self, requests: Iterable[SamplingRequest]) -> AsyncGenerator[SampledProblem, None]:
        most = self._settings.sampling.open_problems
        policy = self._session.policy
        sampler = Sampler(policy, self._store, self._judge, self._rule, open_problems=most, budget=self._budget)
        return sampler.run(requests)

    def _tasks(self, too_hard: pl.DataFrame) -> Iterator[DialTask]:
        questions = {
            row["id"]: Question(
                row["statement"],
                row["answer"] or "",
                row["lang"] or "en",
                option_letter(row["raw_answer"], row["answer"]),
            )
            for row in too_hard.iter_rows(named=True)
        }
        correct = self._correct.of(questions)
        for row in too_hard.iter_rows(named=True):
            name, question = row["id"], questions[row["id"]]
            texts = list(correct.get(name, ()))
            if "solutions" in self._run.recipe.dial.traces and row["solution"]:
                texts.append(("solution", row["solution"]))
            traces = [(by, trace) for by, text in texts if (trace := trace_of(text, thinks=self._thinks)) is not None]
            request = PromptRequest(name, row["statement"], Domain.MATH, row["lang"] or "en")
            yield DialTask(request, question, traces, row["without"])

    def _decisions(self, dialled: Sequence[Dialling]) -> pl.DataFrame:
        """Return `DECISION` rows of the problems that a prefix brought into the band, by all that it was sampled."""
        found = [one for one in dialled if one.outcome == DIALLED_OUTCOME]
        names = {one.last.problem: one.task.request.id for one in found}
        verdicts = verdict_frame([one.last for one in found], self._store.key, self._judge.version)
        stopped = [one.last.problem for one in found if one.last.is_decided]
        rule, policy = self._rule, self._store.key.policy
        rates = pass_rates.pass_rates(pl.Series(list(names), dtype=pl.String), verdicts, policy, rule, stopped)
        failures = failed_verdicts(pass_rates.counted_verdicts(verdicts, rule))
        decisions = pass_rates.decide(rates, self._settings.band, DIAL.name, rule, failures)
        return decisions.with_columns(pl.col("problem").replace_strict(names, return_dtype=pl.String))


def _band_of_solved(settings: DifficultyStage) -> DifficultyStage:
    """Return a stage's settings without suspicions: somebody solved these problems, so their labels are believed."""
    return settings.model_copy(update={"band": settings.band.model_copy(update={"wrong_label_share": 1.0})})


def _further_runs(run: Run) -> list[Path]:
    """Return the folders of other runs whose attempts are looked through: the grader's training, and those named."""
    training = grader_folder(run.folder) / "training"
    named = [run.recipe_folder / Path(name).expanduser() for name in run.recipe.dial.runs]
    return [*([training] if (training / "attempts").is_dir() else []), *named]


def _contents(place: Path) -> str:
    """Return a digest of the attempts of a run: its parts are named by their content."""
    names = sorted(str(path.relative_to(place)) for path in (place / "attempts").glob("*/part-*.parquet"))
    return hashlib.blake2b("\n".join(names).encode(), digest_size=8).hexdigest()


def _in_place(decisions: pl.DataFrame, new: pl.DataFrame, dialled: pl.DataFrame) -> pl.DataFrame:
    """Return decisions with the new ones in place of the old; those that stay too hard say what was tried."""
    spent = pl.format("{} lengths of a correct attempt, {} attempts", "probes", "attempts")
    said = dialled.select(
        "problem",
        tried=pl.when(pl.col("probes") > 0).then(pl.format("{}; {}", "outcome", spent)).otherwise("outcome"),
        share=(100 * pl.col("prefix_share")).round(0).cast(pl.Int64),
        by="prefix_from",
    )
    old = decisions.join(said, on="problem", how="left", maintain_order="left")
    tried = (
        pl.when(pl.col("tried").is_null()).then("evidence").otherwise(pl.format("{}; dial: {}", "evidence", "tried"))
    )
    old = old.with_columns(evidence=tried).select(decisions.columns)
    told = pl.format("{}; with {} % of an attempt of {} as prefix", "evidence", "share", "by")
    new = new.join(said, on="problem", how="left").with_columns(evidence=told).select(decisions.columns)
    rest = old.join(new, on="problem", how="anti")
    return decisions.select("problem").join(pl.concat([rest, new]), on="problem", how="left", maintain_order="left")


def _is_enabled(run: Run) -> bool:
    return run.recipe.dial.is_on


def _check(run: Run) -> None:
    for place in run.recipe.dial.runs:
        stored_sources([run.recipe_folder / Path(place).expanduser()])


def _describe(run: Run) -> Iterator[str]:
    settings = run.recipe.dial
    origins = ", ".join((*settings.traces, *settings.runs))
    yield (
        f"{DIAL.name}: never-solved problems go on from a prefix of a correct attempt (from {origins}), at most "
        f"{settings.max_share:g} of it; up to {settings.tries} times {settings.probes} lengths each, which the plan "
        "does not count"
    )


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, PREFIXES, problem, "problem").iter_rows(named=True):
        tokens = "" if row["tokens"] is None else f", {row['tokens']:,} tokens"
        spent = f"{row['traces']} correct, {row['probes']} lengths sampled, {row['attempts']} attempts{tokens}"
        yield f"{'dial':<10} {row['outcome']} ({spent})"
        if row["prefix"] is not None:
            share = f"{row['prefix_share']:.0%} of an attempt of {row['prefix_from']}"
            yield f"{'prefix':<10} {share}: {' '.join(row['prefix'].split())}"


DIAL = Stage(
    name="dial",
    title="Too hard, with a prefix",
    folder="decisions/dial",
    work=dial_problems,
    domains=MATH,
    kind=Kind.DIAL,
    enabled=_is_enabled,
    check=_check,
    describe=_describe,
    explain=_explain,
    by_verifier=True,
    is_planned=False,
)
