"""Ask a model one prompt (`PolicySession`), also as a stage (`question_stage`).

Responses are stored under the prompt's version, so no request is repeated; refused ones are retried by later runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation import questions
from curation.difficulty.unanswered import ResponseTally
from curation.plugins import load_plugin
from curation.policies.failure_budget import FailureBudget
from curation.prompts import Prompt
from curation.questions import QUESTIONS
from curation.questions.proposals import Proposal
from curation.questions.votes import UNREADABLE, Request, Vote
from curation.records import ATTEMPT, Completion, ConfigError, Domain, Policy, PromptRequest, RequestRefused
from curation.storage import attempts
from curation.storage.stages import Shard, StageFolder, finished_shards, read_shard
from flows.run import retries
from flows.run.lookup import rows_of
from flows.run.policies import model_title
from flows.run.policy_session import model_session
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.sampling_session import response_advice
from flows.run.stage import EVERY_DOMAIN, REFUSAL_RETRIES, Kind, Stage, StageResult, StageRun


class ResponseWatch:
    """Warns once per stage if most responses are useless.

    Args:
        model: the answering model's name.
        is_readable: returns whether a response has the wanted answer.
    """

    def __init__(self, run: Run, stage: str, model: str, is_readable: Callable[[str], bool]) -> None:
        self._run, self._stage, self._model = run, stage, model
        self._kind = run.recipe.models[model].kind
        self._is_readable = is_readable
        self._responses = ResponseTally()
        self._examples: dict[tuple[str, int], str] = {}
        self._has_warned = False

    def add(self, problem: str, index: int, completion: Completion) -> None:
        """Count a response; warn once most are certain to be useless."""
        if self._has_warned:
            return
        text = completion.text or ""
        has_answer = self._is_readable(text)
        is_cut_off = completion.finish == "length" and not has_answer  # a verdict of one token is whole
        self._responses.add(problem, index, has_answer=has_answer, is_cut_off=is_cut_off)
        if (problem, index) in self._responses.examples.values():
            self._examples = {name: self._examples.get(name, text) for name in self._responses.examples.values()}
        if self._responses.is_alarming:
            self._warn()

    def close(self) -> None:
        """Warn if most responses were useless, unless warned before."""
        if not self._has_warned and self._responses.most_are_useless:
            self._warn()

    def _warn(self) -> None:
        self._has_warned = True
        responses = self._responses
        alarm = responses.alarm(self._examples[responses.examples[responses.main_kind]])
        advice = response_advice(alarm.kind, self._kind, self._model)
        warn(self._run.folder, self._stage, alarm.sentence(advice))


class PolicySession:
    """Ask a policy one prompt and keep its responses in the run's attempt store.

    The policy starts with the first request missing there.

    Args:
        work: the asking stage or command, for warnings.
        prompt: by default the model's.
        is_readable: returns whether a response has the wanted answer.
    """

    def __init__(
        self,
        run: Run,
        work: str,
        model: str,
        budget: FailureBudget,
        prompt: Prompt | None,
        is_readable: Callable[[str], bool],
    ) -> None:
        self._watch = ResponseWatch(run, work, model, is_readable)
        self._budget = budget
        self._refused: set[str] = set()
        self._stack = ExitStack()
        self._session = self._stack.enter_context(model_session(run.recipe.models[model], run.recipe_folder, prompt))
        self._store = attempts.AttemptStore(run.folder / "attempts", self.policy.key, self.policy.about)

    @property
    def policy(self) -> Policy:
        """Return what is asked."""
        return self._session.policy

    @property
    def refused(self) -> set[str]:
        """Return the refused requests since the caller last cleared them."""
        return self._refused

    def __enter__(self) -> PolicySession:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._watch.close()
                self._store.compact()
        finally:
            self._store.close()
            self._stack.close()

    def shard_by_shard(self, job: StageRun, folder: StageFolder, work: Callable[[int], Shard]) -> StageResult:
        """Compute the stage, and shards with refused requests again in a due retry round."""

        def noting(round_number: int, index: int) -> Shard:
            self._refused.clear()
            shard = work(index)
            notes = retries.failure_notes(len(self._refused), round_number, retries.REFUSED)
            return replace(shard, notes={**shard.notes, **notes})

        @contextmanager
        def again(round_number: int) -> Iterator[Callable[[int], Shard]]:
            yield partial(noting, round_number)

        return retries.retry_failed(job, folder, partial(job.shard_by_shard, folder, partial(noting, 0)), again)

    def ask(self, requests: Sequence[PromptRequest], each: int) -> pl.DataFrame:
        """Return `ATTEMPT` rows of indices below ``each``, by problem and index; fewer if the policy has fewer.

        Args:
            requests: with distinct ids.
        """
        names = [request.id for request in requests]
        missing = self._store.missing_indices(names, each)
        if missing:
            questions = [(request, index) for request in requests for index in missing.get(request.id, ())]
            self._session.open()
            self._session.run(self._answer(questions))
            self._store.compact(names)
        return self._store.read(names, tuple(ATTEMPT)).filter(pl.col("index") < each)

    async def _answer(self, questions: Sequence[tuple[PromptRequest, int]]) -> None:
        waiting = iter(questions)

        async def work() -> None:
            for request, index in waiting:
                try:
                    completion = await self.policy.answer(request, index)
                except RequestRefused as refused:
                    self._refused.add(request.id)
                    self._store.add_refusals([(request.id, index, refused)])
                    self._budget.count_refusal(request.id, refused)
                    continue
                if completion is not None:
                    self._budget.count_answer()
                    self._store.add([(request.id, index, completion)])
                    self._watch.add(request.id, index, completion)

        workers = [asyncio.create_task(work()) for _ in range(max(1, min(self.policy.in_flight, len(questions))))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


Question = Vote | Proposal[Any]

SPENT = "max_votes is spent"
"""Why a question was not asked."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a question reads apart from problems."""

    tables: Callable[[int], tuple[Any, ...]] = lambda _: ()
    """From a shard's number to what `select` and `apply` have apart from its rows."""

    read: tuple[StageResult, ...] = ()
    version: str = ""
    settings: str = ""
    verifier: str = ""
    tool: Any = None
    """What `Proposal.accept` has."""


def _nothing_else(_job: StageRun) -> AbstractContextManager[Inputs]:
    return nullcontext(Inputs())


def question_stage(
    name: str,
    folder: str,
    inputs: Callable[[StageRun], AbstractContextManager[Inputs]] = _nothing_else,
    *,
    kind: Kind = Kind.FILTER,
    domains: frozenset[Domain] = EVERY_DOMAIN,
    part: str = "",
    title: str = "",
    enabled: Callable[[Run], bool] = lambda _: True,
) -> Stage:
    """Return a question's stage.

    Args:
        name: in `[questions.NAME]`.
        folder: in the run folder.
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
        domains=domains,
        kind=kind,
        enabled=is_enabled,
        check=check,
        describe=describe,
        explain=lambda run, place, problem: _explain(find_question(run, name)[0], place, problem),
        is_planned=bool(part) or (name in QUESTIONS and isinstance(registered(name), Proposal)),  # votes cost much
        by_verifier=bool(part),
        retries=REFUSAL_RETRIES,
        part=part,
        asks=f"questions.{name}.model",
    )


def registered(name: str) -> Question:
    """Return a question of `QUESTIONS`."""
    module, _, attribute = QUESTIONS[name].partition(":")
    question: Question = getattr(import_module(f"{questions.__name__}.{module}"), attribute)
    return question


def find_question(run: Run, name: str) -> tuple[Question, str]:
    """Return a question, and its file's digest if it is the user's.

    A changed file is asked again, as answers are stored under its digest.

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
    budget = FailureBudget(
        job.recipe.stage1.sampling.max_failed, job.problems.manifest.kept, "stage1.sampling.max_failed"
    )
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
    """Return a finished stage's questions and results in words; None if it asked nothing."""
    notes = result.manifest.notes
    if not notes.get("asked"):
        return None
    counts = [(name.removeprefix("decided "), count) for name, count in notes.items() if name.startswith("decided ")]
    counts += [("accepted", notes.get("accepted", 0)), ("undecided", notes.get("uncertain", 0))]
    counts += [(f"not asked as {SPENT}", notes["not asked"])]
    came = ", ".join(f"{count:,} {name}" for name, count in counts if count)
    people = notes.get("with people", 0)
    told = f"; of {people:,} that people decided too, {notes['as people']:,} alike" if people else ""
    asked = f"{notes['asked']:,} questions, {notes.get('votes', 0):,} answers, {notes.get('tokens', 0):,} tokens"
    return f"{result.stage.title}: {asked}: {came or 'nothing'}{told}"
