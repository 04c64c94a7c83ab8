"""Log-probabilities of generated tokens under the policy in training, from packed sequences.

The model's body runs once over a packed micro-batch; the output layer runs over chunks of those hidden states that
predict generated tokens, and once more per chunk in the backward pass. So no tensor of tokens x vocabulary exists, only
one of chunk x vocabulary, and prompts cost no logits at all.

Invariants: the distribution is the sampler's, logits divided by its temperature; everything from the logits on is fp32.
Models that change their logits after the output layer are refused.

Not here: the loss (`training.objectives`), and sharding. `PackedPolicy` is the module to shard: its ``forward`` is the
only way in, so that hooks on it see every use of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from curation.records import ConfigError
from training.attention import boundaries_of, register
from training.config import PackingSettings
from training.packing import MicroBatch

EntropyMode = Literal["none", "value", "gradient"]

_CHANGED_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling")


class TokenScores(NamedTuple):
    """[targets] fp32 each: log-probabilities of the targets, and entropies of their distributions if asked for.

    A tuple, because sharding wrappers find the tensors of a module's output only in tuples and the like.
    """

    logprobs: Tensor
    entropy: Tensor | None


class PackedPolicy(nn.Module):
    """A causal language model of transformers (Llama-like) that scores packed micro-batches.

    Raises:
        ConfigError: the model changes its logits in a way that is not built here, or cannot change its attention.
    """

    def __init__(self, model: nn.Module, settings: PackingSettings, temperature: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self._elements = settings.logit_elements
        causal: Any = model
        changed = [name for name in _CHANGED_LOGITS if getattr(causal.config, name, None) not in (None, 1, 1.0)]
        if changed:
            raise ConfigError(
                f"model {causal.config.model_type} sets {', '.join(changed)}, which is not supported here."
            )
        causal.set_attn_implementation(register())

    def forward(self, batch: MicroBatch, entropy: EntropyMode = "none") -> TokenScores:
        """Scores of the micro-batch's targets; ``entropy``: not computed, without gradient, or with it."""
        causal: Any = self.model
        hidden = causal.base_model(
            input_ids=batch.input_ids[None],
            position_ids=batch.position_ids[None],
            use_cache=False,
            **boundaries_of(batch),
        ).last_hidden_state
        head = causal.get_output_embeddings()
        rows = max(self._elements // int(causal.config.vocab_size), 1)
        return token_scores(hidden[0, batch.rows], batch.targets, head, self.temperature, rows, entropy)


def token_scores(
    hidden: Tensor,
    targets: Tensor,
    head: Callable[[Tensor], Tensor],
    temperature: float = 1.0,
    rows: int = 1024,
    entropy: EntropyMode = "none",
) -> TokenScores:
    """Scores of targets from hidden states, ``rows`` of them at a time.

    Args:
        hidden: [targets, width] hidden states that predict the targets.
        targets: [targets] token ids.
        head: hidden states [n, width] to logits [n, vocabulary].
        temperature: the sampler's.
        rows: most rows of logits that exist at once.
        entropy: whether to compute it, and whether gradients flow through it.
    """

    def score(states: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor | None]:
        logits = head(states).float() / temperature
        total = logits.logsumexp(-1)
        logprobs = logits.gather(-1, wanted[:, None])[:, 0] - total
        if entropy == "none":
            return logprobs, None
        with torch.set_grad_enabled(entropy == "gradient" and torch.is_grad_enabled()):
            return logprobs, total - ((logits - total[:, None]).exp() * logits).sum(-1)

    chunks = list(zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True))
    if len(chunks) > 1 and torch.is_grad_enabled():
        scored = [checkpoint(score, *chunk, use_reentrant=False) for chunk in chunks]
    else:
        scored = [score(*chunk) for chunk in chunks]
    entropies = [found for _, found in scored if found is not None]
    logprobs = torch.cat([found for found, _ in scored])
    return TokenScores(logprobs, torch.cat(entropies) if entropies else None)
