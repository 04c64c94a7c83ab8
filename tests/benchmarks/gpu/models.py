"""Models of random weights and batches of random tokens, made where they are used: nothing is downloaded or written."""

from __future__ import annotations

import json
import random
from typing import Any

import torch

from curation.config import TorchModel
from training.config import ComputeSettings, OptimSettings, PackingSettings
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext
from training.optimisation.memory import MODEL_SHAPES, ModelShape
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import Trainer
from training.recipe import EmbeddedData, TrainRecipe

SHAPES = {"0.5B": ModelShape(151_936, 896, 24, 14, 2, 64, 4864, tie_embeddings=True), **MODEL_SHAPES}
"""By name; Qwen2.5-0.5B's and those of the memory table."""

TOY = ModelShape(512, 64, 2, 4, 2, 16, 128, tie_embeddings=True)
SMALL = ModelShape(2048, 256, 4, 4, 2, 64, 768)
"""For runs on a CPU, and for what is compared number by number on a GPU."""

PROMPT = 64


def random_model(shape: ModelShape, device: torch.device, seed: int = 1) -> Any:
    """Return a Qwen2 of random fp32 weights, in training mode, made on its device.

    Those of small models are large, so that what a token attends to changes what is predicted.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.num_heads,
        num_key_value_heads=shape.num_kv_heads,
        max_position_embeddings=65_536,
        tie_word_embeddings=shape.tie_embeddings,
        initializer_range=0.02 if shape.num_parameters > 1e8 else 0.15,
    )
    torch.manual_seed(seed)
    with device:
        model = Qwen2ForCausalLM(config)
    return model.to(torch.float32).train()


def recipe_of(tokens: int, device: torch.device, dtype: str, *, checkpointing: bool) -> TrainRecipe:
    """Return a training recipe with micro-batches of so many tokens; only what the trainer itself reads matters."""
    return TrainRecipe(
        name="gpu",
        steps=1,
        model="student",
        models={"student": TorchModel(model="random")},
        data=EmbeddedData(kind="embedded"),
        objective=GrpoSettings(),
        packing=PackingSettings(micro_batch_tokens=tokens),
        optim=OptimSettings(warmup_steps=0),
        compute=ComputeSettings(device=str(device), dtype=dtype, activation_checkpointing=checkpointing),
    )


def trainer_of(
    shape: ModelShape, tokens: int, device: torch.device, dtype: str = "float32", *, checkpointing: bool = False
) -> Trainer:
    recipe = recipe_of(tokens, device, dtype, checkpointing=checkpointing)
    return Trainer(None, recipe, DistributedContext(recipe.compute), model=random_model(shape, device))


def batch(shape: ModelShape, tokens: int, micro_batches: int, seed: int = 1) -> list[TrainingSample]:
    """Return samples that fill so many micro-batches: of each, half is one sequence, and two quarters are two."""
    chance = random.Random(seed)
    lengths = [length for _ in range(micro_batches) for length in (tokens // 2, tokens // 4, tokens // 4)]
    responses = sum(lengths) - PROMPT * len(lengths)
    return [
        TrainingSample(
            prompt_ids=chance.choices(range(shape.vocab_size), k=PROMPT),
            response_ids=chance.choices(range(shape.vocab_size), k=length - PROMPT),
            generator_logprobs=[-11.0] * (length - PROMPT),
            advantage=1.0 if number % 2 else -1.0,
            token_weight=1 / responses,
        )
        for number, length in enumerate(lengths)
    ]


def token_answer(sample: TrainingSample) -> bytes:
    """Return the body in which a vLLM 0.32 server gives a sample, with each token and log-probability twice."""
    tokens = list(sample.response_ids)
    pairs = zip(tokens, sample.generator_logprobs or (), strict=True)
    drawn = [{"token_id": token, "logprob": value, "rank": 1} for token, value in pairs]
    spans = [{"version": "run-1", "start": 0, "end": len(tokens)}]
    choice = {"index": 0, "finish_reason": "stop", "token_ids": tokens, "weight_versions": spans}
    logprobs = {"content": [{**one, "top_logprobs": [one]} for one in drawn]}
    return json.dumps({"choices": [{**choice, "logprobs": logprobs}]}, separators=(",", ":")).encode()


def step_flops(shape: ModelShape, samples: list[TrainingSample]) -> float:
    """Return the floating-point operations that a step on these samples needs, forward and backward once.

    6 per parameter of the layers and token, 6 per parameter of the output layer and trained token, and 6 s² h per layer
    and sequence for causal attention, as in PaLM (A. Chowdhery et al., 2022, appendix B), without recomputation.
    """
    width = shape.num_heads * shape.head_dim
    read = sum(sample.length for sample in samples)
    trained = sum(len(sample.response_ids) for sample in samples)
    attention = 6.0 * shape.num_layers * width * sum(sample.length**2 for sample in samples)
    layers = 6.0 * shape.num_layers * shape.layer_parameters * read
    return layers + attention + 6.0 * shape.vocab_size * shape.hidden_size * trained
