"""The parts together: scheduler, rewards, advantages, packing, log-probabilities and objective teach a tiny model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.training.optimisation.test_logprobs import VOCABULARY, llama
from training.config import CollectorSettings, ComputeSettings, OptimSettings, PackingSettings
from training.objectives.base import CreditInputs, ObjectiveInputs, Statistic
from training.objectives.grpo import GRPO, GrpoSettings
from training.objectives.step_statistics import added, joined, measured_over_ranks, policy_statistics
from training.optimisation.collating import pack_samples
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.packing import MicroBatch, TrainingSample
from training.rewards import Reward
from training.rollouts.rollout_scheduler import RolloutGroup, RolloutScheduler

SIZES = CollectorSettings(group_size=8, n_async=64, n_batch=64, max_staleness=1)
PACKING = PackingSettings(micro_batch_tokens=128)
OBJECTIVE = GrpoSettings()
PROMPT, LENGTH = [1, 2, 3], 4

Made = tuple[Reward, list[int], list[float]]


@torch.no_grad()
def attempts(model: Any, count: int, chance: torch.Generator) -> list[Made]:
    """Sampled at temperature 1; an attempt is correct where most of its tokens are even."""
    tokens = torch.tensor([PROMPT] * count)
    seen: list[Tensor] = []
    for _ in range(LENGTH):
        logits = model(input_ids=tokens, use_cache=False).logits[:, -1].log_softmax(-1)
        drawn = torch.multinomial(logits.exp(), 1, generator=chance)
        seen.append(logits.gather(-1, drawn)[:, 0])
        tokens = torch.cat([tokens, drawn], 1)
    made = []
    for row, logprobs in zip(tokens[:, len(PROMPT) :].tolist(), torch.stack(seen, 1).tolist(), strict=True):
        correct = sum(token % 2 == 0 for token in row) > LENGTH // 2
        made.append((Reward(format=0.1, correctness=0.9 * correct, correct=correct), row, logprobs))
    return made


def samples_of(groups: tuple[RolloutGroup[Made], ...]) -> list[TrainingSample]:
    """A minibatch with its advantages and weights."""
    made = [(group.number, result) for group in groups for _, result in group.rollouts]
    numbers = torch.tensor([number for number, _ in made])
    lengths = torch.tensor([len(row) for _, (_, row, _) in made])
    credit = GRPO.credit(CreditInputs([reward for _, (reward, _, _) in made], lengths, numbers), OBJECTIVE)
    return [
        TrainingSample(PROMPT, row, logprobs, gain, weight)
        for (_, (_, row, logprobs)), gain, weight in zip(
            made, credit.advantages.tolist(), credit.token_weights.tolist(), strict=True
        )
    ]


def scored(policy: PackedPolicy, batch: MicroBatch) -> tuple[Tensor, dict[str, Statistic]]:
    scores = policy(batch, "value")
    inputs = ObjectiveInputs(
        scores.logprobs,
        batch.generator_logprobs,
        batch.sequence_index,
        batch.advantages,
        batch.weights,
        batch.mask,
        scores.entropy,
    )
    loss, own = GRPO.loss(inputs, OBJECTIVE)
    return loss, joined(policy_statistics(inputs), own)


def test_a_tiny_model_learns() -> None:
    trained, generator = llama(), llama()
    policy = PackedPolicy(trained)
    optimiser = torch.optim.AdamW(trained.parameters(), lr=OptimSettings(learning_rate=3e-3).learning_rate)
    scheduler: RolloutScheduler[Made] = RolloutScheduler(
        SIZES, lambda made: GRPO.decide([reward for reward, _, _ in made], OBJECTIVE), lambda: "even"
    )
    chance, rates, first = torch.Generator().manual_seed(0), [], None
    for _ in range(15):
        while (batch := scheduler.next_batch()) is None:
            tickets = list(iter(scheduler.admit, None))
            for ticket, made in zip(tickets, attempts(generator, len(tickets), chance), strict=True):
                scheduler.mark_generated(ticket)
                scheduler.mark_judged(ticket, made)
        rewards = [made[0] for group in batch.groups for _, made in group.rollouts]
        rates.append(sum(reward.correct for reward in rewards) / len(rewards))
        stats = None
        for part in pack_samples(samples_of(batch.groups), PACKING):
            loss, one = scored(policy, part)
            loss.backward()  # type: ignore[no-untyped-call]
            stats = one if stats is None else added(stats, one)
        assert stats is not None
        first = first or measured_over_ranks(stats, DistributedContext(ComputeSettings()))
        optimiser.step()
        optimiser.zero_grad()
        generator.load_state_dict(trained.state_dict())
        scheduler.mark_trained(batch)
        scheduler.mark_updated()
    assert first is not None
    assert first["log_ratio_max"].value < 1e-4  # nothing was trained yet: the same model on both sides
    assert first["entropy"].count == 64 * LENGTH
    assert 0 < first["entropy"].value < torch.tensor(float(VOCABULARY)).log().item()
    assert sum(rates[-3:]) / 3 > sum(rates[:3]) / 3 + 0.2
    assert scheduler.ledger().balanced
