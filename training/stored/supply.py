"""Find and judge stored attempts at solving, except those of evaluations, and choose each step's groups.

Invariants: a step's groups depend only on the seed and the step. Rewards come from the run's own verifier and settings.
Every unused attempt is counted with its reason.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.completions import TokenCompletion
from curation.prompts.solving import asks_to_solve
from curation.records import AttemptKey, SourceError
from curation.storage.attempts import AttemptStore
from training.config import ObjectiveSettings
from training.objectives.registry import objective_of
from training.recipe import CuratedData, DataSettings
from training.rollouts.attempt_log import ATTEMPTS, KIND, TRAINING_ATTEMPTS
from training.rollouts.rollout_scheduler import RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.settings import StoredSettings
from training.stored.tokens import TokenWriter

JUDGED_AT_ONCE = 4096
"""Attempts with the verifier at once."""

PROBLEMS_AT_ONCE = 512
"""Problems with texts read at once."""

_TEXTS = ("problem", "index", "text", "finish", "token_ids", "logprobs")


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A store of attempts, ``trained`` if it is a training run's."""

    run: Path
    store: AttemptStore
    trained: bool


def run_folders(runs: Sequence[str], data: DataSettings, folder: Path) -> list[Path]:
    """Return the folders of ``runs``, or of those that made the sets of ``data``.

    Raises:
        SourceError: there is no run, or a folder keeps no attempts.
    """
    if runs:
        named = [folder / Path(name).expanduser() for name in runs]
    elif isinstance(data, CuratedData):
        named = list(dict.fromkeys((folder / Path(name).expanduser()).parent for name in data.folders))
    else:
        raise SourceError(f"stored.runs is empty, and data of kind {data.kind} come from no run; name runs")
    for run in named:
        if not (run / ATTEMPTS).is_dir():
            raise SourceError(f"{run} keeps no attempts (no {ATTEMPTS}/ in it); name the runs in stored.runs")
    return named


def stored_sources(runs: Sequence[Path]) -> list[StoredSource]:
    """Return the stores of attempts at solving, by run and name.

    Raises:
        SourceError: there is none.
    """
    sources = []
    for run in runs:
        for path in sorted((run / ATTEMPTS).glob("*/key.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            trained = content.get("kind") == KIND
            if asks_to_solve(content["prompt"]) and (not trained or content["purpose"] == TRAINING_ATTEMPTS):
                key = AttemptKey(content["policy"], content["prompt"], content["sampling"])
                sources.append(StoredSource(run, AttemptStore(run / ATTEMPTS, key, create=False), trained))
    if not sources:
        raise SourceError(
            f"{', '.join(map(str, runs))}: no attempts at solving problems are stored there; name other runs"
        )
    return sources


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """A judged stored attempt; its rollout has no tokens and text."""

    source: int
    index: int
    digest: bytes  # of its text
    rollout: Rollout


@dataclass(frozen=True, slots=True)
class StoredProblem:
    """A problem's chosen attempts, in chunks of at most a group's size.

    ``pass_rate`` is that of all its judged attempts.
    """

    problem: str
    pass_rate: float
    chunks: tuple[tuple[StoredAttempt, ...], ...]


@dataclass(slots=True)
class StoredCounts:
    """Counts of stored attempts, and of unused ones by reason."""

    found: int = 0
    used: int = 0
    correct: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items())) or "none"
        return (
            f"{self.found:,} stored attempts, {self.correct:,} of them correct; {self.used:,} are trained on; left "
            f"out: {reasons}"
        )


class StoredSupply:
    """The stored attempts of a run; call `load` first."""

    def __init__(
        self,
        sources: Sequence[StoredSource],
        tasks: Mapping[str, TrainingTask],
        rollouts: RolloutRunner,
        writer: TokenWriter,
        settings: StoredSettings,
        objective: ObjectiveSettings,
        group_size: int,
        seed: int,
    ) -> None:
        self.sources, self._tasks, self._rollouts, self._writer = tuple(sources), tasks, rollouts, writer
        self._settings, self._objective, self._group_size, self._seed = settings, objective, group_size, seed
        self._needs_logprobs = objective_of(objective).needs(objective).generator_logprobs
        self.counts = StoredCounts()
        self.problems: list[StoredProblem] = []
        self._epochs: dict[int, list[tuple[int, int]]] = {}

    async def load(self) -> None:
        """Judge all attempts, and choose those to train on.

        Raises:
            SourceError: no attempt can be trained on.
        """
        judged: dict[str, list[StoredAttempt]] = {}
        for place, source in enumerate(self.sources):
            for table in source.store.tables((*_TEXTS, "step")):
                for part in table.filter(pl.col("text").is_not_null()).iter_slices(JUDGED_AT_ONCE):
                    self.counts.found += part.height
                    found = await asyncio.gather(*(self._judge(place, row) for row in part.iter_rows(named=True)))
                    for attempt in filter(None, found):
                        judged.setdefault(attempt.rollout.problem, []).append(attempt)
        for problem in sorted(judged):
            if chunks := self._choose(problem, judged[problem]):
                rewards = [one.rollout.reward for one in judged[problem] if not one.rollout.reward.excluded]
                pass_rate = sum(reward.correct for reward in rewards) / len(rewards)
                self.problems.append(StoredProblem(problem, pass_rate, chunks))
        self.counts.left_out += Counter()  # removes reasons without attempts
        self.counts.used = sum(len(chunk) for problem in self.problems for chunk in problem.chunks)
        if not self.problems:
            raise SourceError(f"{self.counts}: there is nothing to train on; name other runs, or another objective")

    @property
    def epoch_groups(self) -> int:
        """Return the groups of an epoch with every chunk once."""
        return sum(len(problem.chunks) for problem in self.problems)

    def groups(self, start: int, count: int, version: int) -> list[RolloutGroup[Rollout]]:
        """Return ``count`` stored groups from number ``start``, with tokens, under negative numbers."""
        numbers = range(start, start + count)
        chunks = [(self.problems[problem], chunk) for problem, chunk in map(self._place, numbers)]
        whole = iter(self._whole([attempt for problem, chunk in chunks for attempt in problem.chunks[chunk]]))
        groups = []
        for number, (problem, chunk) in zip(numbers, chunks, strict=True):
            name, attempts = problem.problem, problem.chunks[chunk]
            requests = [RolloutRequest(-1 - number, attempt.index, name, version) for attempt in attempts]
            pairs = tuple(zip(requests, islice(whole, len(requests)), strict=True))
            groups.append(RolloutGroup(-1 - number, name, version, pairs, ()))
        return groups

    def rollouts(self) -> Iterator[Rollout]:
        """Yield every chosen attempt once, with its text."""
        for start in range(0, len(self.problems), PROBLEMS_AT_ONCE):
            part = self.problems[start : start + PROBLEMS_AT_ONCE]
            yield from self._whole([attempt for problem in part for chunk in problem.chunks for attempt in chunk])

    async def _judge(self, place: int, row: Mapping[str, Any]) -> StoredAttempt | None:
        completion = self._usable(place, row)
        if isinstance(completion, str):
            self.counts.left_out[completion] += 1
            return None
        rollout = await self._rollouts.verify(self._tasks[row["problem"]], completion, 0)
        self.counts.correct += rollout.reward.correct
        digest = hashlib.blake2b(row["text"].encode(), digest_size=8).digest()
        bare = replace(rollout, completion=TokenCompletion((), (), (), (), "", completion.finish))
        return StoredAttempt(place, row["index"], digest, bare)

    def _usable(self, place: int, row: Mapping[str, Any]) -> TokenCompletion | str:
        """Return a stored attempt as a response, or why it is not used."""
        task, step = self._tasks.get(row["problem"]), row["step"]
        if task is None:
            return "no_problem"
        if self.sources[place].trained and step is not None and step < self._settings.after_step:
            return "early_step"
        completion = self._writer.completion(self._rollouts.prompt_ids(task), row)
        if self._needs_logprobs and not isinstance(completion, str) and not completion.logprobs:
            return "no_logprobs"
        return completion

    def _choose(self, problem: str, attempts: Sequence[StoredAttempt]) -> tuple[tuple[StoredAttempt, ...], ...]:
        """Return the attempts that teach, each text once, in chunks that are trained on."""
        order = sorted(attempts, key=lambda one: (one.source, one.index))
        random.Random(f"{self._seed}|{problem}").shuffle(order)
        decide = objective_of(self._objective).decide
        reasons = decide([one.rollout.reward for one in order], self._objective).exclusion_reasons
        self.counts.left_out.update(reason for reason in reasons if reason is not None)
        teaching = [one for one, reason in zip(order, reasons, strict=True) if reason is None]
        distinct = list({one.digest: one for one in reversed(teaching)}.values())[::-1]
        kept = distinct[: self._settings.per_problem]
        self.counts.left_out["same_text"] += len(teaching) - len(distinct)
        self.counts.left_out["per_problem"] += len(distinct) - len(kept)
        chunks = []
        for start in range(0, len(kept), self._group_size):
            chunk = tuple(kept[start : start + self._group_size])
            decision = decide([one.rollout.reward for one in chunk], self._objective)
            if decision.drop_reason is None:
                chunks.append(chunk)
            else:
                self.counts.left_out[decision.drop_reason] += len(chunk)
        return tuple(chunks)

    def _place(self, number: int) -> tuple[int, int]:
        """Return a group's problem and chunk."""
        epoch = 0
        while number >= len(self._epoch(epoch)):
            number -= len(self._epoch(epoch))
            epoch += 1
        return self._epoch(epoch)[number]

    def _epoch(self, epoch: int) -> list[tuple[int, int]]:
        """Return an epoch's problems and chunks; of problems that are all always solved each chunk comes once."""
        if epoch not in self._epochs:
            chance = random.Random(f"{self._seed}|epoch {epoch}")
            weights = [(1 - problem.pass_rate) ** self._settings.hardness for problem in self.problems]
            copies = sum(weight * len(one.chunks) for weight, one in zip(weights, self.problems, strict=True))
            members: list[tuple[int, int]] = []
            for place, problem in enumerate(self.problems):
                mean = weights[place] * self.epoch_groups / copies if copies else 1.0
                for chunk in range(len(problem.chunks)):
                    whole = math.floor(mean + 1e-9)
                    members += [(place, chunk)] * (whole + (chance.random() < mean - whole))
            chance.shuffle(members)
            self._epochs[epoch] = members
        return self._epochs[epoch] or self._epoch(epoch + 1)

    def _whole(self, attempts: Sequence[StoredAttempt]) -> list[Rollout]:
        """Return the attempts' rollouts with tokens and texts."""
        rows: dict[tuple[int, str, int], Mapping[str, Any]] = {}
        for place, source in enumerate(self.sources):
            problems = sorted({one.rollout.problem for one in attempts if one.source == place})
            if not problems:
                continue
            try:
                table = source.store.read(problems, _TEXTS)
            except ValueError as error:
                raise SourceError(f"{source.run} writes its attempts meanwhile; wait until it ends") from error
            rows |= {(place, row["problem"], row["index"]): row for row in table.iter_rows(named=True)}
        rollouts = []
        for one in attempts:
            name = one.rollout.problem
            prompt_ids = self._rollouts.prompt_ids(self._tasks[name])
            completion = self._writer.completion(prompt_ids, rows[one.source, name, one.index])
            assert not isinstance(completion, str)  # it was one when it was judged
            rollouts.append(replace(one.rollout, completion=completion))
        return rollouts
