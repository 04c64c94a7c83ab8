"""Compute and log a run's metrics.

Invariants: each step has one line, in order, also over kills and resumes; unknown numbers are left out, never 0.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from curation.config.schedule import MonitorSettings
from curation.records import COUNTED_OUTCOMES, ConfigError, Outcome
from training.evaluation.estimators import mean_interval
from training.optimisation.checkpoint import JsonlLog
from training.rewards import Reward

if TYPE_CHECKING:
    from torch import Tensor

    from training.optimisation.packing import TrainingSample
    from training.rollouts.rollouts import Rollout

Monitor = ModuleType
"""The imported package, with an open run."""


class Timer:
    """Measures idle shares of generators and trainer."""

    def __init__(self, decoding: Callable[[], float]) -> None:
        self._decoding = decoding
        self.restart()

    def restart(self) -> None:
        self._begun, self._at_begin, self._trainer_s = time.perf_counter(), self._decoding(), 0.0

    def add_trainer_time(self, seconds: float) -> None:
        """Add to the trainer's working seconds."""
        self._trainer_s += seconds

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._begun

    def idle_shares(self, capacity: int, requested: int) -> dict[str, float]:
        """Return the idle shares of the trainer, and of up to ``requested`` slots."""
        seconds, decoding = max(self.elapsed_s, 1e-9), self._decoding() - self._at_begin
        slots = max(min(capacity, requested), 1)
        return {
            "speed/generator_idle_share": max(1 - decoding / (slots * seconds), 0.0),
            "speed/trainer_idle_share": max(1 - self._trainer_s / seconds, 0.0),
        }


class SampledGroupStats:
    """The groups finished since the last step."""

    def __init__(self) -> None:
        self._rollouts: list[tuple[Reward, int, bool]] = []  # (reward, tokens, was cut)
        self._solved, self._dropped = Counter[str](), 0

    def add(
        self, rewards: Sequence[Reward], tokens: Sequence[int], finishes: Sequence[str], *, is_dropped: bool
    ) -> None:
        """Add a finished group."""
        cut = [finish == "length" for finish in finishes]
        self._rollouts += zip(rewards, tokens, cut, strict=True)
        correct = {reward.correct for reward in rewards if not reward.excluded}
        if correct:
            self._solved["some" if len(correct) == 2 else "all" if True in correct else "none"] += 1
            self._dropped += is_dropped

    def numbers(self) -> dict[str, float]:
        """Return the metrics; empty if no rollout could be judged."""
        judged = [reward for reward, _, _ in self._rollouts if not reward.excluded]
        groups, count = self._solved.total(), len(self._rollouts)
        if not judged:
            return {}
        return {
            "sampled/attempts": float(count),
            "sampled/groups": float(groups),
            "sampled/excluded": float(count - len(judged)),
            "sampled/pass_rate": sum(reward.correct for reward in judged) / len(judged),
            "sampled/reward": sum(reward.total for reward in judged) / len(judged),
            **{f"sampled/{name}": self._solved[name] / groups for name in ("none", "some", "all")},
            "sampled/dropped": self._dropped / groups,
            "length/sampled_mean": self.tokens / count,
            "length/sampled_max": float(max(tokens for _, tokens, _ in self._rollouts)),
            # reached the length penalty, or were cut
            "length/limited_share": sum(reward.length < 0 or cut for reward, _, cut in self._rollouts) / count,
            "length/cut_share": sum(cut for _, _, cut in self._rollouts) / count,
        }

    @property
    def tokens(self) -> int:
        return sum(tokens for _, tokens, _ in self._rollouts)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Pass@1: the mean over problems of the share of correct rollouts, with a 95 % interval."""

    pass_rate: float
    low: float
    high: float
    problems: int
    rollouts: int
    unjudged: int  # the verifier failed, or the prompt was refused
    mean_tokens: float

    @property
    def phrase(self) -> str:
        return (
            f"held-out pass@1 {self.pass_rate:.3f} ({self.low:.3f} to {self.high:.3f}), {self.problems} problems, "
            f"{self.rollouts} attempts of {self.mean_tokens:.0f} tokens"
        )


def summarise_evaluation(rollouts_by_problem: Sequence[Sequence[Rollout | None]]) -> EvaluationResult:
    """Return the figures; a broken format counts as wrong.

    Rollouts that the verifier failed on, and problems with a refused prompt (None), are left out.
    """
    rates: list[float] = []
    groups = [
        [rollout for rollout in group if rollout is not None] for group in rollouts_by_problem if None not in group
    ]
    failed = sum(len(group) for group in rollouts_by_problem if None in group)
    for group in groups:
        judged = [rollout for rollout in group if rollout.outcome is None or rollout.outcome in COUNTED_OUTCOMES]
        failed += len(group) - len(judged)
        if judged:
            rates.append(sum(rollout.outcome is Outcome.CORRECT for rollout in judged) / len(judged))
    estimate = mean_interval(rates, 0.0, 1.0)
    lengths = [rollout.tokens for group in groups for rollout in group]
    mean = statistics.fmean(lengths) if lengths else math.nan
    return EvaluationResult(estimate.mean, estimate.low, estimate.high, estimate.count, len(lengths), failed, mean)


class MetricsLogger:
    """Writes a run's metrics from step ``start`` on; ``total``, the last step, may change."""

    def __init__(self, folder: Path, log: JsonlLog, total: int, start: int, monitors: Sequence[Monitor] = ()) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=start)
        self._log, self.total, self._monitors = log, total, monitors
        self._begun = self.last_line_at = time.monotonic()

    def log_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a step's row, and print a line."""
        finite = {name: value for name, value in sorted(metrics.items()) if math.isfinite(value)}
        self._log.append({"step": step, **finite})
        for name, value in finite.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()
        for monitor in self._monitors:
            monitor.log(dict(finite), step=step)
        self.log_message(self._line(step, finite))

    def log_message(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)
        self.last_line_at = time.monotonic()

    def close(self) -> None:
        self._writer.close()
        for monitor in self._monitors:
            monitor.finish()

    def _line(self, step: int, metrics: Mapping[str, float]) -> str:
        def formatted(name: str, form: str = ".3f") -> str:
            return format(metrics[name], form) if name in metrics else "-"

        return (
            f"step {step}/{self.total}  {time.monotonic() - self._begun:.0f} s  "
            f"pass {formatted('sampled/pass_rate')}  reward {formatted('sampled/reward')}  "
            f"length {formatted('length/sampled_mean', '.0f')}  entropy {formatted('policy/entropy')}  "
            f"age {formatted('age/token_mean', '.2f')}  mismatch {formatted('policy/mismatch_mean', '.1e')}  "
            f"{formatted('speed/trained_tokens_s', '.0f')} tokens/s  "
            f"idle: generators {formatted('speed/generator_idle_share', '.0%')}, "
            f"trainer {formatted('speed/trainer_idle_share', '.0%')}"
        )


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """Return the rows of a run's metrics.jsonl."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def open_monitors(settings: MonitorSettings, name: str, out: Path, recipe: Mapping[str, Any]) -> Sequence[Monitor]:
    """Return the recipe's monitors, started; none if it names no project."""
    if settings.wandb is None:
        return []
    try:
        wandb = import_module("wandb")
    except ImportError as error:
        raise ConfigError(
            "monitor.wandb needs the package wandb, which is not installed; install it, or remove monitor.wandb from "
            "the recipe."
        ) from error
    digest = hashlib.blake2b(str(out.absolute()).encode(), digest_size=6).hexdigest()
    options: dict[str, Any] = {"config": dict(recipe), "resume": "allow", "id": f"{name}-{digest}", "dir": str(out)}
    wandb.init(project=settings.wandb, name=name, **options)
    return [wandb]


@dataclass(frozen=True, slots=True)
class TextEvaluation:
    """The mean over problems of a text token's log-probability in nats, with a 95 % interval."""

    answer_logprob: float
    low: float
    high: float
    problems: int
    rollouts: int
    endless: int  # thoughts without an end
    mean_tokens: float  # of what was generated and scored

    @property
    def phrase(self) -> str:
        return (
            f"held-out texts {self.answer_logprob:.3f} nats a token ({self.low:.3f} to {self.high:.3f}), "
            f"{self.problems} problems, {self.endless} of {self.rollouts} thoughts without an end"
        )


def text_samples(rollouts: Sequence[Rollout | None]) -> list[TrainingSample]:
    """Return a problem's finished chains, with the text after them."""
    from training.optimisation.packing import TrainingSample

    return [
        TrainingSample(
            rollout.completion.prompt_ids,
            (*rollout.completion.token_ids, *rollout.reference_ids),
            None,
            0.0,
            0.0,
            answer_tokens=len(rollout.reference_ids),
        )
        for rollout in rollouts
        if rollout is not None and rollout.reference_ids
    ]


def summarise_texts(
    rollouts_by_problem: Sequence[Sequence[Rollout | None]], logprobs: Sequence[Tensor]
) -> TextEvaluation:
    """Return the figures; ``logprobs`` [response] are in the order of `text_samples`."""
    scored, means = iter(logprobs), []
    for group in rollouts_by_problem:
        samples = zip(text_samples(group), scored, strict=False)
        if values := [float(scores[-sample.answer_tokens :].double().mean()) for sample, scores in samples]:
            means.append(statistics.fmean(values))
    estimate = mean_interval(means)
    rollouts = [rollout for group in rollouts_by_problem for rollout in group if rollout is not None]
    lengths = [rollout.tokens for rollout in rollouts]
    endless = sum(not rollout.reference_ids for rollout in rollouts)
    mean = statistics.fmean(lengths) if lengths else math.nan
    return TextEvaluation(estimate.mean, estimate.low, estimate.high, estimate.count, len(rollouts), endless, mean)
