"""Convert samples into the tensors of a micro-batch.

Invariant: a micro-batch depends only on its samples and their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training.optimisation.packing import (
    MicroBatch,
    PackingError,
    TrainingSample,
    concatenated_ranges,
)


def collate(samples: Sequence[TrainingSample], sample_indices: tuple[int, ...]) -> MicroBatch:
    """Return a micro-batch of these samples; shared prompts are read once.

    Raises:
        PackingError: only some have ``on_policy``.
    """
    prompt_lengths = torch.tensor([len(sample.prompt_ids) for sample in samples])
    response_lengths = torch.tensor([len(sample.response_ids) for sample in samples])
    answer_lengths = torch.tensor([sample.answer_tokens for sample in samples])
    lengths = prompt_lengths + response_lengths
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    input_ids = _joined((ids for one in samples for ids in (one.prompt_ids, one.response_ids)), np.int64)
    before_targets = concatenated_ranges(starts[:-1] + prompt_lengths - 1, response_lengths)
    sequence_index = torch.repeat_interleave(torch.arange(len(samples)), response_lengths)
    answer = concatenated_ranges(answer_lengths - response_lengths, response_lengths) >= 0
    known = torch.tensor([sample.generator_logprobs is not None for sample in samples])
    taught = any(sample.teacher_logprobs is not None for sample in samples)
    whole = MicroBatch(
        input_ids=input_ids,
        position_ids=concatenated_ranges(torch.zeros_like(lengths), lengths),
        cu_seqlens=starts.int(),
        unrolled=None,
        packed=None,
        logit_positions=before_targets,
        targets=input_ids[before_targets + 1],
        sequence_index=sequence_index,
        generator_logprobs=_per_token(samples, "generator_logprobs", 0.0),
        mask=_per_token(samples, "mask", 1.0).bool(),
        advantages=_per_sample(samples, "advantage"),
        weights=_per_sample(samples, "token_weight"),
        on_policy=_on_policy(samples, sequence_index),
        drawn=None if known.all() and not answer.any() else known[sequence_index] & ~answer,
        answer=answer if answer.any() else None,
        answer_weights=_per_sample(samples, "answer_weight"),
        rewards=_per_sample(samples, "reward"),
        teacher_logprobs=_per_token(samples, "teacher_logprobs", np.nan) if taught else None,
        sample_indices=sample_indices,
        max_seqlen=int(lengths.max()),
    )
    return _with_shared_prompts(whole, samples)


def _with_shared_prompts(whole: MicroBatch, samples: Sequence[TrainingSample]) -> MicroBatch:
    begins: dict[tuple[int, ...], int] = {}  # where each prompt's tokens are read
    unrolled, packed = [], []  # (first, count) of adjacent tokens
    num_read = num_unrolled = 0
    for sample in samples:
        ids, prompt, response = tuple(sample.prompt_ids), len(sample.prompt_ids), len(sample.response_ids)
        anew = 0 if ids in begins else prompt
        begin = begins.setdefault(ids, num_read)
        unrolled += [(begin, prompt), (num_read + anew, response)]
        packed.append((num_unrolled + prompt - anew, anew + response))
        num_read, num_unrolled = num_read + anew + response, num_unrolled + prompt + response
    if num_read == num_unrolled:
        return whole
    places, rows = (concatenated_ranges(*torch.tensor(pairs).unbind(1)) for pairs in (packed, unrolled))
    return replace(
        whole,
        input_ids=whole.input_ids[places],
        position_ids=whole.position_ids[places],
        unrolled=rows,
        packed=places,
        logit_positions=rows[whole.logit_positions],
    )


def _joined(parts: Iterable[Any], dtype: Any) -> Tensor:
    with np.errstate(over="ignore"):  # impossible log-probabilities, which are masked
        return torch.from_numpy(np.concatenate([np.asarray(part, dtype) for part in parts]))


def _per_sample(samples: Sequence[TrainingSample], name: str) -> Tensor:
    return torch.tensor([getattr(sample, name) for sample in samples], dtype=torch.float32)


def _per_token(samples: Sequence[TrainingSample], name: str, missing: float) -> Tensor:
    parts: list[Any] = []
    for sample in samples:
        values = getattr(sample, name) or ()
        parts += [values, np.full(len(sample.response_ids) - len(values), missing)]
    return _joined(parts, np.float32)


def _on_policy(samples: Sequence[TrainingSample], sequence_index: Tensor) -> Tensor | None:
    marks = [sample.on_policy for sample in samples if sample.on_policy is not None]
    if len(marks) not in (0, len(samples)):
        raise PackingError(
            f"{len(marks)} of {len(samples)} samples of a micro-batch have `on_policy`; give it to all or to none"
        )
    return torch.tensor(marks)[sequence_index] if marks else None
