"""Pack sequences into micro-batches of a fixed number of tokens (paper, section 3), and these into tensors.

Micro-batches are distributed evenly over ranks, and collated on a thread.

Invariant: sequences are whole and adjacent, with positions from 0 and no padding.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curation.records import GoldilocksError
from training.config import PackingSettings
from training.rollouts.impossible import impossible_positions


class PackingError(GoldilocksError):
    """A sequence that cannot be trained on."""


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """A rollout for the trainer.

    Attributes:
        generator_logprobs: of the drawn response tokens; None if unknown.
        mask: False for untrained response tokens; None trains on all.
        on_policy: whether the current weights drew all tokens; None if unknown.
        max_distance: max mean difference to the reference, in nats per token; beyond it the weight is 0.
        answer_tokens: last response tokens that are a reference text.
        value: its problem's, if any.
    """

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    generator_logprobs: Sequence[float] | None
    advantage: float
    token_weight: float
    mask: Sequence[bool] | None = None
    on_policy: bool | None = None
    group: int = 0
    max_distance: float | None = None
    answer_tokens: int = 0
    answer_weight: float = 0.0
    reward: float = 0.0
    value: float | None = None
    teacher_prompt_ids: Sequence[int] | None = None
    teacher_logprobs: Sequence[float] | None = None
    reference_logprobs: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.prompt_ids or not self.response_ids:
            raise PackingError(
                f"a sample has {len(self.prompt_ids)} prompt and {len(self.response_ids)} response tokens; "
                "it needs one of each"
            )
        length = len(self.response_ids)
        marks = length if self.mask is None else len(self.mask)
        known = length if self.generator_logprobs is None else len(self.generator_logprobs) + self.answer_tokens
        if not known == marks == length:
            raise PackingError(f"a response of {length} tokens has {known} log-probabilities and {marks} marks")
        logprobs = self.generator_logprobs or ()
        for index in impossible_positions(logprobs):
            if self.mask is None or self.mask[index]:
                value = logprobs[index]
                raise PackingError(f"a token has the log-probability {value}, which is impossible; mask it")

    @property
    def length(self) -> int:
        """Return the tokens of prompt and response."""
        return len(self.prompt_ids) + len(self.response_ids)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Packed sequences: [tokens] that the model reads, and [targets], the response tokens to score.

    With shared prompts, ``unrolled`` maps tokens of whole sequences to read ones, ``packed`` back.
    """

    input_ids: Tensor  # [tokens] int64
    position_ids: Tensor  # [tokens] int64, from 0 in each sequence
    cu_seqlens: Tensor  # [sequences + 1] int32: sequence i is unrolled tokens cu_seqlens[i] … cu_seqlens[i + 1] - 1
    unrolled: Tensor | None  # [unrolled] int64
    packed: Tensor | None  # [tokens] int64
    logit_positions: Tensor  # [targets] int64: the token whose hidden state predicts the target
    targets: Tensor  # [targets] int64
    sequence_index: Tensor  # [targets] int64
    generator_logprobs: Tensor  # [targets] fp32
    mask: Tensor  # [targets] bool
    advantages: Tensor  # [sequences] fp32
    token_weights: Tensor  # [sequences] fp32
    on_policy: Tensor | None  # [targets] bool; None if unknown
    drawn: Tensor | None  # [targets] bool, False without generator_logprobs; None: all True
    answer: Tensor | None  # [targets] bool, True for reference texts; None: none
    answer_weights: Tensor  # [sequences] fp32
    rewards: Tensor  # [sequences] fp32
    teacher_logprobs: Tensor | None  # [targets] fp32, NaN if not asked; None: none asked
    reference_logprobs: Tensor | None  # [targets] fp32; None without a reference
    sample_indices: tuple[int, ...]
    max_seqlen: int

    def to(self, device: torch.device | str) -> MicroBatch:
        """Return a copy on another device; to a GPU it is asynchronous."""
        pinned = torch.device(device).type == "cuda" and self.input_ids.device.type == "cpu"
        moved: dict[str, Any] = {
            field.name: (value.pin_memory() if pinned else value).to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)


def plan_micro_batches(samples: Sequence[TrainingSample], settings: PackingSettings) -> list[list[int]]:
    """Return each micro-batch's sample indices, shared prompts together if cheaper."""
    lengths = [sample.length for sample in samples]
    separate = first_fit_decreasing(lengths, settings)
    if settings.single:
        return [[index] for members in separate for index in members]
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, sample in enumerate(samples):
        groups.setdefault(tuple(sample.prompt_ids), []).append(index)
    if len(groups) == len(samples):
        return separate
    chunks = [
        [group[position] for position in members]
        for group in groups.values()
        for members in first_fit_decreasing([lengths[index] for index in group], settings)
    ]
    sizes = [sum(lengths[index] for index in chunk) for chunk in chunks]
    together = [
        [index for number in members for index in chunks[number]] for members in first_fit_decreasing(sizes, settings)
    ]
    return min(separate, together, key=lambda bins: len(bins) * sum(model_tokens(samples, members) for members in bins))


def model_tokens(samples: Sequence[TrainingSample], indices: Sequence[int]) -> int:
    """Return the tokens that the model reads for these samples."""
    prompts = {tuple(samples[index].prompt_ids) for index in indices}
    return sum(map(len, prompts)) + sum(len(samples[index].response_ids) for index in indices)


def first_fit_decreasing(lengths: Sequence[int], settings: PackingSettings) -> list[list[int]]:
    """Return each micro-batch's sequences; equal lengths keep their order.

    Example: with room for 5, lengths ``[2, 3, 1, 4]`` become ``[[3, 2], [1, 0]]``.
    """
    room = settings.micro_batch_tokens
    longest = max(lengths, default=0)
    if longest > room:
        raise PackingError(
            f"sequence {lengths.index(longest)} has {longest} tokens, a micro-batch has room for {room}; "
            "raise packing.micro_batch_tokens, or shorten the responses"
        )
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    free = np.full(len(lengths), room)  # of each bin, with empty ones
    bins: list[list[int]] = []
    for index in order:
        number = int((free[: len(bins) + 1] >= lengths[index]).argmax())
        if number == len(bins):
            bins.append([])
        bins[number].append(index)
        free[number] -= lengths[index]
    return bins


def collate(samples: Sequence[TrainingSample], sample_indices: tuple[int, ...]) -> MicroBatch:
    """Return a micro-batch of these samples; shared prompts are read once."""
    prompt_lengths = torch.tensor([len(sample.prompt_ids) for sample in samples])
    response_lengths = torch.tensor([len(sample.response_ids) for sample in samples])
    answer_lengths = torch.tensor([sample.answer_tokens for sample in samples])
    lengths = prompt_lengths + response_lengths
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    input_ids = _joined((ids for sample in samples for ids in (sample.prompt_ids, sample.response_ids)), np.int64)
    before_targets = concatenated_ranges(starts[:-1] + prompt_lengths - 1, response_lengths)
    sequence_index = torch.repeat_interleave(torch.arange(len(samples)), response_lengths)
    answer = concatenated_ranges(answer_lengths - response_lengths, response_lengths) >= 0
    known = torch.tensor([sample.generator_logprobs is not None for sample in samples])
    marks = [sample.on_policy for sample in samples if sample.on_policy is not None]
    if len(marks) not in (0, len(samples)):
        raise PackingError(
            f"{len(marks)} of {len(samples)} samples of a micro-batch have `on_policy`; give it to all or to none"
        )
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
        token_weights=_per_sample(samples, "token_weight"),
        on_policy=torch.tensor(marks)[sequence_index] if marks else None,
        drawn=None if known.all() and not answer.any() else known[sequence_index] & ~answer,
        answer=answer if answer.any() else None,
        answer_weights=_per_sample(samples, "answer_weight"),
        rewards=_per_sample(samples, "reward"),
        teacher_logprobs=_frozen_scores(samples, "teacher_logprobs"),
        reference_logprobs=_frozen_scores(samples, "reference_logprobs"),
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
        added = 0 if ids in begins else prompt
        begin = begins.setdefault(ids, num_read)
        unrolled += [(begin, prompt), (num_read + added, response)]
        packed.append((num_unrolled + prompt - added, added + response))
        num_read, num_unrolled = num_read + added + response, num_unrolled + prompt + response
    if num_read == num_unrolled:
        return whole
    tokens, rows = (concatenated_ranges(*torch.tensor(pairs).unbind(1)) for pairs in (packed, unrolled))
    return replace(
        whole,
        input_ids=whole.input_ids[tokens],
        position_ids=whole.position_ids[tokens],
        unrolled=rows,
        packed=tokens,
        logit_positions=rows[whole.logit_positions],
    )


def _joined(arrays: Iterable[Any], dtype: Any) -> Tensor:
    with np.errstate(over="ignore"):  # impossible log-probabilities, which are masked
        return torch.from_numpy(np.concatenate([np.asarray(array, dtype) for array in arrays]))


def _per_sample(samples: Sequence[TrainingSample], name: str) -> Tensor:
    return torch.tensor([getattr(sample, name) for sample in samples], dtype=torch.float32)


def _per_token(samples: Sequence[TrainingSample], name: str, missing: float) -> Tensor:
    arrays: list[Any] = []
    for sample in samples:
        values = getattr(sample, name) or ()
        arrays += [values, np.full(len(sample.response_ids) - len(values), missing)]
    return _joined(arrays, np.float32)


def _frozen_scores(samples: Sequence[TrainingSample], name: str) -> Tensor | None:
    has_scores = any(getattr(sample, name) is not None for sample in samples)
    return _per_token(samples, name, np.nan) if has_scores else None


def concatenated_ranges(starts: Tensor, counts: Tensor) -> Tensor:
    """Concatenate ranges: starts ``[5, 0]`` and counts ``[2, 3]`` give ``[5, 6, 0, 1, 2]``."""
    before = counts.cumsum(0) - counts
    return (starts - before).repeat_interleave(counts) + torch.arange(int(counts.sum()), device=counts.device)


LOOK_AHEAD = 2
"""Rounds collated ahead."""


class Collation:
    """A minibatch in rounds of one micro-batch per rank; empty ones get a sample of weight 0.

    ``shares`` are each rank's sample indices.
    """

    def __init__(self, samples: Sequence[TrainingSample], settings: PackingSettings, ranks: int) -> None:
        self._samples = samples
        planned = plan_micro_batches(samples, settings)
        lengths, prompts = [sample.length for sample in samples], [tuple(sample.prompt_ids) for sample in samples]
        self.shares = distribute_micro_batches(planned, lengths, ranks, settings.micro_batch_tokens, prompts)

    def __len__(self) -> int:
        return len(self.shares[0])

    @contextmanager
    def made(self) -> Iterator[Iterator[list[MicroBatch]]]:
        """Return an iterator over rounds, made on a thread."""
        thread = ThreadPoolExecutor(1, "collation")
        try:
            yield self._ahead(thread)
        finally:
            thread.shutdown(cancel_futures=True)

    def _ahead(self, thread: ThreadPoolExecutor) -> Iterator[list[MicroBatch]]:
        left = iter(range(len(self)))
        pending = deque(thread.submit(self._round, number) for number in islice(left, LOOK_AHEAD))
        while pending:
            shares = pending.popleft().result()
            pending.extend(thread.submit(self._round, number) for number in islice(left, 1))
            yield shares

    def _round(self, number: int) -> list[MicroBatch]:
        return [self._collated(share[number]) for share in self.shares]

    def _collated(self, indices: Sequence[int]) -> MicroBatch:
        samples = [self._samples[index] for index in indices]
        if not samples:
            shortest = min(self._samples, key=lambda sample: sample.length)
            unmarked = [False] * len(shortest.response_ids)
            samples = [replace(shortest, advantage=0.0, token_weight=0.0, mask=unmarked)]
        return collate(samples, tuple(indices))


def distribute_micro_batches(
    micro_batches: Sequence[Sequence[int]],
    lengths: Sequence[int],
    ranks: int,
    room: int,
    prompts: Sequence[object],
) -> list[list[list[int]]]:
    """Return the sample indices of each rank's micro-batches, equally many with nearly equal work per round.

    Equal ``prompts`` stay together if possible; only a single sequence may exceed ``room``; some may be empty.
    """
    if ranks == 1:
        return [sorted(map(list, micro_batches), key=lambda members: -_load(members, lengths))]
    by_prompt: dict[tuple[int, object], list[int]] = {}
    for number, members in enumerate(micro_batches):
        for index in members:
            by_prompt.setdefault((number, prompts[index]), []).append(index)
    together = list(by_prompt.values())
    single = [[index] for members in micro_batches for index in members]
    rounds = max(-(-len(micro_batches) // ranks), 1)
    while True:
        for chunks in (together, single):
            filled = _evened(chunks, lengths, ranks * rounds)
            if all(len(members) < 2 or _load(members, lengths) <= room for members in filled):
                shares: list[list[list[int]]] = [[] for _ in range(ranks)]
                for position, members in enumerate(filled):
                    turn, seat = divmod(position, ranks)
                    shares[seat if turn % 2 == 0 else ranks - 1 - seat].append(members)
                return shares
        rounds += 1


def _evened(chunks: Sequence[list[int]], lengths: Sequence[int], count: int) -> list[list[int]]:
    """Fill ``count`` micro-batches, largest chunk first; return the fullest first."""
    loads = [(0, number) for number in range(count)]
    micro_batches: list[list[int]] = [[] for _ in range(count)]
    for chunk in sorted(chunks, key=lambda chunk: -_load(chunk, lengths)):
        load, number = loads[0]
        micro_batches[number] += chunk
        heapq.heapreplace(loads, (load + _load(chunk, lengths), number))
    return sorted(micro_batches, key=lambda indices: -_load(indices, lengths))


def _load(indices: Sequence[int], lengths: Sequence[int]) -> int:
    return sum([lengths[index] for index in indices])
