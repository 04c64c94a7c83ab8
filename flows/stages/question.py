"""Ask a model a question as a stage, within a budget, and keep the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation import questions
from curation.plugins import load_plugin
from curation.questions import QUESTIONS
from curation.questions.proposals import Proposal
from curation.questions.votes import UNREADABLE, Request, Vote
from curation.records import ConfigError, PromptRequest
from curation.storage.stages import Shard, finished_shards, read_shard
from flows.run.policies import model_title
from flows.run.policy_session import PolicySession, failure_budget
from flows.run.run_folder import Run
from flows.run.stage import Kind, Stage, StageResult, StageRun, rows_of

Question = Vote | Proposal[Any]

SPENT = "max_votes is spent"  # why a question was not asked


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a question reads apart from problems."""

    # from a shard's number to further arguments of `select` and `apply`
    tables: Callable[[int], tuple[Any, ...]] = lambda _: ()
    read: tuple[StageResult, ...] = ()
    version: str = ""
    settings: str = ""
    verifier: str = ""
    tool: Any = None  # for `Proposal.accept`


def question_stage(
    name: str,
    folder: str,
    inputs: Callable[[StageRun], AbstractContextManager[Inputs]] = lambda _job: nullcontext(Inputs()),
    *,
    kind: Kind = Kind.FILTER,
    part: str = "",
    title: str = "",
    enabled: Callable[[Run], bool] = lambda _: True,
) -> Stage:
    """Return a question's stage.

    Args:
        name: in `[questions.NAME]`.
        part: the difficulty stage of a question about verdicts.
        title: by default the question's; required for a user's.
    """

    def work(job: StageRun) -> StageResult:
        with inputs(job) as given:
            return _ask(job, name, given)

    def is_enabled(run: Run) -> bool:
        return run.recipe.asks(name) and (not part or part in run.parts) and enabled(run)

    def check(run: Run) -> None:
        find_question(run, name)

    def describe(run: Run) -> Iterator[str]:
        settings, question = run.recipe.questions[name], find_question(run, name)[0]
        most = f", at most {settings.max_votes:,}" if settings.max_votes is not None else ""
        answers = f"{question.number} answers per question{most}"
        yield f"{part or name}: {model_title(run.recipe, settings.model)} is asked, {answers}"

    return Stage(
        name=f"{part}.{name}" if part else name,
        title=title or registered(name).title,
        folder=folder,
        work=work,
        kind=kind,
        enabled=is_enabled,
        check=check,
        describe=describe,
        explain=lambda run, place, problem: _explain(find_question(run, name)[0], place, problem),
        is_planned=bool(part) or (name in QUESTIONS and isinstance(registered(name), Proposal)),  # votes cost much
        by_verifier=bool(part),
        part=part,
        asks=f"questions.{name}.model",
    )


def registered(name: str) -> Question:
    """Return a question of `QUESTIONS`."""
    module, _, attribute = QUESTIONS[name].partition(":")
    question: Question = getattr(import_module(f"{questions.__name__}.{module}"), attribute)
    return question


def find_question(run: Run, name: str) -> tuple[Question, str]:
    """Return a question, and the digest of a user's file.

    A changed file is asked again.

    Raises:
        ConfigError: the plug-in cannot be loaded, or is no `Vote`.
    """
    use = run.recipe.questions[name].use if name in run.recipe.questions else None
    if use is None:
        return registered(name), ""
    plugin = load_plugin(use, run.recipe_folder)
    vote = plugin.value
    if not isinstance(vote, Vote):
        raise ConfigError(f"questions.{name}: {use} is a {type(vote).__name__}; a question of your own must be a Vote.")
    prompt = replace(vote.prompt, version=f"{vote.prompt.version}-{plugin.digest[:8]}")
    return replace(vote, name=name, prompt=prompt), plugin.digest


def _ask(job: StageRun, name: str, given: Inputs) -> StageResult:
    question, digest = find_question(job.run, name)
    settings, problems = job.recipe.questions[name], job.problems.folder
    prompt, each = question.prompt, question.number
    assert settings.model is not None, name
    budget = failure_budget(job.run, job.problems.manifest.kept)
    with PolicySession(job.run, job.stage.name, settings.model, budget, prompt, question.is_readable) as session:
        version = f"question@1 {prompt.version} {question.version} {digest} {given.version}"
        settings_text = f"{session.policy.key} {settings.digest()} {given.settings}"
        folder = job.open(version, settings_text, job.problems, *given.read, verifier=given.verifier)

        def work(index: int) -> Shard:
            counts: Counter[str] = Counter()

            def ask(requests: Sequence[PromptRequest], wanted: int) -> pl.DataFrame:
                answered = session.ask(requests, wanted)
                counts.update(votes=answered.height, tokens=int(answered["tokens"].sum() or 0))
                return answered

            frame, tables = read_shard(problems, "kept", index), given.tables(index)
            rows, requests = question.select(frame, *tables)
            before = sum(mark["notes"]["asked"] for mark in islice(finished_shards(folder.folder), index))
            room = None if settings.max_votes is None else max(0, settings.max_votes // each - before)
            requests = _within(requests, room)
            answers = question.answers(rows, requests, ask, settings.threshold, given.tool)
            made = question.apply(question, frame, answers, *tables)
            asked = len({request.id for request in requests if not isinstance(request, str)})
            notes = {"asked": asked, "not asked": requests.count(SPENT), **counts, **question.notes(answers)}
            kept = None if "kept" in made else frame.height
            return Shard(frame.height, {**made, question.table: answers}, kept_rows=kept, notes=notes)

        return session.shard_by_shard(job, folder, work)


def _within(requests: list[Request], room: int | None) -> list[Request]:
    """Return the requests, with `SPENT` for those beyond ``room`` distinct ones."""
    names = dict.fromkeys(request.id for request in requests if not isinstance(request, str))
    allowed = set(islice(names, room))
    return [request if isinstance(request, str) or request.id in allowed else SPENT for request in requests]


def _explain(question: Question, folder: Path, problem: str) -> Iterator[str]:
    for row in rows_of(folder, question.table, problem).iter_rows(named=True):
        if isinstance(question, Proposal):
            if not row["accepted"]:
                yield f"{'refused':<10} {row['why']}"
            continue
        votes = ", ".join(f"{row[word]} {word}" for word in (*question.words, UNREADABLE) if row[word])
        about = f"{row['about']}: " if row.get("about") else ""
        yield f"{'votes':<10} {about}{votes or 'none'} ({row['decision'] or row['why'] or 'nothing is decided'})"


def question_line(result: StageResult) -> str | None:
    """Return a stage's results in words; None if it asked nothing."""
    notes = result.manifest.notes
    if not notes.get("asked"):
        return None
    counts = [(name.removeprefix("decided "), count) for name, count in notes.items() if name.startswith("decided ")]
    counts += [("accepted", notes.get("accepted", 0)), ("undecided", notes.get("uncertain", 0))]
    counts += [(f"not asked as {SPENT}", notes["not asked"])]
    came = ", ".join(f"{count:,} {name}" for name, count in counts if count)
    asked = f"{notes['asked']:,} questions, {notes.get('votes', 0):,} answers, {notes.get('tokens', 0):,} tokens"
    return f"{result.stage.title}: {asked}: {came or 'nothing'}"
