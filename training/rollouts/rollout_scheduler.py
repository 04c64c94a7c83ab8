"""Track every rollout of the asynchronous collector. The training loop starts what `admit` returns::

    admit → (generation) → mark_generated → (verifier) → mark_judged → … all of a group judged … → next_batch
        → (optimiser steps) → mark_trained → (weights handed over) → mark_updated

Invariants:

- every admitted rollout is trained on, or dropped with a counted reason, once, also after a restore;
- nothing is dropped for its length or age; a group opened under version v is in batch v + max_staleness or earlier;
- at most `max_outstanding` rollouts are in open or ready groups;
- a batch has n_batch rollouts, with excluded ones;
- a `REFUSED` rollout drops its group.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from training.config import CollectorSettings

T = TypeVar("T")
REFUSED = "refused"  # reason of rollouts whose prompt no server answers


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """A rollout to generate by policy ``version`` or newer."""

    group: int
    index: int
    problem: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """Why a group is dropped, and each rollout excluded; None: it is not."""

    drop_reason: str | None
    exclusion_reasons: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class RolloutGroup(Generic[T]):
    """A finished group; ``version`` is the policy's at its opening."""

    number: int
    problem: str
    version: int
    rollouts: tuple[tuple[RolloutRequest, T], ...]
    exclusion_reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RolloutBatch(Generic[T]):
    """The groups that policy version ``number`` trains on."""

    number: int
    groups: tuple[RolloutGroup[T], ...]


@dataclass(frozen=True, slots=True)
class RolloutLedger:
    """Counts of rollouts by state and drop reason."""

    admitted: int
    running: int
    judging: int
    waiting: int  # judged, their group unfinished
    ready: int
    training: int
    trained: int
    dropped: Mapping[str, int]

    @property
    def balanced(self) -> bool:
        """Return whether every admitted rollout has one state."""
        outstanding = self.running + self.judging + self.waiting + self.ready + self.training
        return self.admitted == outstanding + self.trained + sum(self.dropped.values())


@dataclass(slots=True)
class _PendingGroup(Generic[T]):
    """Results and failure reasons by index."""

    number: int
    problem: str
    version: int
    issued: int = 0
    judged: dict[int, tuple[RolloutRequest, T]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


class RolloutScheduler(Generic[T]):
    """The collector's rollouts; not thread-safe."""

    def __init__(
        self,
        settings: CollectorSettings,
        decide_group: Callable[[Sequence[T]], GroupDecision],
        draw_problem: Callable[[], str | None],
    ) -> None:
        self.settings = settings
        self.version = 0
        self.batches_taken = 0
        self._decide_group = decide_group
        self._draw_problem = draw_problem
        self._groups: dict[int, _PendingGroup[T]] = {}
        self._filling: _PendingGroup[T] | None = None
        self._requeued: deque[RolloutRequest] = deque()
        self._running: set[RolloutRequest] = set()
        self._judging: set[RolloutRequest] = set()
        self._ready: list[RolloutGroup[T]] = []
        self._training: dict[int, RolloutBatch[T]] = {}
        self._opened = self._admitted = self._trained = 0
        self._dropped: Counter[str] = Counter()

    @property
    def outstanding_rollouts(self) -> int:
        """Return the rollouts of open and ready groups when full."""
        return (len(self._groups) + len(self._ready)) * self.settings.group_size

    def admit(self) -> RolloutRequest | None:
        """Return the next rollout to start, if any."""
        if len(self._running) >= self.settings.n_async:
            return None
        if self._requeued:
            request = self._requeued.popleft()
        else:
            if self._filling is None:
                self._filling = self._open_group()
            filling = self._filling
            if filling is None:
                return None
            request = RolloutRequest(filling.number, filling.issued, filling.problem, self.version)
            filling.issued += 1
            self._admitted += 1
            if filling.issued == self.settings.group_size:
                self._filling = None
        self._running.add(request)
        return request

    def mark_generated(self, request: RolloutRequest) -> None:
        """Free a rollout's slot."""
        if request not in self._running:
            raise ValueError(f"{request} is not being generated")
        self._running.remove(request)
        self._judging.add(request)

    def mark_judged(self, request: RolloutRequest, result: T) -> None:
        """Record a result, and close a complete group."""
        if request not in self._judging:
            raise ValueError(f"{request} is not being judged")
        self._judging.remove(request)
        group = self._groups[request.group]
        group.judged[request.index] = (request, result)
        self._close_if_complete(group)

    def mark_failed(self, request: RolloutRequest, reason: str) -> None:
        """Drop a rollout without a verdict."""
        if request not in self._running and request not in self._judging:
            raise ValueError(f"{request} is neither being generated nor judged")
        self._running.discard(request)
        self._judging.discard(request)
        group = self._groups[request.group]
        group.failed[request.index] = reason
        self._dropped[reason] += 1
        self._close_if_complete(group)

    def next_batch(self) -> RolloutBatch[T] | None:
        """Return the next batch if complete."""
        groups = self._select_groups(self.settings.n_batch // self.settings.group_size)
        if not groups:
            return None
        numbers = {group.number for group in groups}
        self._ready = [group for group in self._ready if group.number not in numbers]
        batch = RolloutBatch(self.batches_taken, tuple(groups))
        self._training[batch.number] = batch
        self.batches_taken += 1
        return batch

    def empty_batch(self) -> RolloutBatch[T]:
        """Return a numbered batch without rollouts."""
        self.batches_taken += 1
        return self._training.setdefault(self.batches_taken - 1, RolloutBatch(self.batches_taken - 1, ()))

    def mark_trained(self, batch: RolloutBatch[T]) -> None:
        """Record the optimiser steps on a batch."""
        if self._training.pop(batch.number, None) is None:
            raise ValueError(f"batch {batch.number} was not handed out, or has been trained on already")
        self._trained += sum(len(group.rollouts) for group in batch.groups)
        self._dropped.update(reason for group in batch.groups for reason in group.exclusion_reasons)

    def mark_updated(self) -> None:
        """Record that the generators have the next weights."""
        if self.version >= self.batches_taken:
            raise ValueError(f"version {self.version + 1} before batch {self.version} was handed out")
        self.version += 1

    def drop_outstanding(self, reason: str) -> None:
        """Drop all that is not in a batch."""
        for group in self._groups.values():
            self._dropped[reason] += group.issued - len(group.failed)
        for ready_group in self._ready:
            self._dropped[reason] += len(ready_group.rollouts)
            self._dropped.update(ready_group.exclusion_reasons)
        for collection in (self._groups, self._ready, self._requeued, self._running, self._judging):
            collection.clear()
        self._filling = None

    def state(self) -> dict[str, Any]:
        """Return the state between two batches as JSON."""
        if self._training:
            raise ValueError(f"batches {sorted(self._training)} are in training; take the state after `mark_trained`")
        counts = {"taken": self.batches_taken, "opened": self._opened, "admitted": self._admitted}
        groups = {"groups": [*self._groups.values()], "ready": self._ready}
        state: dict[str, Any] = to_jsonable_python(
            {**counts, "trained": self._trained, "dropped": self._dropped, **groups}
        )
        return state

    def restore(self, state: Mapping[str, Any], result: type[T]) -> None:
        """Restore a `state`; unfinished rollouts are admitted again. ``result`` is a dataclass or a plain type."""
        if self._opened:
            raise ValueError("only a new scheduler can be restored")
        self.version = self.batches_taken = state["taken"]
        self._opened, self._admitted, self._trained = state["opened"], state["admitted"], state["trained"]
        self._dropped.update(state["dropped"])
        pending = TypeAdapter(list[_PendingGroup[result]])  # type: ignore[valid-type]
        for group in pending.validate_python(state["groups"]):
            self._groups[group.number] = group
            if group.issued < self.settings.group_size:
                self._filling = group
            waiting = (index for index in range(group.issued) if index not in group.judged | group.failed)
            self._requeued.extend(RolloutRequest(group.number, index, group.problem, self.version) for index in waiting)
        self._ready = TypeAdapter(list[RolloutGroup[result]]).validate_python(state["ready"])  # type: ignore[valid-type]

    def ledger(self) -> RolloutLedger:
        """Count rollouts by state; requeued ones count as running."""
        in_batches = [group for batch in self._training.values() for group in batch.groups]
        return RolloutLedger(
            admitted=self._admitted,
            running=len(self._running) + len(self._requeued),
            judging=len(self._judging),
            waiting=sum(len(group.judged) for group in self._groups.values()),
            ready=_rollout_count(self._ready),
            training=_rollout_count(in_batches),
            trained=self._trained,
            dropped={reason: count for reason, count in sorted(self._dropped.items()) if count},
        )

    def _open_group(self) -> _PendingGroup[T] | None:
        settings = self.settings
        by_age = (self.version + settings.max_staleness + 1 - self.batches_taken) * settings.n_batch
        has_room = self.outstanding_rollouts + settings.group_size <= min(by_age, settings.max_outstanding)
        if not has_room or (problem := self._draw_problem()) is None:
            return None
        group = _PendingGroup[T](self._opened, problem, self.version)
        self._opened += 1
        self._groups[group.number] = group
        return group

    def _close_if_complete(self, group: _PendingGroup[T]) -> None:
        if len(group.judged) + len(group.failed) < self.settings.group_size:
            return
        del self._groups[group.number]
        rollouts = [group.judged[index] for index in sorted(group.judged)]
        if not rollouts or REFUSED in group.failed.values():
            self._dropped.update([REFUSED] * len(rollouts))
            return
        decision = self._decide_group([result for _, result in rollouts])
        reasons = decision.exclusion_reasons
        trainable = tuple(pair for pair, reason in zip(rollouts, reasons, strict=True) if reason is None)
        exclusion_reasons = tuple(reason for reason in reasons if reason is not None)
        if decision.drop_reason is None and trainable:
            self._ready.append(RolloutGroup(group.number, group.problem, group.version, trainable, exclusion_reasons))
            return
        self._dropped.update(exclusion_reasons)
        self._dropped.update([decision.drop_reason] * len(trainable) if decision.drop_reason is not None else [])

    def _select_groups(self, room: int) -> list[RolloutGroup[T]] | None:
        """Select ready groups: urgent ones, then the first finished.

        Of the groups due by batch ``taken + d``, at most d batches' worth may be left.
        """
        if len(self._ready) < room:
            return None
        oldest = self.batches_taken - self.settings.max_staleness
        due = Counter(group.version - oldest for group in self._groups.values())
        due.update(group.version - oldest for group in self._ready)
        selected, due_count = dict[int, RolloutGroup[T]](), 0
        for distance in sorted(due):
            due_count += due[distance]
            urgent = [group for group in self._ready if group.version - oldest <= distance]
            fresh = [group for group in urgent if group.number not in selected]
            lacking = due_count - max(distance, 0) * room - (len(urgent) - len(fresh))
            if len(fresh) < lacking:
                return None
            selected |= {group.number: group for group in fresh[: max(lacking, 0)]}
        for group in self._ready:
            if len(selected) >= room:
                break
            selected.setdefault(group.number, group)
        return [group for group in self._ready if group.number in selected]


def _rollout_count(groups: Sequence[RolloutGroup[T]]) -> int:
    return sum(len(group.rollouts) + len(group.exclusion_reasons) for group in groups)
