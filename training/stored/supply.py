"""Judge stored attempts at solving, except evaluations, and choose each step's groups.

Invariant: groups depend only on the seed and the step.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.completions import TokenCompletion
from curation.prompts.solving import asks_to_solve
from curation.records import SourceError
from curation.storage.attempts import AttemptStore
from training.config import ObjectiveSettings, StoredSettings
from training.objectives.registry import needs_of, objective_of
from training.recipe import CuratedData, DataSettings
from training.rollouts.attempt_log import ATTEMPTS, KIND, TRAINING_ATTEMPTS, key_of
from training.rollouts.rollout_scheduler import GroupDecision, RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout, RolloutRunner, derive_seed
from training.rollouts.tasks import TrainingTask
from training.stored.tokens import TokenWriter

COLUMNS = ("problem", "index", "text", "finish", "token_ids", "logprobs", "step")


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A store of attempts, ``trained`` if it is a training run's."""

    run: Path
    store: AttemptStore
    trained: bool


def stored_sources(runs: Sequence[str], data: DataSettings, folder: Path) -> list[StoredSource]:
    """Return the stores of attempts at solving in ``runs``, or in the runs of the sets of ``data``."""
    if runs:
        named = [folder / Path(name).expanduser() for name in runs]
    elif isinstance(data, CuratedData):
        named = list(dict.fromkeys((folder / Path(name).expanduser()).parent for name in data.folders))
    else:
        raise SourceError(f"stored.runs is empty, and data of kind {data.kind} comes from no run; name runs")
    sources = []
    for run in named:
        if not (run / ATTEMPTS).is_dir():
            raise SourceError(f"{run} keeps no attempts (no {ATTEMPTS}/ in it); name the runs in stored.runs")
        for path in sorted((run / ATTEMPTS).glob("*/key.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            trained = content.get("kind") == KIND
            if asks_to_solve(content["prompt"]) and (not trained or content["purpose"] == TRAINING_ATTEMPTS):
                store = AttemptStore(run / ATTEMPTS, key_of(content), create=False)
                sources.append(StoredSource(run, store, trained))
    if not sources:
        raise SourceError(
            f"{', '.join(map(str, named))}: no attempts at solving problems are stored there; name other runs"
        )
    return sources


def licences(data: DataSettings, folder: Path) -> list[str]:
    """Return the licence on each set's card, or `unknown`."""
    if not isinstance(data, CuratedData):
        return ["apache-2.0"]
    cards = [folder / Path(name).expanduser() / "README.md" for name in data.folders]
    texts = [card.read_text(encoding="utf-8") if card.exists() else "" for card in cards]
    matches = [re.search(r"^license:(.*)$", text, re.MULTILINE) for text in texts]
    return [match[1].strip() if match is not None else "unknown" for match in matches]


JUDGED_AT_ONCE = 4096
"""Attempts per call of the verifier."""

PROBLEMS_AT_ONCE = 512
"""Problems per read of texts."""

NO_PROBLEM, EARLY, TWICE, CAPPED, NO_LOGPROBS = "no_problem", "early_step", "same_text", "per_problem", "no_logprobs"


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """A judged stored attempt, without tokens and text."""

    source: int
    index: int
    digest: bytes  # of its text
    rollout: Rollout


@dataclass(frozen=True, slots=True)
class StoredProblem:
    """A problem's chosen attempts, in chunks of at most a group's size; ``pass_rate`` is of all judged ones."""

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

    @property
    def reasons(self) -> str:
        return ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()))

    def __str__(self) -> str:
        left_out = f"; left out: {self.reasons}" if self.reasons else ""
        return (
            f"{self.found:,} stored attempts, {self.correct:,} of them correct; {self.used:,} are trained on{left_out}"
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
        self.counts = StoredCounts()
        self.problems: list[StoredProblem] = []
        self._order: list[tuple[int, int]] = []  # of the epochs so far: problem and chunk of each group
        self._epochs = 0

    async def load(self) -> None:
        """Judge all attempts, and choose those to train on."""
        judged: dict[str, list[StoredAttempt]] = {}
        for number, source in enumerate(self.sources):
            tables = (table.filter(pl.col("text").is_not_null()) for table in source.store.tables(COLUMNS))
            for rows in (rows for table in tables for rows in table.iter_slices(JUDGED_AT_ONCE)):
                self.counts.found += rows.height
                jobs = []
                for row in rows.iter_rows(named=True):
                    if row["problem"] not in self._tasks:
                        self.counts.left_out[NO_PROBLEM] += 1
                    elif source.trained and row["step"] is not None and row["step"] < self._settings.after_step:
                        self.counts.left_out[EARLY] += 1
                    else:
                        jobs.append(self._judge(number, row))
                for result in await asyncio.gather(*jobs):
                    if isinstance(result, str):
                        self.counts.left_out[result] += 1
                    else:
                        judged.setdefault(result.rollout.problem, []).append(result)
        chosen = (self._choose(problem, judged[problem]) for problem in sorted(judged))
        self.problems = [problem for problem in chosen if problem is not None]
        self.counts.used = sum(len(chunk) for problem in self.problems for chunk in problem.chunks)
        if not self.problems:
            raise SourceError(f"{self.counts}: there is nothing to train on; name other runs, or another objective")

    @property
    def epoch_groups(self) -> int:
        """Return the groups of an epoch with every chunk once."""
        return sum(len(problem.chunks) for problem in self.problems)

    def groups(self, start: int, count: int, version: int) -> list[RolloutGroup[Rollout]]:
        """Return ``count`` groups from number ``start``, under negative numbers."""
        numbers = range(start, start + count)
        while len(self._order) < start + count:
            self._order += self._epoch(self._epochs)
            self._epochs += 1
        chunks = [self.problems[problem].chunks[chunk] for problem, chunk in self._order[start : start + count]]
        rollouts = self._with_tokens([attempt for chunk in chunks for attempt in chunk])
        groups = []
        for number, chunk in zip(numbers, chunks, strict=True):
            problem = chunk[0].rollout.problem
            requests = [RolloutRequest(-1 - number, attempt.index, problem, version) for attempt in chunk]
            pairs = tuple(zip(requests, rollouts, strict=False))
            groups.append(RolloutGroup(-1 - number, problem, version, pairs, ()))
        return groups

    def texts(self) -> Iterator[tuple[StoredProblem, StoredAttempt, Rollout]]:
        """Yield every chosen attempt once, with its text."""
        for start in range(0, len(self.problems), PROBLEMS_AT_ONCE):
            problems = self.problems[start : start + PROBLEMS_AT_ONCE]
            named = [(problem, attempt) for problem in problems for chunk in problem.chunks for attempt in chunk]
            rollouts = self._with_tokens([attempt for _, attempt in named])
            yield from ((*names, rollout) for names, rollout in zip(named, rollouts, strict=True))

    async def _judge(self, source: int, row: Mapping[str, Any]) -> StoredAttempt | str:
        """Return a row's attempt, or why it is unused."""
        task = self._tasks[row["problem"]]
        completion = self._writer.completion(self._rollouts.prompt_ids(task), row)
        if isinstance(completion, str):
            return completion
        if not completion.logprobs and needs_of(self._objective).generator_logprobs:
            return NO_LOGPROBS
        rollout = await self._rollouts.verify(task, completion, 0)
        self.counts.correct += rollout.reward.correct
        digest = hashlib.blake2b(row["text"].encode(), digest_size=8).digest()
        bare = replace(rollout, completion=TokenCompletion((), (), (), (), "", completion.finish))
        return StoredAttempt(source, row["index"], digest, bare)

    def _choose(self, problem: str, attempts: Sequence[StoredAttempt]) -> StoredProblem | None:
        judged = [attempt for attempt in attempts if not attempt.rollout.reward.excluded]
        pass_rate = sum(attempt.rollout.reward.correct for attempt in judged) / len(judged) if judged else 0.0
        order = sorted(attempts, key=lambda attempt: self._draw(f"{problem}:{attempt.source}:{attempt.index}"))
        reasons = self._decision(order).exclusion_reasons
        teaching = [attempt for attempt, reason in zip(order, reasons, strict=True) if reason is None]
        distinct = list({attempt.digest: attempt for attempt in reversed(teaching)}.values())[::-1]
        kept, size = distinct[: self._settings.per_problem], self._group_size
        left_out = Counter(reason for reason in reasons if reason is not None)
        left_out += Counter({TWICE: len(teaching) - len(distinct), CAPPED: len(distinct) - len(kept)})
        chunks = []
        for chunk in (tuple(kept[start : start + size]) for start in range(0, len(kept), size)):
            if (reason := self._decision(chunk).drop_reason) is None:
                chunks.append(chunk)
            else:
                left_out[reason] += len(chunk)
        self.counts.left_out += left_out
        return StoredProblem(problem, pass_rate, tuple(chunks)) if chunks else None

    def _decision(self, attempts: Sequence[StoredAttempt]) -> GroupDecision:
        return objective_of(self._objective).decide([attempt.rollout.reward for attempt in attempts], self._objective)

    def _epoch(self, epoch: int) -> list[tuple[int, int]]:
        """Return an epoch's groups."""
        weights = [(1 - problem.pass_rate) ** self._settings.hardness for problem in self.problems]
        if not any(weights):  # every problem is always solved
            weights = [1.0] * len(weights)
        copies = sum(weight * len(problem.chunks) for weight, problem in zip(weights, self.problems, strict=True))
        scale = self.epoch_groups / copies
        members = [
            (index, chunk, copy)
            for index, problem in enumerate(self.problems)
            for chunk in range(len(problem.chunks))
            for copy in range(self._copies(weights[index] * scale, f"{epoch}:{problem.problem}:{chunk}"))
        ]
        members.sort(key=lambda member: self._draw(f"order:{epoch}:{member}"))
        return [(index, chunk) for index, chunk, _ in members]

    def _copies(self, mean: float, name: str) -> int:
        """Return a seeded integer with this mean."""
        whole = math.floor(mean + 1e-9)
        return whole + (self._draw(f"copies:{name}") < mean - whole)

    def _draw(self, name: str) -> float:
        """Return a seeded number in [0, 1)."""
        return derive_seed(self._seed, f"stored|{name}") / 2**63

    def _with_tokens(self, attempts: Sequence[StoredAttempt]) -> Iterator[Rollout]:
        """Yield the attempts' rollouts with texts."""
        rows: dict[tuple[int, str, int], Mapping[str, Any]] = {}
        columns = ("problem", "index", "text", "finish", "token_ids", "logprobs")
        for number, source in enumerate(self.sources):
            problems = sorted({attempt.rollout.problem for attempt in attempts if attempt.source == number})
            try:
                table = source.store.read(problems, columns) if problems else pl.DataFrame()
            except ValueError as error:
                raise SourceError(f"{source.run} is still writing attempts; wait until it ends") from error
            rows |= {(number, row["problem"], row["index"]): row for row in table.iter_rows(named=True)}
        for attempt in attempts:
            row = rows[attempt.source, attempt.rollout.problem, attempt.index]
            task = self._tasks[attempt.rollout.problem]
            completion = self._writer.completion(self._rollouts.prompt_ids(task), row)
            assert not isinstance(completion, str)  # it was judged
            yield replace(attempt.rollout, completion=completion)
