"""Check a model before training, cheap checks first.

Invariant: the run's weights and random numbers do not change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.policies.chat_templates import folder_stop_tokens, special_tokens
from training.checks.generator_logprobs import GeneratorChecks
from training.checks.packed_logprobs import check_packing, probe_samples
from training.checks.prompts import ROOM, TEMPLATE, check_prompts, check_room, short_tasks
from training.checks.results import ENGINES, EXACT, ROUTED, CheckResult
from training.engines.placement import EXPERT_COUNTS
from training.generation.generators import Generator
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rollouts.rollouts import render_prompt
from training.rollouts.tasks import TrainingTask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_SAID = (TEMPLATE, ROOM)
"""Checks with printed remarks."""


def context_of(recipe: TrainRecipe, config: Any) -> int:
    """Return the smaller context of model and generator, in tokens."""
    own = int(config.max_position_embeddings)
    return min(own, getattr(recipe.trained, "max_model_len", None) or own)


class Preflight:
    """Check one run, on rank 0."""

    def __init__(
        self,
        recipe: TrainRecipe,
        folder: Path,
        trainer: Trainer,
        tokenizer: PreTrainedTokenizerBase,
        tasks: Mapping[str, TrainingTask],
    ) -> None:
        self.results: list[CheckResult] = []
        self.seconds = 0.0
        self._recipe, self._trainer, self._tokenizer, self._tasks = recipe, trainer, tokenizer, tasks
        self._folder, self._tags, self._prompt = folder, recipe.tags, recipe.solving_prompt
        self._short = short_tasks(tasks.values())
        self._config: Any = trainer.model.config.get_text_config()
        self._max_tokens = recipe.rewards.max_length

    def before_generation(self) -> Sequence[CheckResult]:
        """Run the checks that need no generator."""
        begun = time.perf_counter()
        stops = folder_stop_tokens(self._folder, self._tokenizer)
        found = check_prompts(self._tokenizer, self._prompt, self._short, stops, self._tags)
        if all(result.passed for result in found):
            room = check_room(
                self._tokenizer,
                self._prompt,
                self._tasks.values(),
                self._tags,
                context=context_of(self._recipe, self._config),
                max_tokens=self._max_tokens,
                packing=self._trainer.scorer.packing,
            )
            found = [*found, room, *self._packing()]
        return self._keep(found, begun)

    async def of_generator(self, generator: Generator) -> Sequence[CheckResult]:
        """Check the running generator."""
        begun = time.perf_counter()
        checks = GeneratorChecks(
            generator,
            self._trainer.scorer,
            self._trainer.full_state_dict,
            self._prompts(),
            self._recipe.trained.model_dump()["kind"],
            self._generator_tolerance(),
        )
        return self._keep(await checks.run(), begun)

    def lines(self) -> list[str]:
        """Return the lines to print."""
        figures = ", ".join(
            f"{result.check} {result.figure:.2g}" for result in self.results if isinstance(result.figure, float)
        )
        return [
            f"the model was checked in {self.seconds:.1f} s: {figures}",
            *(f"{result.check}: {result.detail}" for result in self.results if result.check in _SAID and result.detail),
        ]

    def _keep(self, found: Sequence[CheckResult], begun: float) -> Sequence[CheckResult]:
        self.results += found
        self.seconds += time.perf_counter() - begun
        return found

    def _packing(self) -> Sequence[CheckResult]:
        special = special_tokens(self._tokenizer)
        known = min(len(self._tokenizer), int(self._config.vocab_size))
        ordinary = [token for token in range(known) if token not in special]
        window = getattr(self._config, "sliding_window", None)
        if window is not None and window >= self._max_tokens:
            window = None  # hardly a sequence of this run is longer
        samples = probe_samples(self._prompts()[0], ordinary, window)
        return check_packing(self._trainer.scorer, samples, ordinary, self._config.to_dict(), rounded=self._rounded)

    def _prompts(self) -> list[tuple[int, ...]]:
        return [render_prompt(self._tokenizer, self._prompt, task, self._tags) for task in self._short]

    def _generator_tolerance(self) -> float:
        # servers do not say their type, and vLLM's `auto` is a half one for weights in fp32 too
        if not self._rounded and getattr(self._recipe.trained, "dtype", "auto") == "float32":
            return EXACT
        return ROUTED if any(getattr(self._config, name, 0) for name in EXPERT_COUNTS) else ENGINES

    @property
    def _rounded(self) -> bool:
        return self._recipe.compute.dtype != "float32"
