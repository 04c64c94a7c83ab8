"""Packing: nothing is split or lost, first-fit decreasing as defined, little padding, positions anew everywhere."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.config import PackingSettings
from training.optimisation.collating import collate, pack_samples
from training.optimisation.packing import (
    PackingError,
    TrainingSample,
    first_fit_decreasing,
    model_tokens,
    padding_share,
    plan_micro_batches,
)


def naive(lengths: list[int], room: int) -> list[list[int]]:
    """First-fit decreasing by looking at every bin in turn."""
    bins: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda one: -lengths[one]):
        for chosen in bins:
            if sum(lengths[one] for one in chosen) + lengths[index] <= room:
                chosen.append(index)
                break
        else:
            bins.append([index])
    return bins


@given(st.lists(st.integers(1, 20), max_size=60), st.integers(20, 60))
def test_it_is_first_fit_decreasing(lengths: list[int], room: int) -> None:
    bins = first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=room))
    assert bins == naive(lengths, room)
    assert sorted(index for chosen in bins for index in chosen) == list(range(len(lengths)))


def test_little_room_is_left_on_log_normal_lengths() -> None:
    chance, room = random.Random(0), 32_768
    lengths = [min(int(7000 * chance.lognormvariate(0, 0.7)) + 1, room) for _ in range(2048)]
    assert padding_share(first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=room)), lengths, room) < 0.01


def sample(prompt: list[int], response: list[int], **changed: object) -> TrainingSample:
    values = {"generator_logprobs": [-1.0] * len(response), "advantage": 1.0, "token_weight": 0.5, **changed}
    return TrainingSample(prompt_ids=prompt, response_ids=response, **values)  # type: ignore[arg-type]


def test_what_a_micro_batch_holds() -> None:
    one = sample([1, 2, 3], [4, 5], generator_logprobs=[-0.1, -0.2], advantage=2.0)
    other = sample([6], [7], generator_logprobs=[-0.3], token_weight=0.25, mask=[False])
    batch = collate([one, other], (4, 9))
    assert batch.input_ids.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert batch.input_ids.dtype == batch.targets.dtype == torch.int64
    assert batch.position_ids.tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert batch.cu_seqlens.tolist() == [0, 5, 7]
    assert batch.input_ids[batch.logit_positions + 1].tolist() == batch.targets.tolist() == [4, 5, 7]
    assert batch.sequence_index.tolist() == [0, 0, 1]
    torch.testing.assert_close(batch.generator_logprobs, torch.tensor([-0.1, -0.2, -0.3]))
    assert batch.mask.tolist() == [True, True, False]
    assert batch.advantages.tolist() == [2.0, 1.0]
    assert batch.weights.tolist() == [0.5, 0.25]
    assert (batch.sample_indices, batch.max_seqlen, batch.num_tokens) == ((4, 9), 5, 7)
    assert batch.to("cpu").sample_indices == (4, 9)


def test_a_prompt_is_read_once_and_every_sequence_is_unrolled_whole() -> None:
    first, other, second = sample([1, 2], [3, 4]), sample([8], [9]), sample([1, 2], [5])
    batch = collate([first, other, second], (0, 1, 2))
    assert batch.input_ids.tolist() == [1, 2, 3, 4, 8, 9, 5]
    assert batch.position_ids.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert batch.unrolled is not None
    assert batch.packed is not None
    assert batch.input_ids[batch.unrolled].tolist() == [1, 2, 3, 4, 8, 9, 1, 2, 5]
    assert batch.position_ids[batch.unrolled].tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert batch.unrolled[batch.packed].tolist() == list(range(7))
    assert batch.cu_seqlens.tolist() == [0, 4, 6, 9]
    assert batch.logit_positions.tolist() == [1, 2, 4, 1]  # the prompt's last token foretells two first tokens
    assert batch.targets.tolist() == [3, 4, 9, 5]
    assert (batch.max_seqlen, batch.num_tokens) == (4, 7)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), max_size=40), st.integers(24, 80))
def test_groups_are_kept_together_where_that_pays(drawn: list[tuple[int, int]], room: int) -> None:
    samples = [sample([prompt] * (prompt + 1), [7] * length) for prompt, length in drawn]
    settings, lengths = PackingSettings(micro_batch_tokens=room), [one.length for one in samples]
    bins, singly = plan_micro_batches(samples, settings), first_fit_decreasing(lengths, settings)
    assert sorted(index for chosen in bins for index in chosen) == list(range(len(samples)))
    assert all(sum(lengths[index] for index in chosen) <= room for chosen in bins)

    def cost(found: list[list[int]]) -> int:
        return len(found) * sum(model_tokens(samples, chosen) for chosen in found)

    assert cost(bins) <= cost(singly)
    batches = pack_samples(samples, settings)
    assert [batch.num_tokens for batch in batches] == [model_tokens(samples, chosen) for chosen in bins]


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
