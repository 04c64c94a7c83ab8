"""JEPO: reward thoughts by the likelihood of a reference text after them (arXiv 2503.19618).

For n chains of thought c_i, and a reference text a after each:

    L_i   = log pi(a | x, c_i)                      not divided by the text's length
    f     = log (1/n) sum_i e^(L_i)                 a lower bound of log pi(a | x), tighter with n
    w_i   = f - log 1/(n-1) sum_(j != i) e^(L_j)    leave-one-out
    loss  = - sum_i w_i log pi(c_i) - supervised · f

averaged over groups. As in the paper's appendix B, w is divided by its deviation and clipped to [-1, 1], and a chain
without a closing tag gets a penalty and no text. Chains have GRPO's clipped ratio and a KL term. A sequence weighs
1 / groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import (
    CreditInputs,
    GroupCredit,
    GroupWeights,
    ObjectiveInputs,
    ObjectiveNeeds,
    ScoredGroups,
    Statistic,
)
from training.objectives.credit import Objective
from training.objectives.reference_kl import reference_kl
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

EPS_LOW, EPS_HIGH, MAX_LOG_RATIO = 0.2, 0.28, 10.0
"""Clipping of the chains' ratios, as in GRPO."""

KL_COEF = 1e-3
"""Weight of KL(policy | reference) (arXiv 2503.19618)."""

FORM_PENALTY = 10.0
"""Penalty of a chain without its closing tag (arXiv 2503.19618)."""


class JepoSettings(ObjectiveSettings):
    """The multi-sample bound, with the practice of arXiv 2503.19618."""

    kind: Literal["jepo"] = "jepo"
    """`jepo`: likelihood of a reference text."""
    supervised: float = Field(0.01, ge=0)
    """Weight of the text's own likelihood: 0.01 for short answers, 1 for long ones."""


def jepo_decision(rewards: Sequence[Reward], _: JepoSettings) -> GroupDecision:
    """Keep groups with two well-formed chains."""
    kept = sum(reward.format_error is None and not reward.excluded for reward in rewards)
    reasons = tuple(reward.excluded_by for reward in rewards)
    return GroupDecision(None if kept >= 2 else "too_few_chains", reasons)


def jepo_credit(sequences: CreditInputs, _: JepoSettings) -> GroupCredit:
    """Return 1 for chains with a reference text, else 0, and weights of 1 / groups."""
    gains = torch.tensor([float(has) for has in sequences.has_text], dtype=torch.float64)
    return GroupCredit(gains, torch.full_like(gains, 1.0 / max(len(torch.unique(sequences.groups)), 1)))


def jepo_weights(
    scored: ScoredGroups, settings: JepoSettings, *, form_penalty: float = FORM_PENALTY, normalise: bool = True
) -> GroupWeights:
    """Return the weights of chains and texts; ``scored.advantages`` is 1 with a text, else 0."""
    kept, answers, groups = scored.advantages, scored.scores, scored.groups
    chains, texts, form = torch.zeros_like(answers), torch.zeros_like(answers), torch.zeros_like(answers)
    for number in torch.unique(groups).tolist():
        own = (groups == number).nonzero().flatten()
        members = own[kept[own] > 0]
        if (n := len(members)) >= 2:
            scores = answers[members]
            others = scores.expand(n, n).masked_fill(torch.eye(n, dtype=torch.bool), -torch.inf).logsumexp(1)
            chains[members] = scores.logsumexp(0) - math.log(n) - (others - math.log(n - 1))
            texts[members] = settings.supervised * scores.softmax(0)
        if form_penalty and 0 < len(members) < len(own):
            loss = -form_penalty * (1 - kept[own])
            form[own] = _bounded(loss - loss.mean(), loss.std(correction=0))
    if normalise:
        formed = chains[kept > 0]
        chains = _bounded(chains, formed.std(correction=0)) if len(formed) else chains
    return GroupWeights(chains + form, texts)


def _bounded(values: Tensor, deviation: Tensor) -> Tensor:
    return (values / deviation.clamp(min=1e-6)).clamp(-1, 1)


def jepo_loss(
    inputs: ObjectiveInputs, _: JepoSettings, *, kl_coef: float = KL_COEF
) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), the texts' mean log-probability and the clipped share."""
    counts, answer, answer_weights = counted(inputs), inputs.answer, inputs.answer_weights
    if answer is None or answer_weights is None:
        raise ValueError("objective jepo needs reference texts; give data of kind = latent")
    chain, text = counts & ~answer, counts & answer
    ratio = inputs.log_ratio(chain).clamp(max=MAX_LOG_RATIO).exp()
    weight = inputs.per_token(inputs.advantages)
    clipped = ratio.clamp(1 - EPS_LOW, 1 + EPS_HIGH)
    of_chains = torch.where(chain, torch.minimum(ratio * weight, clipped * weight), 0.0)
    of_texts = torch.where(text, inputs.per_token(answer_weights) * inputs.logprobs, 0.0)
    value = -(inputs.per_token(inputs.token_weights) * (of_chains + of_texts)).sum()
    if kl_coef:
        value = value + kl_coef * reference_kl(inputs, chain)
    own = {
        "answer_logprob": mean_of(torch.where(text, inputs.logprobs, 0.0), text),
        "clip_share": mean_of(ratio * weight > clipped * weight, chain),
    }
    return value, own


JEPO = Objective(
    JepoSettings,
    jepo_loss,
    jepo_credit,
    jepo_decision,
    lambda _: ObjectiveNeeds(uses_reference=True, scores_answers=True),
    second_pass=jepo_weights,
)
