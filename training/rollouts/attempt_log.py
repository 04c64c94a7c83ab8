"""The texts of a training run: every attempt of training and evaluation in an attempt store of the run, with verdicts.

    RUN/attempts/<key>/               `curation.storage.attempts.AttemptStore`: key.json, journal, parts in `ATTEMPT`
    RUN/verdicts/<verifier>/<key>/    `VerdictStore`: the verdict of the verifier that trained, in `VERDICT`

A key is the model that training began with (``model@revision``) and the run's name, the prompt, and what drawing
depends on; training and evaluation have one each. Within it an attempt is named by its problem and an index that no
other has: group times group size plus place for training, step times attempts plus place for evaluation. Its weights
are named by ``version`` and ``newest_version``, its moment by ``step``, as in ``attempts.jsonl``, whose rows (rewards
by component) join on ``rollout_group`` and ``index`` modulo the group size.

`attempt_tables` and `read_attempts` read all of it, `verdict_tables` the verdicts; also while the run goes on.

Invariants: a store holds each finished attempt once, also over kill -9 and resume. For that a checkpoint names the
parts there are at its moment, and resuming removes every part that it does not name, and the journals. All writing is
done by one thread, in the order of recording: the loop never waits for a disk.

Not here: rewards.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import deque
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
"""The kind in key.json; folders of another kind are left alone."""


@dataclass(frozen=True, slots=True)
class AttemptPurpose:
    """What attempts are made for, and all that drawing them depends on.

    Example: ``AttemptPurpose("evaluation", 4, {"temperature": 1.0, "max_tokens": 112, "seed": 1})``
    """

    name: str  # training or evaluation
    per_problem: int  # rollouts of a group, or of a problem in an evaluation
    drawing: dict[str, Any]

    def key(self, policy: str, prompt: str) -> AttemptKey:
        """Return the key of these attempts."""
        content = json.dumps([self.name, self.per_problem, self.drawing], sort_keys=True)
        return AttemptKey(policy, prompt, hashlib.blake2b(content.encode(), digest_size=6).hexdigest())

    @property
    def about(self) -> dict[str, Any]:
        """Return what is in key.json next to the key."""
        return {"kind": KIND, "purpose": self.name, "per_problem": self.per_problem, **self.drawing}


def rollout_origin(purpose: str, step: int, version: int, rollout: Rollout, group: int) -> RolloutOrigin:
    """Return where a finished rollout comes from; ``version`` is the policy's at admission."""
    return RolloutOrigin(purpose, step, version, max(rollout.completion.versions, default=version), group)


class AttemptLog:
    """Writes the attempts of a run. A context manager; leaving it flushes what was recorded.

    Args:
        run: the run's folder.
        purposes: training, and evaluation.
        policy: returns the name that attempts are filed under; called on the writing thread, for it may hash weights.
        prompt: the version of the prompt.
        verifiers: those of the run, open.
        kept_parts: the parts that the checkpoint names which the run goes on from; all others are removed.
        tags: those that the model thinks in; the store has the form of the house.
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
        """Keep a finished rollout; ``index`` counts within its group, or within its problem's evaluation.

        Raises:
            StoreError: an earlier one could not be written.
        """
        if self._storing == "none":
            return
        self._raise_failure()
        self._pending.append(self._thread.submit(self._write, task, rollout, index, origin))

    def checkpoint(self) -> Future[list[str]]:
        """Make parts of all that was recorded until now; return the names of all parts, for the checkpoint."""
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
            store = VerdictStore(folder, self._key(purpose), verifier, {**purpose.about, "verifier": verifier})
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
    """Yield the attempts of a training run in tables of some ten megabytes, each attempt once.

    Args:
        columns: of `ATTEMPT`; must name problem and index.

    Raises:
        StoreError: the run keeps no attempts, or a part of them is damaged.
    """
    folders = list(_folders(run, ATTEMPTS))
    if not folders:
        raise StoreError(f'{run} keeps no attempts; train with attempt_store = "texts".')
    for folder in folders:
        yield from AttemptStore(folder.parent, _read_key(folder), create=False).tables(columns)


def read_attempts(
    run: Path,
    columns: Sequence[str] = tuple(ATTEMPT),
    *,
    purpose: str | None = None,
    problems: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return attempts of a training run, in the order of step, purpose, problem and index.

    Args:
        columns: of `ATTEMPT`.
        purpose: ``training`` or ``evaluation``; both if missing.
        problems: ids; all if missing.

    Raises:
        StoreError: the run keeps no attempts, or a part of them is damaged.
    """
    needed = list(dict.fromkeys([*columns, "problem", "index", "step", "purpose"]))
    frames = []
    for frame in attempt_tables(run, needed):
        wanted = frame if purpose is None else frame.filter(pl.col("purpose") == purpose)
        frames.append(wanted if problems is None else wanted.filter(pl.col("problem").is_in(list(problems))))
    return pl.concat(frames).sort("step", "purpose", "problem", "index").select(columns)


def verdict_tables(run: Path) -> Iterator[pl.DataFrame]:
    """Yield the verdicts that the run was trained on, in the `VERDICT` schema, each once.

    ``outcome`` is null where the format was broken and the verifier was not asked; ``method`` states how.
    """
    for folder in _folders(run, VERDICTS):
        verifier = str(json.loads((folder / "key.json").read_text(encoding="utf-8"))["verifier"])
        yield from VerdictStore(folder.parent, _read_key(folder), verifier, create=False).tables()


def count_attempts(run: Path) -> dict[str, int]:
    """Return how many attempts a run keeps, by purpose; empty where it keeps none."""
    counts: dict[str, int] = {}
    for folder in _folders(run, ATTEMPTS):
        purpose = str(json.loads((folder / "key.json").read_text(encoding="utf-8"))["purpose"])
        store = AttemptStore(folder.parent, _read_key(folder), create=False)
        counts[purpose] = counts.get(purpose, 0) + store.height
    return counts


def _verdict_line(task: TrainingTask, rollout: Rollout) -> dict[str, Any]:
    """Return a verdict as a line of the journal; judged one by one, answers have no class but the reference's."""
    line = {
        "reference": task.reference_answer,
        "outcome": rollout.outcome.value if rollout.outcome is not None else None,
        "answer": without_surrogates(rollout.answer),
        "answer_class": 0 if rollout.outcome is Outcome.CORRECT else None,
        "method": without_surrogates(rollout.method),
    }
    return {name: value for name, value in line.items() if value is not None}


def _folders(run: Path, *tables: str) -> Iterator[Path]:
    """Yield the folders of the run's stores, by name."""
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
    """Remove what was written after the checkpoint that names these parts; a store that had nothing then goes."""
    for folder in list(_folders(run)):
        for path in _parts(folder):
            if str(path.relative_to(run)) not in kept_parts:
                path.unlink()
        (folder / "journal.jsonl").unlink(missing_ok=True)
        if not _parts(folder):
            shutil.rmtree(folder)
