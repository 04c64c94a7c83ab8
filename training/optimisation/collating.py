"""Convert samples into the tensors of a micro-batch, by way of arrays that are quick to send.

Invariant: a micro-batch depends only on its samples and their order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.config import PackingSettings
from training.optimisation.packing import (
    MicroBatch,
    PackingError,
    TrainingSample,
    concatenated_ranges,
    plan_micro_batches,
)
from training.rollouts.impossible import float_array

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SampleArrays:
    """Concatenated samples; values that no sample has are None.

    ``prompts`` holds each sequence's first index with the same prompt; None without shared prompts.
    """

    ids: NDArray[np.int32]  # [unrolled]: each sequence's prompt and response
    prompt_lengths: NDArray[np.int64]  # [sequences]
    response_lengths: NDArray[np.int64]  # [sequences]
    prompts: tuple[int, ...] | None  # [sequences]
    generator_logprobs: Floats  # [targets]
    mask: Marks | None  # [targets]; None: all count
    on_policy: Marks | None  # [sequences]
    drawn: Marks | None  # [targets]
    answer: Marks | None  # [targets]
    advantages: Floats  # [sequences]
    weights: Floats  # [sequences]
    answer_weights: Floats  # [sequences]
    rewards: Floats  # [sequences]
    teacher_logprobs: Floats | None  # [targets]
    sample_indices: tuple[int, ...]

    def micro_batch(self) -> MicroBatch:
        """Return the micro-batch, in which shared prompts are read once."""
        whole = self._whole()
        if self.prompts is None:
            return whole
        unrolled, packed = [], []  # (first, count) of tokens side by side
        begins: list[int] = []  # of each sequence, where its prompt's tokens are read
        num_read = num_unrolled = 0
        lengths = zip(self.prompt_lengths.tolist(), self.response_lengths.tolist(), strict=True)
        for place, (first, (prompt, response)) in enumerate(zip(self.prompts, lengths, strict=True)):
            anew = prompt if first == place else 0
            begins.append(num_read if anew else begins[first])
            unrolled += [(begins[place], prompt), (num_read + anew, response)]
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

    def _whole(self) -> MicroBatch:
        """Return the micro-batch without shared prompts."""
        prompt_lengths, response_lengths = map(torch.from_numpy, (self.prompt_lengths, self.response_lengths))
        lengths = prompt_lengths + response_lengths
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        input_ids = torch.from_numpy(self.ids).long()
        before_targets = concatenated_ranges(starts[:-1] + prompt_lengths - 1, response_lengths)
        mask, on_policy = _tensor(self.mask), _tensor(self.on_policy)
        return MicroBatch(
            input_ids=input_ids,
            position_ids=concatenated_ranges(torch.zeros_like(lengths), lengths),
            cu_seqlens=starts.int(),
            unrolled=None,
            packed=None,
            logit_positions=before_targets,
            targets=input_ids[before_targets + 1],
            sequence_index=torch.repeat_interleave(torch.arange(len(lengths)), response_lengths),
            generator_logprobs=torch.from_numpy(self.generator_logprobs),
            mask=torch.ones(len(before_targets), dtype=torch.bool) if mask is None else mask,
            advantages=torch.from_numpy(self.advantages),
            weights=torch.from_numpy(self.weights),
            on_policy=None if on_policy is None else on_policy.repeat_interleave(response_lengths),
            drawn=_tensor(self.drawn),
            answer=_tensor(self.answer),
            answer_weights=torch.from_numpy(self.answer_weights),
            rewards=torch.from_numpy(self.rewards),
            teacher_logprobs=_tensor(self.teacher_logprobs),
            sample_indices=self.sample_indices,
            max_seqlen=int(lengths.max()),
        )


def gather(samples: Sequence[TrainingSample], sample_indices: tuple[int, ...]) -> SampleArrays:
    """Return the samples as arrays, in this order.

    Raises:
        PackingError: only some of them have ``on_policy``.
    """
    first: dict[tuple[int, ...], int] = {}
    numbers = [first.setdefault(tuple(sample.prompt_ids), place) for place, sample in enumerate(samples)]
    marks = _all_or_none(samples, "on_policy")
    masked = any(sample.mask is not None for sample in samples)
    return SampleArrays(
        ids=np.concatenate([_ids(part) for sample in samples for part in (sample.prompt_ids, sample.response_ids)]),
        prompt_lengths=np.array([len(sample.prompt_ids) for sample in samples]),
        response_lengths=np.array([len(sample.response_ids) for sample in samples]),
        prompts=tuple(numbers) if len(first) < len(samples) else None,
        generator_logprobs=np.concatenate([_logprobs(sample) for sample in samples]),
        mask=np.concatenate([_mask(sample) for sample in samples]) if masked else None,
        on_policy=np.array(marks, np.bool_) if marks else None,
        drawn=_drawn(samples),
        answer=_answer(samples),
        advantages=_of_each(samples, lambda sample: sample.advantage),
        weights=_of_each(samples, lambda sample: sample.token_weight),
        answer_weights=_of_each(samples, lambda sample: sample.answer_weight),
        rewards=_of_each(samples, lambda sample: sample.reward),
        teacher_logprobs=_teacher_logprobs(samples),
        sample_indices=sample_indices,
    )


def collate(samples: Sequence[TrainingSample], sample_indices: tuple[int, ...]) -> MicroBatch:
    """Return one micro-batch of these samples; see `gather`."""
    return gather(samples, sample_indices).micro_batch()


def pack_samples(samples: Sequence[TrainingSample], settings: PackingSettings) -> list[MicroBatch]:
    """Return micro-batches that hold every sample once.

    Raises:
        PackingError: a sample is longer than a micro-batch.
    """
    return [
        collate([samples[index] for index in indices], tuple(indices))
        for indices in plan_micro_batches(samples, settings)
    ]


def _tensor(values: NDArray[Any] | None) -> Tensor | None:
    return None if values is None else torch.from_numpy(values)


def _ids(tokens: Sequence[int]) -> NDArray[np.int32]:
    """Return tokens as an array, faster than `numpy.asarray`."""
    return np.frombuffer(struct.pack(f"{len(tokens)}i", *tokens), np.int32)


def _values(logprobs: Sequence[float]) -> Floats:
    with np.errstate(over="ignore"):  # impossible ones, which are masked
        return float_array(logprobs).astype(np.float32)


def _of_each(samples: Sequence[TrainingSample], value_of: Callable[[TrainingSample], float]) -> Floats:
    return np.array([value_of(sample) for sample in samples], np.float32)


def _logprobs(sample: TrainingSample) -> Floats:
    """Return a log-probability for each response token, 0 if unknown."""
    values = np.zeros(len(sample.response_ids), np.float32)
    if sample.generator_logprobs is not None:
        values[: len(values) - sample.answer_tokens] = _values(sample.generator_logprobs)
    return values


def _teacher_logprobs(samples: Sequence[TrainingSample]) -> Floats | None:
    if all(sample.teacher_logprobs is None for sample in samples):
        return None
    unknown = [np.full(len(sample.response_ids), np.nan, np.float32) for sample in samples]
    return np.concatenate(
        [
            none if sample.teacher_logprobs is None else np.asarray(sample.teacher_logprobs, np.float32)
            for none, sample in zip(unknown, samples, strict=True)
        ]
    )


def _mask(sample: TrainingSample) -> Marks:
    if sample.mask is None:
        return np.ones(len(sample.response_ids), np.bool_)
    return np.asarray(sample.mask, np.bool_)


def _drawn(samples: Sequence[TrainingSample]) -> Marks | None:
    if all(sample.generator_logprobs is not None and not sample.answer_tokens for sample in samples):
        return None
    return _marks(samples, [(sample.generator_logprobs is not None, False) for sample in samples])


def _answer(samples: Sequence[TrainingSample]) -> Marks | None:
    if not any(sample.answer_tokens for sample in samples):
        return None
    return _marks(samples, [(False, True)] * len(samples))


def _marks(samples: Sequence[TrainingSample], values: Sequence[tuple[bool, bool]]) -> Marks:
    """Return each sample's two values, for drawn tokens and its reference text."""
    counts = [
        count for sample in samples for count in (len(sample.response_ids) - sample.answer_tokens, sample.answer_tokens)
    ]
    return np.repeat(np.array(values, np.bool_).ravel(), counts)


def _all_or_none(samples: Sequence[TrainingSample], name: str) -> list[Any]:
    """Return this attribute of all samples; empty if none has it."""
    values = [value for sample in samples if (value := getattr(sample, name)) is not None]
    if len(values) not in (0, len(samples)):
        raise PackingError(
            f"{len(values)} of {len(samples)} samples of a micro-batch have `{name}`; give it to all or to none"
        )
    return values
