"""The collector: nothing lost, nothing twice, bounds kept, in any order; and the end of a run that learns nothing."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.policies.completions import TokenCompletion
from curation.records import Outcome
from training.config import CollectorSettings
from training.objectives.credit import filter_group
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision, RolloutRequest, RolloutScheduler
from training.rollouts.rollouts import Rollout
from training.rollouts.stall_monitor import StallMonitor


def keep(results: Sequence[str]) -> GroupDecision:
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
    batch = scheduler.next_batch()
    scheduler.mark_trained(batch)
    scheduler.mark_updated()
    return [group.number for group in batch.groups]


def test_staleness_zero_is_the_synchronous_loop() -> None:
    scheduler = scheduler_of(group_size=2, n_async=8, n_batch=4, max_staleness=0)
    tickets = start(scheduler)
    assert len(tickets) == 4  # a batch and no more
    finish(scheduler, tickets)
    batch = scheduler.next_batch()
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
        group_size=group, n_async=places, n_batch=group * in_batch, max_staleness=staleness
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
    chance, numbers = random.Random(seed), itertools.count()
    scheduler: RolloutScheduler[str] = RolloutScheduler(sizes, keep, lambda: f"p{next(numbers)}")
    running: list[RolloutRequest] = []
    judging: list[RolloutRequest] = []
    issued, trained, batch = [], [], None
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
            if batch := scheduler.next_batch():
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
    [((8, 20, 20), "no multiple of group_size"), ((8, 32, 24), "divide"), ((1, 8, 8), "group_size")],
)
def test_sizes_that_cannot_work_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CollectorSettings(**dict(zip(("group_size", "n_batch", "n_minibatch"), sizes, strict=True)))


def rollout(reward: Reward, finish: str = "stop", text: str = "17 + 25 is 42") -> Rollout:
    completion = TokenCompletion((1,), (5, 6, 7), (-0.1,) * 3, (0,) * 3, text, finish)
    outcome = None if reward.format_error else Outcome.CORRECT if reward.correct else Outcome.WRONG
    return Rollout("p1", completion, reward, outcome, "number")


BROKEN = rollout(Reward(format_error="does not start with <think>"))
WRONG, CORRECT = rollout(Reward(format=0.1)), rollout(Reward(format=0.1, correctness=0.9, correct=True))
CUT = rollout(Reward(format_error="does not start with <think>"), "length")
EXCLUDED = rollout(Reward(excluded_by="timeout"))


def finish_group(watched: StallMonitor, *group: Rollout) -> None:
    watched.record_group(group, filter_group([one.reward for one in group], "reward"))


@pytest.mark.parametrize(
    ("group", "commonest"),
    [
        (CORRECT, "correct: the problems are too easy"),
        (WRONG, "wrong: the problems are too hard"),
        (EXCLUDED, "verifier: timeout: the verifier could not judge"),
        (CUT, "cut off: raise `max_tokens`"),
        (BROKEN, "format: does not start with <think>: "),
    ],
)
def test_it_speaks_once_with_the_advice_of_the_commonest_fate_and_then_asks_for_the_end(
    group: Rollout, commonest: str
) -> None:
    said: list[str] = []
    watched = StallMonitor((8, 32), said.append)
    for _ in range(8):
        assert not watched.is_stalled
        finish_group(watched, *[group] * 4)
    (text,) = said
    assert f"Commonest (100 %): {commonest}" in text
    assert watched.is_stalled
    finish_group(watched, CORRECT, WRONG, CORRECT, WRONG)  # a group to train on begins anew
    assert watched.report().startswith("no attempt")


def test_failed_generations_count_at_once_and_several_ways_to_break_the_format_are_one_kind() -> None:
    said: list[str] = []
    watched = StallMonitor((3, 7), said.append)
    for _ in range(3):
        watched.record_failure("p2", "no server answers\x1b[2J")
    assert "generation failed 3; groups: none finished" in said[0]
    assert 'problem p2: "no server answers [2J"' in said[0]
    ways = [rollout(Reward(format_error=f"{count} <think> and 0 </think>")) for count in range(2, 6)]
    finish_group(watched, *ways)
    assert watched.is_stalled
    assert "Commonest (57 %): format: 2 <think>" in watched.report()  # 4 of 7 broke it, each in its way
