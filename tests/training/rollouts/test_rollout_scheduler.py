"""The collector's bookkeeping: nothing lost, nothing twice, bounds kept, whatever order things finish in."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from training.config import CollectorSettings
from training.rollouts.rollout_scheduler import GroupDecision, RolloutBatch, RolloutRequest, RolloutScheduler


def keep(results: Sequence[str]) -> GroupDecision:
    """Groups with a "bad" attempt are dropped, attempts that are "broken" are left out."""
    excluded = tuple("broken" if result == "broken" else None for result in results)
    return GroupDecision("no_diversity" if "bad" in results else None, excluded)


def scheduler_of(problems: int | None = None, **sizes: int) -> RolloutScheduler[str]:
    numbers = iter(range(10**9 if problems is None else problems))
    return RolloutScheduler(CollectorSettings(**sizes), keep, lambda: next((f"p{one}" for one in numbers), None))


def start(scheduler: RolloutScheduler[str]) -> list[RolloutRequest]:
    return list(iter(scheduler.admit, None))


def finish(scheduler: RolloutScheduler[str], tickets: Sequence[RolloutRequest], result: str = "good") -> None:
    for ticket in tickets:
        scheduler.mark_generated(ticket)
        scheduler.mark_judged(ticket, result)


def step(scheduler: RolloutScheduler[str]) -> list[int]:
    """Train on the next batch; the numbers of its groups."""
    batch = scheduler.next_batch()
    assert batch is not None
    scheduler.mark_trained(batch)
    scheduler.mark_updated()
    return [group.number for group in batch.groups]


def test_staleness_zero_is_the_synchronous_loop() -> None:
    scheduler = scheduler_of(group_size=2, n_async=8, n_batch=4, max_staleness=0)
    tickets = start(scheduler)
    assert len(tickets) == 4  # a batch and no more
    finish(scheduler, tickets)
    batch = scheduler.next_batch()
    assert batch is not None
    assert start(scheduler) == []
    scheduler.mark_trained(batch)
    scheduler.mark_updated()
    assert {ticket.version for ticket in start(scheduler)} == {1}


def test_a_batch_waits_for_a_group_that_is_due() -> None:
    scheduler = scheduler_of(group_size=2, n_async=6, n_batch=2, max_staleness=1)
    slow, *_ = tickets = start(scheduler)
    assert len(tickets) == 4  # (staleness + 1) batches
    finish(scheduler, tickets[2:])
    assert step(scheduler) == [1]
    finish(scheduler, [ticket for ticket in start(scheduler) if ticket.group != 0])
    assert scheduler.next_batch() is None  # group 0 is due in this batch
    finish(scheduler, tickets[1:2])
    finish(scheduler, [slow])
    assert step(scheduler) == [0]


SIZES = st.builds(
    lambda group, in_batch, places, staleness: CollectorSettings(
        group_size=group,
        n_async=places,
        n_batch=group * in_batch,
        max_staleness=staleness,
    ),
    st.integers(2, 4),
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(0, 4),
)


@settings(max_examples=60)
@given(SIZES, st.integers(0, 10**6), st.booleans())
def test_every_attempt_is_trained_on_or_dropped_exactly_once(
    sizes: CollectorSettings, seed: int, resumed: bool
) -> None:
    """A random run: finishes, verdicts, losses and steps in any order; all is accounted for at every moment."""
    chance = random.Random(seed)
    numbers = itertools.count()
    scheduler: RolloutScheduler[str] = RolloutScheduler(sizes, keep, lambda: f"p{next(numbers)}")
    running: list[RolloutRequest] = []
    judging: list[RolloutRequest] = []
    issued: list[RolloutRequest] = []
    trained: list[tuple[int, int]] = []
    batch: RolloutBatch[str] | None = None
    for _ in range(300):
        new = start(scheduler)
        issued += new
        running += new
        act = chance.random()
        if act < 0.45 and running:
            judging.append(running.pop(chance.randrange(len(running))))
            scheduler.mark_generated(judging[-1])
        elif act < 0.9 and judging:
            result = chance.choices(["good", "bad", "broken"], [40, 1, 2])[0]
            scheduler.mark_judged(judging.pop(chance.randrange(len(judging))), result)
        elif act < 0.91 and running:
            scheduler.mark_failed(running.pop(chance.randrange(len(running))), "engine_died")
        elif batch is None:
            batch = scheduler.next_batch()
            if batch is not None:
                whole = sum(len(group.rollouts) + len(group.exclusion_reasons) for group in batch.groups)
                assert whole <= sizes.n_batch
                assert len(batch.groups) == sizes.n_batch // sizes.group_size
                assert all(batch.number - group.version <= sizes.max_staleness for group in batch.groups)
        else:
            scheduler.mark_trained(batch)
            scheduler.mark_updated()
            trained += [(one.group, one.index) for group in batch.groups for one, _ in group.rollouts]
            batch = None
        if resumed and batch is None and chance.random() < 0.02:  # killed here: what was under way comes again
            before, admitted = json.dumps(scheduler.state()), scheduler.ledger().admitted
            scheduler = RolloutScheduler(sizes, keep, lambda: f"p{next(numbers)}")
            scheduler.restore(json.loads(before), str)
            under_way = {(one.group, one.index) for one in [*running, *judging]}
            running, judging = [], []
            issued = [one for one in issued if (one.group, one.index) not in under_way]
            assert scheduler.ledger().admitted == admitted
        assert scheduler.ledger().balanced
        assert len(running) <= sizes.n_async
        assert scheduler.outstanding_rollouts <= sizes.max_outstanding
    again = scheduler.ledger().running - len(scheduler._running)  # restored, not yet handed out
    assert len({(one.group, one.index) for one in issued}) == len(issued) == scheduler.ledger().admitted - again
    assert len(set(trained)) == len(trained) == scheduler.ledger().trained
    scheduler.drop_outstanding("end_of_run")
    if batch is not None:
        scheduler.mark_trained(batch)
    ledger = scheduler.ledger()
    assert ledger.admitted == ledger.trained + sum(ledger.dropped.values())


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"group_size": 8, "n_batch": 20}, "no multiple of group_size"),
        ({"group_size": 8, "n_batch": 32, "n_minibatch": 24}, "divide"),
        ({"group_size": 1}, "group_size"),
    ],
)
def test_sizes_that_cannot_work_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CollectorSettings(**sizes)
