"""Log-probabilities with which nothing can be drawn: found, left out of samples and runs, counted, and too many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.training.engines.embedded.test_run import small
from tests.training.evaluation.test_metrics import GROUPS, group, rollout
from training.checks import ModelCheckError
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.generation.generators import TorchGenerator
from training.objectives.grpo import GrpoSettings
from training.rollouts.batches import build_samples, impossible_tokens
from training.rollouts.impossible import impossible_positions, possible_mask
from training.rollouts.rollouts import Rollout

FLOOR = -9999.0
"""vLLM's."""


def with_logprobs(one: Rollout, logprobs: Sequence[float]) -> Rollout:
    return replace(one, completion=replace(one.completion, logprobs=tuple(logprobs)))


def test_what_a_token_can_and_cannot_be_drawn_with() -> None:
    impossible, possible = [FLOOR, -math.inf, math.inf, math.nan, -104.0, 0.01], [0.0, 1e-6, -1e-6, -17.3, -103.0]
    assert impossible_positions([*possible, *impossible]) == list(range(5, 11))
    assert possible_mask([*impossible, -3.0]) == [False] * 6 + [True]
    assert possible_mask(possible) is None


def test_such_tokens_weigh_nothing_and_their_rollouts_stay() -> None:
    """Group 0 loses one of its 6 tokens; its advantages stay, and its other tokens weigh 1 / (5 · 2)."""
    (request, wrong) = GROUPS[0].rollouts[1]
    damaged = (request, with_logprobs(wrong, [-0.5, FLOOR, -0.5, -0.5]))
    changed = replace(GROUPS[0], rollouts=(GROUPS[0].rollouts[0], damaged))
    samples = build_samples((changed, GROUPS[1]), GrpoSettings())
    assert [sample.mask for sample in samples] == [None, [True, False, True, True], None, None]
    assert [sample.token_weight for sample in samples] == pytest.approx([1 / 10, 1 / 10, 1 / 12, 1 / 12])
    assert [sample.advantage for sample in samples] == pytest.approx([1, -1, 1, -1])


def test_few_are_counted_and_many_end_the_run_with_the_right_advice() -> None:
    one = group(0, rollout(True, 9), with_logprobs(rollout(False, 11), [-0.5] * 10 + [FLOOR]))
    sentence = "1 of 20 tokens of the batch have an impossible log-probability (the first: -9999, problem p)"
    assert impossible_tokens((one,)) == (1, sentence)
    two = group(1, with_logprobs(rollout(False, 9), [-0.5] * 8 + [FLOOR]))
    with pytest.raises(PolicyError, match=r"(?s)more than 5 %: .*learning rate is not the cause"):
        impossible_tokens((two,))
    assert impossible_tokens(GROUPS) == (0, "")


def damage(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """Let the generator report vLLM's floor for the first token of every n-th rollout."""
    generate, numbers = TorchGenerator.generate, itertools.count(1)

    async def reporting(self: TorchGenerator, prompt_ids: Sequence[int], **asked: Any) -> TokenCompletion:
        made = await generate(self, prompt_ids, **asked)
        return made if next(numbers) % every else replace(made, logprobs=(FLOOR, *made.logprobs[1:]))

    monkeypatch.setattr(TorchGenerator, "generate", reporting)


def test_a_run_leaves_them_out_counts_them_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(monkeypatch, 4)
    made = small(steps=1, collector={"max_staleness": 0}, evaluation={"data": None}, checks=False)
    train(made, Path(), tmp_path / "run")
    (row,) = read_metrics(tmp_path / "run")
    assert row["policy/impossible_tokens"] > 0
    assert row["policy/log_ratio_max"] < 1e-3
    said = capsys.readouterr().err
    assert f"step 1: {row['policy/impossible_tokens']:.0f} of " in said
    assert "they are left out" in said


def test_a_broken_generator_is_refused_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, 1)
    with pytest.raises(ModelCheckError, match=r"of \d+ sampled tokens have an impossible log-probability .*-9999"):
        train(small(steps=2), Path(), tmp_path / "run")
