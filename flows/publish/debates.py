"""Debate the disputed labels of a published set: one model argues, another judges.

Invariants: an interrupted command asks nothing twice; scores never replace a person's verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.failure_budget import FailureBudget
from curation.publish import review
from curation.questions.debates import (
    DEBATE,
    JUDGE,
    ROUNDS,
    SPEECH,
    VIEWS,
    Debate,
    accepted_answers,
    clean_speech,
    evidence,
    open_debates,
)
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.publish.disputes import published_queue, settle
from flows.run.history import recorded
from flows.run.policies import check_models
from flows.run.policy_session import PolicySession, keep_open
from flows.run.progress import bar
from flows.run.recipe import override_recipe
from flows.run.run_folder import Run, as_written, open_run, verdicts_of_people, with_grader
from flows.stages.judging import open_judge

FILE = "debates.jsonl"

COMMAND = "review --debate"

REVIEWER = "debate"
"""Reviewer of verdicts that a debate decided."""


@dataclass(frozen=True, slots=True)
class Debates:
    """`DEBATE` rows, and the accepted answers by problem."""

    rows: pl.DataFrame
    settled: Mapping[str, str]


def hold_debates(
    folder: Path,
    judge: str,
    debater: str,
    *,
    min_score: float | None = None,
    limit: int | None = None,
    overrides: Sequence[str] = (),
) -> Debates:
    """Debate and judge a finished run's disputed labels.

    Args:
        min_score: min probability of an accepted answer; None accepts none.
        limit: max problems.

    Raises:
        ConfigError: a model is not in the recipe, or an override is not allowed.
        StoreError: no set is published, or a run works in the folder.
        PolicyError: a model cannot be asked.
    """
    run = _open(folder.absolute(), (judge, debater), overrides)
    published = published_queue(run)
    if published is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    with lock_folder(run.folder), recorded(run.folder, COMMAND), keep_open():
        debates = open_debates(review.dispute_queue([published], verdicts_of_people(run)), limit)
        rows = pl.DataFrame(_held(run, judge, debater, debates), DEBATE, orient="row")
        atomic_write(run.folder / FILE, rows.write_ndjson())
    return Debates(rows, {} if min_score is None else _settle(run, rows, min_score))


def read_debates(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return a run's `DEBATE` rows by problem, if any."""
    path, by_problem = run.folder / FILE, dict[str, list[dict[str, Any]]]()
    if path.exists() and path.stat().st_size:
        for row in pl.read_ndjson(path, schema=DEBATE).iter_rows(named=True):
            by_problem.setdefault(row["id"], []).append(row)
    return by_problem


def _open(folder: Path, models: Sequence[str], overrides: Sequence[str]) -> Run:
    run = open_run(folder)
    if other := next((override for override in overrides if not re.match(r"\s*models\s*[.=]", override)), None):
        raise ConfigError(f"--set {other}: {COMMAND} changes models.* only; use `goldilocks run` for other settings.")
    if overrides:
        recipe = override_recipe(as_written(run.recipe), overrides)
        run = Run(run.folder, with_grader(recipe, run.folder), run.recipe_folder)
    if run.recipe.flow != "curate-math":
        raise ConfigError(f"--debate: {folder} holds programs, which have tests and no reference to argue about.")
    check_models(run, models)
    return run


def _held(run: Run, judge: str, debater: str, debates: Sequence[Debate]) -> list[dict[str, Any]]:
    sides, complete = 2 * len(debates), list[Debate | None](debates)
    budget = FailureBudget(1.0, ROUNDS * sides + len(VIEWS) * len(debates))  # refused: its pair gets no score

    def is_speech(text: str) -> bool:
        return clean_speech(text, "") is not None

    with (
        PolicySession(run, COMMAND, debater, budget, SPEECH, is_speech) as session,
        bar("Speeches", ROUNDS * sides) as advance,
    ):
        argued_by = session.policy.key.policy
        for _ in range(ROUNDS):
            pairs = [debate.requests() if debate is not None else () for debate in complete]
            asked = {request.id: request for pair in pairs for request in pair}
            speeches = dict(session.ask(list(asked.values()), 1).select("problem", "text").iter_rows())
            complete = [
                debate and debate.after([speeches.get(request.id) for request in pair])
                for debate, pair in zip(complete, pairs, strict=True)
            ]
            advance(sides)
    with PolicySession(run, COMMAND, judge, budget, JUDGE.prompt, JUDGE.is_readable) as session:
        judged_by = session.policy.key.policy
        views = [{view: debate.view_request(view) for view in VIEWS} if debate else {} for debate in complete]
        asked = {request.id: request for requests in views for request in requests.values()}
        answers = dict(session.ask(list(asked.values()), JUDGE.votes).select("problem", "text").iter_rows())
    return [
        (debate or opened).row(
            {view: answers.get(request.id) for view, request in requests.items()}, judged_by, argued_by
        )
        for opened, debate, requests in zip(debates, complete, views, strict=True)
    ]


def _settle(run: Run, rows: pl.DataFrame, min_score: float) -> dict[str, str]:
    """Record accepted answers, and return them by problem.

    Problems that a person has judged and unreadable answers are skipped.
    """
    judged_by_people = review.read_statements(run.folder)
    answers = {name: text for name, text in accepted_answers(rows, min_score).items() if name not in judged_by_people}
    if not answers:
        return {}
    notes = {row["id"]: f"{evidence(row)}, judged by {row['judge']}" for row in rows.iter_rows(named=True)}
    settled: dict[str, str] = {}
    with open_judge(run) as judge:
        for name, text in answers.items():
            with suppress(ConfigError):  # it stays disputed, with its evidence
                settle(run, review.ReviewVerdict(name, text, REVIEWER, notes[name]), judge)
                settled[name] = text
    return settled
