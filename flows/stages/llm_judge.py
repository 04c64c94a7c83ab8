"""A model's votes on verdicts that stayed doubtful: the last tier of the verifier, off unless the recipe names one.

The stage stands between verdicts and decisions, and hands on verdicts of the same schema; `final_verdicts` says which
of the two a run decides by. Its evidence, a row per comparison, lies beside them in ``opinions``, the votes themselves
in the run's attempt store: a killed run asks nothing twice, another share of agreement asks nobody.

The rules are those of `curation.difficulty.llm_judge`. While such a stage is on, sampling takes doubtful verdicts for
open (`flows.stages.attempts`), so that no problem stops by what the model may yet decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import LlmJudgeSettings
from curation.difficulty import llm_judge
from curation.prompts.judging import JUDGE, comparison_request
from curation.publish import review
from curation.records import Domain, PromptRequest
from curation.storage.stages import Shard, finished_shards, read_shard
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Kind, Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession
from flows.stages.attempts import part_title
from flows.stages.verdicts import verdicts_of

CHUNK = 32
"""Comparisons that are asked before the budget of tokens is looked at again."""

TABLE = "llm_judge"
"""The recipe's table."""


def judge_doubtful(job: StageRun) -> StageResult:
    """Ask about the doubtful verdicts of the stage, and change those on which the votes agree."""
    settings, verdicts = job.recipe.llm_judge, job.results[verdicts_of(job.stage.part)]
    problems, judged_in = job.problems.folder, verdicts.folder
    reviews = verdicts_of_people(job.run)

    def is_readable(text: str) -> bool:
        return llm_judge.read_vote(text) is not llm_judge.JudgeVote.UNREADABLE

    with PolicySession.of_stage(job, TABLE, settings.model, settings.max_failed, JUDGE, is_readable) as session:
        version = f"{llm_judge.VERSION} {JUDGE.version}"
        settings_text = f"{session.policy.key} {settings.digest()} {review.digest(reviews)}"
        folder = job.open(version, settings_text, job.problems, verdicts, verifier=judged_in.name)

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            judged = read_shard(judged_in, "verdicts", index)
            comparisons = llm_judge.doubtful_comparisons(frame.select("id", "statement", "lang"), judged)
            votes, asked = _ask(session, comparisons, settings, _spent(folder.folder))
            opinions = llm_judge.decide_opinions(
                comparisons, votes, asked, agreement=settings.agreement, min_votes=settings.min_votes
            )
            tables = {
                "verdicts": llm_judge.apply_opinions(judged, opinions),
                "opinions": opinions,
                "stopped": read_shard(judged_in, "stopped", index),
            }
            notes = {
                **{f"decided {word.value}": opinions.filter(decision=word.value).height for word in llm_judge.Decision},
                **_people(session, frame, opinions, reviews, settings),
                "calls": votes.height,
                "tokens": int(votes["tokens"].sum() or 0),
            }
            return Shard(frame.height, tables, kept_rows=frame.height, notes=notes)

        return session.shard_by_shard(job, folder, work)


def _spent(folder: Path) -> tuple[int, int]:
    """Return the votes and the tokens that the finished shards took."""
    notes = [mark["notes"] for mark in finished_shards(folder)]
    return sum(note["calls"] for note in notes), sum(note["tokens"] for note in notes)


def _ask(
    session: PolicySession, comparisons: pl.DataFrame, settings: LlmJudgeSettings, spent: tuple[int, int]
) -> tuple[pl.DataFrame, int]:
    """Return the votes on the comparisons that the budget allows, and how many these are, from the first on."""
    calls, tokens = spent
    columns = ("question", "text", "lang")
    requests = [PromptRequest(name, text, Domain.MATH, lang) for name, text, lang in comparisons.select(columns).rows()]
    votes = [session.ask([], settings.votes)]
    asked = 0
    while asked < len(requests) and (settings.max_tokens is None or tokens < settings.max_tokens):
        room = CHUNK if settings.max_calls is None else min(CHUNK, (settings.max_calls - calls) // settings.votes)
        if room < 1:
            break
        chunk = requests[asked : asked + room]
        votes.append(session.ask(chunk, settings.votes))
        asked += len(chunk)
        calls += votes[-1].height
        tokens += int(votes[-1]["tokens"].sum() or 0)
    return pl.concat(votes), asked


def _people(
    session: PolicySession,
    problems: pl.DataFrame,
    opinions: pl.DataFrame,
    reviews: review.ReviewVerdicts,
    settings: LlmJudgeSettings,
) -> dict[str, int]:
    """Return how many comparisons people have decided too, and in how many of them the model says the same.

    Who keeps a reference takes the doubtful answers for other ones. Who replaces it by one of them takes the two for
    the same; the comparison is no longer there then, but its votes still are.
    """
    accepted = {name: verdict.answer for name, verdict in reviews.items() if verdict.answer is not None}
    replaced = []
    rows = problems.filter(pl.col("id").is_in(list(accepted))).select("id", "statement", "lang", "raw_answer")
    for name, statement, lang, raw in rows.iter_rows():
        before = review.replaced_reference(raw)
        if before is not None:
            answer = accepted[name] or ""
            replaced.append((name, before, answer, comparison_request(statement, lang, before, answer).id))
    names = ("problem", "reference", "answer", "question")
    earlier = pl.DataFrame(replaced, schema={name: llm_judge.OPINION[name] for name in names}, orient="row")
    earlier = earlier.with_columns(method=pl.lit(""), attempts=pl.lit(0, pl.Int32))
    votes = session.stored(earlier["question"].to_list(), settings.votes)
    again = llm_judge.decide_opinions(
        earlier, votes, earlier.height, agreement=settings.agreement, min_votes=settings.min_votes
    )
    kept = opinions.filter(pl.col("problem").is_in(list(accepted.keys() - set(earlier["problem"]))))
    said = pl.concat([kept.select("question", same=pl.lit(False)), again.select("question", same=pl.lit(True))])
    decisions = pl.concat([kept, again]).select("question", "decision")
    both, alike = llm_judge.agreement_with_people(decisions, said)
    return {"with people": both, "as people": alike}


def final_verdicts(run: Run, part: str) -> Stage:
    """Return the stage by whose verdicts a run decides: the model's, where there is one, else the verifier's."""
    stage = llm_judge_of(part)
    return stage if stage.enabled(run) else verdicts_of(part)


def summary_of(result: StageResult) -> str | None:
    """Return what a finished stage came to, as a clause; None where nothing was doubtful."""
    notes = result.manifest.notes
    same, different, still_open, not_asked = (notes.get(f"decided {word.value}", 0) for word in llm_judge.Decision)
    total = same + different + still_open + not_asked
    if not total:
        return None
    left = f", {not_asked:,} not asked, as the budget was spent" if not_asked else ""
    people = f"; of {notes['with people']:,} that people decided too, {notes['as people']:,} alike"
    return (
        f"{total:,} doubtful answers: {same:,} the same as the reference, {different:,} different, {still_open:,} open"
        f"{left}; {notes['calls']:,} votes, {notes['tokens']:,} tokens{people if notes['with people'] else ''}"
    )


@cache
def llm_judge_of(part: str) -> Stage:
    """Return the stage in which a model votes on the doubtful verdicts of a difficulty stage."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts and run.recipe.llm_judge.model is not None

    def describe(run: Run) -> Iterator[str]:
        settings = run.recipe.llm_judge
        yield f"{part}: doubtful verdicts go to {model_title(run.recipe, settings.model)}, {settings.votes} votes each"

    def explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
        for row in rows_of(folder, "opinions", problem, "problem").iter_rows(named=True):
            votes = ", ".join(f"{row[vote.value]} {vote.value}" for vote in llm_judge.JudgeVote if row[vote.value])
            pair = f"{row['answer']!r} for {row['reference']!r}"
            yield f"{'llm judge':<10} {pair}: {row['decision']} ({votes or 'no vote'})"

    return Stage(
        name=f"{part}.llm_judge",
        title=f"{part_title(part)}: doubtful verdicts",
        folder=f"llm_judge/{part}",
        work=judge_doubtful,
        kind=Kind.MEASURE,
        enabled=is_enabled,
        asks="llm_judge.model",
        describe=describe,
        explain=explain,
        retries=refusal_retries(part),
        by_verifier=True,
        part=part,
        task="llm judge",
    )
