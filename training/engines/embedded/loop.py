"""The training loop: generators never stop, finished rollouts go to their verifier at once, batches to the trainer.

One event loop drives everything; a gradient step runs on a thread beside it, and meanwhile rollouts go on being
generated, judged and admitted. When the step is done the generators get the new weights in mid-generation, and the
next batch is taken.

With ``max_staleness = 0`` the loop is synchronous: it opens a whole batch, waits for all of it, trains, and updates.
Rollouts are then made in waves in a fixed order, and a run on a CPU can be repeated bit by bit.

A rollout is curation's attempt; the logs and checkpoints keep the name ``attempts``.

Invariants: an admitted rollout is trained on or dropped with a counted reason exactly once (`RolloutScheduler.ledger`,
checked at the end); the state for a checkpoint is taken between two steps in one go, so that collector, curriculum and
logs belong to the same moment; a failure in a task ends the run with its own error.

Not here: what a step does (`training.optimisation.trainer`), building the parts (`training.engines.embedded.run`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from training.evaluation.evaluate import EvaluationResult, evaluate
from training.evaluation.metrics import MetricsLogger, SampledGroupStats, Timer
from training.generation.generators import GeneratorPool
from training.generation.weight_sync import WeightPublisher, WeightSync
from training.objectives.registry import objective_of
from training.optimisation.checkpoint import Checkpoint, JsonlLog, restore_trainer, save_checkpoint
from training.optimisation.trainer import StepResult, Trainer, TrainingError
from training.recipe import TrainRecipe
from training.rollouts.batches import (
    batch_metrics,
    build_minibatches,
    check_logprobs,
    format_rollouts,
    policy_metrics,
)
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.rollout_scheduler import (
    GroupDecision,
    RolloutBatch,
    RolloutLedger,
    RolloutRequest,
    RolloutScheduler,
)
from training.rollouts.rollouts import Rollout, RolloutRunner, decode_rollout, encode_rollout
from training.rollouts.tasks import TrainingTask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

GENERATION_FAILED = "generation_failed"
END_OF_RUN = "end_of_run"


@dataclass(slots=True)
class LoopComponents:
    """The parts of a loop; `training.engines.embedded.run` builds them."""

    recipe: TrainRecipe
    out: Path
    tasks: Mapping[str, TrainingTask]
    held_out_tasks: Sequence[TrainingTask]
    trainer: Trainer
    tokenizer: PreTrainedTokenizerBase
    generators: GeneratorPool
    weight_sync: WeightSync
    rollouts: RolloutRunner
    curriculum: CurriculumController
    logs: Mapping[str, JsonlLog]
    metrics_logger: MetricsLogger
    publisher: WeightPublisher | None = None


class TrainingLoop:
    """One run, from its first or its last checkpointed step to its last."""

    def __init__(self, components: LoopComponents, checkpoint: Checkpoint | None) -> None:
        self._components, self._recipe = components, components.recipe
        self._curriculum, self._rollouts = components.curriculum, components.rollouts
        self._checkpoint = checkpoint
        self.step = checkpoint.step if checkpoint is not None else 0
        self.evaluations: dict[int, EvaluationResult] = {}
        self.scheduler: RolloutScheduler[Rollout] = RolloutScheduler(
            components.recipe.collector, self._decide_group, self._curriculum.draw_problem
        )
        self._groups = SampledGroupStats()
        self._timer = Timer(components.recipe.collector.n_async)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._consecutive_failures = 0

    async def run(self) -> RolloutLedger:
        """Run all remaining steps and return where all rollouts went; the generators must be running.

        Raises:
            GoldilocksError: a generator, a verifier or the trainer cannot go on.
        """
        with ThreadPoolExecutor(1, "trainer") as thread:
            self._thread = thread
            try:
                await self._begin()
                while self.step < self._recipe.steps:
                    await self._run_step()
            finally:
                await self._stop()
        ledger = self.scheduler.ledger()
        if not ledger.balanced:
            raise TrainingError(f"rollouts were lost or made: {ledger}; this is a defect of the loop, please report it")
        return ledger

    async def _begin(self) -> None:
        if self._checkpoint is not None:
            await self._on_thread(restore_trainer, self._checkpoint, self._components.trainer)
            self.scheduler.restore(self._checkpoint.state["collector"], decode_rollout)
            await self._update_generators()
        elif self._components.held_out_tasks:
            self._components.metrics_logger.log_step(0, await self._evaluation(0))
        self._timer.restart()

    async def _run_step(self) -> None:
        recipe, metrics_logger = self._recipe, self._components.metrics_logger
        batch = await self._next_batch()
        if (impossible := check_logprobs(batch.groups, recipe.collector)).count:
            metrics_logger.log_message(f"step {self.step + 1}: {impossible}; they are left out")
        metrics = {**batch_metrics(batch.groups, batch.number), "policy/impossible_tokens": float(impossible.count)}
        trainer, objective, results = self._components.trainer, self._curriculum.objective, []
        started_at = monotonic()
        minibatches = await self._on_thread(build_minibatches, batch, recipe.collector, objective, trainer)
        self._timer.add_trainer_time(monotonic() - started_at)
        for samples in minibatches:
            results.append(await self._on_thread(trainer.step, samples, objective))
            self._timer.add_trainer_time(results[-1].seconds)
        self.scheduler.mark_trained(batch)
        self.step += 1
        rollout_ids = [[request.group, request.index] for group in batch.groups for request, _ in group.rollouts]
        self._components.logs["batches"].append({"step": self.step, "version": batch.number, "attempts": rollout_ids})
        metrics["speed/update_s"] = await self._update_generators()
        self.scheduler.mark_updated()
        self._start_rollouts()
        last = self.step == recipe.steps
        speeds = self._speed_metrics(results)
        if self._components.held_out_tasks and (self.step % recipe.evaluation.every == 0 or last):
            metrics |= await self._evaluation(self.step)
        metrics |= {**speeds, **policy_metrics(results), **self._groups.numbers(), **self._queue_metrics()}
        metrics_logger.log_step(self.step, metrics, format_rollouts(batch.groups, recipe.logged_rollouts))
        self._update_curriculum(metrics)
        self._groups.clear()
        self._timer.restart()
        if self.step % recipe.checkpoints.every == 0 or last:
            await self._save(self._state())

    def _update_curriculum(self, metrics: Mapping[str, float]) -> None:
        """Show the step to the curriculum, log what it changes, and take over its rewards."""
        if "sampled/reward" not in metrics:
            return
        pool_changes, setting_changes = self._curriculum.after_step(
            self.step, metrics["sampled/reward"], metrics["length/sampled_mean"], metrics["policy/entropy"]
        )
        for row in (*map(asdict, pool_changes), *map(asdict, setting_changes)):
            self._components.logs["changes"].append({"step": self.step, **row})
        for change in setting_changes:
            self._components.metrics_logger.log_message(
                f"{change.setting}: {change.old:g} -> {change.new:g}, {change.reason}"
            )
        self._rollouts.rewards = self._curriculum.rewards

    async def _next_batch(self) -> RolloutBatch[Rollout]:
        while True:
            if self._recipe.synchronous:
                await self._run_synchronous_batch()
            else:
                self._start_rollouts()
            if self._error is not None:
                raise self._error
            batch = self.scheduler.next_batch()
            if batch is not None:
                return batch
            if not self._recipe.synchronous:
                self._changed.clear()
                await self._changed.wait()

    def _start_rollouts(self) -> None:
        """Start as many rollouts as the scheduler admits."""
        if self._recipe.synchronous or self._error is not None:
            return
        while (request := self.scheduler.admit()) is not None:
            task = asyncio.create_task(self._run_rollout(request))
            self._in_flight.add(task)
            task.add_done_callback(self._on_task_done)
        self._timer.set_busy_slots(self._recipe.collector.n_async - self.scheduler.idle_slots)

    async def _run_rollout(self, request: RolloutRequest) -> None:
        completion = await self._generate(request)
        if completion is None:
            self.scheduler.mark_failed(request, GENERATION_FAILED)
        else:
            self.scheduler.mark_generated(request)
            self._start_rollouts()
            self._record_rollout(request, await self._rollouts.verify(self._task(request), completion, request.group))
        self._start_rollouts()
        self._changed.set()

    async def _run_synchronous_batch(self) -> None:
        """Generate all that is admitted together, judge it, and record it in order."""
        requests = list(iter(self.scheduler.admit, None))
        self._timer.set_busy_slots(len(requests))
        completions = await asyncio.gather(*(self._generate(request) for request in requests))
        self._timer.set_busy_slots(0)
        rollouts = await asyncio.gather(
            *(
                self._rollouts.verify(self._task(request), completion, request.group)
                for request, completion in zip(requests, completions, strict=True)
                if completion is not None
            )
        )
        judged = iter(rollouts)
        for request, completion in zip(requests, completions, strict=True):
            if completion is None:
                self.scheduler.mark_failed(request, GENERATION_FAILED)
            else:
                self.scheduler.mark_generated(request)
                self._record_rollout(request, next(judged))

    async def _generate(self, request: RolloutRequest) -> TokenCompletion | None:
        """Generate one rollout; return None where the generator cannot.

        Raises:
            PolicyError: more than n_async generations failed in a row.
        """
        try:
            completion = await self._rollouts.generate(
                self._components.generators, self._task(request), request.group, request.index, self._max_tokens
            )
        except PolicyError as error:
            self._consecutive_failures += 1
            self._components.metrics_logger.log_message(f"problem {request.problem}: {error}")
            if self._consecutive_failures > self._recipe.collector.n_async:
                raise
            return None
        self._consecutive_failures = 0
        return completion

    def _record_rollout(self, request: RolloutRequest, rollout: Rollout) -> None:
        row = {"group": request.group, "index": request.index, "step": self.step, "admitted": request.version}
        self._components.logs["attempts"].append({**row, **rollout.row()})
        self.scheduler.mark_judged(request, rollout)

    def _decide_group(self, rollouts: Sequence[Rollout]) -> GroupDecision:
        self._groups.add(rollouts)
        judged = [rollout for rollout in rollouts if not rollout.reward.excluded]
        self._curriculum.record_group(
            rollouts[0].problem, self.step, sum(rollout.reward.correct for rollout in judged), len(judged)
        )
        settings = self._recipe.objective
        return objective_of(settings).decide([rollout.reward for rollout in rollouts], settings)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()
            self._changed.set()

    async def _update_generators(self) -> float:
        """Give the newest weights to the generators, and publish them where they are due; return the seconds of the
        first.
        """
        version, every, publisher = (
            self.scheduler.batches_taken,
            self._recipe.checkpoints.publish,
            self._components.publisher,
        )
        state = await self._on_thread(self._components.trainer.full_state_dict)
        seconds = await self._components.weight_sync.update(state, version)
        if publisher is not None and every is not None and version % every == 0:
            await self._on_thread(publisher.publish, version, state)
        return seconds

    async def _evaluation(self, step: int) -> dict[str, float]:
        result = await evaluate(
            self._rollouts,
            self._components.generators,
            self._components.held_out_tasks,
            self._recipe.evaluation.attempts,
            self._max_tokens,
        )
        self.evaluations[step] = result
        self._components.metrics_logger.log_message(
            f"step {step}: held-out pass@1 {result.pass_rate:.3f} ({result.low:.3f} to {result.high:.3f}), "
            f"{result.problems} problems x {self._recipe.evaluation.attempts}, {result.mean_tokens:.0f} tokens"
        )
        return {f"evaluation/{name}": float(value) for name, value in asdict(result).items()}

    def _speed_metrics(self, results: Sequence[StepResult]) -> dict[str, float]:
        """Return times and speeds of the interval that this step ends."""
        seconds = max(self._timer.elapsed_s, 1e-9)
        return {
            **self._timer.idle_shares(),
            "speed/step_s": seconds,
            "speed/train_s": sum(result.seconds for result in results),
            "speed/trained_tokens_s": sum(result.trained_tokens for result in results) / seconds,
            "speed/sampled_tokens_s": self._groups.tokens / seconds,
            "speed/padding_share": sum(result.padding_share for result in results) / len(results),
            "speed/shared_share": sum(result.shared_prompt_share for result in results) / len(results),
            **self._components.trainer.throughput(results),
        }

    def _queue_metrics(self) -> dict[str, float]:
        ledger = self.scheduler.ledger()
        names = ("running", "judging", "waiting", "ready", "admitted", "trained")
        dropped = {f"dropped/{reason}": float(count) for reason, count in ledger.dropped.items()}
        queued = {f"queue/{name}": float(getattr(ledger, name)) for name in names}
        return {**queued, **dropped, "queue/dropped": float(sum(ledger.dropped.values()))}

    def _state(self) -> dict[str, Any]:
        """Return the state of one moment: no other task runs meanwhile."""
        return {
            "collector": self.scheduler.state(encode_rollout),
            "curriculum": self._curriculum.state(),
            "logs": {name: log.offset() for name, log in self._components.logs.items()},
        }

    async def _save(self, state: Mapping[str, Any]) -> None:
        settings = self._recipe.checkpoints

        def save() -> None:
            save_checkpoint(
                self._components.out,
                self.step,
                self._components.trainer,
                state,
                self._components.tokenizer,
                keep=settings.keep,
                export=settings.export,
            )

        await self._on_thread(save)

    async def _stop(self) -> None:
        """Abort what is under way; it is counted as dropped."""
        for task in self._in_flight:
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)
        self.scheduler.drop_outstanding(END_OF_RUN)

    @property
    def _max_tokens(self) -> int:
        return self._recipe.max_tokens or self._curriculum.rewards.max_length

    def _task(self, request: RolloutRequest) -> TrainingTask:
        return self._components.tasks[request.problem]

    async def _on_thread(self, work: Any, *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)
