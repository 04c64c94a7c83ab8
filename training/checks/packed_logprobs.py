"""Check that a packed response has the log-probabilities that transformers' own forward pass gives it alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from training.checks.results import EXACT, ROUNDED, CheckResult, mean_difference
from training.config import PackingSettings
from training.optimisation.packing import TrainingSample
from training.optimisation.scoring import PolicyScorer

NAME = "packed = unpacked"

_PROMPT = 20
"""Last tokens that are taken of a rendered prompt."""

_DRAWN = (3, 2, 1)
"""Drawn tokens that begin each prompt; leaks show best in short ones."""

_RESPONSES = ((20, 16), (24, 20), (12, 9))
"""Tokens of the responses, by prompt."""

_LONGEST_WINDOW = 1024
"""Max window of attention that is tried with a longer sequence."""

_MENDED_BY_NOTHING = (
    "no packing mends it: the trainer does not compute this architecture as transformers does; take another model, or "
    "set dropout and jitter to 0 in its config.json, if it has any"
)


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


def check_packing(scorer: PolicyScorer, samples: Sequence[TrainingSample], *, rounded: bool) -> CheckResult:
    """Return whether the model may be packed, or that it computes no finite numbers."""
    tolerance = ROUNDED if rounded else EXACT
    plain = scorer.logprobs(samples, plain=True)
    if not all(bool(row.isfinite().all()) for row in plain):
        detail = "the model's own log-probabilities are not finite numbers, also without packing"
        advice = "set compute.dtype = float32, or take a model without NaN or infinities in its computation"
        return CheckResult("finite", float("nan"), None, detail, advice)

    def figure(packing: PackingSettings) -> float:
        return mean_difference(scorer.logprobs(samples, packing=packing), plain)

    found = figure(scorer.packing)
    if found <= tolerance:
        return CheckResult(NAME, found, tolerance, "")
    single = scorer.packing.model_copy(update={"single": True})
    mends = single != scorer.packing and figure(single) <= tolerance
    detail = f"a token's log-probability is {found:.2g} nats off on average where its sequence is packed"
    return CheckResult(NAME, found, tolerance, detail, "set packing.single = true" if mends else _MENDED_BY_NOTHING)


def _sample(prompt: Sequence[int], response: Sequence[int]) -> TrainingSample:
    return TrainingSample(prompt, response, [0.0] * len(response), 0.0, 0.0)
