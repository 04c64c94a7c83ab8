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
        text = f"step {self._step}: {self._phase} for {now - self._since:.0f} s"
        if self._phase not in (COLLECTING, EVALUATING):
            return text
        ledger, generated = self._ledger(), self._rollouts.generated - self._finished_before
        text += (
            f"; {generated:,} attempts generated meanwhile; {ledger.ready:,} of {self._n_batch:,} ready to be trained "
            f"on; {ledger.waiting:,} waiting for their group; {ledger.judging:,} with the verifier, "
            f"{ledger.running:,} being generated"
        )
        last = max(self._since, self._rollouts.last_generated_at)
        if now - last < PROGRESS_S:
            return text
        where = "the verifier" if self._phase == COLLECTING and not ledger.running else "the generators"
        return f"{text}; no attempt was finished for {now - last:.0f} s: look at {where}"
