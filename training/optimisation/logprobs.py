"""Compute log-probabilities of generated tokens under the policy in training, in chunks of logits.

Invariants: logits are divided by the sampler's temperature, then fp32. All uses of weights are in
`PackedPolicy.forward`, for sharding hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from curation.records import ConfigError
from training.optimisation.attention import (
    PackedLayout,
    keep_sequences_apart,
    original_forward,
    register_packed_attention,
)
from training.optimisation.memory import LOGIT_ELEMENTS
from training.optimisation.model import logits_of
from training.optimisation.packing import MicroBatch

EntropyMode = Literal["none", "value", "gradient"]

_IN_CACHE, _MIN_ROWS = 2**18, 128
"""On a CPU: max logits and min rows of a block."""


class TokenScores(NamedTuple):
    """[targets] fp32 log-probabilities, and entropies if requested; a tuple for sharding wrappers."""

    logprobs: Tensor
    entropy: Tensor | None


class PackedPolicy(nn.Module):
    """A causal language model of transformers that scores packed micro-batches."""

    def __init__(self, model: nn.Module, temperature: float = 1.0, logit_elements: int = LOGIT_ELEMENTS) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self._elements = logit_elements
        causal: Any = model
        logits_of(causal)  # raises for unknown settings
        config = causal.config
        if "chunked_attention" in (getattr(config, "layer_types", None) or ()):
            raise ConfigError(
                f"model {config.model_type} attends within chunks of {config.attention_chunk_size} tokens, which is "
                "not supported here; take another model."
            )
        self._own_attention = str(config._attn_implementation)
        causal.set_attn_implementation(register_packed_attention())
        keep_sequences_apart(causal)

    def forward(self, batch: MicroBatch, entropy: EntropyMode = "none", *, plain: bool = False) -> TokenScores:
        """Return the targets' scores; ``plain``: by transformers' own forward pass."""
        if plain:
            return self._plain_scores(batch)
        causal: Any = self.model
        hidden = causal.get_decoder()(
            input_ids=batch.input_ids[None],
            position_ids=batch.position_ids[None],
            use_cache=False,
            layout=PackedLayout(batch.cu_seqlens, batch.max_seqlen, batch.unrolled, batch.packed),
        ).last_hidden_state
        head = logits_of(causal, accumulating_head(causal.get_output_embeddings()))
        rows = max(self._elements // int(causal.config.vocab_size), 1)
        block_rows = None
        if hidden.device.type == "cpu":
            block_rows = min(rows, max(_IN_CACHE // int(causal.config.vocab_size), _MIN_ROWS))
        return token_scores(
            hidden[0, batch.logit_positions], batch.targets, head, self.temperature, rows, entropy, block_rows
        )

    def _plain_scores(self, batch: MicroBatch) -> TokenScores:
        assert len(batch.cu_seqlens) == 2, "one whole sequence"
        causal: Any = self.model
        training = causal.training
        causal.eval().set_attn_implementation(self._own_attention)
        try:
            with original_forward(causal):
                logits = causal(input_ids=batch.input_ids[None], use_cache=False).logits[0, batch.logit_positions]
        finally:
            causal.train(training).set_attn_implementation(register_packed_attention())
        logprobs = (logits.float() / self.temperature).log_softmax(-1)
        return TokenScores(logprobs.gather(-1, batch.targets[:, None])[:, 0], None)


def token_scores(
    hidden: Tensor,
    targets: Tensor,
    lm_head: Callable[[Tensor], Tensor],
    temperature: float = 1.0,
    chunk_rows: int = 1024,
    entropy: EntropyMode = "none",
    block_rows: int | None = None,
) -> TokenScores:
    """Return the scores of targets.

    Args:
        hidden: [targets, width] states that predict them.
        targets: [targets] token ids.
        lm_head: maps [n, width] to logits [n, vocabulary].
        chunk_rows: max rows of logits at once.
        block_rows: rows computed at a time.
    """

    def score(states: Tensor, target_ids: Tensor) -> tuple[Tensor, Tensor | None]:
        blocks = zip(
            torch.split(states, block_rows or chunk_rows),
            torch.split(target_ids, block_rows or chunk_rows),
            strict=True,
        )
        apply: Callable[..., tuple[Tensor, Tensor | None]] = _Scored.apply
        return _concatenate(
            [apply(lm_head(block), block_targets, temperature, entropy) for block, block_targets in blocks]
        )

    chunks = list(zip(torch.split(hidden, chunk_rows), torch.split(targets, chunk_rows), strict=True))
    if len(chunks) > 1 and torch.is_grad_enabled():
        scored = [checkpoint(score, *chunk, use_reentrant=False) for chunk in chunks]
    else:
        scored = [score(*chunk) for chunk in chunks]
    return TokenScores(*_concatenate(scored))


def _concatenate(scored: Sequence[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
    entropies = [values for _, values in scored if values is not None]
    return torch.cat([values for values, _ in scored]), torch.cat(entropies) if entropies else None


class _Scored(torch.autograd.Function):
    """Compute log-probabilities l_t and entropies H from logits z [n, vocabulary].

    With p = softmax(z / T): dl_t/dz = (1_t - p) / T and dH/dz = -p (log p + H) / T.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, temperature: float, entropy: EntropyMode
    ) -> tuple[Tensor, Tensor | None]:
        scaled = logits.float() if temperature == 1 else logits.float() / temperature
        log_probs = scaled.log_softmax(-1)
        entropies = None
        if entropy != "none":
            entropies = -(log_probs.exp() * log_probs).sum(-1)
            if entropy == "value":
                ctx.mark_non_differentiable(entropies)
        ctx.save_for_backward(log_probs, targets, entropies if entropy == "gradient" else None)
        ctx.temperature, ctx.dtype = temperature, logits.dtype
        return log_probs.gather(-1, targets[:, None])[:, 0], entropies

    @staticmethod
    def backward(
        ctx: Any, logprob_gradient: Tensor, entropy_gradient: Tensor | None
    ) -> tuple[Tensor, None, None, None]:
        log_probs, targets, entropies = ctx.saved_tensors
        gradient = log_probs.exp()
        if entropies is None or entropy_gradient is None:
            gradient *= -logprob_gradient[:, None]
        else:
            gradient *= -(logprob_gradient[:, None] + entropy_gradient[:, None] * (log_probs + entropies[:, None]))
        gradient.scatter_add_(1, targets[:, None], logprob_gradient[:, None])
        if ctx.temperature != 1:
            gradient /= ctx.temperature
        return gradient.to(ctx.dtype), None, None, None


def accumulating_head(head: Any) -> Callable[[Tensor], Tensor] | None:
    """Return the layer with its weight gradient summed in fp32 and rounded once; None if not needed or not linear."""
    plain = isinstance(head, nn.Linear) and head.weight.dtype != torch.float32
    if not plain or not head.weight.requires_grad or not torch.is_grad_enabled():
        return None
    linear: Callable[[Tensor, Tensor, Tensor], Tensor] = _Linear.apply
    total: Tensor = _RoundedOnce.apply(head.weight)  # type: ignore[no-untyped-call]
    bias = head.bias

    def logits_of_states(states: Tensor) -> Tensor:
        logits = linear(states, head.weight, total)
        return logits if bias is None else logits + bias

    return logits_of_states


class _RoundedOnce(torch.autograd.Function):
    """Return an fp32 tensor of the weight's shape; its gradient, rounded, is the weight's."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        ctx.dtype = weight.dtype
        return torch.zeros((), device=weight.device).expand(weight.shape)

    @staticmethod
    def backward(ctx: Any, total: Tensor) -> Tensor:
        return total.to(ctx.dtype)


class _Linear(torch.autograd.Function):
    """Multiply; the weight's gradient goes to the third argument, in fp32."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, _: Tensor) -> Tensor:
        ctx.save_for_backward(states, weight)
        return functional.linear(states, weight)

    @staticmethod
    def backward(ctx: Any, of_logits: Tensor) -> tuple[Tensor, None, Tensor]:
        states, weight = ctx.saved_tensors
        if of_logits.device.type == "cuda":  # tensor cores sum bf16 products in fp32
            of_weight = torch.mm(of_logits.t(), states, out_dtype=torch.float32)
        else:
            of_weight = of_logits.t().float() @ states.float()
        return of_logits @ weight, None, of_weight
