"""The gradient of the output layer's weights in a model in bf16."""

from __future__ import annotations

from typing import Any

import torch

from tests.training.optimisation.test_logprobs import TEMPERATURE, VOCABULARY, llama, some_samples
from training.optimisation.attention import attention_kwargs
from training.optimisation.collating import collate
from training.optimisation.logprobs import PackedPolicy

BATCH = collate(some_samples(), tuple(range(9)))


def hidden_states(model: Any) -> torch.Tensor:
    """[targets, width]: what the output layer is given."""
    hidden: torch.Tensor = model.base_model(
        input_ids=BATCH.input_ids[None],
        position_ids=BATCH.position_ids[None],
        use_cache=False,
        **attention_kwargs(BATCH),
    ).last_hidden_state[0, BATCH.logit_positions]
    return hidden


def exact_head_gradient() -> torch.Tensor:
    """Of the summed log-probabilities: of each logit as bf16 has it, then multiplied and added up in fp64."""
    model = llama().bfloat16()
    PackedPolicy(model, TEMPERATURE)  # its attention
    with torch.no_grad():
        hidden = hidden_states(model)
        probabilities = (model.lm_head(hidden).float() / TEMPERATURE).softmax(-1)
        of_logits = -probabilities
        of_logits.scatter_add_(1, BATCH.targets[:, None], torch.ones(len(BATCH.targets), 1))
        of_logits = (of_logits / TEMPERATURE).bfloat16()
        return of_logits.double().T @ hidden.double()


def test_in_bf16_the_layers_gradient_is_added_up_in_fp32_and_rounded_once() -> None:
    """With a chunk a row, as a large vocabulary has it, the sum is exact up to its last rounding."""

    def gradient(elements: int) -> torch.Tensor:
        model = llama().bfloat16()
        policy = PackedPolicy(model, TEMPERATURE, logit_elements=elements)
        policy(BATCH).logprobs.sum().backward()
        for one in model.parameters():
            assert one.grad is not None
        found: torch.Tensor = model.lm_head.weight.grad
        return found

    by_rows, at_once = gradient(VOCABULARY), gradient(10**6)
    assert by_rows.dtype == torch.bfloat16
    wanted = exact_head_gradient()
    ulp = wanted.abs() * 2**-8 + 1e-6
    assert ((by_rows.double() - wanted).abs() <= ulp).all()
    assert ((at_once.double() - wanted).abs() <= ulp).all()
