"""Train while generators run; with ``max_staleness = 0`` generate, train and update in turn, repeatable on a CPU.

Training waits for evaluations; asynchronous rollouts go on.

Invariants: each admitted rollout is trained on or dropped with a counted reason, once; a checkpoint's state is of one
moment between two steps; an error of its write, or of a task, ends the run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from curation.policies.completions import TokenCompletion
from curation.policies.failure_budget import FailureBudget
from curation.records import PolicyError, RequestRefused
from curation.storage.stages import atomic_write
from training.engines.mirroring import RunMirror
from training.evaluation.metrics import (
    EvaluationResult,
    MetricsLogger,
    SampledGroupStats,
    TextEvaluation,
    Timer,
    summarise_evaluation,
    summarise_texts,
    text_samples,
)
from training.generation.generators import Generator
from training.objectives.registry import objective_of
from training.objectives.soft import learn_values
from training.optimisation.checkpoint import Checkpoint, JsonlLog, PendingCheckpoint, restore_trainer
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import StepResult, Trainer, TrainingError
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import EVALUATION_ATTEMPTS, TRAINING_ATTEMPTS, AttemptLog, rollout_origin
from training.rollouts.batches import (
    TeacherPrompt,
    batch_metrics,
    batch_row,
    build_samples,
    impossible_tokens,
    policy_metrics,
    queue_metrics,
    speed_metrics,
)
from training.rollouts.curriculum import CurriculumController
from training.rollouts.rollout_scheduler import (
    REFUSED,
    GroupDecision,
    RolloutBatch,
    RolloutLedger,
    RolloutRequest,
    RolloutScheduler,
)
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.stall_monitor import STALLED, StallMonitor, stall_thresholds
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

GENERATION_FAILED = "generation_failed"
END_OF_RUN = "end_of_run"

MAX_REFUSED = 0.01
"""Max share of refused problems."""

_MAX_DRAWS = 1000
"""Max draws in a row of refused problems."""

BEST, BEST_MARK = "best", "best.json"
"""Folder of the best model, and file with its step and pass@1."""

_FIRST_HELD_OUT = 1 << 40
"""The first group number of evaluations."""

STARTING, CHECKING = "starting the generators", "checking the generators"
COLLECTING, EVALUATING = "collecting a batch", "evaluating"
TRAINING, UPDATING, SAVING = "training", "updating the generators", "saving a checkpoint"

PROGRESS_S = 60.0
"""Max seconds without output."""


@dataclass
class TrainingLoop:
    """A run, new or from a checkpoint."""

    recipe: TrainRecipe
    out: Path
    tasks: Mapping[str, TrainingTask]
    held_out: Sequence[TrainingTask]
    trainer: Trainer
    tokenizer: PreTrainedTokenizerBase
    generator: Generator | None
    rollouts: RolloutRunner
    curriculum: CurriculumController
    logs: Mapping[str, JsonlLog]
    logger: MetricsLogger
    attempt_log: AttemptLog
    stored: StoredBatches
    mirror: RunMirror
    values: dict[str, float]
    teacher_prompt: TeacherPrompt
    checkpoint: Checkpoint | None
    evaluations: dict[int, EvaluationResult | TextEvaluation] = field(default_factory=dict)
    """By step."""

    def __post_init__(self) -> None:
        self.step = self.checkpoint.step if self.checkpoint is not None else 0
        self._saved_step = self.step
        self._writing: asyncio.Future[None] | None = None  # of the last checkpoint
        collector, generator = self.recipe.collector, self.generator
        self._refused: set[str] = set()  # problems; a resumed run asks them again
        self._refusals = FailureBudget(MAX_REFUSED, len(self.tasks))
        self.scheduler: RolloutScheduler[Rollout] = RolloutScheduler(collector, self._decide_group, self._draw_problem)
        self._groups = SampledGroupStats()
        self._timer = Timer(lambda: generator.decoding if generator is not None else 0.0)
        self._stall_monitor = StallMonitor(stall_thresholds(collector), self.logger.log_message)
        self.begin(0, STARTING)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._consecutive_failures = 0

    def begin(self, step: int, phase: str) -> None:
        """Record the start of a phase of step ``step``."""
        self._phase_step, self._phase, self._since = step, phase, monotonic()

    async def report_silence(self) -> None:
        """Report the run's activity after `PROGRESS_S` seconds without output."""
        while True:
            silent_s = monotonic() - self.logger.last_line_at
            if silent_s >= PROGRESS_S:
                self.logger.log_message(self._activity())
            else:
                await asyncio.sleep(PROGRESS_S - silent_s)

    def _activity(self) -> str:
        now = monotonic()
        text = f"step {self._phase_step}: {self._phase} for {now - self._since:.0f} s"
        if self._phase in (STARTING, CHECKING):
            return f"{text}; look at their log if it goes on"
        if self._phase not in (COLLECTING, EVALUATING):
            return text
        ledger, silent_s = self.scheduler.ledger(), now - max(self._since, self.rollouts.last_generated_at)
        text += (
            f"; {ledger.ready:,} of {self.recipe.collector.n_batch:,} attempts ready to be trained on; "
            f"{ledger.waiting:,} waiting for their group; {ledger.judging:,} with the verifier, {ledger.running:,} "
            "being generated"
        )
        if silent_s < PROGRESS_S:
            return text
        is_judging = self._phase == COLLECTING and ledger.judging and not ledger.running
        where = "verifier" if is_judging else "generators"
        return f"{text}; no attempt was finished for {silent_s:.0f} s: look at the {where}"

    async def run(self) -> RolloutLedger:
        """Run the remaining steps with running generators; return the ledger."""
        with ThreadPoolExecutor(1, "trainer") as thread:
            self._thread = thread
            try:
                if self.checkpoint is not None:
                    await self._on_thread(restore_trainer, self.checkpoint, self.trainer)
                    self.scheduler.restore(self.checkpoint.state["collector"], Rollout)
                    await self._update_generators()
                elif self.held_out:
                    self.logger.log_step(0, await self._evaluate())
                self._timer.restart()
                while self.step < self.stored.steps:
                    await self._run_step()
                    if self._writing is not None and self._writing.done():
                        await self._settle_checkpoint()
            finally:
                for task in self._in_flight:
                    task.cancel()
                await asyncio.gather(*self._in_flight, return_exceptions=True)
                self.scheduler.drop_outstanding(END_OF_RUN)
                await self._settle_checkpoint()
        ledger = self.scheduler.ledger()
        if not ledger.balanced:
            raise TrainingError(f"rollouts were lost or counted twice: {ledger}; this is a bug, please report it")
        return ledger

    async def _run_step(self) -> None:
        recipe = self.recipe
        sampled = await self._next_batch()
        batch = await self._on_thread(self.stored.joined, sampled, self.step + 1)
        self.begin(self.step + 1, TRAINING)
        impossible, sentence = impossible_tokens(batch.groups)
        if impossible:
            self.logger.log_message(f"step {self.step + 1}: {sentence}; they are left out")
        started_at = monotonic()
        minibatches = await self._on_thread(self._minibatches, batch)
        self._timer.add_trainer_time(monotonic() - started_at)
        numbers, results = await asyncio.gather(  # metrics do not delay the first step
            asyncio.to_thread(batch_metrics, batch.groups, batch.number), self._train(minibatches)
        )
        metrics = {**numbers, "policy/impossible_tokens": float(impossible)}
        estimates = {number: value for result in results for number, value in result.estimates.items()}
        known = [group for group in batch.groups if group.number in estimates]
        learn_values(self.values, [(group.problem, estimates[group.number]) for group in known])
        self.scheduler.mark_trained(sampled)
        self.step += 1
        self.logs["batches"].append(batch_row(self.step, sampled, batch))
        metrics["speed/update_s"] = await self._update_generators()
        self.scheduler.mark_updated()
        self._start_rollouts()
        last = self.step == self.stored.steps
        capacity = self.generator.capacity if self.generator is not None else 0
        metrics |= speed_metrics(results, self._timer, self._groups.tokens, capacity, self.scheduler.settings.n_async)
        metrics |= self.trainer.throughput(results) | policy_metrics(results) | self._groups.numbers()
        metrics |= queue_metrics(self.scheduler.ledger()) | self.rollouts.verdict_metrics()
        self._groups = SampledGroupStats()
        self._timer.restart()  # groups that finish during an evaluation count for the next step
        is_due = last or self.step % recipe.evaluation.every == 0
        evaluated = await self._evaluate() if is_due and self.held_out else {}
        if recipe.synchronous:
            self._timer.restart()  # nothing else ran
        self.logger.log_step(self.step, metrics | evaluated)
        for change in self.curriculum.follow(self.step, metrics, self.logs["changes"]):
            self.logger.log_message(f"{change.subject}: {change.old:g} -> {change.new:g}, {change.reason}")
        self.rollouts.rewards = self.curriculum.rewards
        if self.step % recipe.checkpoints.every == 0 or last:
            await self._save()

    async def _evaluate(self) -> dict[str, float]:
        began, version, settings = monotonic(), self.scheduler.version, self.recipe.evaluation
        self.begin(self.step, EVALUATING)
        rollouts = await self._ask_held_out(version)
        result: EvaluationResult | TextEvaluation
        if settings.data is not None and settings.data.kind == "latent":
            samples = [sample for group in rollouts for sample in text_samples(group)]
            scored = await self._on_thread(self.trainer.scorer.logprobs, samples) if samples else []
            result = summarise_texts(rollouts, scored)
        else:
            result = summarise_evaluation(rollouts)
            if settings.keep_best:
                await self._on_thread(self._keep_best, result)
        self.logger.log_message(f"step {self.step}: {result.phrase}")
        self.evaluations[self.step] = result
        figures = {f"evaluation/{name}": float(value) for name, value in asdict(result).items()}
        return {**figures, "evaluation/version": float(version), "speed/evaluation_wait_s": monotonic() - began}

    async def _ask_held_out(self, version: int) -> list[list[Rollout | None]]:
        """Return each held-out problem's rollouts, None for refused prompts."""
        generator, attempts = self.generator, self.recipe.evaluation.attempts
        assert generator is not None  # evaluations generate

        async def ask(group: int, task: TrainingTask, index: int) -> Rollout | None:
            try:
                completion = await self.rollouts.generate(generator, task, group, index, self._max_tokens)
            except RequestRefused:
                return None
            return await self.rollouts.verify(task, completion, group)

        tasks = enumerate(self.held_out, _FIRST_HELD_OUT)
        jobs = [(group, task, index) for group, task in tasks for index in range(attempts)]
        results = await asyncio.gather(*(ask(*job) for job in jobs))
        for (group, task, index), rollout in zip(jobs, results, strict=True):
            if rollout is not None:
                origin = rollout_origin(EVALUATION_ATTEMPTS, self.step, version, rollout, group)
                self.attempt_log.record(task, rollout, index, origin)
        return [results[start : start + attempts] for start in range(0, len(results), attempts)]

    def _keep_best(self, result: EvaluationResult) -> None:
        path = self.out / BEST / BEST_MARK
        if path.exists():
            best = json.loads(path.read_text(encoding="utf-8"))
            if best["step"] < self.step and best["pass_rate"] >= result.pass_rate:
                return
        mark = {BEST_MARK: json.dumps({"step": self.step, "pass_rate": result.pass_rate}) + "\n"}
        self.trainer.publish(path.parent, self.tokenizer, self.trainer.full_state_dict(), mark)

    def _minibatches(self, batch: RolloutBatch[Rollout]) -> list[list[TrainingSample]]:
        stored = self.recipe.stored
        samples_of = partial(
            build_samples,
            settings=self.recipe.objective,
            max_distance=stored.max_distance if stored is not None else None,
            values=self.values,
            max_tokens=self._max_tokens,
            teacher_prompt=self.teacher_prompt,
        )
        sizes = self.curriculum.collector
        size = sizes.minibatch_size // sizes.group_size  # whole groups; the last minibatch may have fewer
        chunks = [batch.groups[start : start + size] for start in range(0, len(batch.groups), size)]
        return [samples_of(groups, version=None if index else batch.number) for index, groups in enumerate(chunks)]

    async def _train(self, minibatches: Sequence[Sequence[TrainingSample]]) -> list[StepResult]:
        results: list[StepResult] = []
        for samples in minibatches:
            results.append(await self._on_thread(self.trainer.step, samples, self.recipe.objective))
            self._timer.add_trainer_time(results[-1].seconds)
        return results

    async def _next_batch(self) -> RolloutBatch[Rollout]:
        """Wait for the next batch."""
        self.begin(self.step + 1, COLLECTING)
        if self.stored.is_offline(self.step + 1):
            return self.scheduler.empty_batch()
        self.scheduler.settings = self.stored.collector(self.step + 1, self.curriculum.collector)
        while True:
            if self.recipe.synchronous:
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
            if not self.recipe.synchronous:
                self._changed.clear()
                await self._changed.wait()

    async def _end_stalled(self) -> NoReturn:
        if self.step > self._saved_step:
            await self._save()
        await self._settle_checkpoint()
        message = (
            f"step {self.step + 1} found nothing to learn from: {self._stall_monitor.report()} Remove the cause, then "
            f"`goldilocks train --resume {self.out}` continues from step {self._saved_step}."
        )
        atomic_write(self.out / STALLED, json.dumps({"step": self.step, "message": message}, ensure_ascii=False) + "\n")
        raise TrainingError(message)

    def _start_rollouts(self) -> None:
        if self.recipe.synchronous or self._error is not None or self.stored.is_offline(self.step + 1):
            return
        while (request := self.scheduler.admit()) is not None:
            task = asyncio.create_task(self._run_rollout(request))
            self._in_flight.add(task)
            task.add_done_callback(self._on_task_done)

    async def _run_rollout(self, request: RolloutRequest) -> None:
        self._record(request, await self._judge(request, await self._generate(request)))
        self._start_rollouts()

    async def _run_synchronous_batch(self) -> int:
        requests = list(iter(self.scheduler.admit, None))
        completions = await asyncio.gather(*map(self._generate, requests))
        outcomes = await asyncio.gather(*map(self._judge, requests, completions))
        for request, outcome in zip(requests, outcomes, strict=True):
            self._record(request, outcome)
        return len(requests)

    async def _judge(self, request: RolloutRequest, completion: TokenCompletion | str) -> Rollout | str:
        if isinstance(completion, str):
            return completion
        self.scheduler.mark_generated(request)
        self._start_rollouts()
        return await self.rollouts.verify(self.tasks[request.problem], completion, request.group)

    async def _generate(self, request: RolloutRequest) -> TokenCompletion | str:
        """Return a completion, or why there is none."""
        assert self.generator is not None  # else every step is offline
        try:
            completion = await self.rollouts.generate(
                self.generator, self.tasks[request.problem], request.group, request.index, self._max_tokens
            )
        except RequestRefused as refusal:
            self._stall_monitor.record_failure(request.problem, str(refusal))
            if request.problem not in self._refused:
                self.logger.log_message(f"problem {request.problem} is left out: {refusal}")
            self._refused.add(request.problem)
            self._refusals.count_refusal(request.problem, refusal)
            return REFUSED
        except PolicyError as error:
            self._consecutive_failures += 1
            self.logger.log_message(f"problem {request.problem}: {error}")
            self._stall_monitor.record_failure(request.problem, str(error))
            if self._consecutive_failures > self.recipe.collector.n_async:
                raise
            return GENERATION_FAILED
        self._consecutive_failures = 0
        self._refusals.count_answer()
        return completion

    def _draw_problem(self) -> str | None:
        drawn = (self.curriculum.draw_problem() for _ in range(_MAX_DRAWS))
        return next((problem for problem in drawn if problem not in self._refused), None)

    def _record(self, request: RolloutRequest, outcome: Rollout | str) -> None:
        if isinstance(outcome, str):
            self.scheduler.mark_failed(request, outcome)
            return
        row = {"group": request.group, "index": request.index, "step": self.step, "admitted": request.version}
        row |= outcome.row()
        self.logs["attempts"].buffer(row)  # a flush takes its turn with the trainer's and the generator's threads
        origin = rollout_origin(TRAINING_ATTEMPTS, self.step, request.version, outcome, request.group)
        self.attempt_log.record(self.tasks[request.problem], outcome, request.index, origin)
        self.scheduler.mark_judged(request, outcome)

    def _decide_group(self, rollouts: Sequence[Rollout]) -> GroupDecision:
        judged = [rollout for rollout in rollouts if not rollout.reward.excluded]
        correct = sum(rollout.reward.correct for rollout in judged)
        self.curriculum.record_group(rollouts[0].problem, self.step, correct, len(judged))
        objective = self.recipe.objective
        rewards = [rollout.reward for rollout in rollouts]
        decision = objective_of(objective).decide(rewards, objective)
        tokens, finishes = [rollout.tokens for rollout in rollouts], [rollout.completion.finish for rollout in rollouts]
        self._groups.add(rewards, tokens, finishes, is_dropped=decision.drop_reason is not None)
        self._stall_monitor.record_group(rollouts, decision)
        return decision

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()
        self._changed.set()

    async def _update_generators(self) -> float:
        """Send the newest weights, write a due trajectory, and return the seconds."""
        self.begin(self.step, UPDATING)
        version, every = self.scheduler.batches_taken, self.recipe.checkpoints.trajectory
        state = await self._on_thread(self.trainer.full_state_dict)
        seconds = await self.generator.update_weights(state, version) if self.generator is not None else 0.0
        if every is not None and version % every == 0:
            folder = self.out / "trajectory" / f"v{version:08}"
            await self._on_thread(self.trainer.publish, folder, self.tokenizer, state)
        return seconds

    async def _save(self) -> None:
        """Copy the state, and write a checkpoint in the background."""
        self.begin(self.step, SAVING)
        state: dict[str, Any] = {  # of one moment: no await in between
            "collector": self.scheduler.state(),
            "curriculum": self.curriculum.state(),
            "values": dict(self.values) if getattr(self.recipe.objective, "value", "") == "learned" else {},
            "logs": {name: log.offset() for name, log in self.logs.items()},
        }
        state["attempt_parts"] = await asyncio.wrap_future(self.attempt_log.checkpoint())
        await self._settle_checkpoint()
        begun = partial(PendingCheckpoint, keep=self.recipe.checkpoints.keep)
        pending = await self._on_thread(begun, self.out, self.step, self.trainer, state, self.tokenizer)
        self._writing = asyncio.ensure_future(self._finish(pending))

    async def _finish(self, pending: PendingCheckpoint) -> None:
        await asyncio.to_thread(pending.finish)
        self._saved_step = pending.step
        self.mirror.wake()

    async def _settle_checkpoint(self) -> None:
        """Wait for the current write and raise its error."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    @property
    def _max_tokens(self) -> int:
        return self.curriculum.rewards.max_length

    async def _on_thread(self, work: Any, *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)
