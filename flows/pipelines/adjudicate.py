"""Debates on the disputed labels of a published set: speeches, then a judge's votes, kept as evidence.

What was said and voted lies in the run's attempt store under the version of its prompt: a killed adjudication asks
nothing twice, and one of another protocol asks only for what differs. Every dispute of the queue gets a row, with its
state. Only where the recipe has ``adjudication.decide_at`` does a score become a line of DIR/review.jsonl, under a
reviewer's name of its own, and never on a problem of which somebody has spoken.

The rules are those of `curation.adjudication`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.adjudication import (
    ADJUDICATION,
    VIEWS,
    Debate,
    Protocol,
    State,
    accepted_answers,
    evidence,
    judged_row,
    open_debates,
    reading,
    rounds_of,
    speech_of,
    unjudged_row,
)
from curation.config import AdjudicationSettings
from curation.policies.failure_budget import FailureBudget
from curation.prompts.debating import JUDGE, JUDGE_LETTER, SPEECH
from curation.publish import review
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from flows.publish.disputes import published_queue, write_adjudications
from flows.publish.settling import settle
from flows.run.history import recorded
from flows.run.policies import check_models
from flows.run.progress import bar
from flows.run.recipe import override_recipe
from flows.run.run_folder import Run, as_written, open_run, verdicts_of_people, with_grader
from flows.run.training_status import is_training
from flows.stages.asking import PolicySession
from flows.stages.judging import open_judge

TABLE = "adjudication"
"""The recipe's table."""

OTHER_KINDS = ("doubtful_verdict",)
"""Disputes that ask whether two answers are the same, which is the verifier's question."""

CHUNK = 32
"""Disputes that are asked about together."""

_Asked = tuple[dict[int, Debate], dict[int, Debate], str | None]


@dataclass(frozen=True, slots=True)
class Adjudication:
    """What an adjudication came to: its rows, where they lie, how many disputes are in which state, what it settled."""

    rows: pl.DataFrame
    path: Path
    states: Mapping[str, int]
    settled: Mapping[str, str]


def adjudicate(folder: Path, overrides: Sequence[str] = ()) -> Adjudication:
    """Have the disputed labels of a finished run argued and judged, and return what came of it.

    Raises:
        ConfigError: nobody judges, or an override concerns another table.
        StoreError: the folder holds no published set, or a run works in it.
        PolicyError: too many requests were refused.
    """
    run = _open(folder.absolute(), overrides)
    settings = run.recipe.adjudication
    published = published_queue(run)
    if published is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    protocol = Protocol(settings.protocol)
    with lock_folder(run.folder), recorded(run.folder, "adjudicate"):
        waiting = review.dispute_queue([published], verdicts_of_people(run))
        debates, rows = open_debates(waiting, protocol, OTHER_KINDS, settings.max_disputes)
        whole, silent, debater = _argue(run, settings, debates)
        judged = _judge(run, settings, whole, debater)
        rows.extend(judged.values())
        rows.extend(unjudged_row(debate, State.NO_SPEECH) for debate in silent.values())
        frame = pl.DataFrame(rows, schema=ADJUDICATION, orient="row").sort("id", "reference", "rival")
        path = write_adjudications(run, protocol.value, frame)
    states = Counter(frame["state"].to_list())
    settled = _settle(run, frame, settings.decide_at) if settings.decide_at is not None else {}
    return Adjudication(frame, path, states, settled)


def _open(folder: Path, overrides: Sequence[str]) -> Run:
    if is_training(folder):
        raise StoreError(f"{folder} holds a training run; adjudicate the run that made its set.")
    run = open_run(folder)
    for override in overrides:
        if not re.match(rf"\s*({TABLE}|models)\s*[.=]", override):
            raise ConfigError(
                f"--set {override}: adjudicate changes {TABLE}.* and models.* only; use `goldilocks run` for the rest."
            )
    if overrides:
        recipe = override_recipe(as_written(run.recipe), overrides)
        run = Run(run.folder, with_grader(recipe, run.folder), run.recipe_folder)
    settings = run.recipe.adjudication
    if settings.judge is None:
        raise ConfigError(
            f"{folder}: its recipe names no {TABLE}.judge; set it to the name of a model and run the recipe again, or "
            f"give --set {TABLE}.judge=NAME."
        )
    check_models(run, adjudicates=True)
    return run


def _argue(run: Run, settings: AdjudicationSettings, debates: Sequence[Debate]) -> _Asked:
    """Return the debates with all their speeches, those in which a side said nothing, by place, and who spoke."""
    rounds = rounds_of(Protocol(settings.protocol), settings.rounds)
    if not rounds:
        return dict(enumerate(debates)), {}, None
    assert settings.debater is not None
    whole, silent = dict(enumerate(debates)), {}
    budget = FailureBudget(settings.max_failed, 2 * len(rounds) * len(debates), f"{TABLE}.max_failed")

    def is_readable(text: str) -> bool:
        return speech_of(text, "") is not None

    with (
        PolicySession(run, TABLE, settings.debater, budget, SPEECH, is_readable) as session,
        bar("Speeches", len(debates)) as advance,
    ):
        for start in range(0, len(debates), CHUNK):
            places = range(start, min(start + CHUNK, len(debates)))
            for number in rounds:
                requests = {at: whole[at].requests() for at in places if at in whole}
                asked = {request.id: request for pair in requests.values() for request in pair}
                said = session.ask(list(asked.values()), 1)
                texts = dict(said.select("problem", "text").iter_rows())
                for at, pair in requests.items():
                    after = whole[at].with_speeches(number, [texts.get(request.id) for request in pair])
                    if after is None:
                        silent[at] = whole.pop(at)
                    else:
                        whole[at] = after
            advance(len(places))
        return whole, silent, session.policy.key.policy


def _judge(
    run: Run, settings: AdjudicationSettings, debates: Mapping[int, Debate], debater: str | None
) -> dict[int, dict[str, object]]:
    """Return the rows of the debates by place."""
    assert settings.judge is not None
    budget = FailureBudget(settings.max_failed, len(VIEWS) * len(debates), f"{TABLE}.max_failed")
    prompt = JUDGE if settings.judge_answers == "verdict" else JUDGE_LETTER
    rows: dict[int, dict[str, object]] = {}

    def is_readable(text: str) -> bool:
        return reading(text) is not None

    with (
        PolicySession(run, TABLE, settings.judge, budget, prompt, is_readable) as session,
        bar("Verdicts", len(debates)) as advance,
    ):
        places = list(debates)
        for start in range(0, len(places), CHUNK):
            chunk = {at: {view: debates[at].view_request(view) for view in VIEWS} for at in places[start:][:CHUNK]}
            asked = {request.id: request for views in chunk.values() for request in views.values()}
            votes: dict[str, list[tuple[str | None, Sequence[float] | None]]] = {}
            said = session.ask(list(asked.values()), settings.votes)
            for name, text, logprobs in said.select("problem", "text", "logprobs").iter_rows():
                votes.setdefault(name, []).append((text, logprobs))
            for at, views in chunk.items():
                by_view = {view: votes.get(request.id, []) for view, request in views.items()}
                rows[at] = judged_row(debates[at], by_view, session.policy.key.policy, debater)
            advance(len(chunk))
    return rows


def _settle(run: Run, rows: pl.DataFrame, decide_at: float) -> dict[str, str]:
    """Write down the answers that the scores are enough for, and return them by problem.

    Left out are problems of which somebody has spoken, and answers that the verifier cannot judge against.
    """
    spoken = review.read_statements(run.folder)
    wanted = {name: text for name, text in accepted_answers(rows, decide_at).items() if name not in spoken}
    if not wanted:
        return {}
    settled: dict[str, str] = {}
    notes = {row["id"]: evidence(row) for row in rows.iter_rows(named=True) if row["id"] in wanted}
    reviewer = f"goldilocks adjudicate ({run.recipe.adjudication.protocol})"
    with open_judge(run) as judge:
        for name, text in wanted.items():
            try:
                settle(run, review.ReviewVerdict(name, text, reviewer, notes[name]), judge)
            except ConfigError:
                continue  # it stays disputed, with its evidence
            settled[name] = text
    return settled
