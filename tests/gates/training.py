"""The trainer: its objective against an independent one, packing, resuming, ranks, speed, and whether curation pays.

`grpo-reference` compares with the formulas of the paper's section 2.1 and with the gradient that follows from them,
written here in plain Python floats: no tensor, no automatic gradient, nothing of `training`.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gates.base import Limit, Measured, SkippedError, gate, tests_pass

EPS_LOW, EPS_HIGH = 0.2, 0.28
MINIBATCHES = 200
PEER = "trl==1.16.0"
"""What `trl-tokens` compares with."""

PEER_THREADS = (1, 2)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A rollout: its group, its reward, and log-probabilities of its tokens under policy and generator."""

    group: int
    reward: float
    policy: list[float]
    generator: list[float]


def drawn(seed: int) -> list[Rollout]:
    """Return a minibatch of rollouts whose ratios are on both sides of both clips."""
    draw = random.Random(seed)
    rollouts = []
    for group in range(draw.randint(2, 5)):
        for number in range(draw.randint(2, 6)):
            reward = draw.choice((0.0, 0.1, 0.95, 1.0)) if group else float(number % 2)  # some groups teach nothing
            generator = [draw.uniform(-4, -0.1) for _ in range(draw.randint(1, 30))]
            policy = [value + draw.gauss(0, 0.4) for value in generator]
            rollouts.append(Rollout(group, reward, policy, generator))
    draw.shuffle(rollouts)
    return rollouts


def by_the_paper(rollouts: list[Rollout]) -> tuple[float, list[float]]:
    """Return the loss of a minibatch and its gradient by each token's log-probability.

    Groups of equal rewards are left out; advantages are r - mean of the group, then less their mean over the minibatch
    and divided by their deviation; a group's tokens are averaged, then groups.
    """
    groups: defaultdict[int, list[Rollout]] = defaultdict(list)
    for one in rollouts:
        groups[one.group].append(one)
    kept = {name: some for name, some in groups.items() if len({one.reward for one in some}) > 1}
    centres = {name: math.fsum(one.reward for one in some) / len(some) for name, some in kept.items()}
    centred = [one.reward - centres[one.group] for one in rollouts if one.group in kept]
    mean = math.fsum(centred) / len(centred)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in centred) / len(centred))
    tokens = {name: sum(len(one.policy) for one in some) for name, some in kept.items()}
    gains, gradient = [], []
    for one in rollouts:
        if one.group not in kept:
            continue
        advantage = (one.reward - centres[one.group] - mean) / deviation
        weight = 1 / (tokens[one.group] * len(kept))
        for policy, generator in zip(one.policy, one.generator, strict=True):
            ratio = math.exp(policy - generator)
            clipped = min(max(ratio, 1 - EPS_LOW), 1 + EPS_HIGH)
            gains.append(weight * min(ratio * advantage, clipped * advantage))
            gradient.append(-weight * ratio * advantage if ratio * advantage <= clipped * advantage else 0.0)
    return -math.fsum(gains), gradient


def by_the_trainer(rollouts: list[Rollout]) -> tuple[float, list[float]]:
    """Return the same of the product: its group filter, its credit, its loss and torch's gradient, in float64."""
    import torch

    from training.objectives.base import CreditInputs, ObjectiveInputs
    from training.objectives.credit import decide_group, group_credit
    from training.objectives.grpo import GrpoSettings, grpo_loss
    from training.rewards import Reward

    settings = GrpoSettings(eps_high=EPS_HIGH)
    rewards = [Reward(correctness=one.reward, correct=one.reward > 0.5) for one in rollouts]
    members: defaultdict[int, list[Reward]] = defaultdict(list)
    for one, reward in zip(rollouts, rewards, strict=True):
        members[one.group].append(reward)
    kept = {name for name, some in members.items() if decide_group(some, settings).drop_reason is None}
    pairs = [(one, reward) for one, reward in zip(rollouts, rewards, strict=True) if one.group in kept]
    lengths = torch.tensor([len(one.policy) for one, _ in pairs])
    groups = torch.tensor([one.group for one, _ in pairs])
    credit = group_credit(CreditInputs([reward for _, reward in pairs], lengths, groups), settings)
    policy = torch.tensor([value for one, _ in pairs for value in one.policy], dtype=torch.float64, requires_grad=True)
    loss, _ = grpo_loss(
        ObjectiveInputs(
            logprobs=policy,
            generator_logprobs=torch.tensor([x for one, _ in pairs for x in one.generator], dtype=torch.float64),
            sequence_index=torch.repeat_interleave(torch.arange(len(pairs)), lengths),
            advantages=credit.advantages,
            token_weights=credit.token_weights,
        ),
        settings,
    )
    (gradient,) = torch.autograd.grad(loss, policy)
    return loss.item(), gradient.tolist()


@gate("grpo-reference", Limit("<=", 1e-14))
def grpo_reference() -> Measured:
    """Measure the largest difference of a loss or a token's gradient from the paper's formulas, as a share.

    Of a gradient: of the largest in its minibatch; of a loss: of the sum of all gradients, since its own terms cancel.
    """
    worst, clipped, tokens = 0.0, 0, 0
    for seed in range(MINIBATCHES):
        rollouts = drawn(seed)
        (loss, gradient), (own_loss, own_gradient) = by_the_paper(rollouts), by_the_trainer(rollouts)
        sizes = [abs(one) for one in gradient]
        apart = max(abs(one - own) for one, own in zip(gradient, own_gradient, strict=True))
        worst = max(worst, abs(loss - own_loss) / math.fsum(sizes), apart / max(sizes))
        clipped, tokens = clipped + gradient.count(0.0), tokens + len(gradient)
    return Measured(worst, note=f"{MINIBATCHES} minibatches, {tokens:,} tokens, {clipped:,} of them clipped")


@gate("packed", Limit("<=", 1e-6))
def packed_is_unpacked() -> Measured:
    """Measure by how much packing changes the loss or a weight's gradient, as a share of the largest gradient."""
    from tests.training.optimisation import test_logprobs as llamas
    from training.config import PackingSettings

    worst = 0.0
    for samples in (llamas.some_samples(), llamas.some_groups()):
        loss, gradients = llamas.unpacked(samples)
        largest = max(float(one.abs().max()) for one in gradients.values())
        for room in (32, 80, 1000):
            packing = PackingSettings(micro_batch_tokens=room)
            packed_loss, packed = llamas.packed(samples, packing, 5 * llamas.VOCABULARY)
            apart = max(float((one - packed[name]).abs().max()) for name, one in gradients.items())
            worst = max(worst, abs(loss - packed_loss), apart / largest)
    return Measured(worst)


@gate("in-vllm", Limit("==", 100, "%"), tier="all")
def in_vllm() -> Measured:
    """Return the share of families that vLLM loads and gives new weights; three more need torchvision."""
    found = tests_pass("tests/training/generation/test_vllm_families.py")
    return Measured(100 * found.value / (found.of or 1), note=f"of {found.of} tests; {found.note}")


@contextlib.contextmanager
def peer() -> Iterator[str]:
    """Make an environment with TRL and our versions of torch and transformers, and give its interpreter.

    Raises:
        SkippedError: it cannot be made here.
    """
    import torch
    import transformers

    with TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        wanted = [PEER, f"torch=={torch.__version__.partition('+')[0]}", f"transformers=={transformers.__version__}"]
        for command in ([sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "-q", *wanted]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                raise SkippedError(f"an environment with {PEER} cannot be made here: {' '.join(last)}")
        yield python


def tokens_against_the_peer(python: str, *, steps: int, rounds: int) -> Measured:
    """Return tokens trained on per CPU second over those of the peer with its better number of threads."""
    from tests.benchmarks.bench_trainer import ours, theirs

    found: defaultdict[str | int, list[float]] = defaultdict(list)
    for seed in range(rounds):
        with TemporaryDirectory() as folder:
            found["ours"].append(ours(steps, seed, Path(folder), "none"))
        for threads in PEER_THREADS:
            with TemporaryDirectory() as folder:
                found[threads].append(theirs(python, threads, steps, seed, Path(folder)))
    best = max(PEER_THREADS, key=lambda threads: statistics.median(found[threads]))
    ratios = [one / other for one, other in zip(found["ours"], found[best], strict=True)]
    value = statistics.median(found["ours"]) / statistics.median(found[best])
    note = f"{PEER} with {best} threads; by round of {steps} steps {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    return Measured(value, note=note)


@gate("trl-tokens", Limit(">=", 2.2, "times"), tier="all")
def trl_tokens() -> Measured:
    """Measure tokens trained on per CPU second against TRL's trainer, every group trained on by both."""
    with peer() as python:
        return tokens_against_the_peer(python, steps=16, rounds=3)


def gained(rows: list[list[float]]) -> Measured:
    """Return a gain in held-out pass@1 with its interval over seeds and problems, from what was gained by both."""
    from tests.gates.paying import gain

    estimate, by_seed = gain(rows)
    note = "by seed " + " ".join(f"{value:+.3f}" for value in by_seed)
    return Measured(estimate.mean, interval=(estimate.low, estimate.high), note=note)


def counterfactual(arm: str, other: str, seeds: int, *, with_cost: bool = False) -> Measured:
    """Return what an arm of `paying.arms` gains on another one at equal tokens."""
    from tests.gates.paying import arms

    rows = []
    with TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        for seed in range(1, seeds + 1):
            found = arms(seed, Path(scratch) / str(seed), (arm, other), with_cost=with_cost)
            rows.append([one - two for one, two in zip(found[arm], found[other], strict=True)])
        return gained(rows)


@gate("pays-curated", Limit(">=", 0.061), tier="all")
def pays_curated() -> Measured:
    """Measure what a curated set gains on as many random rows (+.089, +.061 to +.116 in 2026-11)."""
    return counterfactual("curated", "random", 16)


@gate("pays-from-attempts", Limit(">=", 0.028), tier="all")
def pays_from_attempts() -> Measured:
    """Measure what an SFT on curation's attempts gains, its tokens counted (+.065, +.028 to +.102 in 2026-11)."""
    return counterfactual("from-attempts", "random", 4, with_cost=True)


@gate("pays-refresh", Limit(">=", 0.023), tier="all")
def pays_refresh() -> Measured:
    """Measure what refreshes gain where harder problems come into reach (+.039, +.023 to +.054 in 2026-11)."""
    from tests.gates.paying import Loop

    loop = Loop(ladder=True, min_correct=2)
    with TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        model = loop.first_model(Path(scratch) / "model")
        return gained([loop.gains(seed, Path(scratch) / str(seed), model) for seed in range(1, 9)])
