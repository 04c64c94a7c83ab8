"""Micro-batches over ranks: nothing lost or too long, equally many for all, and little waiting where it can be had."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.optimisation.test_packing import sample
from training.config import PackingSettings
from training.optimisation.balancing import deal_samples, distribute_micro_batches, waiting_share
from training.optimisation.packing import first_fit_decreasing, model_tokens, plan_micro_batches


@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(1, 5), st.booleans())
def test_ranks_get_equally_many_micro_batches_and_every_sequence_once(
    lengths: list[int], ranks: int, grouped: bool
) -> None:
    bins = first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=30))
    prompts = [index // 3 for index in range(len(lengths))] if grouped else None
    shares = distribute_micro_batches(bins, lengths, ranks, 30, prompts)
    assert len(shares) == ranks
    assert len({len(share) for share in shares}) == 1
    dealt = [index for share in shares for part in share for index in part]
    assert sorted(dealt) == list(range(len(lengths)))
    assert all(sum(lengths[index] for index in part) <= 30 for share in shares for part in share)
    assert 0 <= waiting_share(shares, lengths) < 1


def test_a_round_waits_for_its_longest() -> None:
    assert waiting_share([[[0]], [[1]]], [4, 2]) == pytest.approx(1 - 6 / 8)
    assert waiting_share([[[0], [3]], [[1, 2], []]], [4, 2, 2, 3]) == pytest.approx(1 - 11 / 14)


def test_the_last_round_is_evened_out() -> None:
    bins = first_fit_decreasing([5, 5, 1, 1, 1, 1], PackingSettings(micro_batch_tokens=5))
    assert bins == [[0], [1], [2, 3, 4, 5]]
    assert distribute_micro_batches(bins, [5, 5, 1, 1, 1, 1], 2, 5) == [[[0], [3, 5]], [[1], [2, 4]]]


def test_sequences_of_one_prompt_stay_together_where_they_can() -> None:
    made = [sample([1 + index // 2] * 4, [7]) for index in range(8)]
    settings = PackingSettings(micro_batch_tokens=20)
    for share in deal_samples(made, plan_micro_batches(made, settings), 2, settings):
        assert sum(model_tokens(made, part) for part in share) == 2 * 6  # each of two prompts is read once


@pytest.mark.parametrize(("sequences", "ranks", "most"), [(8192, 64, 0.002), (2048, 256, 0.02)])
def test_ranks_wait_little_for_one_another(sequences: int, ranks: int, most: float) -> None:
    chance, room = random.Random(1), 32_768
    lengths = [min(int(7000 * chance.lognormvariate(0, 0.7)) + 1, room) for _ in range(sequences)]
    bins = first_fit_decreasing(lengths, PackingSettings(micro_batch_tokens=room))
    assert waiting_share(distribute_micro_batches(bins, lengths, ranks, room), lengths) <= most
