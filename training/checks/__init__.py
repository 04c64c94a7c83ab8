"""Check that packed and plain sequences, and generators and trainer, have the same log-probabilities.

Figures are mean absolute differences of log-probabilities, in nats a token.

Invariant: the trainer keeps its weights, to the bit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from curation.policies.completions import TokenCompletion
from curation.records import GoldilocksError, PolicyError
from training.config import PackingSettings
from training.generation.generators import Generator
from training.optimisation.packing import TrainingSample
from training.optimisation.scoring import PolicyScorer
from training.rollouts.impossible import MAX_IMPOSSIBLE_SHARE, impossible_positions, possible_mask

EXACT = 1e-3
"""Tolerance if all compute in fp32. Measured: 1e-7 to 3e-6."""

ROUNDED = 0.03
"""Tolerance in half precision of packed against plain. Measured in bf16: 2e-4 to 1e-2; a leaking state: 0.05 to 1."""

ENGINES, ROUTED = 0.1, 0.25
"""Tolerances between trainer and generator in half precision, for dense models and mixtures of experts. Measured in
bf16: 1e-3 to 0.05, and 0.11 to 0.14; 0.5 to 5 with old weights.
"""


class ModelCheckError(GoldilocksError):
    """The recipe would train the model wrongly."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check's figure and tolerance (None without a number), and ``advice`` if it failed.

    Example: ``CheckResult("packed = unpacked", 0.43, 1e-3, "they differ by 0.43 nats", "set packing.single = true")``
    """

    check: str
    figure: float | None
    tolerance: float | None
    detail: str
    advice: str = ""

    @property
    def passed(self) -> bool:
        return not self.advice


def require_passed(results: Sequence[CheckResult], model: str) -> None:
    """Raise `ModelCheckError` with the first failed check."""
    for result in results:
        if not result.passed:
            raise ModelCheckError(
                f"model {model}: {result.check}: {result.detail}; {result.advice}. "
                "`goldilocks train RECIPE --check` repeats all checks, `checks = false` skips them."
            )


def format_results(results: Sequence[CheckResult]) -> list[str]:
    """Return the results as lines of a table."""
    rows = [("check", "figure", "tolerance", "result", "")]
    for result in results:
        figures = _number(result.figure), _number(result.tolerance)
        text = "; ".join(filter(None, (result.detail, result.advice)))
        rows.append((result.check, *figures, "ok" if result.passed else "refused", text))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,}" if isinstance(figure, int) else f"{figure:.2g}"


def mean_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Return the mean absolute difference over tokens, or infinity unless all are finite."""
    differences = [(first - second).abs() for first, second in zip(ours, theirs, strict=True)]
    count = sum(len(difference) for difference in differences)
    total = float(sum(float(difference.double().sum()) for difference in differences))
    return total / count if count and total == total else float("inf")


TOKENS = 16
"""Tokens per prompt."""

CHANGED_VERSION = -1
"""Less than any step's version."""

_WEIGHTS_ARRIVE = "weights arrive"
_MOVED_SHARE = 0.1
"""Max rounding in half precision, as a share of the change."""

PACKED = "packed = unpacked"

_PROMPT = 20
"""Last tokens used of a rendered prompt."""

_DRAWN = (3, 2, 1)
"""Random tokens that begin each prompt."""

_RESPONSES = ((20, 16), (24, 20), (12, 9))
"""Tokens of each prompt's responses."""

_LONGEST_WINDOW = 1024
"""Max attention window that is tested with a longer sequence."""

_NO_REMEDY = (
    "no packing helps: the trainer does not compute this architecture as transformers does; take another model, or "
    "set dropout and jitter to 0 in its config.json, if it has any"
)


@dataclass(frozen=True, slots=True)
class GeneratorChecks:
    """Checks of a running generator; the tolerance is in nats."""

    generator: Generator
    scorer: PolicyScorer
    state: Callable[[], Mapping[str, Tensor]]
    prompts: Sequence[Sequence[int]]
    kind: str
    tolerance: float

    async def run(self) -> list[CheckResult]:
        """Run the checks, the second only if the first passed."""
        completions = await self._sample()
        scored = await self._score(completions)
        as_loaded = self._as_loaded(completions, scored)
        return [as_loaded, await self._after_update(completions, scored)] if as_loaded.passed else [as_loaded]

    def _as_loaded(self, completions: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> CheckResult:
        logprobs = [value for completion in completions for value in completion.logprobs]
        impossible = [logprobs[index] for index in impossible_positions(logprobs)]
        figure, advice = _difference(completions, scored), ""
        detail = f"a sampled token's log-probability differs by {figure:.2g} nats on average"
        if len(impossible) > MAX_IMPOSSIBLE_SHARE * len(logprobs):
            figure, advice = math.inf, "look at the engine's log and dtype"
            detail = (
                f"{len(impossible)} of {len(logprobs)} sampled tokens have an impossible log-probability (the first: "
                f"{impossible[0]:g})"
            )
        elif figure <= self.tolerance:
            detail = ""
        elif self.kind == "endpoint":
            advice = "start the servers with `python -m training.generation.serving` and the model's own dtype"
        else:
            advice = (
                "set dtype of the model's table and compute.dtype to one type, and take weights that are not quantised"
            )
        return CheckResult("generator = trainer", figure, self.tolerance, detail, advice)

    async def _after_update(self, before: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> CheckResult:
        advice = "the engine loads no weights of this architecture while it runs; set the kind of its table to torch"
        if self.kind == "torch":
            advice = "generate with vLLM (the kind of the model's table), or take another model"
        try:
            await asyncio.to_thread(self.scorer.flip_weights)
            try:
                changed = await self._updated(CHANGED_VERSION)
                moved = mean_difference(await self._score(before), scored)
            finally:
                await asyncio.to_thread(self.scorer.flip_weights)
            figure = max(changed, await self._updated(0))
        except _UpdateRefused as refusal:
            return CheckResult(_WEIGHTS_ARRIVE, None, None, str(refusal).rstrip("."), advice)
        tolerance = max(self.tolerance, _MOVED_SHARE * moved) if self.tolerance > EXACT else EXACT
        if figure <= tolerance:
            return CheckResult(_WEIGHTS_ARRIVE, figure, tolerance, f"changed weights moved them by {moved:.2g} nats")
        detail = (
            f"after an update the generator's log-probabilities differ from the trainer's by {figure:.2g} nats on "
            f"average, where the update moved them by {moved:.2g}"
        )
        return CheckResult(_WEIGHTS_ARRIVE, figure, tolerance, detail, advice)

    async def _updated(self, version: int) -> float:
        """Send the trainer's weights; return the difference of new samples."""
        try:
            await self.generator.update_weights(await asyncio.to_thread(self.state), version)
        except PolicyError as error:
            raise _UpdateRefused(str(error)) from error
        completions = await self._sample()
        return _difference(completions, await self._score(completions))

    async def _sample(self) -> list[TokenCompletion]:
        requests = [
            self.generator.generate(prompt, seed=seed, max_tokens=TOKENS) for seed, prompt in enumerate(self.prompts)
        ]
        answers = await asyncio.gather(*requests, return_exceptions=True)
        completions = [answer for answer in answers if isinstance(answer, TokenCompletion) and answer.token_ids]
        for answer in answers:
            if isinstance(answer, BaseException) and not (completions and isinstance(answer, PolicyError)):
                raise answer
        return completions

    async def _score(self, completions: Sequence[TokenCompletion]) -> list[Tensor]:
        samples = [_sample(completion.prompt_ids, completion.token_ids) for completion in completions]
        return await asyncio.to_thread(self.scorer.logprobs, samples)


class _UpdateRefused(Exception):
    """The generator refused the trainer's weights."""


def _difference(completions: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> float:
    ours = [torch.tensor(completion.logprobs) for completion in completions]
    masks = [
        torch.tensor(possible_mask(completion.logprobs) or [True] * len(completion.logprobs))
        for completion in completions
    ]
    ours, theirs = ([rows[mask] for rows, mask in zip(side, masks, strict=True)] for side in (ours, scored))
    return mean_difference(ours, theirs)


def probe_samples(
    prompt: Sequence[int], token_ids: Sequence[int], window: int | None = None, seed: int = 0
) -> list[TrainingSample]:
    """Return three prompts with two random responses each, and a sample longer than ``window``."""
    chance = Random(seed)
    samples = []
    for drawn, lengths, rendered in zip(_DRAWN, _RESPONSES, (prompt[-_PROMPT:], (), ()), strict=True):
        start = [*chance.choices(token_ids, k=drawn), *rendered]
        samples += [_sample(start, chance.choices(token_ids, k=length)) for length in lengths]
    if window is not None and window <= _LONGEST_WINDOW:
        samples.insert(0, _sample(chance.choices(token_ids, k=window), chance.choices(token_ids, k=_PROMPT)))
    return samples


def check_packing(scorer: PolicyScorer, samples: Sequence[TrainingSample], *, rounded: bool) -> CheckResult:
    """Check that packing changes no log-probability, and that all are finite."""
    tolerance = ROUNDED if rounded else EXACT
    plain = scorer.logprobs(samples, plain=True)
    if not all(bool(row.isfinite().all()) for row in plain):
        detail = "the model's own log-probabilities are not finite numbers, also without packing"
        advice = "set compute.dtype = float32, or take a model without NaN or infinities in its computation"
        return CheckResult("finite", float("nan"), None, detail, advice)

    def figure(packing: PackingSettings) -> float:
        return mean_difference(scorer.logprobs(samples, packing=packing), plain)

    difference = figure(scorer.packing)
    if difference <= tolerance:
        return CheckResult(PACKED, difference, tolerance, "")
    single = scorer.packing.model_copy(update={"single": True})
    mends = single != scorer.packing and figure(single) <= tolerance
    detail = f"a token's log-probability is {difference:.2g} nats off on average where its sequence is packed"
    return CheckResult(PACKED, difference, tolerance, detail, "set packing.single = true" if mends else _NO_REMEDY)


def _sample(prompt: Sequence[int], response: Sequence[int]) -> TrainingSample:
    return TrainingSample(prompt, response, [0.0] * len(response), 0.0, 0.0)
