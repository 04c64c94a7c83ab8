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
ratio to the generator and its clip. A KL term holds the chains near a reference.

``mixed`` trains on problems that a verifier judges: a group with a correct rollout by GRPO (its advantages over their
deviation in the minibatch, its token weights), a group with none by the text of its reference answer (paper, appendix
B). So a problem that is never solved teaches too.

Invariants: those of `training.objectives.base`; here the token weight of a group by text is its whole sequence's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.advantages import advantages, filter_group
from training.objectives.base import (
    CreditInputs,
    GroupCredit,
    GroupWeights,
    Objective,
    ObjectiveInputs,
    ObjectiveNeeds,
    ScoredGroups,
    Statistic,
)
from training.objectives.credit import token_weights
from training.objectives.reference_kl import reference_kl
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

MOST_LOG_RATIO = 10.0
"""Log-ratios to the generator are clamped to this before `exp`, as GRPO's are by default."""

MOST_KL_RATIO = 10.0
"""The KL term weighs a chain by its importance ratio, at most so much, as GRPO's does by default."""

FORM_PENALTY = 10.0
"""What a chain without its closing tag loses, compared within its group (arXiv 2503.19618)."""


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
    mixed: bool = Field(
        False,
        description="Train on problems with a verifier: groups with a correct rollout as `grpo` does, the others by "
        "the text of their reference answer (arXiv 2503.19618, appendix B).",
    )
    kl_coef: float = Field(
        1e-3,
        ge=0,
        description="Weight of KL(policy | reference) of the chains. 1e-3 in arXiv 2503.19618; 0 keeps no reference.",
    )
    reference: str | None = Field(
        None,
        description="Folder of the reference model, relative to the recipe's, or `embedded`; where absent, the model "
        "that the run starts from. Loaded only where `kl_coef` is not 0.",
    )
    eps_low: float = Field(0.2, gt=0, lt=1, description="Ratios of the chain's tokens below 1 - eps_low are clipped.")
    eps_high: float = Field(0.28, gt=0, description="Ratios above 1 + eps_high are clipped.")


def teaches_by_text(rewards: Sequence[Reward], settings: JepoSettings) -> bool:
    """Return whether a group teaches by its reference text: always, or with `mixed` where no rollout is correct."""
    return not (settings.mixed and any(reward.correct for reward in rewards))


def jepo_decision(rewards: Sequence[Reward], settings: JepoSettings) -> GroupDecision:
    """Return whether a group is trained on: where two chains kept the form, to be compared, or two rewards differ."""
    if not teaches_by_text(rewards, settings):
        return filter_group(rewards, "reward")
    kept = sum(reward.format_error is None and not reward.excluded for reward in rewards)
    reasons = tuple(reward.excluded_by for reward in rewards)
    return GroupDecision(None if kept >= 2 else "too_few_chains", reasons)


def jepo_credit(sequences: CreditInputs, settings: JepoSettings) -> GroupCredit:
    """Return 1 for chains that have a text behind them and 0 for others, and for every sequence 1 over the number of
    groups; of groups by verdict GRPO's advantages and token weights.
    """
    gains = torch.tensor([float(has) for has in sequences.has_text], dtype=torch.float64)
    count = max(len(torch.unique(sequences.groups)), 1)
    weights = torch.full_like(gains, 1.0 / count)
    verified = _verified(sequences, settings)
    if verified.any():
        totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)[verified]
        groups, lengths = sequences.groups[verified], sequences.lengths[verified]
        gains[verified] = advantages(totals, groups)
        weights[verified] = token_weights(lengths, groups, "group") * (len(torch.unique(groups)) / count)
    return GroupCredit(gains, weights)


def _verified(sequences: CreditInputs, settings: JepoSettings) -> Tensor:
    """Return [sequences] bool, which are of groups that teach by verdict."""
    verified = torch.zeros(len(sequences.rewards), dtype=torch.bool)
    for number in torch.unique(sequences.groups).tolist():
        own = sequences.groups == number
        rewards = [sequences.rewards[place] for place in own.nonzero().flatten().tolist()]
        verified[own] = not teaches_by_text(rewards, settings)
    return verified


def jepo_weights(
    scored: ScoredGroups, settings: JepoSettings, *, form_penalty: float = FORM_PENALTY, normalise: bool = True
) -> GroupWeights:
    """Return the weight of each chain's tokens, and that of its reference text's; groups without any text stay as they
    are.

    ``scored.advantages`` of groups by text are 1 where there is one, 0 elsewhere. ``normalise``: weights of chains are
    divided by their deviation in the minibatch and clipped to [-1, 1], as in the paper's practice.
    """
    kept, answers, groups = scored.advantages, scored.scores, scored.groups
    chains, texts = torch.zeros_like(answers), torch.zeros_like(answers)
    form = torch.zeros_like(answers)
    has_text = torch.ones_like(kept, dtype=torch.bool) if scored.has_text is None else scored.has_text
    by_text = torch.zeros_like(has_text)
    for number in torch.unique(groups).tolist():
        own = (groups == number).nonzero().flatten()
        by_text[own] = has_text[own].any()
        if not has_text[own].any():
            continue
        members = own[kept[own] > 0]
        if len(members) >= 2:
            chains[members] = _leave_one_out(answers[members])
            texts[members] = settings.supervised * answers[members].softmax(0)
        if form_penalty and len(members) < len(own):
            loss = -form_penalty * (1 - kept[own])
            form[own] = _bounded(loss - loss.mean(), loss.std(correction=0)) if len(members) else 0.0
    if normalise:
        formed = chains[by_text & (kept > 0)]
        chains = _bounded(chains, formed.std(correction=0)) if len(formed) else chains
    return GroupWeights(torch.where(by_text, chains + form, kept), texts)


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
    counts, index = counted(inputs), inputs.sequence_index
    answer, answer_weights = inputs.answer, inputs.answer_weights
    if answer is None or answer_weights is None:
        if not settings.mixed:
            raise ValueError("objective jepo needs reference texts; give data of kind = latent, or mixed = true")
        answer, answer_weights = torch.zeros_like(counts), torch.zeros_like(inputs.advantages)
    chain, text = counts & ~answer, counts & answer
    log_ratio = torch.where(chain, inputs.logprobs - inputs.generator_logprobs, 0.0)
    ratio = log_ratio.clamp(max=MOST_LOG_RATIO).exp()
    weight = inputs.advantages.to(ratio.dtype)[index]
    clipped = ratio.clamp(1 - settings.eps_low, 1 + settings.eps_high)
    of_chains = torch.where(chain, torch.minimum(ratio * weight, clipped * weight), 0.0)
    of_texts = torch.where(text, answer_weights.to(ratio.dtype)[index] * inputs.logprobs, 0.0)
    value = -(inputs.token_weights.to(ratio.dtype)[index] * (of_chains + of_texts)).sum()
    if settings.kl_coef:
        value = value + settings.kl_coef * reference_kl(inputs, chain, "reward", MOST_KL_RATIO)
    own = {
        "answer_logprob": mean_of(torch.where(text, inputs.logprobs, 0.0), text),
        "clip_share": mean_of(ratio * weight > clipped * weight, chain),
    }
    return value, own


def jepo_needs(settings: JepoSettings) -> ObjectiveNeeds:
    """Return that the second pass scores the reference texts, and with a KL term the reference model."""
    return ObjectiveNeeds(
        uses_reference=bool(settings.kl_coef),
        reference_model=settings.reference,
        scores_answers=True,
        answer_texts=settings.mixed,
    )


JEPO = Objective(
    JepoSettings, jepo_decision, jepo_credit, jepo_loss, jepo_needs, by_text=teaches_by_text, second_pass=jepo_weights
)
