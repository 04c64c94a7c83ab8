"""Print what a run does after a while without output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Self

from training.evaluation.metrics import MetricsLogger
from training.rollouts.rollout_scheduler import RolloutLedger
from training.rollouts.rollouts import RolloutRunner

STARTING, CHECKING = "starting the generators", "checking the generators"
COLLECTING, EVALUATING = "collecting a batch", "evaluating"
TRAINING, UPDATING, SAVING = "training", "updating the generators", "saving a checkpoint"

PROGRESS_S = 60.0
"""Max seconds without output."""


class Heartbeat:
    """Report what the run does after `PROGRESS_S` seconds without output."""

    def __init__(
        self, logger: MetricsLogger, rollouts: RolloutRunner, ledger: Callable[[], RolloutLedger], n_batch: int
    ) -> None:
        self._logger, self._rollouts, self._ledger, self._n_batch = logger, rollouts, ledger, n_batch
        self.begin(0, STARTING)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    def begin(self, step: int, phase: str) -> None:
        """Note that a phase towards step ``step`` begins."""
        self._step, self._phase = step, phase
        self._since, self._finished_before = time.monotonic(), self._rollouts.generated

    async def _run(self) -> None:
        while True:
            silent_s = time.monotonic() - self._logger.last_line_at
            if silent_s >= PROGRESS_S:
                self._logger.log_message(self._line())
            else:
                await asyncio.sleep(PROGRESS_S - silent_s)

    def _line(self) -> str:
        now = time.monotonic()
        begun = f"step {self._step}: {self._phase} for {now - self._since:.0f} s"
        if self._phase in (STARTING, CHECKING):
            return f"{begun}; look at their log where it goes on"
        if self._phase not in (COLLECTING, EVALUATING):
            return begun
        ledger = self._ledger()
        parts = [begun, f"{self._rollouts.generated - self._finished_before:,} attempts generated meanwhile"]
        if self._phase == COLLECTING:
            parts.append(f"{ledger.ready:,} of {self._n_batch:,} ready to be trained on")
            parts.append(f"{ledger.waiting:,} waiting for their group")
            parts.append(f"{ledger.judging:,} with the verifier, {ledger.running:,} being generated")
        last = max(self._since, self._rollouts.last_generated_at)
        if now - last >= PROGRESS_S:
            where = "the verifier" if self._phase == COLLECTING and ledger.judging and not ledger.running else None
            parts.append(f"no attempt was finished for {now - last:.0f} s: look at {where or 'the generators'}")
        return "; ".join(parts)
