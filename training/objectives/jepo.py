"""JEPO: thoughts are credited with how likely they make a reference text; no verifier (arXiv 2503.19618).

n chains of thought c_i are drawn, each up to its closing tag; the reference text a is scored behind each, not drawn:

    L_i   = log pi(a | x, c_i)                      not divided by the text's length
    f     = log (1/n) sum_i e^(L_i)                 a lower bound of log pi(a | x), tighter with n
    w_i   = f - log 1/(n-1) sum_(j != i) e^(L_j)    leave-one-out: the chain's own share of f
    loss  = - sum_i w_i log pi(c_i) - supervised · f

and over the groups of a minibatch the mean. grad f is sum_i softmax(L)_i grad L_i, so one pass without gradient gives
all weights (`jepo_weights`), and chains of a group may lie in several micro-batches. The sum over i is right; a mean
would change the ratio of the two terms. In practice (paper, appendix B) w is divided by its deviation and clipped to
[-1, 1]; chains that do not keep the form get a penalty by itself and no reference text. The chain's tokens have GRPO's
ratio to the generator and its clip.

Invariants: those of `training.objectives.base`; here a token weight is its whole sequence's. Not here: a KL term, and
groups of verifiable problems beside these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs, GroupCredit, Objective, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

MOST_LOG_RATIO = 10.0
"""Log-ratios to the generator are clamped to this before `exp`, as GRPO's are by default."""


class JepoSettings(ObjectiveSettings):
    """The multi-sample bound, with the paper's practice."""

    kind: Literal["jepo"] = Field(
        "jepo", description="`jepo`: thoughts by how likely they make a reference text. Not in the paper."
    )
    supervised: float = Field(
        1e-2,
        ge=0,
        description="Weight of the reference text's own likelihood. 1e-2 for short answers and 1 for long ones in "
        "arXiv 2503.19618.",
    )
    normalise_weights: bool = Field(
        True, description="Weights of chains over their deviation in the minibatch, clipped to [-1, 1]."
    )
    form_penalty: float = Field(
        10.0, ge=0, description="What a chain without its closing tag loses, compared within its group. 0 is off."
    )
    eps_low: float = Field(0.2, gt=0, lt=1, description="Ratios of the chain's tokens below 1 - eps_low are clipped.")
    eps_high: float = Field(0.28, gt=0, description="Ratios above 1 + eps_high are clipped.")


def jepo_decision(rewards: Sequence[Reward], _: JepoSettings) -> GroupDecision:
    """Return whether a group is trained on: where two chains kept the form, to be compared."""
    kept = sum(reward.format_error is None and not reward.excluded for reward in rewards)
    reasons = tuple(reward.excluded_by for reward in rewards)
    return GroupDecision(None if kept >= 2 else "too_few_chains", reasons)


def jepo_credit(sequences: CreditInputs, _: JepoSettings) -> GroupCredit:
    """Return 1 for chains that kept the form and 0 for others, and for every sequence 1 over the number of groups."""
    kept = torch.tensor([float(reward.format_error is None) for reward in sequences.rewards], dtype=torch.float64)
    groups = max(len(torch.unique(sequences.groups)), 1)
    return GroupCredit(kept, torch.full_like(kept, 1.0 / groups))


def jepo_weights(kept: Tensor, answers: Tensor, groups: Tensor, settings: JepoSettings) -> Tensor:
    """Return [sequences, 2] float64: the weight of each chain's tokens, and that of its reference text's.

    Args:
        kept: [sequences] 1 where the form was kept, 0 elsewhere.
        answers: [sequences] L under the present policy.
        groups: [sequences] a number per group.
    """
    chains, texts = torch.zeros_like(answers), torch.zeros_like(answers)
    form = torch.zeros_like(answers)
    for number in torch.unique(groups).tolist():
        own = (groups == number).nonzero().flatten()
        members = own[kept[own] > 0]
        if len(members) >= 2:
            chains[members] = _leave_one_out(answers[members])
            texts[members] = settings.supervised * answers[members].softmax(0)
        if settings.form_penalty and len(members) < len(own):
            loss = -settings.form_penalty * (1 - kept[own])
            form[own] = _bounded(loss - loss.mean(), loss.std(correction=0)) if len(members) else 0.0
    if settings.normalise_weights:
        formed = chains[kept > 0]
        chains = _bounded(chains, formed.std(correction=0)) if len(formed) else chains
    return torch.stack([chains + form, texts], dim=1)


def _leave_one_out(values: Tensor) -> Tensor:
    """Return [n] f minus what it is without each chain, in log space."""
    n = len(values)
    whole = values.logsumexp(0) - torch.log(torch.tensor(float(n), dtype=values.dtype))
    others = values.expand(n, n).masked_fill(torch.eye(n, dtype=torch.bool), -torch.inf).logsumexp(1)
    return whole - (others - torch.log(torch.tensor(float(n - 1), dtype=values.dtype)))


def _bounded(values: Tensor, deviation: Tensor) -> Tensor:
    return (values / deviation.clamp(min=1e-6)).clamp(-1, 1)


def jepo_loss(inputs: ObjectiveInputs, settings: JepoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return the loss of one micro-batch (to be minimised, 0-d), and the mean log-probability of reference tokens.

    Raises:
        ValueError: it is not said which tokens are the reference texts'.
    """
    if inputs.answer is None or inputs.answer_weights is None:
        raise ValueError("objective jepo needs reference texts; give data of kind = latent")
    counts = counted(inputs)
    chain, text = counts & ~inputs.answer, counts & inputs.answer
    index = inputs.sequence_index
    log_ratio = torch.where(chain, inputs.logprobs - inputs.generator_logprobs, 0.0)
    ratio = log_ratio.clamp(max=MOST_LOG_RATIO).exp()
    weight = inputs.advantages.to(ratio.dtype)[index]
    clipped = ratio.clamp(1 - settings.eps_low, 1 + settings.eps_high)
    of_chains = torch.where(chain, torch.minimum(ratio * weight, clipped * weight), 0.0)
    of_texts = torch.where(text, inputs.answer_weights.to(ratio.dtype)[index] * inputs.logprobs, 0.0)
    value = -(inputs.token_weights.to(ratio.dtype)[index] * (of_chains + of_texts)).sum()
    own = {
        "answer_logprob": mean_of(torch.where(text, inputs.logprobs, 0.0), text),
        "clip_share": mean_of(ratio * weight > clipped * weight, chain),
    }
    return value, own


def jepo_needs(_: JepoSettings) -> ObjectiveNeeds:
    """Return that the second pass scores the reference texts."""
    return ObjectiveNeeds(scores_answers=True)


JEPO = Objective(JepoSettings, jepo_decision, jepo_credit, jepo_loss, jepo_needs, jepo_weights)
