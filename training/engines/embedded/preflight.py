"""Check a model before training, cheap checks first.

Invariant: the run's weights and random numbers do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.policies.chat_templates import StopTokens, special_tokens
from training.checks.generator_logprobs import GeneratorChecks
from training.checks.packed_logprobs import check_packing, probe_samples
from training.checks.prompts import ROOM, TEMPLATE, PromptChecks, short_tasks
from training.checks.results import ENGINES, EXACT, ROUTED, CheckResult
from training.engines.placement import EXPERT_COUNTS
from training.generation.generators import Generator
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rollouts.tasks import TrainingTask

_SAID = (TEMPLATE, ROOM)
"""Checks with printed remarks."""


def context_of(recipe: TrainRecipe, config: Any) -> int:
    """Return the smaller context of model and generator, in tokens."""
    own = int(config.max_position_embeddings)
    return min(own, getattr(recipe.trained, "max_model_len", None) or own)


@dataclass(slots=True)
class Preflight:
    """The checks of one run, on rank 0."""

    recipe: TrainRecipe
    stops: StopTokens
    trainer: Trainer
    prompts: PromptChecks
    tasks: Mapping[str, TrainingTask]
    results: list[CheckResult] = field(default_factory=list)

    def before_generation(self) -> Sequence[CheckResult]:
        """Run the checks that need no generator."""
        found = self.prompts.template(short_tasks(self.tasks.values())[0], self.stops)
        if all(result.passed for result in found):
            context, max_tokens = context_of(self.recipe, self._config), self.recipe.rewards.max_length
            micro_batch = self.trainer.scorer.packing.micro_batch_tokens
            found = [
                *found,
                self.prompts.room(self.tasks.values(), context, max_tokens, micro_batch),
                self._packing(),
            ]
        self.results += found
        return found

    async def of_generator(self, generator: Generator) -> Sequence[CheckResult]:
        """Check the running generator."""
        trainer, kind = self.trainer, self.recipe.trained.model_dump()["kind"]
        prompts, tolerance = self._short_prompts(), self._generator_tolerance()
        checks = GeneratorChecks(generator, trainer.scorer, trainer.full_state_dict, prompts, kind, tolerance)
        found = await checks.run()
        self.results += found
        return found

    def lines(self) -> list[str]:
        """Return the lines to print."""
        figures = ", ".join(
            f"{result.check} {result.figure:.2g}" for result in self.results if isinstance(result.figure, float)
        )
        return [
            f"the model was checked: {figures}",
            *(f"{result.check}: {result.detail}" for result in self.results if result.check in _SAID and result.detail),
        ]

    def _packing(self) -> CheckResult:
        tokenizer = self.prompts.tokenizer
        special, known = special_tokens(tokenizer), min(len(tokenizer), int(self._config.vocab_size))
        ordinary = [token for token in range(known) if token not in special]
        window = getattr(self._config, "sliding_window", None)
        if window is not None and window >= self.recipe.rewards.max_length:
            window = None  # hardly a sequence of this run is longer
        samples = probe_samples(self._short_prompts()[0], ordinary, window)
        return check_packing(self.trainer.scorer, samples, rounded=self._rounded)

    def _short_prompts(self) -> list[tuple[int, ...]]:
        return [self.prompts.render(task) for task in short_tasks(self.tasks.values())]

    def _generator_tolerance(self) -> float:
        # servers do not say their type, and vLLM's `auto` is a half one for weights in fp32 too
        if not self._rounded and getattr(self.recipe.trained, "dtype", "auto") == "float32":
            return EXACT
        return ROUTED if any(getattr(self._config, name, 0) for name in EXPERT_COUNTS) else ENGINES

    @property
    def _config(self) -> Any:
        return self.trainer.model.config.get_text_config()

    @property
    def _rounded(self) -> bool:
        return self.recipe.compute.dtype != "float32"
