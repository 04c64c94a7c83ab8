"""Evaluate held-out problems during training.

Invariants:

- one version's weights, named in the result, make all tokens of an evaluation;
- a step's row is logged once, with its evaluation, before the next;
- a resumed run repeats a waiting evaluation under the same seeds;
- `evaluation.keep_best` makes training wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from curation.records import RequestRefused
from training.engines.embedded.components import LoopComponents
from training.engines.embedded.heartbeat import EVALUATING
from training.evaluation.evaluate import EvaluationResult, summarise_evaluation
from training.optimisation.checkpoint import Checkpoint
from training.optimisation.model import save_model
from training.optimisation.trainer import TrainingError
from training.rollouts.attempt_log import EVALUATION_ATTEMPTS, rollout_origin
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask

BEST, MARK = "best", "best.json"
"""The best evaluation's model, its step and pass@1."""

_GROUPS = 1 << 40
"""The first group number, above training's."""

Work = Callable[..., Awaitable[Any]]
"""Runs a function on the trainer's thread."""


@dataclass(frozen=True, slots=True)
class EvaluatedRow:
    """A row that waits for its evaluation."""

    step: int
    version: int
    """Of the weights."""
    max_tokens: int
    metrics: Mapping[str, float]


def first_row(checkpoint: Checkpoint | None) -> int:
    """Return the first step that a new or resumed run will log."""
    if checkpoint is None:
        return 0
    return checkpoint.step + (checkpoint.state.get("evaluation") is None)


class Evaluations:
    """Run evaluations one at a time; ``results`` is by step."""

    def __init__(self, components: LoopComponents, on_trainer: Work) -> None:
        settings = components.recipe.evaluation
        self._components, self._settings, self._on_trainer = components, settings, on_trainer
        self._needs_weights = settings.keep_best
        self._is_synchronous = components.recipe.synchronous
        self._row: EvaluatedRow | None = None
        self._task: asyncio.Task[EvaluationResult] | None = None
        self.results: dict[int, EvaluationResult] = {}

    @property
    def is_beside(self) -> bool:
        """Return whether training continues during an evaluation."""
        return not (self._is_synchronous and self._needs_weights)

    def is_due(self, step: int, *, last: bool) -> bool:
        """Return whether the step is evaluated."""
        return bool(self._components.held_out_tasks) and (step % self._settings.every == 0 or last)

    async def add(self, row: EvaluatedRow, *, last: bool = False) -> None:
        """Take a step's row; evaluate it now if it is the last or training waits."""
        self._row = row
        if last or not self.is_beside:
            await self.settle()
        elif not self._is_synchronous:
            self._start()

    async def before_training(self) -> None:
        """Finish a waiting evaluation that needs the present weights; start any other."""
        if self._row is not None and self._needs_weights:
            await self.settle()
        self._start()

    async def settle(self) -> None:
        """Evaluate and log the waiting row, if any."""
        row, began = self._row, monotonic()
        if row is None:
            return
        self._start()
        assert self._task is not None
        self._components.heartbeat.begin(row.step, EVALUATING)
        result = await self._task
        self._row = self._task = None
        self._log(row, result, monotonic() - began)

    def state(self) -> dict[str, Any] | None:
        """Return the waiting row as JSON values, if any."""
        return asdict(self._row) if self._row is not None else None

    async def restore(self, state: Mapping[str, Any] | None) -> None:
        """Continue with a checkpoint's row; the generators must have its weights."""
        if state is None:
            return
        row = EvaluatedRow(**state)
        if self._components.held_out_tasks:
            await self.add(row)
        else:
            self._components.metrics_logger.log_step(row.step, row.metrics)

    async def stop(self) -> None:
        """Abort the running evaluation."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self) -> None:
        if self._row is not None and self._task is None:
            self._task = asyncio.create_task(self._evaluate(self._row))

    async def _evaluate(self, row: EvaluatedRow) -> EvaluationResult:
        asked = await self._ask(row)
        found = (one.completion.versions for group in asked for one in group if one is not None)
        versions = set[int]().union(*found)
        if versions - {row.version}:
            raise TrainingError(
                f"the evaluation of step {row.step} holds tokens of the versions {sorted(versions)}, not of "
                f"{row.version} alone; this is a defect of the loop, please report it"
            )
        result = summarise_evaluation(asked)
        if self._settings.keep_best:
            await self._on_trainer(self._keep_best, row.step, result)
        return result

    async def _ask(self, row: EvaluatedRow) -> list[list[Rollout | None]]:
        components, attempts = self._components, self._settings.attempts
        rollouts, generator = components.rollouts, components.generator
        assert generator is not None  # what is evaluated is generated

        async def ask(group: int, task: TrainingTask, index: int) -> Rollout | None:
            try:
                completion = await rollouts.generate(generator, task, group, index, row.max_tokens)
            except RequestRefused:
                return None
            return await rollouts.verify(task, completion, group)

        tasks = enumerate(components.held_out_tasks, _GROUPS)
        jobs = [(group, task, index) for group, task in tasks for index in range(attempts)]
        results = await asyncio.gather(*(ask(*job) for job in jobs))
        for (group, task, index), rollout in zip(jobs, results, strict=True):
            if rollout is not None:
                origin = rollout_origin(EVALUATION_ATTEMPTS, row.step, row.version, rollout, group)
                components.attempt_log.record(task, rollout, index, origin)
        return [results[start : start + attempts] for start in range(0, len(results), attempts)]

    def _keep_best(self, step: int, result: EvaluationResult) -> None:
        components = self._components
        path = components.out / BEST / MARK
        if path.exists():
            best = json.loads(path.read_text(encoding="utf-8"))
            if best["step"] < step and best["pass_rate"] >= result.pass_rate:
                return
        mark = json.dumps({"step": step, "pass_rate": result.pass_rate}) + "\n"
        trainer = components.trainer
        save_model(
            trainer.model,
            components.tokenizer,
            components.out / BEST,
            asked=trainer.asked,
            extra_files={MARK: mark},
            state=trainer.full_state_dict(),
        )

    def _log(self, row: EvaluatedRow, result: EvaluationResult, waited_s: float) -> None:
        self.results[row.step] = result
        logger = self._components.metrics_logger
        logger.log_message(f"step {row.step}: {result.phrase}")
        seen = {f"evaluation/{name}": float(value) for name, value in asdict(result).items()}
        told = {"evaluation/version": float(row.version), "speed/evaluation_wait_s": waited_s}
        logger.log_step(row.step, {**row.metrics, **seen, **told})
