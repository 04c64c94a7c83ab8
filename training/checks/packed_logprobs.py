"""Packed = unpacked: a response has the log-probabilities that it has alone, whatever lies beside it.

Two figures. *Packed = unpacked* compares what a step computes with each sequence alone through transformers' own
forward pass: attention, positions, boundaries and output layer are all in it, and in half precision so is rounding.
*Sequences apart* packs twice, with other tokens in the other sequences: the same operations on the same shapes, so that
next to nothing rounds differently and a small leak is seen in half precision too.

Where one fails, packings that are slower are tried, and the first that passes is the advice.

Not here: how sequences are packed (`training.optimisation.packing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from training.checks.results import EXACT, ISOLATED, ROUNDED, CheckResult, mean_difference
from training.config import PackingSettings
from training.optimisation.packing import TrainingSample
from training.optimisation.scoring import PolicyScorer

_RESPONSES = ((13, 7), (19, 11), (23, 5))
"""Tokens of the responses, by prompt: of several lengths, and short, since a leak is largest behind a boundary."""

_KEPT = (2, 5)
"""Which samples stay as they are while the other responses change: one that the next prompt's begin with, and one that
follows another of its prompt."""

_PROMPT = 20
"""Of a rendered prompt so many last tokens are taken; some drawn ones before them keep the prompts apart."""

_LONGEST_WINDOW = 1024
"""A window of attention is tried with a sequence that is longer where it has at most so many tokens."""

_SLOWER: Mapping[str, Mapping[str, bool]] = {
    "set packing.shared = false": {"shared": False},
    "set packing.single = true": {"single": True},
}
"""Packings to try, from quick to slow."""

_RANDOM = ("dropout", "pdrop", "jitter")
"""Parts of the names under which configurations keep what is random in a forward pass."""


def probe_samples(
    prompts: Sequence[Sequence[int]], token_ids: Sequence[int], window: int | None = None, seed: int = 0
) -> list[TrainingSample]:
    """Return samples to pack: three prompts with two responses each, of tokens drawn from ``token_ids``.

    With the ``window`` of an attention, one more is longer than that.
    """
    chance = Random(seed)
    samples = []
    for place, lengths in enumerate(_RESPONSES):
        prompt = [*chance.choices(token_ids, k=3 + place), *prompts[place % len(prompts)][-_PROMPT:]]
        samples += [_sample(prompt, chance.choices(token_ids, k=length)) for length in lengths]
    if window is not None and window <= _LONGEST_WINDOW:
        samples.append(_sample(chance.choices(token_ids, k=window), chance.choices(token_ids, k=_PROMPT)))
    return samples


def check_packing(
    scorer: PolicyScorer,
    samples: Sequence[TrainingSample],
    token_ids: Sequence[int],
    config: Mapping[str, Any],
    *,
    rounded: bool,
) -> list[CheckResult]:
    """Return the results of both figures.

    Args:
        samples: from `probe_samples`.
        token_ids: from which other tokens are drawn.
        config: the model's configuration.
        rounded: whether the trainer computes in half precision.
    """
    tolerances = (ROUNDED if rounded else EXACT, ISOLATED if rounded else EXACT)
    plain = scorer.logprobs(samples, plain=True)
    others = _with_other_responses(samples, token_ids)

    def figures(packing: PackingSettings) -> tuple[float, float]:
        packed, beside = (scorer.logprobs(batch, packing=packing) for batch in (samples, others))
        apart = mean_difference(*([rows[place] for place in _KEPT] for rows in (packed, beside)))
        return mean_difference(packed, plain), apart

    def passes(packing: PackingSettings) -> bool:
        return all(figure <= most for figure, most in zip(figures(packing), tolerances, strict=True))

    (packed, apart), advice = figures(scorer.packing), ""
    if packed > tolerances[0] or apart > tolerances[1]:
        slower = {text: scorer.packing.model_copy(update=dict(update)) for text, update in _SLOWER.items()}
        working = (text for text, packing in slower.items() if packing != scorer.packing and passes(packing))
        advice = next(working, None) or _other_advice(config)
    return [
        CheckResult(
            "packed = unpacked",
            packed,
            tolerances[0],
            f"a token's log-probability is {packed:.2g} nats off on average where its sequence is packed"
            if packed > tolerances[0]
            else "",
            advice if packed > tolerances[0] else "",
        ),
        CheckResult(
            "sequences apart",
            apart,
            tolerances[1],
            f"other sequences in the micro-batch change a token's log-probability by {apart:.2g} nats on average"
            if apart > tolerances[1]
            else "",
            advice if apart > tolerances[1] else "",
        ),
    ]


def _sample(prompt: Sequence[int], response: Sequence[int]) -> TrainingSample:
    return TrainingSample(prompt, response, [0.0] * len(response), 0.0, 0.0)


def _with_other_responses(samples: Sequence[TrainingSample], token_ids: Sequence[int]) -> list[TrainingSample]:
    """Return the samples with other responses of the same lengths, but for those of `_KEPT`."""
    chance = Random(len(samples))
    return [
        sample
        if place in _KEPT
        else replace(sample, response_ids=chance.choices(token_ids, k=len(sample.response_ids)))
        for place, sample in enumerate(samples)
    ]


def _other_advice(config: Mapping[str, Any]) -> str:
    """Return what to do where no packing helps."""
    chances = sorted(name for name, value in config.items() if value and any(part in name for part in _RANDOM))
    if chances:
        return f"no packing mends it; set {', '.join(chances)} to 0 in the model's config.json"
    return (
        "no packing mends it: the trainer does not compute this architecture as transformers does; take another model"
    )
