"""Train while generators run; with ``max_staleness = 0`` generate, train and update in turn, repeatable on a CPU.

Invariants: each admitted rollout is trained on or dropped with a counted reason, once; a checkpoint's state is taken at
once between two steps; an error of its write, or of a task, ends the run; the run ends when its last checkpoint is
whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from time import monotonic
from typing import Any, NoReturn

from torch import Tensor

from curation.policies.completions import TokenCompletion
from curation.policies.failure_budget import FailureBudget
from curation.records import PolicyError, RequestRefused
from curation.storage.stages import atomic_write
from training.config import ObjectiveSettings
from training.engines.embedded.components import LoopComponents
from training.engines.embedded.evaluating import Result, evaluate
from training.engines.embedded.heartbeat import COLLECTING, SAVING, TRAINING, UPDATING
from training.evaluation.metrics import SampledGroupStats, Timer
from training.objectives.registry import objective_of
from training.objectives.soft import learn_values
from training.optimisation.checkpoint import Checkpoint, PendingCheckpoint, restore_trainer
from training.optimisation.model import save_model
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import StepResult, TrainingError
from training.rollouts.attempt_log import TRAINING_ATTEMPTS, rollout_origin
from training.rollouts.batches import (
    batch_metrics,
    batch_row,
    build_samples,
    impossible_tokens,
    policy_metrics,
    problem_estimates,
    queue_metrics,
    speed_metrics,
)
from training.rollouts.rollout_scheduler import (
    REFUSED,
    GroupDecision,
    RolloutBatch,
    RolloutLedger,
    RolloutRequest,
    RolloutScheduler,
)
from training.rollouts.rollouts import Rollout
from training.rollouts.stall_monitor import STALLED, StallMonitor, stall_thresholds
from training.rollouts.tasks import TrainingTask

GENERATION_FAILED = "generation_failed"
END_OF_RUN = "end_of_run"

MAX_REFUSED = 0.01
"""Max share of problems with refused prompts."""

_MAX_DRAWS = 1000
"""Max draws in a row of refused problems."""


class TrainingLoop:
    """A run, from its start or a checkpoint."""

    def __init__(self, components: LoopComponents, checkpoint: Checkpoint | None) -> None:
        self._components, self._recipe = components, components.recipe
        self._curriculum, self._rollouts = components.curriculum, components.rollouts
        self._checkpoint = checkpoint
        self.step = checkpoint.step if checkpoint is not None else 0
        self._saved_step = self.step
        self._writing: asyncio.Future[None] | None = None  # of the last checkpoint
        self.evaluations: dict[int, Result] = {}  # by step
        collector, logger = components.recipe.collector, components.metrics_logger
        self._refused: set[str] = set()  # problems; a resumed run asks them again
        self._refusals = FailureBudget(MAX_REFUSED, len(components.tasks))
        self.scheduler: RolloutScheduler[Rollout] = RolloutScheduler(collector, self._decide_group, self._draw_problem)
        self._groups = SampledGroupStats()
        generator = components.generator
        self._timer = Timer(lambda: generator.decoding if generator is not None else 0.0)
        self._stored, self._values = components.stored, components.values
        self._stall_monitor = StallMonitor(stall_thresholds(collector), logger.log_message)
        self._heartbeat = components.heartbeat
        self._heartbeat.follow(self.scheduler.ledger)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._consecutive_failures = 0

    async def run(self) -> RolloutLedger:
        """Run the remaining steps and return the rollout ledger; the generators must be running.

        Raises:
            GoldilocksError: something failed.
        """
        with ThreadPoolExecutor(1, "trainer") as thread:
            self._thread = thread
            try:
                await self._begin()
                while self.step < self._stored.steps:
                    await self._run_step()
                    if self._writing is not None and self._writing.done():
                        await self._settle_checkpoint()
            finally:
                await self._stop()
                await self._settle_checkpoint()
        ledger = self.scheduler.ledger()
        if not ledger.balanced:
            raise TrainingError(f"rollouts were lost or made: {ledger}; this is a defect of the loop, please report it")
        return ledger

    async def _begin(self) -> None:
        if self._checkpoint is not None:
            await self._on_thread(restore_trainer, self._checkpoint, self._components.trainer)
            self.scheduler.restore(self._checkpoint.state["collector"], Rollout)
            await self._update_generators()
        elif self._components.held_out_tasks:
            self._components.metrics_logger.log_step(0, await self._evaluate())
        self._timer.restart()

    async def _run_step(self) -> None:
        recipe, metrics_logger = self._recipe, self._components.metrics_logger
        sampled = await self._next_batch()
        batch = await self._on_thread(self._stored.joined, sampled, self.step + 1)
        self._heartbeat.begin(self.step + 1, TRAINING)
        impossible, sentence = impossible_tokens(batch.groups)
        if impossible:
            metrics_logger.log_message(f"step {self.step + 1}: {sentence}; they are left out")
        trainer, objective = self._components.trainer, self._curriculum.objective
        started_at = monotonic()
        minibatches = await self._on_thread(self._minibatches, batch, objective)
        self._timer.add_trainer_time(monotonic() - started_at)
        numbers, results = await asyncio.gather(  # what is only counted does not keep the first step waiting
            asyncio.to_thread(batch_metrics, batch.groups, batch.number), self._train(minibatches, objective)
        )
        metrics = {**numbers, "policy/impossible_tokens": float(impossible)}
        learn_values(self._values, problem_estimates(batch, results))
        self.scheduler.mark_trained(sampled)
        self.step += 1
        self._components.logs["batches"].append(batch_row(self.step, sampled, batch))
        metrics["speed/update_s"] = await self._update_generators()
        self.scheduler.mark_updated()
        self._start_rollouts()
        last = self.step == self._stored.steps
        generator, wanted = self._components.generator, self.scheduler.settings.n_async
        capacity = generator.capacity if generator is not None else 0
        speeds = speed_metrics(results, self._timer, self._groups.tokens, capacity, wanted)
        speeds |= trainer.throughput(results)
        metrics |= {**speeds, **policy_metrics(results), **self._groups.numbers()}
        metrics |= queue_metrics(self.scheduler.ledger()) | self._rollouts.verdict_metrics()
        self._groups = SampledGroupStats()
        self._timer.restart()  # groups that finish during an evaluation count for the next step
        is_due = last or self.step % recipe.evaluation.every == 0
        evaluated = await self._evaluate() if is_due and self._components.held_out_tasks else {}
        if recipe.synchronous:
            self._timer.restart()  # nothing else ran meanwhile
        metrics_logger.log_step(self.step, metrics | evaluated)
        self._update_curriculum(metrics)
        if self.step % recipe.checkpoints.every == 0 or last:
            await self._save()

    async def _evaluate(self) -> dict[str, float]:
        began, version = monotonic(), self.scheduler.version
        result = await evaluate(self._components, self._on_thread, self.step, version, self._max_tokens)
        self.evaluations[self.step] = result
        found = {f"evaluation/{name}": float(value) for name, value in asdict(result).items()}
        return {**found, "evaluation/version": float(version), "speed/evaluation_wait_s": monotonic() - began}

    def _minibatches(self, batch: RolloutBatch[Rollout], objective: ObjectiveSettings) -> list[list[TrainingSample]]:
        stored = self._recipe.stored
        samples_of = partial(
            build_samples,
            settings=objective,
            max_distance=stored.max_distance if stored is not None else None,
            values=self._values,
            max_tokens=self._max_tokens,
            teacher_prompt=self._components.teacher_prompt,
        )
        parts = batch.minibatches(self._curriculum.collector)
        return [samples_of(groups, version=None if place else batch.number) for place, groups in enumerate(parts)]

    async def _train(
        self, minibatches: Sequence[Sequence[TrainingSample]], objective: ObjectiveSettings
    ) -> list[StepResult]:
        results: list[StepResult] = []
        for samples in minibatches:
            results.append(await self._on_thread(self._components.trainer.step, samples, objective))
            self._timer.add_trainer_time(results[-1].seconds)
        return results

    def _update_curriculum(self, metrics: Mapping[str, float]) -> None:
        for change in self._curriculum.follow(self.step, metrics, self._components.logs["changes"]):
            self._components.metrics_logger.log_message(
                f"{change.subject}: {change.old:g} -> {change.new:g}, {change.reason}"
            )
        self._rollouts.rewards = self._curriculum.rewards

    async def _next_batch(self) -> RolloutBatch[Rollout]:
        """Return the next batch once it is complete.

        Raises:
            TrainingError: nothing can be learned from, or no attempt can fill it.
        """
        self._heartbeat.begin(self.step + 1, COLLECTING)
        if self._stored.is_offline(self.step + 1):
            return self.scheduler.empty_batch()
        self.scheduler.settings = self._stored.collector(self.step + 1, self._curriculum.collector)
        while True:
            if self._recipe.synchronous:
                under_way = await self._run_synchronous_batch()
            else:
                self._start_rollouts()
                under_way = len(self._in_flight)
            if self._error is not None:
                raise self._error
            batch = self.scheduler.next_batch()
            if batch is not None:
                return batch
            if self._stall_monitor.is_stalled:
                await self._end_stalled()
            if not under_way:
                raise TrainingError(
                    f"step {self.step + 1} can get no batch: no attempt is under way and no further problem can be "
                    f"drawn ({self.scheduler.ledger()}); look at the data and the curriculum"
                )
            if not self._recipe.synchronous:
                self._changed.clear()
                await self._changed.wait()

    async def _end_stalled(self) -> NoReturn:
        if self.step > self._saved_step:
            await self._save()
        await self._settle_checkpoint()
        out = self._components.out
        message = (
            f"step {self.step + 1} found nothing to learn from: {self._stall_monitor.report()} Mend the cause, and "
            f"`goldilocks train --resume {out}` goes on from step {self._saved_step}."
        )
        atomic_write(out / STALLED, json.dumps({"step": self.step, "message": message}, ensure_ascii=False) + "\n")
        raise TrainingError(message)

    def _start_rollouts(self) -> None:
        if self._recipe.synchronous or self._error is not None or self._stored.is_offline(self.step + 1):
            return
        while (request := self.scheduler.admit()) is not None:
            task = asyncio.create_task(self._run_rollout(request))
            self._in_flight.add(task)
            task.add_done_callback(self._on_task_done)

    async def _run_rollout(self, request: RolloutRequest) -> None:
        completion = await self._generate(request)
        if isinstance(completion, str):
            self.scheduler.mark_failed(request, completion)
        else:
            self.scheduler.mark_generated(request)
            self._start_rollouts()
            self._record_rollout(request, await self._rollouts.verify(self._task(request), completion, request.group))
        self._start_rollouts()

    async def _run_synchronous_batch(self) -> int:
        requests = list(iter(self.scheduler.admit, None))
        completions = await asyncio.gather(*(self._generate(request) for request in requests))
        outcomes = await asyncio.gather(*map(self._judge, requests, completions))
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, str):
                self.scheduler.mark_failed(request, outcome)
            else:
                self.scheduler.mark_generated(request)
                self._record_rollout(request, outcome)
        return len(requests)

    async def _judge(self, request: RolloutRequest, completion: TokenCompletion | str) -> Rollout | str:
        if isinstance(completion, str):
            return completion
        return await self._rollouts.verify(self._task(request), completion, request.group)

    async def _generate(self, request: RolloutRequest) -> TokenCompletion | str:
        """Generate one rollout, or return why there is none.

        Raises:
            PolicyError: more than n_async generations failed in a row, or too many were refused.
        """
        assert self._components.generator is not None  # else every step is offline
        try:
            completion = await self._rollouts.generate(
                self._components.generator, self._task(request), request.group, request.index, self._max_tokens
            )
        except RequestRefused as refusal:
            self._stall_monitor.record_failure(request.problem, str(refusal))
            if request.problem not in self._refused:
                self._components.metrics_logger.log_message(f"problem {request.problem} is left out: {refusal}")
            self._refused.add(request.problem)
            self._refusals.count_refusal(request.problem, refusal)
            return REFUSED
        except PolicyError as error:
            self._consecutive_failures += 1
            self._components.metrics_logger.log_message(f"problem {request.problem}: {error}")
            self._stall_monitor.record_failure(request.problem, str(error))
            if self._consecutive_failures > self._recipe.collector.n_async:
                raise
            return GENERATION_FAILED
        self._consecutive_failures = 0
        self._refusals.count_answer()
        return completion

    def _draw_problem(self) -> str | None:
        drawn = (self._curriculum.draw_problem() for _ in range(_MAX_DRAWS))
        return next((problem for problem in drawn if problem not in self._refused), None)

    def _record_rollout(self, request: RolloutRequest, rollout: Rollout) -> None:
        row = {"group": request.group, "index": request.index, "step": self.step, "admitted": request.version}
        self._components.logs["attempts"].append({**row, **rollout.row()})
        origin = rollout_origin(TRAINING_ATTEMPTS, self.step, request.version, rollout, request.group)
        self._components.attempt_log.record(self._task(request), rollout, request.index, origin)
        self.scheduler.mark_judged(request, rollout)

    def _decide_group(self, rollouts: Sequence[Rollout]) -> GroupDecision:
        judged = [rollout for rollout in rollouts if not rollout.reward.excluded]
        correct = sum(rollout.reward.correct for rollout in judged)
        self._curriculum.record_group(rollouts[0].problem, self.step, correct, len(judged))
        objective = self._recipe.objective
        rewards = [rollout.reward for rollout in rollouts]
        decision = objective_of(objective).decide(rewards, objective)
        tokens, finishes = [one.tokens for one in rollouts], [one.completion.finish for one in rollouts]
        self._groups.add(rewards, tokens, finishes, is_dropped=decision.drop_reason is not None)
        self._stall_monitor.record_group(rollouts, decision)
        return decision

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()
        self._changed.set()

    async def _update_generators(self) -> float:
        """Send the newest weights and return the seconds; write a due trajectory."""
        self._heartbeat.begin(self.step, UPDATING)
        version = self.scheduler.batches_taken
        state = await self._on_thread(self._components.trainer.full_state_dict)
        generator, every = self._components.generator, self._recipe.checkpoints.trajectory
        seconds = await generator.update_weights(state, version) if generator is not None else 0.0
        if every is not None and version % every == 0:
            await self._on_thread(self._save_to_trajectory, version, state)
        return seconds

    def _save_to_trajectory(self, version: int, state: Mapping[str, Tensor]) -> None:
        components = self._components
        folder = components.out / "trajectory" / f"v{version:08}"
        save_model(components.trainer.model, components.tokenizer, folder, asked=self._recipe.trained, state=state)

    def _state(self) -> dict[str, Any]:
        """Return the state of one moment; nothing is awaited meanwhile."""
        return {
            "collector": self.scheduler.state(),
            "curriculum": self._curriculum.state(),
            "values": dict(self._values) if getattr(self._recipe.objective, "value", "") == "learned" else {},
            "logs": {name: log.offset() for name, log in self._components.logs.items()},
        }

    async def _save(self) -> None:
        """Copy a checkpoint's content, and write it while the run goes on."""
        self._heartbeat.begin(self.step, SAVING)
        components, state = self._components, self._state()
        state["attempt_parts"] = await asyncio.wrap_future(components.attempt_log.checkpoint())
        await self._settle_checkpoint()
        begun = partial(PendingCheckpoint, keep=self._recipe.checkpoints.keep)
        pending = await self._on_thread(
            begun, components.out, self.step, components.trainer, state, components.tokenizer
        )
        self._writing = asyncio.ensure_future(self._finish(pending))

    async def _finish(self, pending: PendingCheckpoint) -> None:
        await asyncio.to_thread(pending.finish)
        self._saved_step = pending.step
        self._components.mirror.wake()

    async def _settle_checkpoint(self) -> None:
        """Wait for the current write and raise its error."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _stop(self) -> None:
        for task in self._in_flight:
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)
        self.scheduler.drop_outstanding(END_OF_RUN)

    @property
    def _max_tokens(self) -> int:
        return self._curriculum.rewards.max_length

    def _task(self, request: RolloutRequest) -> TrainingTask:
        return self._components.tasks[request.problem]

    async def _on_thread(self, work: Any, *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)
