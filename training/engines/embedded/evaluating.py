"""Evaluate held-out problems during training, which waits meanwhile; rollouts of asynchronous runs go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from curation.records import RequestRefused
from training.engines.embedded.components import LoopComponents
from training.engines.embedded.heartbeat import EVALUATING
from training.evaluation.evaluate import (
    EvaluationResult,
    TextEvaluation,
    summarise_evaluation,
    summarise_texts,
    text_samples,
)
from training.optimisation.model import save_model
from training.rollouts.attempt_log import EVALUATION_ATTEMPTS, rollout_origin
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask

BEST, MARK = "best", "best.json"
"""The best evaluation's model, its step and pass@1."""

_GROUPS = 1 << 40
"""The first group number, above training's."""

Work = Callable[..., Awaitable[Any]]
"""Runs a function on the trainer's thread."""


Result = EvaluationResult | TextEvaluation


async def evaluate(components: LoopComponents, on_trainer: Work, step: int, version: int, max_tokens: int) -> Result:
    """Evaluate the weights of a version after a step."""
    settings = components.recipe.evaluation
    components.heartbeat.begin(step, EVALUATING)
    asked = await _ask(components, step, version, max_tokens)
    result: Result
    if settings.data is not None and settings.data.kind == "latent":
        samples = [one for group in asked for one in text_samples(group)]
        scored = await on_trainer(components.trainer.scorer.logprobs, samples) if samples else []
        result = summarise_texts(asked, scored)
    else:
        result = summarise_evaluation(asked)
        if settings.keep_best:
            await on_trainer(_keep_best, components, step, result)
    components.metrics_logger.log_message(f"step {step}: {result.phrase}")
    return result


async def _ask(components: LoopComponents, step: int, version: int, max_tokens: int) -> list[list[Rollout | None]]:
    attempts, rollouts, generator = components.recipe.evaluation.attempts, components.rollouts, components.generator
    assert generator is not None  # what is evaluated is generated

    async def ask(group: int, task: TrainingTask, index: int) -> Rollout | None:
        try:
            completion = await rollouts.generate(generator, task, group, index, max_tokens)
        except RequestRefused:
            return None
        return await rollouts.verify(task, completion, group)

    tasks = enumerate(components.held_out_tasks, _GROUPS)
    jobs = [(group, task, index) for group, task in tasks for index in range(attempts)]
    results = await asyncio.gather(*(ask(*job) for job in jobs))
    for (group, task, index), rollout in zip(jobs, results, strict=True):
        if rollout is not None:
            origin = rollout_origin(EVALUATION_ATTEMPTS, step, version, rollout, group)
            components.attempt_log.record(task, rollout, index, origin)
    return [results[start : start + attempts] for start in range(0, len(results), attempts)]


def _keep_best(components: LoopComponents, step: int, result: EvaluationResult) -> None:
    path, trainer = components.out / BEST / MARK, components.trainer
    if path.exists():
        best = json.loads(path.read_text(encoding="utf-8"))
        if best["step"] < step and best["pass_rate"] >= result.pass_rate:
            return
    save_model(
        trainer.model,
        components.tokenizer,
        components.out / BEST,
        asked=trainer.asked,
        extra_files={MARK: json.dumps({"step": step, "pass_rate": result.pass_rate}) + "\n"},
        state=trainer.full_state_dict(),
    )
