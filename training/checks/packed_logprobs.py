"""Check that a packed response has the log-probabilities that it has alone.

*Packed = unpacked* compares with transformers' own forward pass. *Sequences apart* packs twice with other tokens in the
other sequences.
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

NAMES = ("packed = unpacked", "sequences apart")
"""Of the two checks."""

_PROMPT = 20
"""Last tokens that are taken of a rendered prompt."""

_DRAWN = (3, 2, 1)
"""Drawn tokens that begin each prompt; leaks show best in short ones."""

_RESPONSES = ((20, 16), (24, 20), (12, 9))
"""Tokens of the responses, by prompt."""

_LONGEST_WINDOW = 1024
"""Max window of attention that is tried with a longer sequence."""

_RANDOM = ("dropout", "pdrop", "jitter")
"""Parts of settings' names that make a forward pass random."""


def probe_samples(
    prompt: Sequence[int], token_ids: Sequence[int], window: int | None = None, seed: int = 0
) -> list[TrainingSample]:
    """Return three prompts with two random responses each, and one sample longer than any ``window``."""
    chance = Random(seed)
    samples = []
    for drawn, lengths, rendered in zip(_DRAWN, _RESPONSES, (prompt[-_PROMPT:], (), ()), strict=True):
        start = [*chance.choices(token_ids, k=drawn), *rendered]
        samples += [_sample(start, chance.choices(token_ids, k=length)) for length in lengths]
    if window is not None and window <= _LONGEST_WINDOW:
        samples.insert(0, _sample(chance.choices(token_ids, k=window), chance.choices(token_ids, k=_PROMPT)))
    return samples


def check_packing(
    scorer: PolicyScorer,
    samples: Sequence[TrainingSample],
    token_ids: Sequence[int],
    config: Mapping[str, Any],
    *,
    rounded: bool,
) -> list[CheckResult]:
    """Return the results of both checks, or one failure if the model computes no finite numbers."""
    tolerances = (ROUNDED if rounded else EXACT, ISOLATED if rounded else EXACT)
    plain = scorer.logprobs(samples, plain=True)
    if not all(bool(row.isfinite().all()) for row in plain):
        detail = "the model's own log-probabilities are not finite numbers, also without packing"
        advice = "set compute.dtype = float32, or take a model without NaN or infinities in its computation"
        return [CheckResult("finite", float("nan"), None, detail, advice)]
    others = _with_other_first_responses(samples, token_ids)

    def figures(packing: PackingSettings) -> tuple[float, float]:
        packed, beside = (scorer.logprobs(batch, packing=packing) for batch in (samples, others))
        kept = [place for place, (sample, other) in enumerate(zip(samples, others, strict=True)) if sample is other]
        apart = mean_difference(*([rows[place] for place in kept] for rows in (packed, beside)))
        return mean_difference(packed, plain), apart

    def passes(packing: PackingSettings) -> bool:
        return all(figure <= most for figure, most in zip(figures(packing), tolerances, strict=True))

    found, advice = figures(scorer.packing), ""
    if any(figure > most for figure, most in zip(found, tolerances, strict=True)):
        single = scorer.packing.model_copy(update={"single": True})
        mends = single != scorer.packing and passes(single)
        advice = "set packing.single = true" if mends else _other_advice(config)
    faults = (
        "a token's log-probability is {:.2g} nats off on average where its sequence is packed",
        "other sequences in the micro-batch change a token's log-probability by {:.2g} nats on average",
    )
    return [
        CheckResult(name, figure, most, fault.format(figure), advice)
        if figure > most
        else CheckResult(name, figure, most, "")
        for name, figure, most, fault in zip(NAMES, found, tolerances, faults, strict=True)
    ]


def _sample(prompt: Sequence[int], response: Sequence[int]) -> TrainingSample:
    return TrainingSample(prompt, response, [0.0] * len(response), 0.0, 0.0)


def _with_other_first_responses(samples: Sequence[TrainingSample], token_ids: Sequence[int]) -> list[TrainingSample]:
    chance = Random(len(samples))
    others, prompts = [], set()
    for sample in samples:
        is_first = tuple(sample.prompt_ids) not in prompts
        prompts.add(tuple(sample.prompt_ids))
        response = chance.choices(token_ids, k=len(sample.response_ids))
        others.append(replace(sample, response_ids=response) if is_first else sample)
    return others


def _other_advice(config: Mapping[str, Any]) -> str:
    chances = sorted(name for name, value in config.items() if value and any(part in name for part in _RANDOM))
    if chances:
        return f"no packing mends it; set {', '.join(chances)} to 0 in the model's config.json"
    return (
        "no packing mends it: the trainer does not compute this architecture as transformers does; take another model"
    )
