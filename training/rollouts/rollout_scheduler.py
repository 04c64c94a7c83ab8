"""The asynchronous collector's bookkeeping: who is admitted, what makes a batch, what became of every attempt.

No engine, no clock and no tasks: whoever drives a `RolloutScheduler` (the training loop with asyncio,
`training.rollouts.simulation` with a heap of events) starts what `admit` hands out and tells it what happened::

    admit → (generation) → generated → (verifier) → judged → … all of a group judged … → batch → (step) → trained

An attempt's place among the n_async is free as soon as its last token is there, and the next one takes it: a group's
attempts start one by one, so that no place waits for a group. Groups are trained on in the order they finish.

Invariants:
  - every admitted attempt is trained on, or dropped with a counted reason, exactly once: `RolloutLedger.balanced`;
  - nothing is dropped for its length or its age, so attempts are trained on as they were sampled. Age is bounded by
    admission: a group opened under policy version v is in batch v + staleness or earlier (batch b is trained by version
    b). Where a slow group is due, the batch waits for it;
  - admitted and not yet handed out attempts never exceed n_async + queue: the queue cannot overflow, and when it is
    full generators stop getting work;
  - batches have n_batch attempts: what is dropped (no diversity) makes room for new groups, a batch never shrinks.
    Attempts that the verifier could not judge leave their group, and count as dropped.

A `state` between two batches can be restored: no attempt is lost or trained on twice.

Not here: what a group's rewards mean (the `fate` that is passed in), weights, generation.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from training.config import CollectorSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """Leave to generate one attempt: ``index`` counts within the group, ``version`` is the policy's at admission.

    Example: ``RolloutRequest(group=12, index=3, problem="5f0c2ab19e7d00112233", version=4)``
    """

    group: int
    index: int
    problem: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What becomes of a finished group.

    ``drop`` is the reason why none of it is trained on, or None; ``excluded`` says for each attempt, in the order
    given, why it alone is left out, or None.
    """

    drop_reason: str | None
    exclusion_reasons: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class RolloutGroup(Generic[T]):
    """A finished group to train on: ``attempts`` with their tickets, and the reasons of those that were left out.

    ``version`` is the policy's when the group was opened.
    """

    number: int
    problem: str
    version: int
    rollouts: tuple[tuple[RolloutRequest, T], ...]
    exclusion_reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RolloutBatch(Generic[T]):
    """What the trainer gets at once: batch number ``number`` is trained by policy version ``number``."""

    number: int
    groups: tuple[RolloutGroup[T], ...]

    def minibatches(self, settings: CollectorSettings) -> tuple[tuple[RolloutGroup[T], ...], ...]:
        """Return the batch in optimiser steps of n_minibatch attempts, groups whole; the last of a last batch may be
        less.
        """
        size = settings.minibatch_size // settings.group_size
        return tuple(self.groups[start : start + size] for start in range(0, len(self.groups), size))


@dataclass(frozen=True, slots=True)
class RolloutLedger:
    """Where all admitted attempts are. ``dropped`` counts by reason."""

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
        """Return whether every admitted attempt is in exactly one place."""
        held = self.running + self.judging + self.waiting + self.ready + self.training
        return self.admitted == held + self.trained + sum(self.dropped.values())


@dataclass(slots=True)
class _PendingGroup(Generic[T]):
    """A group under way: ``settled`` holds what was judged, ``lost`` why an attempt never will be."""

    number: int
    problem: str
    version: int
    issued: int = 0
    settled: dict[int, tuple[RolloutRequest, T]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)


class RolloutScheduler(Generic[T]):
    """The collector. Calls are cheap, synchronous and not thread-safe; drive it from one task.

    Args:
        settings: sizes and bounds.
        fate: decides over a finished group from the results of its judged attempts, in the order of their index.
        draw: the next problem's id, or None while there is none; asked once per group.
    """

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
        """Return attempts of groups that are opened and neither handed out in a batch nor dropped."""
        return (len(self._groups) + len(self._ready)) * self.settings.group_size

    @property
    def idle_slots(self) -> int:
        """Return places of the n_async that generate nothing now."""
        return self.settings.n_async - len(self._running)

    def admit(self) -> RolloutRequest | None:
        """Return the next attempt to start; None where no place is free, the bounds are reached, or no problem is
        there.
        """
        if self.idle_slots <= 0:
            return None
        if self._requeued:
            ticket = self._requeued.popleft()
        else:
            if self._filling is None:
                self._filling = self._open()
            filling = self._filling
            if filling is None:
                return None
            ticket = RolloutRequest(filling.number, filling.issued, filling.problem, self.version)
            filling.issued += 1
            self._admitted += 1
            if filling.issued == self.settings.group_size:
                self._filling = None
        self._running.add(ticket)
        return ticket

    def mark_generated(self, ticket: RolloutRequest) -> None:
        """The attempt is complete and on its way to the verifier; its place is free."""
        if ticket not in self._running:
            raise ValueError(f"{ticket} is not being generated")
        self._running.remove(ticket)
        self._judging.add(ticket)

    def mark_judged(self, ticket: RolloutRequest, result: T) -> None:
        """The attempt has its verdict."""
        if ticket not in self._judging:
            raise ValueError(f"{ticket} is not being judged")
        self._judging.remove(ticket)
        group = self._groups[ticket.group]
        group.settled[ticket.index] = (ticket, result)
        self._settle(group)

    def mark_failed(self, ticket: RolloutRequest, reason: str) -> None:
        """The attempt will never have a verdict, for example because its engine died; counted as dropped."""
        if ticket not in self._running and ticket not in self._judging:
            raise ValueError(f"{ticket} is neither being generated nor judged")
        self._running.discard(ticket)
        self._judging.discard(ticket)
        group = self._groups[ticket.group]
        group.lost[ticket.index] = reason
        self._dropped[reason] += 1
        self._settle(group)

    def next_batch(self, *, partial: bool = False) -> RolloutBatch[T] | None:
        """Return the next batch, or None while it is not complete or must wait for a group that is due.

        Args:
            partial: at the end of the data: take what is ready, even if it is less than a batch.
        """
        room = self.settings.n_batch // self.settings.group_size
        chosen = self._ready[:room] if partial else self._choose(room)
        if not chosen:
            return None
        numbers = {group.number for group in chosen}
        self._ready = [group for group in self._ready if group.number not in numbers]
        batch = RolloutBatch(self.batches_taken, tuple(chosen))
        self._training[batch.number] = batch
        self.batches_taken += 1
        return batch

    def mark_trained(self, batch: RolloutBatch[T]) -> None:
        """The optimiser has taken its steps on the batch."""
        if self._training.pop(batch.number, None) is None:
            raise ValueError(f"batch {batch.number} was not handed out, or has been trained on already")
        self._trained += sum(len(group.rollouts) for group in batch.groups)
        self._dropped.update(reason for group in batch.groups for reason in group.exclusion_reasons)

    def mark_updated(self) -> None:
        """The generators have the next version of the weights."""
        if self.version >= self.batches_taken:
            raise ValueError(f"version {self.version + 1} before batch {self.version} was handed out")
        self.version += 1

    def drop_outstanding(self, reason: str) -> tuple[RolloutRequest, ...]:
        """End of the run: all that is not in a batch is dropped. Returns what is being generated, to be aborted."""
        aborted = tuple(sorted(self._running, key=lambda ticket: (ticket.group, ticket.index)))
        for group in self._groups.values():
            self._dropped[reason] += group.issued - len(group.lost)
        for done in self._ready:
            self._dropped[reason] += len(done.rollouts)
            self._dropped.update(done.exclusion_reasons)
        for held in (self._groups, self._ready, self._requeued, self._running, self._judging):
            held.clear()
        self._filling = None
        return aborted

    def state(self, encode: Callable[[T], Any]) -> dict[str, Any]:
        """Return all of it as what JSON can hold, for a checkpoint between two batches; ``encode`` does a result.

        Raises:
            ValueError: a batch is in training; its attempts would be lost or trained on twice.
        """
        if self._training:
            raise ValueError(f"batches {sorted(self._training)} are in training; take the state after `trained`")
        groups = [
            {
                "number": group.number,
                "problem": group.problem,
                "version": group.version,
                "issued": group.issued,
                "settled": [[ticket.index, ticket.version, encode(one)] for ticket, one in group.settled.values()],
                "lost": [[index, reason] for index, reason in group.lost.items()],
            }
            for group in self._groups.values()
        ]
        ready = [
            {
                "number": group.number,
                "problem": group.problem,
                "version": group.version,
                "attempts": [[ticket.index, ticket.version, encode(one)] for ticket, one in group.rollouts],
                "left_out": list(group.exclusion_reasons),
            }
            for group in self._ready
        ]
        counts = {
            "taken": self.batches_taken,
            "opened": self._opened,
            "admitted": self._admitted,
            "trained": self._trained,
        }
        return {**counts, "dropped": dict(self._dropped), "groups": groups, "ready": ready}

    def restore(self, state: Mapping[str, Any], decode: Callable[[Any], T]) -> None:
        """Go on from a `state`: what was being generated or judged is handed out again, under the same index.

        The generators are taken to have the newest weights.

        Raises:
            ValueError: this scheduler has admitted attempts already.
        """
        if self._opened:
            raise ValueError("only a new scheduler can be restored")
        self.version = self.batches_taken = state["taken"]
        self._opened, self._admitted, self._trained = state["opened"], state["admitted"], state["trained"]
        self._dropped.update(state["dropped"])
        for one in state["groups"]:
            group = _PendingGroup[T](one["number"], one["problem"], one["version"], one["issued"])
            group.settled = {pair[0].index: pair for pair in _pairs(one, one["settled"], decode)}
            group.lost = dict(one["lost"])
            self._groups[group.number] = group
            if group.issued < self.settings.group_size:
                self._filling = group
            waiting = (index for index in range(group.issued) if index not in group.settled | group.lost)
            self._requeued.extend(RolloutRequest(group.number, index, group.problem, self.version) for index in waiting)
        for one in state["ready"]:
            pairs = _pairs(one, one["attempts"], decode)
            self._ready.append(
                RolloutGroup(one["number"], one["problem"], one["version"], pairs, tuple(one["left_out"]))
            )

    def ledger(self) -> RolloutLedger:
        """Return where all admitted attempts are now; those to be generated again after a resume count as running."""
        in_batches = [group for batch in self._training.values() for group in batch.groups]
        return RolloutLedger(
            admitted=self._admitted,
            running=len(self._running) + len(self._requeued),
            judging=len(self._judging),
            waiting=sum(len(group.settled) for group in self._groups.values()),
            ready=_attempts(self._ready),
            training=_attempts(in_batches),
            trained=self._trained,
            dropped={reason: count for reason, count in sorted(self._dropped.items()) if count},
        )

    def _open(self) -> _PendingGroup[T] | None:
        """Return a new group, if the bounds leave room for all of it and there is a problem."""
        settings = self.settings
        by_age = (self.version + settings.max_staleness + 1 - self.batches_taken) * settings.n_batch
        if self.outstanding_rollouts + settings.group_size > min(by_age, settings.max_outstanding):
            return None
        problem = self._draw_problem()
        if problem is None:
            return None
        group = _PendingGroup[T](self._opened, problem, self.version)
        self._opened += 1
        self._groups[group.number] = group
        return group

    def _settle(self, group: _PendingGroup[T]) -> None:
        """Close the group if all its attempts have a verdict or are lost."""
        if len(group.settled) + len(group.lost) < self.settings.group_size:
            return
        del self._groups[group.number]
        attempts = [group.settled[index] for index in sorted(group.settled)]
        if not attempts:
            return
        fate = self._decide_group([result for _, result in attempts])
        kept = tuple(pair for pair, reason in zip(attempts, fate.exclusion_reasons, strict=True) if reason is None)
        left_out = tuple(reason for reason in fate.exclusion_reasons if reason is not None)
        if fate.drop_reason is None and kept:
            self._ready.append(RolloutGroup(group.number, group.problem, group.version, kept, left_out))
            return
        self._dropped.update(left_out)
        self._dropped.update([fate.drop_reason] * len(kept) if fate.drop_reason is not None else [])

    def _choose(self, room: int) -> list[RolloutGroup[T]] | None:
        """Ready groups for the next batch: those that must not wait any longer, then in the order they finished.

        Of the groups due in batch ``taken + d`` or earlier, at most d batches' worth may be left over.
        """
        if len(self._ready) < room:
            return None
        due = Counter(
            group.version - self.batches_taken + self.settings.max_staleness for group in self._groups.values()
        )
        due.update(group.version - self.batches_taken + self.settings.max_staleness for group in self._ready)
        chosen: dict[int, RolloutGroup[T]] = {}
        held = 0
        for distance in sorted(due):
            held += due[distance]
            urgent = [
                group
                for group in self._ready
                if group.version - self.batches_taken + self.settings.max_staleness <= distance
            ]
            short = held - max(distance, 0) * room - len([group for group in urgent if group.number in chosen])
            if short <= 0:
                continue
            fresh = [group for group in urgent if group.number not in chosen]
            if len(fresh) < short:
                return None
            chosen |= {group.number: group for group in fresh[:short]}
        for group in self._ready:
            if len(chosen) >= room:
                break
            chosen.setdefault(group.number, group)
        return [group for group in self._ready if group.number in chosen]


def _pairs(
    group: Mapping[str, Any], rows: Sequence[Any], decode: Callable[[Any], T]
) -> tuple[tuple[RolloutRequest, T], ...]:
    return tuple(
        (RolloutRequest(group["number"], index, group["problem"], version), decode(one)) for index, version, one in rows
    )


def _attempts(groups: Sequence[RolloutGroup[T]]) -> int:
    return sum(len(group.rollouts) + len(group.exclusion_reasons) for group in groups)
