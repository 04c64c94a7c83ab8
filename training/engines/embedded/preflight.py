"""Check a model before training, with no effect on weights and random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from curation.policies.chat_templates import StopTokens, special_tokens
from curation.prompts import Prompt, plain_text
from curation.records import PolicyError
from curation.thinking import ThinkingTags
from training.checks import ENGINES, EXACT, ROUTED, CheckResult, GeneratorChecks, check_packing, probe_samples
from training.engines.placement import EXPERT_COUNTS
from training.generation.generators import Generator
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rollouts.rollouts import render_prompt
from training.rollouts.tasks import TrainingTask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEMPLATE, ROOM = "chat template", "room"
"""Checks whose details are printed."""

SHORT_PROMPTS = 8
"""Prompts to generate from, the shortest of the first `_CANDIDATES`."""

_CANDIDATES, _LONG_PROMPTS = 256, 8


@dataclass(frozen=True, slots=True)
class PromptChecks:
    """Checks of a recipe's rendered prompt."""

    tokenizer: PreTrainedTokenizerBase
    prompt: Prompt
    tags: ThinkingTags

    def render(self, task: TrainingTask) -> tuple[int, ...]:
        return render_prompt(self.tokenizer, self.prompt, task, self.tags)

    def template(self, task: TrainingTask, stops: StopTokens) -> list[CheckResult]:
        """Check that the template accepts the prompt; report the end tokens."""
        try:
            token_ids = self.render(task)
        except PolicyError as error:
            sentence, _, advice = str(error).rstrip(".").rpartition("; ")
            return [CheckResult(TEMPLATE, None, None, sentence, advice)]
        detail, system = "", self.prompt.system
        if system and system.strip()[:40] not in self.tokenizer.decode(token_ids):
            detail = f"it leaves the system message of {self.prompt.version} out"
        ends = stops.phrase(self.tokenizer)
        return [CheckResult(TEMPLATE, None, None, detail), CheckResult("end token", None, None, ends)]

    def without_room(self, tasks: Sequence[TrainingTask], context: int) -> dict[str, int]:
        """Return the token counts of prompts that fill the context, by problem."""
        shown = self.tokenizer.decode(self.render(tasks[0]))
        added = len(shown.encode()) + len(plain_text(self.prompt.messages(tasks[0].request)).encode())
        long = [task for task in tasks if len(task.request.statement.encode()) + added >= context]
        lengths = {task.id: len(self.render(task)) for task in long}
        return {name: tokens for name, tokens in lengths.items() if tokens >= context}

    def room(self, tasks: Iterable[TrainingTask], context: int, max_tokens: int, micro_batch: int) -> CheckResult:
        """Check that prompts and responses fit the context and a micro-batch, in tokens."""
        long = sorted(tasks, key=lambda task: -len(task.request.statement))[:_LONG_PROMPTS]
        longest = max(len(self.render(task)) for task in long)
        sequence = min(longest + max_tokens, context)
        if sequence > micro_batch:
            detail = f"prompt and response may take {sequence} tokens, a micro-batch holds {micro_batch}"
            advice = f"set packing.micro_batch_tokens = {sequence}, or a lower max_tokens"
            return CheckResult(ROOM, sequence, micro_batch, detail, advice)
        short = f"after the longest prompt a response is cut at {context - longest} tokens, not {max_tokens}"
        return CheckResult(ROOM, longest, context, short if longest + max_tokens > context else "")


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
        results = self.prompts.template(self._short_tasks()[0], self.stops)
        if all(result.passed for result in results):
            context, max_tokens = context_of(self.recipe, self._config), self.recipe.rewards.max_length
            micro_batch = self.trainer.scorer.packing.micro_batch_tokens
            room = self.prompts.room(self.tasks.values(), context, max_tokens, micro_batch)
            results = [*results, room, self._packing()]
        self.results += results
        return results

    async def of_generator(self, generator: Generator) -> Sequence[CheckResult]:
        trainer, kind, prompts = self.trainer, self.recipe.trained.model_dump()["kind"], self._short_prompts()
        tolerance = ROUTED if any(getattr(self._config, name, 0) for name in EXPERT_COUNTS) else ENGINES
        # servers do not report their dtype, and vLLM's `auto` is half precision for fp32 weights too
        if not self._rounded and getattr(self.recipe.trained, "dtype", "auto") == "float32":
            tolerance = EXACT
        checks = GeneratorChecks(generator, trainer.scorer, trainer.full_state_dict, prompts, kind, tolerance)
        results = await checks.run()
        self.results += results
        return results

    def lines(self) -> list[str]:
        figures = ", ".join(
            f"{result.check} {result.figure:.2g}" for result in self.results if isinstance(result.figure, float)
        )
        remarks = [
            f"{result.check}: {result.detail}"
            for result in self.results
            if result.check in (TEMPLATE, ROOM) and result.detail
        ]
        return [f"the model was checked: {figures}", *remarks]

    def _packing(self) -> CheckResult:
        tokenizer = self.prompts.tokenizer
        special, known = special_tokens(tokenizer), min(len(tokenizer), int(self._config.vocab_size))
        ordinary = [token for token in range(known) if token not in special]
        window = getattr(self._config, "sliding_window", None)
        if window is not None and window >= self.recipe.rewards.max_length:
            window = None  # few sequences of this run are longer
        samples = probe_samples(self._short_prompts()[0], ordinary, window)
        return check_packing(self.trainer.scorer, samples, rounded=self._rounded)

    def _short_tasks(self) -> list[TrainingTask]:
        first = islice(self.tasks.values(), _CANDIDATES)
        return sorted(first, key=lambda task: len(task.request.statement))[:SHORT_PROMPTS]

    def _short_prompts(self) -> list[tuple[int, ...]]:
        return [self.prompts.render(task) for task in self._short_tasks()]

    @property
    def _config(self) -> Any:
        return self.trainer.model.config.get_text_config()

    @property
    def _rounded(self) -> bool:
        return self.recipe.compute.dtype != "float32"
