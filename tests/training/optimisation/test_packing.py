"""Packing, dealing to ranks, and collating ahead: nothing is split, lost or too long, little padding and waiting."""

from __future__ import annotations

import math
import random
import threading
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st

from tests.training.optimisation.packed import pack_samples
from tests.training.optimisation.test_trainer import samples, solo
from training.config import PackingSettings
from training.objectives.grpo import GrpoSettings
from training.optimisation.packing import (
    Collation,
    MicroBatch,
    PackingError,
    TrainingSample,
    collate,
    distribute_micro_batches,
    first_fit_decreasing,
    model_tokens,
    plan_micro_batches,
)


def sample(prompt: list[int], response: list[int], **changed: object) -> TrainingSample:
    values = {"generator_logprobs": [-1.0] * len(response), "advantage": 1.0, "token_weight": 0.5, **changed}
    return TrainingSample(prompt_ids=prompt, response_ids=response, **values)  # type: ignore[arg-type]


def test_what_a_micro_batch_holds() -> None:
    one = sample([1, 2, 3], [4, 5], generator_logprobs=[-0.1, -0.2], advantage=2.0)
    other = sample([6], [7], generator_logprobs=[-0.3], token_weight=0.25, mask=[False])
    batch = collate([one, other], (4, 9))
    wanted = {
        "input_ids": [1, 2, 3, 4, 5, 6, 7],
        "position_ids": [0, 1, 2, 3, 4, 0, 1],
        "cu_seqlens": [0, 5, 7],
        "targets": [4, 5, 7],
        "logit_positions": [2, 3, 5],
        "sequence_index": [0, 0, 1],
        "mask": [True, True, False],
        "advantages": [2.0, 1.0],
        "token_weights": [0.5, 0.25],
        "sample_indices": (4, 9),
        "max_seqlen": 5,
    }
    assert numbers(batch).items() >= wanted.items()
    assert batch.generator_logprobs.tolist() == pytest.approx([-0.1, -0.2, -0.3])
    assert batch.input_ids.dtype == batch.targets.dtype == torch.int64
    assert batch.to("cpu").sample_indices == (4, 9)


def test_a_prompt_is_read_once_and_every_sequence_is_unrolled_whole() -> None:
    batch = collate([sample([1, 2], [3, 4]), sample([8], [9]), sample([1, 2], [5])], (0, 1, 2))
    wanted = {
        "input_ids": [1, 2, 3, 4, 8, 9, 5],
        "position_ids": [0, 1, 2, 3, 0, 1, 2],
        "cu_seqlens": [0, 4, 6, 9],
        "logit_positions": [1, 2, 4, 1],  # the prompt's last token foretells two first tokens
        "targets": [3, 4, 9, 5],
        "max_seqlen": 4,
    }
    assert numbers(batch).items() >= wanted.items()
    assert batch.input_ids[batch.unrolled].tolist() == [1, 2, 3, 4, 8, 9, 1, 2, 5]
    assert batch.position_ids[batch.unrolled].tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert batch.unrolled[batch.packed].tolist() == list(range(7))


@tried(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), max_size=40), st.integers(24, 80))
def test_groups_are_kept_together_where_that_pays(drawn: list[tuple[int, int]], room: int) -> None:
    assert first_fit_decreasing([2, 3, 1, 4], PackingSettings(micro_batch_tokens=5)) == [[3, 2], [1, 0]]
    samples = [sample([prompt] * (prompt + 1), [7] * length) for prompt, length in drawn]
    settings, lengths = PackingSettings(micro_batch_tokens=room), [one.length for one in samples]
    bins, singly = plan_micro_batches(samples, settings), first_fit_decreasing(lengths, settings)
    assert sorted(index for chosen in bins for index in chosen) == list(range(len(samples)))
    assert all(sum(lengths[index] for index in chosen) <= room for chosen in bins)

    def cost(found: list[list[int]]) -> int:
        return len(found) * sum(model_tokens(samples, chosen) for chosen in found)

    assert cost(bins) <= cost(singly)
    batches = pack_samples(samples, settings)
    assert [len(batch.input_ids) for batch in batches] == [model_tokens(samples, chosen) for chosen in bins]


def test_an_oversized_sequence_is_refused() -> None:
    with pytest.raises(PackingError, match=r"sequence 1 has 9 tokens.*room for 5"):
        first_fit_decreasing([2, 9, 3], PackingSettings(micro_batch_tokens=5))
    samples = [sample([1] * 6, [2] * length) for length in (1, 9, 2)]
    with pytest.raises(PackingError, match="sequence 1 has 15 tokens"):
        plan_micro_batches(samples, PackingSettings(micro_batch_tokens=12))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": []}, "0 prompt"),
        ({"response": [], "generator_logprobs": []}, "0 response|and 0 response"),
        ({"generator_logprobs": [-1.0]}, "1 log-probabilities"),
        ({"generator_logprobs": [-1.0, -math.inf]}, "-inf"),
        ({"generator_logprobs": [-1.0, math.nan]}, "nan"),
        ({"mask": [True]}, "1 marks"),
    ],
)
def test_samples_that_do_not_fit_together_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(PackingError, match=message):
        sample(**{"prompt": [1], "response": [2, 3], **changed})  # type: ignore[arg-type]


def test_nothing_need_be_packed() -> None:
    samples = [sample([1, 2], [3, 4]), sample([8], [9]), sample([1, 2], [5])]
    alone = pack_samples(samples, PackingSettings(micro_batch_tokens=20, single=True))
    assert [batch.sample_indices for batch in alone] == [(0,), (2,), (1,)]
    assert all(batch.unrolled is None for batch in alone)


@tried(max_examples=40)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(1, 5), st.booleans())
def test_ranks_get_equally_many_micro_batches_and_every_sequence_once(
    lengths: list[int], ranks: int, grouped: bool
) -> None:
    bins = first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=30))
    prompts = [index // (3 if grouped else 1) for index in range(len(lengths))]
    shares = distribute_micro_batches(bins, lengths, ranks, 30, prompts)
    assert len(shares) == ranks
    assert len({len(share) for share in shares}) == 1
    dealt = [index for share in shares for part in share for index in part]
    assert sorted(dealt) == list(range(len(lengths)))
    assert all(sum(lengths[index] for index in part) <= 30 for share in shares for part in share)


def test_the_last_round_is_evened_out_and_ranks_wait_little_for_one_another() -> None:
    bins = first_fit_decreasing([5, 5, 1, 1, 1, 1], PackingSettings(micro_batch_tokens=5))
    assert bins == [[0], [1], [2, 3, 4, 5]]
    assert distribute_micro_batches(bins, [5, 5, 1, 1, 1, 1], 2, 5, range(6)) == [[[0], [3, 5]], [[1], [2, 4]]]
    chance, room = random.Random(0), 32_768
    lengths = [min(int(7000 * chance.lognormvariate(0, 0.7)) + 1, room) for _ in range(512)]
    bins = first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=room))
    assert sum(lengths) > 0.99 * room * len(bins)
    rounds = zip(*distribute_micro_batches(bins, lengths, 8, room, lengths), strict=True)
    longest = sum(max(sum(lengths[index] for index in part) for part in at_once) for at_once in rounds)
    assert sum(lengths) / (8 * longest) >= 0.99  # the share of the ranks' time that is spent working


def numbers(part: MicroBatch) -> dict[str, Any]:
    found = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in found.items()}


def arrived(made: list[TrainingSample], ranks: int) -> list[list[MicroBatch]]:
    collation = Collation(made, PackingSettings(micro_batch_tokens=24), ranks)
    with collation.made() as rounds:
        taken = list(rounds)
    assert len(taken) == len(collation)
    return [[shares[rank] for shares in taken] for rank in range(ranks)]


def test_what_is_sent_to_several_ranks_is_what_one_would_have() -> None:
    made = [
        sample([1 + index % 3] * 4, list(range(2, 4 + index)), mask=[index < 5] * (index + 2)) for index in range(9)
    ]
    parts = [part for share in arrived(made, 2) for part in share]
    for part in parts:
        (alone,) = pack_samples([made[index] for index in part.sample_indices], PackingSettings(micro_batch_tokens=99))
        assert numbers(part) | {"sample_indices": ()} == numbers(alone) | {"sample_indices": ()}
    assert sorted(index for part in parts for index in part.sample_indices) == list(range(9))
    _, (idle,) = arrived([sample([1, 2], [3, 4, 5])], 2)  # a rank without samples gets one that does not count
    assert (idle.sample_indices, idle.mask.tolist()) == ((), [False] * 3)
    assert (idle.advantages.tolist(), idle.token_weights.tolist()) == ([0.0], [0.0])


def half_marked(made: list[TrainingSample]) -> list[TrainingSample]:
    """Return samples of which the shortest alone is marked as on-policy, so that the last round fails."""
    shortest = min(made, key=lambda one: one.length)
    return [replace(one, on_policy=True if one is shortest else None) for one in made]


def test_a_failure_of_the_thread_reaches_the_step_and_the_next_step_is_as_ever() -> None:
    trainer, other = solo(packing={"micro_batch_tokens": 40}), solo(packing={"micro_batch_tokens": 40})
    with pytest.raises(PackingError, match=r"1 of \d+ samples of a micro-batch have `on_policy`"):
        trainer.step(half_marked(samples()), GrpoSettings())
    assert not any(thread.name.startswith("collation") for thread in threading.enumerate())
    assert trainer.steps_taken == 0
    after, undisturbed = (one.step(samples(), GrpoSettings()) for one in (trainer, other))
    assert (after.loss, after.gradient_norm) == (undisturbed.loss, undisturbed.gradient_norm)
