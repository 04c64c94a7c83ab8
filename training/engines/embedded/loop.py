"""The training loop: generators never stop, finished attempts go to their verifier at once, batches to the trainer.

One event loop drives everything; a gradient step runs on a thread beside it, and meanwhile attempts go on being
generated, judged and admitted. When the step is done the generators get the new weights in mid-generation, and the
next batch is taken.

With ``staleness = 0`` the loop is synchronous: it opens a whole batch, waits for all of it, trains, and updates.
Attempts are then made in waves in a fixed order, and a run on a CPU can be repeated bit by bit.

Invariants: an admitted attempt is trained on or dropped with a counted reason exactly once (`RolloutScheduler.ledger`,
checked at the end); the state for a checkpoint is taken between two steps in one go, so that collector, curriculum and
logs belong to the same moment; whatever fails in a task ends the run with its own error.

Not here: what a step does (`training.optimisation.trainer`), building the parts (`training.engines.embedded.run`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.records import PolicyError
from training.evaluation.evaluate import EvaluationResult, evaluate
from training.evaluation.metrics import MetricsLogger, SampledGroupStats, Watch
from training.generation.generators import Generated, GeneratorPool
from training.generation.weight_sync import WeightPublisher, WeightSync
from training.objectives.registry import objective_of
from training.optimisation.checkpoint import Checkpoint, JsonlLog, restore_trainer, save_checkpoint
from training.optimisation.trainer import StepResult, Trainer, TrainingError
from training.recipe import TrainRecipe
from training.rollouts.batches import batch_metrics, policy_metrics, samples_of, shown
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.rollout_scheduler import Fate, RolloutBatch, RolloutLedger, RolloutRequest, RolloutScheduler
from training.rollouts.rollouts import Rollout, RolloutRunner, decode, encode
from training.rollouts.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

GENERATION_FAILED = "generation_failed"
END = "end_of_run"


@dataclass(slots=True)
class LoopComponents:
    """What a loop works with; `training.engines.embedded.run` puts it together."""

    recipe: TrainRecipe
    out: Path
    tasks: Mapping[str, Task]
    held_out: Sequence[Task]
    trainer: Trainer
    tokenizer: PreTrainedTokenizerBase
    pool: GeneratorPool
    hand_over: WeightSync
    rollouts: RolloutRunner
    course: CurriculumController
    logs: Mapping[str, JsonlLog]
    board: MetricsLogger
    publisher: WeightPublisher | None = None


class TrainingLoop:
    """One run, from its first or its last checkpointed step to its last."""

    def __init__(self, parts: LoopComponents, checkpoint: Checkpoint | None) -> None:
        self._parts, self._recipe = parts, parts.recipe
        self._course, self._rollouts = parts.course, parts.rollouts
        self._checkpoint = checkpoint
        self.step = checkpoint.step if checkpoint is not None else 0
        self.evaluations: dict[int, EvaluationResult] = {}
        self.scheduler: RolloutScheduler[Rollout] = RolloutScheduler(
            parts.recipe.collector, self._fate, self._course.draw
        )
        self._groups = SampledGroupStats()
        self._watch = Watch(parts.recipe.collector.n_async)
        self._under_way: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self._failures = 0

    async def run(self) -> RolloutLedger:
        """All remaining steps; the generators must be running. Returns where all attempts went.

        Raises:
            GoldilocksError: a generator, a verifier or the trainer cannot go on.
        """
        with ThreadPoolExecutor(1, "trainer") as thread:
            self._thread = thread
            try:
                await self._begin()
                while self.step < self._recipe.steps:
                    await self._one_step()
            finally:
                await self._stop()
        ledger = self.scheduler.ledger()
        if not ledger.balanced:
            raise TrainingError(f"attempts were lost or made: {ledger}; this is a defect of the loop, please report it")
        return ledger

    async def _begin(self) -> None:
        if self._checkpoint is not None:
            await self._on_thread(restore_trainer, self._checkpoint, self._parts.trainer)
            self.scheduler.restore(self._checkpoint.state["collector"], decode)
            await self._update()
        elif self._parts.held_out:
            self._parts.board.write(0, await self._evaluation(0))
        self._watch.restart()

    async def _one_step(self) -> None:
        recipe, board = self._recipe, self._parts.board
        batch = await self._next_batch()
        numbers = batch_metrics(batch.groups, batch.number)
        figures = []
        for groups in batch.minibatches(recipe.collector):
            samples = samples_of(groups, self._course.objective)
            figures.append(await self._on_thread(self._parts.trainer.step, samples, self._course.objective))
            self._watch.worked(figures[-1].seconds)
        self.scheduler.trained(batch)
        self.step += 1
        tickets = [[ticket.group, ticket.index] for group in batch.groups for ticket, _ in group.attempts]
        self._parts.logs["batches"].add({"step": self.step, "version": batch.number, "attempts": tickets})
        numbers["speed/update_s"] = await self._update()
        self.scheduler.updated()
        self._fill()
        last = self.step == recipe.steps
        timed = self._times(figures)
        if self._parts.held_out and (self.step % recipe.evaluation.every == 0 or last):
            numbers |= await self._evaluation(self.step)
        numbers |= {**timed, **policy_metrics(figures), **self._groups.numbers(), **self._queue()}
        board.write(self.step, numbers, shown(batch.groups, recipe.samples))
        self._learn(numbers)
        self._groups.clear()
        self._watch.restart()
        if self.step % recipe.checkpoints.every == 0 or last:
            await self._save(self._state())

    def _learn(self, numbers: Mapping[str, float]) -> None:
        """What the curriculum makes of the step."""
        if "sampled/reward" not in numbers:
            return
        moved, changes = self._course.after(
            self.step, numbers["sampled/reward"], numbers["length/sampled_mean"], numbers["policy/entropy"]
        )
        for row in (*map(asdict, moved), *map(asdict, changes)):
            self._parts.logs["changes"].add({"step": self.step, **row})
        for change in changes:
            self._parts.board.say(f"{change.what}: {change.old:g} -> {change.new:g}, {change.reason}")
        self._rollouts.rewards = self._course.rewards

    async def _next_batch(self) -> RolloutBatch[Rollout]:
        while True:
            if self._recipe.synchronous:
                await self._wave()
            else:
                self._fill()
            if self._error is not None:
                raise self._error
            batch = self.scheduler.batch()
            if batch is not None:
                return batch
            if not self._recipe.synchronous:
                self._changed.clear()
                await self._changed.wait()

    def _fill(self) -> None:
        """Start what may be started."""
        if self._recipe.synchronous or self._error is not None:
            return
        while (ticket := self.scheduler.admit()) is not None:
            task = asyncio.create_task(self._attempt(ticket))
            self._under_way.add(task)
            task.add_done_callback(self._over)
        self._watch.taken(self._recipe.collector.n_async - self.scheduler.idle_places)

    async def _attempt(self, ticket: RolloutRequest) -> None:
        made = await self._generate(ticket)
        if made is None:
            self.scheduler.lost(ticket, GENERATION_FAILED)
        else:
            self.scheduler.generated(ticket)
            self._fill()
            self._settle(ticket, await self._rollouts.judge(self._task(ticket), made, ticket.group))
        self._fill()
        self._changed.set()

    async def _wave(self) -> None:
        """Synchronous: all that is admitted at once, generated together, then settled in order."""
        tickets = list(iter(self.scheduler.admit, None))
        self._watch.taken(len(tickets))
        made = await asyncio.gather(*(self._generate(ticket) for ticket in tickets))
        self._watch.taken(0)
        judged = await asyncio.gather(
            *(
                self._rollouts.judge(self._task(ticket), one, ticket.group)
                for ticket, one in zip(tickets, made, strict=True)
                if one is not None
            )
        )
        settled = iter(judged)
        for ticket, one in zip(tickets, made, strict=True):
            if one is None:
                self.scheduler.lost(ticket, GENERATION_FAILED)
            else:
                self.scheduler.generated(ticket)
                self._settle(ticket, next(settled))

    async def _generate(self, ticket: RolloutRequest) -> Generated | None:
        """One attempt, or None where the generator cannot make it; the error itself where it makes none any more."""
        try:
            made = await self._rollouts.generate(
                self._parts.pool, self._task(ticket), ticket.group, ticket.index, self._max_tokens
            )
        except PolicyError as error:
            self._failures += 1
            self._parts.board.say(f"problem {ticket.problem}: {error}")
            if self._failures > self._recipe.collector.n_async:
                raise
            return None
        self._failures = 0
        return made

    def _settle(self, ticket: RolloutRequest, rollout: Rollout) -> None:
        row = {"group": ticket.group, "index": ticket.index, "step": self.step, "admitted": ticket.version}
        self._parts.logs["attempts"].add({**row, **rollout.row()})
        self.scheduler.judged(ticket, rollout)

    def _fate(self, rollouts: Sequence[Rollout]) -> Fate:
        self._groups.add(rollouts)
        judged = [one for one in rollouts if not one.reward.excluded]
        self._course.saw(rollouts[0].problem, self.step, sum(one.reward.correct for one in judged), len(judged))
        settings = self._recipe.objective
        return objective_of(settings).decide([one.reward for one in rollouts], settings)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = self._error or task.exception()
            self._changed.set()

    async def _update(self) -> float:
        """Hand the newest weights to the generators, and publish them where they are due; seconds of the first."""
        version, every, publisher = self.scheduler.taken, self._recipe.checkpoints.publish, self._parts.publisher
        state = await self._on_thread(self._parts.trainer.weights)
        seconds = await self._parts.hand_over.update(state, version)
        if publisher is not None and every is not None and version % every == 0:
            await self._on_thread(publisher.publish, version, state)
        return seconds

    async def _evaluation(self, step: int) -> dict[str, float]:
        found = await evaluate(
            self._rollouts, self._parts.pool, self._parts.held_out, self._recipe.evaluation.attempts, self._max_tokens
        )
        self.evaluations[step] = found
        self._parts.board.say(
            f"step {step}: held-out pass@1 {found.pass_rate:.3f} ({found.low:.3f} to {found.high:.3f}), "
            f"{found.problems} problems x {self._recipe.evaluation.attempts}, {found.tokens:.0f} tokens"
        )
        return {f"evaluation/{name}": float(value) for name, value in asdict(found).items()}

    def _times(self, figures: Sequence[StepResult]) -> dict[str, float]:
        """Speeds of the interval that this step ends."""
        seconds = max(self._watch.seconds, 1e-9)
        return {
            **self._watch.shares(),
            "speed/step_s": seconds,
            "speed/train_s": sum(one.seconds for one in figures),
            "speed/trained_tokens_s": sum(one.trained_tokens for one in figures) / seconds,
            "speed/sampled_tokens_s": self._groups.tokens / seconds,
            "speed/padding_share": sum(one.padding for one in figures) / len(figures),
            "speed/shared_share": sum(one.shared for one in figures) / len(figures),
            **self._parts.trainer.effort(figures),
        }

    def _queue(self) -> dict[str, float]:
        ledger = self.scheduler.ledger()
        names = ("running", "judging", "waiting", "ready", "admitted", "trained")
        dropped = {f"dropped/{reason}": float(count) for reason, count in ledger.dropped.items()}
        held = {f"queue/{name}": float(getattr(ledger, name)) for name in names}
        return {**held, **dropped, "queue/dropped": float(sum(ledger.dropped.values()))}

    def _state(self) -> dict[str, Any]:
        """Of one moment: no other task runs meanwhile."""
        return {
            "collector": self.scheduler.state(encode),
            "course": self._course.state(),
            "logs": {name: log.place() for name, log in self._parts.logs.items()},
        }

    async def _save(self, state: Mapping[str, Any]) -> None:
        kept = self._recipe.checkpoints

        def work() -> None:
            save_checkpoint(
                self._parts.out,
                self.step,
                self._parts.trainer,
                state,
                self._parts.tokenizer,
                keep=kept.keep,
                export=kept.export,
            )

        await self._on_thread(work)

    async def _stop(self) -> None:
        """Abort what is under way; it is counted as dropped."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self.scheduler.abandon(END)

    @property
    def _max_tokens(self) -> int:
        return self._recipe.max_tokens or self._course.rewards.max_length

    def _task(self, ticket: RolloutRequest) -> Task:
        return self._parts.tasks[ticket.problem]

    async def _on_thread(self, work: Any, *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)
