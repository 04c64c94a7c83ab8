"""What is seen of a run: ``metrics.jsonl``, TensorBoard, a line on the terminal, a few attempts as text, plots.

A step's row holds one number per name; names have a group before the slash, and the same names stand in TensorBoard.
`NAMES` lists those that every step has.

Invariants: rows are whole lines, in the order of steps, each step once, also over kills and resumes; a number that is
not there (no group finished, nothing generated) is left out, never 0.

Not here: computing them, beyond shares of time (`Watch`) and of groups (`SampledGroupStats`).
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.optimisation.checkpoint import JsonlLog
from training.rollouts.rollouts import Rollout

STEP_METRICS = (
    *(f"reward/{name}" for name in ("format", "correctness", "length", "language", "total")),
    *(f"sampled/{name}" for name in ("pass_rate", "reward", "none", "some", "all", "attempts", "groups")),
    *(f"batch/{name}" for name in ("attempts", "pass_rate", "advantage_std")),
    *(f"length/{name}" for name in ("sampled_mean", "sampled_max", "trained_mean", "trained_max", "cut_share")),
    *(f"age/{name}" for name in ("token_mean", "token_max", "several_versions_share")),
    *(f"policy/{name}" for name in ("loss", "gradient_norm", "learning_rate", "entropy", "ratio_mean", "ratio_max")),
    *(f"policy/{name}" for name in ("kl_generator", "mismatch_max")),
    *(f"speed/{name}" for name in ("step_s", "train_s", "update_s", "trained_tokens_s", "sampled_tokens_s")),
    *(f"speed/{name}" for name in ("generator_idle_share", "trainer_idle_share", "padding_share", "shared_share")),
    *(f"queue/{name}" for name in ("running", "judging", "waiting", "ready", "admitted", "trained", "dropped")),
)
"""What every step's row has; an objective's own statistics stand beside them, below ``policy/``."""


class Timer:
    """Shares of time: of the places for generation that were taken, and of the trainer's work."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.restart()

    def restart(self) -> None:
        """Begin a new interval."""
        self._begun = self._since = time.perf_counter()
        self._used = self._worked = 0.0
        self._taken = getattr(self, "_taken", 0)

    def set_busy_slots(self, slots: int) -> None:
        """So many places generate from now on."""
        now = time.perf_counter()
        self._used += self._taken * (now - self._since)
        self._since, self._taken = now, slots

    def add_trainer_time(self, seconds: float) -> None:
        """The trainer has worked so long."""
        self._worked += seconds

    @property
    def elapsed_s(self) -> float:
        """Return length of the interval so far."""
        return time.perf_counter() - self._begun

    def idle_shares(self) -> dict[str, float]:
        """Idle shares of the interval so far."""
        self.set_busy_slots(self._taken)
        seconds = max(self.elapsed_s, 1e-9)
        return {
            "speed/generator_idle_share": max(1 - self._used / (self._slots * seconds), 0.0),
            "speed/trainer_idle_share": max(1 - self._worked / seconds, 0.0),
        }


class SampledGroupStats:
    """Groups that finished since the last step, whether they are trained on or not."""

    def __init__(self) -> None:
        self._rollouts: list[Rollout] = []
        self._solved: Counter[str] = Counter()

    def add(self, rollouts: Sequence[Rollout]) -> None:
        """A finished group."""
        self._rollouts.extend(rollouts)
        judged = [one for one in rollouts if not one.reward.excluded]
        correct = sum(one.reward.correct for one in judged)
        if judged:
            self._solved["none" if correct == 0 else "all" if correct == len(judged) else "some"] += 1

    def numbers(self) -> dict[str, float]:
        """Return what was sampled; empty where no group finished."""
        judged = [one for one in self._rollouts if not one.reward.excluded]
        groups = sum(self._solved.values())
        if not judged:
            return {}
        lengths = [one.tokens for one in self._rollouts]
        return {
            "sampled/attempts": float(len(self._rollouts)),
            "sampled/groups": float(groups),
            "sampled/excluded": float(len(self._rollouts) - len(judged)),
            "sampled/pass_rate": sum(one.reward.correct for one in judged) / len(judged),
            "sampled/reward": sum(one.reward.total for one in judged) / len(judged),
            **{f"sampled/{name}": self._solved[name] / groups for name in ("none", "some", "all")},
            "sampled/broken_form_share": sum(one.reward.format_error is not None for one in judged) / len(judged),
            "length/sampled_mean": sum(lengths) / len(lengths),
            "length/sampled_max": float(max(lengths)),
            "length/cut_share": sum(one.completion.finish == "length" for one in self._rollouts) / len(lengths),
        }

    @property
    def tokens(self) -> int:
        """Return tokens of these groups' attempts."""
        return sum(one.tokens for one in self._rollouts)

    def clear(self) -> None:
        """Begin a new interval."""
        self._rollouts.clear()
        self._solved.clear()


class MetricsLogger:
    """Where the numbers go. ``start`` is the first step that will be written."""

    def __init__(self, folder: Path, log: JsonlLog, total: int, start: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=start)
        self._log, self._total = log, total
        self._begun = time.monotonic()

    def log_step(self, step: int, metrics: Mapping[str, float], texts: Sequence[str] = ()) -> None:
        """One step's row, its texts, and a line for whoever watches."""
        held = {name: value for name, value in sorted(metrics.items()) if math.isfinite(value)}
        self._log.append({"step": step, **held})
        for name, value in held.items():
            self._writer.add_scalar(name, value, step)
        for place, text in enumerate(texts):
            self._writer.add_text(f"attempt/{place}", text, step)
        self._writer.flush()
        print(self._line(step, held), file=sys.stderr, flush=True)

    def log_message(self, text: str) -> None:
        """A line for whoever watches."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Let go of the files."""
        self._writer.close()

    def _line(self, step: int, held: Mapping[str, float]) -> str:
        def shown(name: str, form: str = ".3f") -> str:
            return format(held[name], form) if name in held else "-"

        return (
            f"step {step}/{self._total}  {time.monotonic() - self._begun:.0f} s  "
            f"pass {shown('sampled/pass_rate')}  reward {shown('sampled/reward')}  "
            f"length {shown('length/sampled_mean', '.0f')}  entropy {shown('policy/entropy')}  "
            f"age {shown('age/token_mean', '.2f')}  {shown('speed/trained_tokens_s', '.0f')} tokens/s  "
            f"idle {shown('speed/generator_idle_share', '.0%')}/{shown('speed/trainer_idle_share', '.0%')}"
        )


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """Return the rows of a run's metrics.jsonl, by step."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
