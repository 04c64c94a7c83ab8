"""Check that generators and trainer compute the same log-probabilities, with first and with changed weights.

Invariants: the trainer ends with its first weights, to the bit. Tokens of changed weights have a version that no step
has, so nothing cached survives.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from training.checks.results import EXACT, CheckResult, mean_difference
from training.generation.generators import Generator
from training.optimisation.packing import TrainingSample
from training.optimisation.scoring import PolicyScorer
from training.rollouts.impossible import MAX_IMPOSSIBLE_SHARE, impossible_positions, possible_mask

TOKENS = 16
"""Tokens per prompt."""

CHANGED_VERSION = -1
"""Below every step's version."""

_AGREE = "generator = trainer"
_ARRIVE = "weights arrive"
_MOVED_SHARE = 0.1
"""Max rounding in half precision, as a share of the change."""


@dataclass(frozen=True, slots=True)
class GeneratorChecks:
    """The checks of a running generator; the tolerance is in nats (`training.checks.results`)."""

    generator: Generator
    scorer: PolicyScorer
    state: Callable[[], Mapping[str, Tensor]]
    prompts: Sequence[Sequence[int]]
    kind: str
    tolerance: float

    async def run(self) -> list[CheckResult]:
        """Return the results; the second check runs only if the first passed."""
        completions = await self._sample()
        scored = await self._score(completions)
        as_loaded = self._as_loaded(completions, scored)
        return [as_loaded, await self._after_update(completions, scored)] if as_loaded.passed else [as_loaded]

    def _as_loaded(self, completions: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> CheckResult:
        logprobs = [value for one in completions for value in one.logprobs]
        impossible = [logprobs[place] for place in impossible_positions(logprobs)]
        if len(impossible) > MAX_IMPOSSIBLE_SHARE * len(logprobs):
            detail = (
                f"{len(impossible)} of {len(logprobs)} sampled tokens have an impossible log-probability (the first: "
                f"{impossible[0]:g})"
            )
            return CheckResult(_AGREE, math.inf, self.tolerance, detail, "look at the engine's log, and at its dtype")
        figure = self._difference(completions, scored)
        if figure <= self.tolerance:
            return CheckResult(_AGREE, figure, self.tolerance, "")
        detail = f"a sampled token's log-probability differs by {figure:.2g} nats on average"
        advice = "set dtype of the model's table and compute.dtype to one type, and take weights that are not quantised"
        if self.kind == "endpoint":
            advice = "start the servers with `python -m training.generation.serving` and the model's own dtype"
        return CheckResult(_AGREE, figure, self.tolerance, detail, advice)

    async def _after_update(self, before: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> CheckResult:
        await asyncio.to_thread(self.scorer.flip_weights)
        try:
            if refusal := await self._update(CHANGED_VERSION):
                return refusal
            moved = mean_difference(await self._score(before), scored)
            figure = await self._figure()
        finally:
            await asyncio.to_thread(self.scorer.flip_weights)
        if refusal := await self._update(0):
            return refusal
        figure = max(figure, await self._figure())
        tolerance = max(self.tolerance, _MOVED_SHARE * moved) if self.tolerance > EXACT else EXACT
        if figure <= tolerance:
            return CheckResult(_ARRIVE, figure, tolerance, f"changed weights moved them by {moved:.2g} nats")
        detail = (
            f"after an update the generator's log-probabilities differ from the trainer's by {figure:.2g} nats on "
            f"average, where the update moved them by {moved:.2g}"
        )
        return CheckResult(_ARRIVE, figure, tolerance, detail, self._update_advice())

    async def _figure(self) -> float:
        completions = await self._sample()
        return self._difference(completions, await self._score(completions))

    async def _update(self, version: int) -> CheckResult | None:
        try:
            await self.generator.update_weights(await asyncio.to_thread(self.state), version)
        except PolicyError as error:
            return CheckResult(_ARRIVE, None, None, str(error).rstrip("."), self._update_advice())
        return None

    def _update_advice(self) -> str:
        if self.kind == "torch":
            return "generate with vLLM (the kind of the model's table), or take another model"
        return "the engine does not load this architecture's weights while it runs; set the kind of its table to torch"

    async def _sample(self) -> list[TokenCompletion]:
        asked = [
            self.generator.generate(prompt, seed=seed, max_tokens=TOKENS) for seed, prompt in enumerate(self.prompts)
        ]
        completions, failures = [], []
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, PolicyError):
                failures.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            elif answer.token_ids:
                completions.append(answer)
        if failures and not completions:
            raise failures[0]
        return completions

    async def _score(self, completions: Sequence[TokenCompletion]) -> list[Tensor]:
        samples = [
            TrainingSample(one.prompt_ids, one.token_ids, [0.0] * len(one.token_ids), 0.0, 0.0) for one in completions
        ]
        return await asyncio.to_thread(self.scorer.logprobs, samples)

    @staticmethod
    def _difference(completions: Sequence[TokenCompletion], scored: Sequence[Tensor]) -> float:
        ours = [torch.tensor(one.logprobs) for one in completions]
        masks = [torch.tensor(possible_mask(one.logprobs) or [True] * len(one.logprobs)) for one in completions]
        ours, theirs = ([rows[mask] for rows, mask in zip(side, masks, strict=True)] for side in (ours, scored))
        return mean_difference(ours, theirs)
