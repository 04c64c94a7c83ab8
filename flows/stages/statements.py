"""The format filter of math: what cannot be asked with one answer leaves, multiple choice becomes an open question.

What rules and the classifier find, with the scores of both; the threshold on what rules are worth; where the recipe
has a model for it, its votes on the rows that are in doubt; and the thresholds on the classifier's scores and on votes.
Each threshold is a stage of its own, so that another one reads no text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.filters import statements
from curation.filters.statements.opinions import BALLOT, decide_opinions, doubtful_rows, requests_of, tally_opinions
from curation.filters.votes import UNREADABLE
from curation.prompts.usability import USABILITY as PROMPT
from curation.storage.stages import Shard, read_shard
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.run_folder import Run
from flows.run.stage import MATH, Kind, Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession

REWRITTEN_TABLE = "rewritten"
FINDINGS_TABLE = "findings"
SCORES_TABLE = "scores"
VOTES_TABLE = "votes"
RULED_VERSION = "ruled@1"
USABILITY_VERSION = "usability@1"
DOUBTFUL_VERSION = "doubtful@1"
GROUP_ROWS = 40_000
"""Rows judged together: the expressions of the rules are compiled anew for every frame, which takes as long as judging
2,000 rows."""


def measure_statements(job: StageRun) -> StageResult:
    """Keep what every rule and the classifier find in each row; none is dropped here."""
    settings, problems = job.recipe.statements, job.problems.folder

    def work(indices: Sequence[int]) -> list[Shard]:
        frames = [read_shard(problems, "kept", index) for index in indices]
        return _shards(statements.measure(pl.concat(frames), settings), [frame.height for frame in frames])

    return job.by_groups(job.open(statements.VERSION, settings.digest(), job.problems), work, GROUP_ROWS)


def _shards(measured: statements.Measured, heights: Sequence[int]) -> list[Shard]:
    """Return what was found in several shards' rows, shard by shard."""
    shards, start = [], 0
    for height in heights:
        part = measured.part(start, height)
        tables = {REWRITTEN_TABLE: part.rewritten, FINDINGS_TABLE: part.verdicts, SCORES_TABLE: part.scores}
        shards.append(Shard(height, tables, kept_rows=height))
        start += height
    return shards


def filter_statements(job: StageRun) -> StageResult:
    """Drop what a rule finds from the recipe's threshold on, keep the rest with its scores; nothing is judged again."""
    settings, problems, measured = job.recipe.statements, job.problems.folder, job.results[VERDICTS]

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        tables = (read_shard(measured.folder, name, index) for name in (REWRITTEN_TABLE, FINDINGS_TABLE, SCORES_TABLE))
        parts = statements.drop_ruled(frame, statements.Measured(*tables), settings)
        return Shard(frame.height, {"kept": parts.kept, "dropped": parts.dropped, SCORES_TABLE: parts.scores})

    return job.shard_by_shard(job.open(RULED_VERSION, f"{settings.drop_from:g}", job.problems, measured), work)


def drop_unusable(job: StageRun) -> StageResult:
    """Drop what the format filter kept with a score from the recipe's thresholds on; nothing is judged again."""
    settings, doubtful, folder = job.recipe.statements, job.recipe.doubtful, job.problems.folder
    asked = job.results.get(DOUBTFUL)

    def work(index: int) -> Shard:
        frame, scores = read_shard(folder, "kept", index), read_shard(folder, SCORES_TABLE, index)
        said = None if asked is None else decide_opinions(read_shard(asked.folder, VOTES_TABLE, index), doubtful)
        kept, dropped = statements.drop_unusable(frame, scores, settings, said)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    thresholds = f"{settings.unusable_from:g}-{settings.suspected_from:g}"
    if asked is None:
        return job.shard_by_shard(job.open(USABILITY_VERSION, thresholds, job.problems), work)
    thresholds += f" {doubtful.threshold:g} of {doubtful.min_votes}"
    return job.shard_by_shard(job.open(USABILITY_VERSION, thresholds, job.problems, asked), work)


def ask_doubtful(job: StageRun) -> StageResult:
    """Collect a model's votes on the rows that the format filter is in doubt about; none is dropped here."""
    settings, problems = job.recipe.doubtful, job.problems.folder

    def is_readable(text: str) -> bool:
        return BALLOT.read(text) != UNREADABLE

    with PolicySession.of_stage(
        job, job.stage.name, settings.model, settings.max_failed, PROMPT, is_readable
    ) as session:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            rows = doubtful_rows(frame, read_shard(problems, SCORES_TABLE, index), settings)
            requests = requests_of(rows)
            attempts = session.ask(list({request.id: request for request in requests}.values()), settings.votes)
            votes = tally_opinions(rows, requests, attempts)
            few = votes.filter(pl.col("readable") < settings.min_votes).height
            notes = {"asked": rows.height, "votes": attempts.height, "too_few_votes": few}
            return Shard(frame.height, {VOTES_TABLE: votes}, notes=notes, kept_rows=frame.height)

        settings_text = f"{session.policy.key} {settings.digest()}"
        folder = job.open(f"{DOUBTFUL_VERSION} {PROMPT.version}", settings_text, job.problems)
        return session.shard_by_shard(job, folder, work)


def _is_enabled(run: Run) -> bool:
    return run.recipe.doubtful.model is not None


def _describe(run: Run) -> Iterator[str]:
    settings = run.recipe.doubtful
    name = model_title(run.recipe, settings.model)
    yield f"{DOUBTFUL.name}: {name}, {settings.votes} votes on a row from score {settings.ask_from:g} on"


def _explain(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, VOTES_TABLE, problem).iter_rows(named=True):
        said = ", ".join(f"{row[word]} {word}" for word in BALLOT.words if row[word])
        yield f"{'votes':<10} {said or '(none)'}, score {row['score']:g}"


def _found_in(run: Run, folder: Path, problem: str) -> Iterator[str]:
    """Say what every rule finds where several do, or where none of them dropped the row; and its score, if kept."""
    verdicts = rows_of(VERDICTS.folder_in(run), FINDINGS_TABLE, problem).unique(maintain_order=True)
    is_dropped = rows_of(folder, "dropped", problem).height > 0
    for row in verdicts.iter_rows(named=True) if verdicts.height > is_dropped else ():
        yield f"{'finds':<10} {row['rule']}: {row['evidence']} ({row['reason']}), score {row['score']:g}"
    scores = rows_of(folder, SCORES_TABLE, problem)
    for score in scores["score"] if scores.height else ():
        yield f"score {score:g}: the probability that it cannot be used as it stands"


VERDICTS = Stage(
    name="statements.verdicts",
    title="Format verdicts",
    folder="stages/02-statements-verdicts",
    work=measure_statements,
    domains=MATH,
    kind=Kind.MEASURE,
    runs_anywhere=True,
)

STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    domains=MATH,
    explain=_found_in,
)

DOUBTFUL = Stage(
    name="doubtful",
    title="Doubtful rows by votes",
    folder="stages/02-doubtful",
    work=ask_doubtful,
    domains=MATH,
    kind=Kind.MEASURE,
    enabled=_is_enabled,
    asks="doubtful.model",
    describe=_describe,
    explain=_explain,
    retries=refusal_retries(),
    is_planned=False,
)

USABILITY = Stage(
    name="usability",
    title="Format classifier",
    folder="stages/02-usability",
    work=drop_unusable,
    domains=MATH,
)
