"""A discrete-event simulation of generators, verifiers and trainer, driven by the scheduler that the real loop uses.

It shows, before anything is trained, what the bounds and sizes of a `CollectorSettings` do: how long generators and the
trainer idle, how old rollouts are when they are trained on, and whether their lengths are those that were sampled.

The model: each of the n_async places generates one token per tick whatever the others do; a verdict takes
``verify_ticks``; a step takes ``train_ticks`` per trained token; an update stops all generation for ``update_ticks``.
Real engines slow down with more sequences, which neither loop here knows. Time is in ticks.

Invariants: nothing is random but the lengths, which are drawn in the order of admission. Both loops do the same work.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from training.config import CollectorSettings
from training.rollouts.rollout_scheduler import (
    GroupDecision,
    RolloutBatch,
    RolloutLedger,
    RolloutRequest,
    RolloutScheduler,
)


@dataclass(frozen=True, slots=True)
class SimulationCosts:
    """Durations in ticks; generating a token takes one."""

    train_ticks: float = 0.0005  # per trained token
    verify_ticks: float = 5.0
    update_ticks: float = 2.0


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Idle shares of a simulated run, measured from the first batch after ``warmup`` ones to the last.

    ``trained_lengths`` are in the order of training, ``sampled_lengths`` in the order of admission, of the whole run.
    ``staleness`` are updates between a group's opening and its training, one per trained group.
    """

    generator_idle: float
    trainer_idle: float
    ticks: float
    trained_lengths: tuple[int, ...]
    sampled_lengths: tuple[int, ...]
    staleness: tuple[int, ...]
    ledger: RolloutLedger


def keep_all(lengths: Sequence[int]) -> GroupDecision:
    """Keep every group, whatever its lengths."""
    return GroupDecision(None, (None,) * len(lengths))


@dataclass(slots=True)
class _Clock:
    """Busy time of the n_async places and of the trainer since measuring began."""

    places: int
    now: float = 0.0
    began: float = 0.0
    running: int = 0
    generated: float = 0.0
    trained: float = 0.0

    def forward(self, to: float) -> None:
        self.generated += self.running * (to - self.now)
        self.now = to

    def measure_from_here(self) -> None:
        self.began, self.generated, self.trained = self.now, 0.0, 0.0

    def idle(self) -> tuple[float, float]:
        span = self.now - self.began
        return 1 - self.generated / (span * self.places), 1 - self.trained / span


@dataclass(slots=True)
class _Run:
    """The asynchronous loop: the scheduler, and a heap of what happens next."""

    settings: CollectorSettings
    costs: SimulationCosts
    draw_length: Callable[[], int]
    scheduler: RolloutScheduler[int]
    clock: _Clock
    events: list[tuple[float, int, str, RolloutRequest | None]] = field(default_factory=list)
    lengths: dict[RolloutRequest, int] = field(default_factory=dict)
    sampled: list[int] = field(default_factory=list)
    trained: list[int] = field(default_factory=list)
    staleness: list[int] = field(default_factory=list)
    count: int = 0
    training: RolloutBatch[int] | None = None
    paused_until: float = 0.0

    def schedule_event(self, when: float, kind: str, request: RolloutRequest | None = None) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, kind, request))

    def admit(self) -> None:
        while (request := self.scheduler.admit()) is not None:
            length = self.draw_length()
            self.sampled.append(length)
            self.lengths[request] = length
            wait = max(self.paused_until - self.clock.now, 0.0)
            self.clock.running += 1
            self.clock.generated -= wait
            self.schedule_event(self.clock.now + wait + length, "generated", request)

    def train(self) -> None:
        if self.training is None and (batch := self.scheduler.next_batch()) is not None:
            self.training = batch
            lengths = [length for group in batch.groups for _, length in group.rollouts]
            self.trained += lengths
            self.staleness += [batch.number - group.version for group in batch.groups]
            self.schedule_event(self.clock.now + self.costs.train_ticks * sum(lengths), "stepped")

    def handle_event(self, kind: str, request: RolloutRequest | None) -> None:
        if kind == "stepped" and self.training is not None:
            self.scheduler.mark_trained(self.training)
            self.clock.trained += self.costs.train_ticks * sum(
                length for group in self.training.groups for _, length in group.rollouts
            )
            self.training = None
            self.update()
        elif request is not None and kind == "generated":
            self.clock.running -= 1
            self.scheduler.mark_generated(request)
            self.schedule_event(self.clock.now + self.costs.verify_ticks, "judged", request)
        elif request is not None:
            self.scheduler.mark_judged(request, self.lengths.pop(request))

    def update(self) -> None:
        """Pause generation for new weights; whatever else is under way goes on."""
        pause = self.costs.update_ticks
        later = [
            (when + (kind == "generated") * pause, number, kind, request) for when, number, kind, request in self.events
        ]
        self.events = later
        heapq.heapify(self.events)
        self.clock.generated -= self.clock.running * pause
        self.paused_until = self.clock.now + pause
        self.scheduler.mark_updated()


def simulate_asynchronous(
    settings: CollectorSettings,
    draw_length: Callable[[], int],
    *,
    batches: int,
    warmup: int,
    costs: SimulationCosts | None = None,
    decide_group: Callable[[Sequence[int]], GroupDecision] = keep_all,
) -> SimulationResult:
    """Run the paper's loop: generators never wait for the trainer, unless the bounds say so.

    Args:
        settings: sizes and bounds.
        draw_length: tokens of the next rollout.
        batches: batches to train on, at most; the run stops where nothing can happen any more.
        warmup: batches before measuring begins.
        costs: durations in ticks.
        decide_group: decides over groups, from their rollouts' lengths.
    """
    scheduler = RolloutScheduler[int](settings, decide_group, lambda: "problem")
    run = _Run(settings, costs or SimulationCosts(), draw_length, scheduler, _Clock(settings.n_async))
    run.admit()
    measuring = warmup == 0
    while run.events:
        when, _, kind, request = heapq.heappop(run.events)
        run.clock.forward(when)
        run.handle_event(kind, request)
        if scheduler.version >= batches:
            break
        if not measuring and scheduler.version >= warmup:
            measuring = True
            run.clock.measure_from_here()
        run.train()
        run.admit()
    generator_idle, trainer_idle = run.clock.idle()
    return SimulationResult(
        generator_idle,
        trainer_idle,
        run.clock.now,
        tuple(run.trained),
        tuple(run.sampled),
        tuple(run.staleness),
        scheduler.ledger(),
    )


def simulate_synchronous(
    settings: CollectorSettings, draw_length: Callable[[], int], *, batches: int, costs: SimulationCosts | None = None
) -> SimulationResult:
    """Run the loop that the paper rejects.

    It generates a batch with n_async places, waits for the last rollout, trains, and updates.
    """
    costs = costs or SimulationCosts()
    clock = _Clock(settings.n_async)
    sampled: list[int] = []
    for _ in range(batches):
        lengths = [draw_length() for _ in range(settings.n_batch)]
        sampled += lengths
        free = [clock.now] * settings.n_async
        for length in lengths:  # each place takes the next rollout when it is free
            heapq.heapreplace(free, free[0] + length)
        clock.generated += sum(lengths)
        step = costs.train_ticks * sum(lengths)
        clock.trained += step
        clock.now = max(free) + costs.verify_ticks + step + costs.update_ticks
    idle = clock.idle()
    rollouts = batches * settings.n_batch
    ledger = RolloutLedger(rollouts, 0, 0, 0, 0, 0, rollouts, {})
    ages = (0,) * (rollouts // settings.group_size)
    return SimulationResult(idle[0], idle[1], clock.now, tuple(sampled), tuple(sampled), ages, ledger)
