"""Votes of a model on premises: problems of which enough votes say that they cannot be answered as they stand leave.

The rules are those of `curation.filters.premises`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from curation.filters import premises
from curation.prompts.premises import PREMISES as PROMPT
from curation.records import Domain, DropReason, PromptRequest
from curation.storage.stages import Shard, read_shard
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.run_folder import Run
from flows.run.stage import MATH, Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession
from flows.stages.base import split_rows


def judge_premises(job: StageRun) -> StageResult:
    """Collect votes, and drop what enough of them call faulty."""
    settings, problems, stage = job.recipe.premises, job.problems.folder, job.stage.name

    def is_readable(text: str) -> bool:
        return premises.read_vote(text) is not premises.PremiseVote.UNREADABLE

    with PolicySession.of_stage(job, stage, settings.model, settings.max_failed, PROMPT, is_readable) as session:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            columns = frame.unique("id", maintain_order=True).select("id", "statement", "domain", "lang")
            requests = [
                PromptRequest(name, text, Domain(domain), lang) for name, text, domain, lang in columns.iter_rows()
            ]
            tallies = premises.tally_votes(frame["id"], session.ask(requests, settings.votes))
            decided = premises.decide_premises(tallies, settings.threshold, settings.min_votes)
            reasons = [None if keep else DropReason.FAULTY_PREMISES for keep in decided["keep"]]
            kept, dropped = split_rows(frame, stage, reasons, decided["evidence"].to_list())
            few = tallies.filter(pl.col("readable") < settings.min_votes).height
            notes = {"readable": int(tallies["readable"].sum()), "too_few_votes": few}
            return Shard(frame.height, {"kept": kept, "dropped": dropped, "votes": tallies}, notes=notes)

        settings_text = f"{session.policy.key} {settings.digest()}"
        folder = job.open(f"{premises.VERSION} {PROMPT.version}", settings_text, job.problems)
        return session.shard_by_shard(job, folder, work)


def _is_enabled(run: Run) -> bool:
    return run.recipe.premises.model is not None


def _describe(run: Run) -> Iterator[str]:
    yield f"{PREMISES.name}: {model_title(run.recipe, run.recipe.premises.model)}"


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, "votes", problem, "problem").iter_rows(named=True):
        votes = (f"{count} {vote.value}" for vote in premises.PremiseVote if (count := row[vote.value]))
        yield f"{'votes':<10} {', '.join(votes) or '(none)'}"


PREMISES = Stage(
    name="premises",
    title="Premises by votes",
    folder="stages/07-premises",
    work=judge_premises,
    domains=MATH,
    enabled=_is_enabled,
    asks="premises.model",
    describe=_describe,
    explain=_explain,
    retries=refusal_retries(),
    is_planned=False,  # votes on every problem are not cheap
)
