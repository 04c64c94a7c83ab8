"""Copy verl's metrics into the run's `metrics.jsonl`, with verl's own names below ``verl/``.

Invariants: each step has one row, also over kills and resumes; only whole rows are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.engines.verl.configuration import NAME
from training.evaluation.metrics import MetricsLogger
from training.evaluation.monitors import Monitor
from training.optimisation.checkpoint import JsonlLog

NAMES: Mapping[str, str] = {
    "critic/score/mean": "reward/total",
    "response_length/mean": "length/trained_mean",
    "response_length/max": "length/trained_max",
    "actor/pg_loss": "policy/loss",
    "actor/grad_norm": "policy/gradient_norm",
    "actor/lr": "policy/learning_rate",
    "actor/entropy_loss": "policy/entropy",
    "training/off_policy/trajectory_staleness_worst/mean": "age/token_mean",
    "training/off_policy/trajectory_staleness_worst/max": "age/token_max",
    "timing_s/step": "speed/step_s",
    "timing_s/update_actor": "speed/train_s",
    "timing_s/update_weights": "speed/update_s",
    "perf/total_num_tokens": "speed/trained_tokens",
    "perf/mfu/actor": "speed/peak_share",
}
"""verl's names and ours."""

_OURS = f"{NAME}/"
_PASS_RATE = "val-core/"


def our_metrics(told: Mapping[str, Any]) -> dict[str, float]:
    """Return metrics under our names, and verl's below ``verl/``."""
    numbers = {name: float(value) for name, value in told.items() if isinstance(value, int | float)}
    row = {
        f"verl/{name}": value for name, value in numbers.items() if not name.removeprefix("actor/").startswith(_OURS)
    }
    row |= {ours: numbers[theirs] for theirs, ours in NAMES.items() if theirs in numbers}
    for name, value in numbers.items():
        plain = name.removeprefix("actor/")
        if plain.startswith(_OURS):
            row[plain.removeprefix(_OURS)] = value
        if name.startswith(_PASS_RATE) and "/acc/mean@" in name:
            row["evaluation/pass_rate"] = value
    return {name: value for name, value in row.items() if math.isfinite(value)}


class MetricsFollower:
    """Copy verl's metrics to the run's, those of ``earlier`` processes first."""

    def __init__(
        self,
        out: Path,
        source: Path,
        steps: int,
        begun_at: int,
        monitors: Sequence[Monitor] = (),
        earlier: Sequence[Path] = (),
    ) -> None:
        self._source, self._read = source, 0
        self.step = _cut_rows(out / "metrics.jsonl", begun_at)
        self._log = JsonlLog(out / "metrics.jsonl")
        self._logger = MetricsLogger(out, self._log, steps, self.step + 1, monitors)
        for file in earlier:
            self._take(file.read_bytes(), begun_at)

    def follow(self) -> None:
        """Log the complete lines added since the last call."""
        if not self._source.exists():
            return
        with self._source.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        self._read += self._take(added)

    def _take(self, added: bytes, last: int | None = None) -> int:
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.splitlines():
            row = json.loads(line)
            step = int(row["step"])
            if step > self.step and (last is None or step <= last):
                self._logger.log_step(step, our_metrics(row["data"]))
                self.step = step
        return len(whole)

    def close(self) -> None:
        """Log what is left and close the files."""
        self.follow()
        self._logger.close()
        self._log.close()


def _cut_rows(path: Path, step: int) -> int:
    if not path.exists():
        return -1
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if json.loads(line)["step"] <= step]
    path.write_text("".join(f"{line}\n" for line in rows), encoding="utf-8")
    return int(json.loads(rows[-1])["step"]) if rows else -1
