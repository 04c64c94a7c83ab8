"""Copy verl's metrics into the run's `metrics.jsonl`.

Invariant: each step has one row, also over kills and resumes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from training.engines.verl.configuration import NAME, steps_file
from training.evaluation.metrics import MetricsLogger, Monitor
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
"""Our names by verl's."""

_OURS = f"{NAME}/"
_PASS_RATE = "val-core/"


def our_metrics(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return metrics under our names, and verl's below ``verl/``."""
    numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
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
    """Copy the metrics of a verl process, after those of earlier ones."""

    def __init__(self, out: Path, steps: int, begun_at: int, monitors: Sequence[Monitor] = ()) -> None:
        self._source, self._read = steps_file(out, begun_at), 0
        self._source.unlink(missing_ok=True)
        self._log, lines = JsonlLog(out / "metrics.jsonl"), (out / "metrics.jsonl").read_bytes().splitlines(True)
        kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["step"] <= begun_at]
        self._log.truncate(sum(map(len, kept)))
        self.step = int(json.loads(kept[-1])["step"]) if kept else -1
        self._logger = MetricsLogger(out, self._log, steps, self.step + 1, monitors)
        earlier = self._source.parent.glob("steps-*.jsonl")
        for file in sorted(earlier, key=lambda file: int(file.stem.partition("-")[2])):
            self._take(file.read_bytes(), begun_at)  # what a killed process wrote last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.follow()
        self._logger.close()
        self._log.close()

    def follow(self) -> None:
        """Log complete new lines."""
        if self._source.exists():
            with self._source.open("rb") as file:
                file.seek(self._read)
                self._read += self._take(file.read())

    def _take(self, added: bytes, last: float = math.inf) -> int:
        whole = added[: added.rfind(b"\n") + 1]
        for row in map(json.loads, whole.splitlines()):
            if self.step < row["step"] <= last:
                self.step = int(row["step"])
                self._logger.log_step(self.step, our_metrics(row["data"]))
        return len(whole)
