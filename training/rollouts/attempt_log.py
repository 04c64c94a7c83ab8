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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl

from curation.records import ATTEMPT, AttemptKey, Completion, Outcome, RolloutOrigin, StoreError
from curation.storage.attempts import PART_BYTES, AttemptStore, KeyedStore, VerdictStore, without_surrogates
from curation.thinking import THINK, ThinkingTags
from training.recipe import AttemptStoring
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

ATTEMPTS, VERDICTS = "attempts", "verdicts"
TRAINING_ATTEMPTS, EVALUATION_ATTEMPTS = "training", "evaluation"

KIND = "training"
"""The kind in key.json; other folders are left alone."""


@dataclass(frozen=True, slots=True)
class AttemptPurpose:
    """The purpose of attempts, and their settings."""

    name: str  # training or evaluation
    per_problem: int  # rollouts of a group, or of a problem in an evaluation
    drawing: dict[str, Any]

    def key(self, policy: str, prompt: str) -> AttemptKey:
        """Return the key of these attempts."""
        content = json.dumps([self.name, self.per_problem, self.drawing], sort_keys=True)
        return AttemptKey(policy, prompt, hashlib.blake2b(content.encode(), digest_size=6).hexdigest())

    @property
    def about(self) -> dict[str, Any]:
        """Return key.json's content, except the key."""
        return {"kind": KIND, "purpose": self.name, "per_problem": self.per_problem, **self.drawing}


def rollout_origin(purpose: str, step: int, version: int, rollout: Rollout, group: int) -> RolloutOrigin:
    """Return a rollout's origin; ``version`` is the policy's at admission."""
    return RolloutOrigin(purpose, step, version, max(rollout.completion.versions, default=version), group)


class AttemptLog:
    """Writes a run's attempts; leaving the context flushes them.

    Args:
        policy: returns the policy's name, on the writing thread.
        kept_parts: the checkpoint's; all others are removed.
    """

    def __init__(
        self,
        run: Path,
        storing: AttemptStoring,
        purposes: Sequence[AttemptPurpose],
        policy: Callable[[], str],
        prompt: str,
        verifiers: Verifiers,
        kept_parts: Sequence[str],
        tags: ThinkingTags = THINK,
    ) -> None:
        self._run, self._storing, self._verifiers = run, storing, verifiers
        self._purposes = {purpose.name: purpose for purpose in purposes}
        self._policy_of, self._prompt = policy, prompt
        self._policy: str | None = None
        self._tags = tags
        self._stores: dict[str, AttemptStore] = {}
        self._verdict_stores: dict[tuple[str, str], VerdictStore] = {}
        self._pending: deque[Future[None]] = deque()
        _cut_back(run, frozenset(kept_parts))

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, "attempt-log")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.submit(self._close)
        self._thread.shutdown()
        if kind is None:
            self._raise_failure()

    def record(self, task: TrainingTask, rollout: Rollout, index: int, origin: RolloutOrigin) -> None:
        """Store a rollout by its ``index`` in its group, or its problem's evaluation.

        Raises:
            StoreError: an earlier write failed.
        """
        if self._storing == "none":
            return
        self._raise_failure()
        self._pending.append(self._thread.submit(self._write, task, rollout, index, origin))

    def checkpoint(self) -> Future[list[str]]:
        """Write recorded attempts into parts; return all parts' names."""
        self._raise_failure()
        return self._thread.submit(self._compact_all)

    def _write(self, task: TrainingTask, rollout: Rollout, index: int, origin: RolloutOrigin) -> None:
        completion = rollout.completion
        with_tokens = self._storing == "tokens"
        purpose = self._purposes[origin.purpose]
        begin = origin.rollout_group if origin.purpose == TRAINING_ATTEMPTS else origin.step
        name = task.id, begin * purpose.per_problem + index
        try:
            store = self._store(purpose)
            verdicts = self._verdict_store(purpose, self._verifiers.version(task.request.domain))
            response = Completion(
                self._tags.house_form(completion.text),
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
                f"{self._run / ATTEMPTS}: attempts cannot be written ({error}); make room, or set "
                'attempt_store = "none", and resume the run'
            ) from error

    def _store(self, purpose: AttemptPurpose) -> AttemptStore:
        store = self._stores.get(purpose.name)
        if store is None:
            store = self._stores[purpose.name] = AttemptStore(self._run / ATTEMPTS, self._key(purpose), purpose.about)
        return store

    def _verdict_store(self, purpose: AttemptPurpose, verifier: str) -> VerdictStore:
        store = self._verdict_stores.get((purpose.name, verifier))
        if store is None:
            folder = self._run / VERDICTS / verifier
            store = VerdictStore(folder, self._key(purpose), {**purpose.about, "verifier": verifier}, verifier=verifier)
            self._verdict_stores[purpose.name, verifier] = store
        return store

    def _key(self, purpose: AttemptPurpose) -> AttemptKey:
        if self._policy is None:
            self._policy = self._policy_of()
        return purpose.key(self._policy, self._prompt)

    @property
    def _all_stores(self) -> list[KeyedStore]:
        return [*self._stores.values(), *self._verdict_stores.values()]

    def _compact_all(self) -> list[str]:
        for store in self._all_stores:
            store.compact()
        return sorted(str(path.relative_to(self._run)) for folder in _folders(self._run) for path in _parts(folder))

    def _close(self) -> None:
        for store in self._all_stores:
            store.close()

    def _raise_failure(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()


def attempt_tables(run: Path, columns: Sequence[str] = tuple(ATTEMPT)) -> Iterator[pl.DataFrame]:
    """Yield each attempt of a training run once.

    Args:
        columns: of `ATTEMPT`, with problem and index.

    Raises:
        StoreError: attempts are missing or damaged.
    """
    found = False
    for _, store in _stores(run):
        found = True
        yield from store.tables(columns)
    if not found:
        raise StoreError(f'{run} keeps no attempts; train with attempt_store = "texts".')


def read_attempts(
    run: Path,
    columns: Sequence[str] = tuple(ATTEMPT),
    *,
    purpose: str | None = None,
    problems: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return a training run's attempts, sorted by step, purpose, problem and index.

    Args:
        columns: of `ATTEMPT`.
        purpose: ``training`` or ``evaluation``; None: both.

    Raises:
        StoreError: attempts are missing or damaged.
    """
    needed = list(dict.fromkeys([*columns, "problem", "index", "step", "purpose"]))
    frames = []
    for frame in attempt_tables(run, needed):
        wanted = frame if purpose is None else frame.filter(pl.col("purpose") == purpose)
        frames.append(wanted if problems is None else wanted.filter(pl.col("problem").is_in(list(problems))))
    return pl.concat(frames).sort("step", "purpose", "problem", "index").select(columns)


def verdict_tables(run: Path) -> Iterator[pl.DataFrame]:
    """Yield each verdict once, in `VERDICT`; unjudged rollouts have a null ``outcome``."""
    for folder in _folders(run, VERDICTS):
        verifier = str(json.loads((folder / "key.json").read_text(encoding="utf-8"))["verifier"])
        yield from VerdictStore(folder.parent, _read_key(folder), create=False, verifier=verifier).tables()


def count_attempts(run: Path) -> dict[str, int]:
    """Return a run's number of attempts by purpose."""
    counts = Counter[str]()
    for purpose, store in _stores(run):
        counts[purpose] += store.height
    return dict(counts)


def _stores(run: Path) -> Iterator[tuple[str, AttemptStore]]:
    for folder in _folders(run, ATTEMPTS):
        purpose = str(json.loads((folder / "key.json").read_text(encoding="utf-8"))["purpose"])
        yield purpose, AttemptStore(folder.parent, _read_key(folder), create=False)


def _verdict_line(task: TrainingTask, rollout: Rollout) -> dict[str, Any]:
    line = {
        "reference": task.reference_answer,
        "outcome": rollout.outcome.value if rollout.outcome is not None else None,
        "answer": without_surrogates(rollout.answer),
        "answer_class": 0 if rollout.outcome is Outcome.CORRECT else None,
        "method": without_surrogates(rollout.method),
    }
    return {name: value for name, value in line.items() if value is not None}


def _folders(run: Path, *tables: str) -> Iterator[Path]:
    for table in tables or (ATTEMPTS, VERDICTS):
        for path in sorted((run / table).glob("*/key.json" if table == ATTEMPTS else "*/*/key.json")):
            if json.loads(path.read_text(encoding="utf-8")).get("kind") == KIND:
                yield path.parent


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _read_key(folder: Path) -> AttemptKey:
    content = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    return AttemptKey(content["policy"], content["prompt"], content["sampling"])


def _cut_back(run: Path, kept_parts: frozenset[str]) -> None:
    """Remove journals and all other parts."""
    for folder in list(_folders(run)):
        for path in _parts(folder):
            if str(path.relative_to(run)) not in kept_parts:
                path.unlink()
        (folder / "journal.jsonl").unlink(missing_ok=True)
        if not _parts(folder):
            shutil.rmtree(folder)
