"""Micro-batches collated beside the step: the same as all at once, few ahead, failures told, no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from tests.training.optimisation.test_packing import sample
from tests.training.optimisation.test_trainer import samples, solo
from tests.waiting import PATIENCE_S
from training.config import PackingSettings
from training.objectives.grpo import GrpoSettings
from training.optimisation import look_ahead
from training.optimisation.collating import pack_samples
from training.optimisation.look_ahead import LOOK_AHEAD, Arrivals, Collation
from training.optimisation.packing import MicroBatch, PackingError, TrainingSample

SETTINGS = PackingSettings(micro_batch_tokens=24)
CPU = torch.device("cpu")


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("collation")]


def numbers(part: MicroBatch) -> dict[str, Any]:
    found = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in found.items()}


def arrived(made: list[TrainingSample], ranks: int, settings: PackingSettings = SETTINGS) -> list[list[MicroBatch]]:
    """Return each rank's micro-batches, as they come."""
    collation = Collation(made, settings, ranks)
    with collation.made() as rounds:
        taken = list(rounds)
    assert len(taken) == len(collation)
    return [list(Arrivals(iter([shares[rank] for shares in taken]), CPU)) for rank in range(ranks)]


def test_what_arrives_is_what_is_packed_at_once() -> None:
    made = [sample([1 + index % 3] * 4, list(range(2, 4 + index))) for index in range(12)]
    (parts,) = arrived(made, 1)
    packed = sorted(map(numbers, pack_samples(made, SETTINGS)), key=lambda one: one["sample_indices"])
    assert sorted(map(numbers, parts), key=lambda one: one["sample_indices"]) == packed
    assert any(part.unrolled is not None for part in parts)


def test_what_is_sent_to_several_ranks_is_what_one_would_have() -> None:
    made = [
        sample([1 + index % 3] * 4, list(range(2, 4 + index)), mask=[index < 5] * (index + 2)) for index in range(9)
    ]
    shares = arrived(made, 2)
    for part in (part for share in shares for part in share):
        (alone,) = pack_samples([made[index] for index in part.sample_indices], PackingSettings(micro_batch_tokens=99))
        assert numbers(part) | {"sample_indices": ()} == numbers(alone) | {"sample_indices": ()}
    assert sorted(index for share in shares for part in share for index in part.sample_indices) == list(range(9))


def test_a_rank_without_samples_gets_one_that_does_not_count() -> None:
    _, (idle,) = arrived([sample([1, 2], [3, 4, 5])], 2)
    assert (idle.sample_indices, idle.mask.tolist()) == ((), [False] * 3)
    assert (idle.advantages.tolist(), idle.weights.tolist()) == ([0.0], [0.0])


def test_few_rounds_are_made_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, gather = [], look_ahead.gather
    ready = threading.Semaphore(0)

    def counted(*values: Any, **options: Any) -> Any:
        begun.append(values)
        arrays = gather(*values, **options)
        ready.release()
        return arrays

    monkeypatch.setattr(look_ahead, "gather", counted)
    collation = Collation([sample([index], [1] * 20) for index in range(8)], SETTINGS, 1)
    with collation.made() as rounds:
        for taken in range(1, 9):
            next(rounds)
            while len(begun) < min(taken + LOOK_AHEAD, 8):
                assert ready.acquire(timeout=PATIENCE_S)
            assert len(begun) == min(taken + LOOK_AHEAD, 8)
        assert next(rounds, None) is None
    assert not threads()


def half_marked(made: list[TrainingSample]) -> list[TrainingSample]:
    """Return samples of which the shortest alone is marked as on-policy, so that the last round fails."""
    shortest = min(made, key=lambda one: one.length)
    return [replace(one, on_policy=True if one is shortest else None) for one in made]


def test_a_failure_of_the_thread_reaches_the_step_and_the_next_step_is_as_ever() -> None:
    trainer, other = solo(packing={"micro_batch_tokens": 40}), solo(packing={"micro_batch_tokens": 40})
    with pytest.raises(PackingError, match=r"1 of \d+ samples of a micro-batch have `on_policy`"):
        trainer.step(half_marked(samples()), GrpoSettings())
    assert not threads()
    assert trainer.steps_taken == 0
    after, undisturbed = (one.step(samples(), GrpoSettings()) for one in (trainer, other))
    assert (after.loss, after.gradient_norm) == (undisturbed.loss, undisturbed.gradient_norm)


def test_a_failed_step_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, failed = solo(packing={"micro_batch_tokens": 40}), RuntimeError("out of memory")

    def fail(*_: Any) -> Iterator[Any]:
        assert threads()
        raise failed

    monkeypatch.setattr(trainer, "_scored", fail)
    with pytest.raises(RuntimeError) as raised:
        trainer.step(samples(), GrpoSettings())
    assert raised.value is failed
    assert not threads()
