"""Store every attempt of a training run, with its verdict.

    RUN/attempts/<key>/               `AttemptStore`: key.json, journal, parts in `ATTEMPT`
    RUN/verdicts/<verifier>/<key>/    `VerdictStore`: its verdict, in `VERDICT`

An attempt's index is rollout_group * group size + index in training, step * attempts + index in evaluation.

Invariant: each finished attempt is stored once, also after kill -9 and resume.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl

from curation.policies.checkpoints import folder_revision
from curation.records import ATTEMPT, AttemptKey, Completion, Outcome, RolloutOrigin, StoreError
from curation.storage.attempts import PART_BYTES, AttemptStore, VerdictStore, without_surrogates
from training.recipe import TrainRecipe
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

ATTEMPTS, VERDICTS = "attempts", "verdicts"
TRAINING_ATTEMPTS, EVALUATION_ATTEMPTS = "training", "evaluation"

_TOGETHER = 32
"""Rollouts per write, which a kill may lose."""

KIND = "training"
"""The kind in key.json."""


def rollout_origin(purpose: str, step: int, version: int, rollout: Rollout, group: int) -> RolloutOrigin:
    """Return the origin; ``version`` is the policy's at admission."""
    return RolloutOrigin(purpose, step, version, max(rollout.completion.versions, default=version), group)


class AttemptLog:
    """Writes a run's attempts; leaving the context flushes them.

    Args:
        model: the trained model's folder.
        kept_parts: the checkpoint's; others are removed.
    """

    def __init__(
        self, run: Path, recipe: TrainRecipe, model: Path, verifiers: Verifiers, kept_parts: Sequence[str]
    ) -> None:
        self._run, self._recipe, self._model, self._verifiers = run, recipe, model, verifiers
        self._per_problem = {
            TRAINING_ATTEMPTS: recipe.collector.group_size,
            EVALUATION_ATTEMPTS: recipe.evaluation.attempts,
        }
        self._stores: dict[str, AttemptStore] = {}
        self._verdict_stores: dict[tuple[str, str], VerdictStore] = {}
        self._recorded: list[tuple[TrainingTask, Rollout, int, RolloutOrigin]] = []
        self._pending: deque[Future[None]] = deque()
        _cut_back(run, frozenset(kept_parts))

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, "attempt-log")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._hand_over()
        self._thread.shutdown()
        with ExitStack() as closing:
            if kind is not None:  # the run's own error is reported
                closing.enter_context(suppress(OSError))
            for store in (*self._stores.values(), *self._verdict_stores.values()):
                closing.callback(store.close)
            if kind is None:
                self._raise_failure()

    def record(self, task: TrainingTask, rollout: Rollout, index: int, origin: RolloutOrigin) -> None:
        """Store a rollout by its ``index`` in its group or evaluation."""
        if self._recipe.attempt_store == "none":
            return
        self._raise_failure()
        self._recorded.append((task, rollout, index, origin))
        if len(self._recorded) >= _TOGETHER:
            self._hand_over()

    def checkpoint(self) -> Future[list[str]]:
        """Write recorded attempts into parts; return all parts' names."""
        self._raise_failure()
        self._hand_over()
        return self._thread.submit(self._compact_all, self._pending[-1])

    def _hand_over(self) -> None:
        recorded, self._recorded = self._recorded, []
        self._pending.append(self._thread.submit(self._write, recorded))

    def _write(self, recorded: Sequence[tuple[TrainingTask, Rollout, int, RolloutOrigin]]) -> None:
        with_tokens = self._recipe.attempt_store == "tokens"
        try:
            for task, rollout, index, origin in recorded:
                completion = rollout.completion
                begin = origin.rollout_group if origin.purpose == TRAINING_ATTEMPTS else origin.step
                name = task.id, begin * self._per_problem[origin.purpose] + index
                store, verdicts = self._open(origin.purpose, self._verifiers.version(task.request.domain))
                response = Completion(
                    self._recipe.tags.house_form(completion.text),
                    completion.finish,
                    rollout.tokens,
                    token_ids=completion.token_ids if with_tokens else None,
                    logprobs=completion.logprobs if with_tokens else None,
                    origin=origin,
                )
                store.add([(*name, response)])
                verdicts.add_lines([(name, _verdict_line(task, rollout))])
                if store.journal_bytes > PART_BYTES:
                    store.compact()
                    verdicts.compact()
        except OSError as error:
            raise StoreError(
                f"{self._run / ATTEMPTS}: attempts cannot be written ({error}); free disk space, or set "
                'attempt_store = "none", and resume the run'
            ) from error

    @cached_property
    def _policy(self) -> str:
        """Return the policy's name; reads the model, so on the writing thread only."""
        return f"{self._model.resolve().name}@{folder_revision(self._model)}+training:{self._recipe.name}"

    def _open(self, purpose: str, verifier: str) -> tuple[AttemptStore, VerdictStore]:
        if (purpose, verifier) in self._verdict_stores:
            return self._stores[purpose], self._verdict_stores[purpose, verifier]
        recipe, per_problem = self._recipe, self._per_problem[purpose]
        drawing = {"temperature": recipe.temperature, "max_tokens": recipe.rewards.max_length, "seed": recipe.seed}
        content = json.dumps([purpose, per_problem, drawing], sort_keys=True)
        sampling = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
        key = AttemptKey(self._policy, recipe.solving_prompt.version, sampling)
        about = {"kind": KIND, "purpose": purpose, "per_problem": per_problem, **drawing}
        if purpose not in self._stores:
            self._stores[purpose] = AttemptStore(self._run / ATTEMPTS, key, about)
        folder, about = self._run / VERDICTS / verifier, {**about, "verifier": verifier}
        verdicts = self._verdict_stores[purpose, verifier] = VerdictStore(folder, key, about, verifier=verifier)
        return self._stores[purpose], verdicts

    def _compact_all(self, written: Future[None]) -> list[str]:
        written.result()  # so that the parts have all attempts
        for store in (*self._stores.values(), *self._verdict_stores.values()):
            store.compact()
        return sorted(str(path.relative_to(self._run)) for folder, _ in _folders(self._run) for path in _parts(folder))

    def _raise_failure(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()


def attempt_tables(run: Path, columns: Sequence[str] = tuple(ATTEMPT)) -> Iterator[pl.DataFrame]:
    """Yield each attempt of a training run once."""
    stores = list(_stores(run))
    if not stores:
        raise StoreError(f'{run} keeps no attempts; train with attempt_store = "texts".')
    for _, store in stores:
        yield from store.tables(columns)


def read_attempts(
    run: Path,
    columns: Sequence[str] = tuple(ATTEMPT),
    *,
    purpose: str | None = None,
    problems: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return a run's attempts, sorted by step, purpose, problem and index."""
    order = ("step", "purpose", "problem", "index")
    condition = pl.lit(True) if purpose is None else pl.col("purpose") == purpose
    if problems is not None:
        condition &= pl.col("problem").is_in(list(problems))
    tables = attempt_tables(run, list(dict.fromkeys([*columns, *order])))
    return pl.concat(table.filter(condition) for table in tables).sort(order).select(columns)


def verdict_tables(run: Path) -> Iterator[pl.DataFrame]:
    """Yield each verdict once; unjudged rollouts have a null ``outcome``."""
    for folder, content in _folders(run, VERDICTS):
        verifier = str(content["verifier"])
        yield from VerdictStore(folder.parent, key_of(content), create=False, verifier=verifier).tables()


def count_attempts(run: Path) -> dict[str, int]:
    """Return a run's number of attempts by purpose."""
    counts = Counter[str]()
    for content, store in _stores(run):
        counts[content["purpose"]] += store.height
    return dict(counts)


def _stores(run: Path) -> Iterator[tuple[dict[str, Any], AttemptStore]]:
    for folder, content in _folders(run, ATTEMPTS):
        yield content, AttemptStore(folder.parent, key_of(content), create=False)


def _verdict_line(task: TrainingTask, rollout: Rollout) -> dict[str, Any]:
    line = {
        "reference": task.reference_answer,
        "outcome": rollout.outcome.value if rollout.outcome is not None else None,
        "answer": without_surrogates(rollout.answer),
        "answer_class": 0 if rollout.outcome is Outcome.CORRECT else None,
        "method": without_surrogates(rollout.method),
    }
    return {name: value for name, value in line.items() if value is not None}


def _folders(run: Path, *tables: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders of training attempts and their key.json."""
    for table in tables or (ATTEMPTS, VERDICTS):
        for path in sorted((run / table).glob("*/key.json" if table == ATTEMPTS else "*/*/key.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("kind") == KIND:
                yield path.parent, content


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def key_of(content: Mapping[str, Any]) -> AttemptKey:
    """Return the key in a store's key.json."""
    return AttemptKey(content["policy"], content["prompt"], content["sampling"])


def _cut_back(run: Path, kept_parts: frozenset[str]) -> None:
    """Remove journals and all other parts."""
    for folder, _ in list(_folders(run)):
        for path in _parts(folder):
            if str(path.relative_to(run)) not in kept_parts:
                path.unlink()
        (folder / "journal.jsonl").unlink(missing_ok=True)
        if not _parts(folder):
            shutil.rmtree(folder)
