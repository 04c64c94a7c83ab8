"""Report why a run gets no group to train on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from curation.policies.excerpt import excerpt
from training.config import CollectorSettings
from training.rollouts.rollout_scheduler import GroupDecision
from training.rollouts.rollouts import Rollout

STALLED = "stalled.json"
"""Step and message of a stalled run."""

_SHOWN_FATES = 5
"""Max fates in a message."""

_ADVICE = {
    "generation failed": "look at the generators' log",
    "cut off": "raise `max_tokens`, or shorten what the prompt asks for",
    "verifier": "the verifier could not judge; look at the problems' references and tests",
    "format": "responses break the required format; look at the model's chat template, `prompt` and thinking tags",
    "correct": "the problems are too easy for this policy; `goldilocks refresh` their set, or give harder ones",
    "wrong": "the problems are too hard for this policy, or their references are wrong; give easier ones",
}
"""Advice by kind of fate."""


def stall_thresholds(collector: CollectorSettings) -> tuple[int, int]:
    """Return the numbers of untrainable attempts for a warning, and for the end."""
    warn = max(collector.n_async, 16 * collector.group_size)
    return warn, 4 * warn


class StallMonitor:
    """Counts fates of attempts since the last trainable group; warns once, then is stalled."""

    def __init__(self, thresholds: tuple[int, int], say: Callable[[str], None]) -> None:
        self._warn_after, self._stop_after = thresholds
        self._say, self._has_warned = say, False
        self._clear()

    @property
    def is_stalled(self) -> bool:
        return self._fates.total() >= self._stop_after

    def record_failure(self, problem: str, error: str) -> None:
        """Count a failed generation."""
        self._fates["generation failed"] += 1
        self._examples.setdefault("generation failed", f"problem {problem}: {excerpt(error)}")
        self._warn_if_due()

    def record_group(self, rollouts: Sequence[Rollout], decision: GroupDecision) -> None:
        """Count a group's rollouts, or reset if it is trainable."""
        if decision.drop_reason is None and None in decision.exclusion_reasons:
            self._clear()
            return
        self._groups[decision.drop_reason or "excluded"] += 1
        for rollout in rollouts:
            reward = rollout.reward
            if reward.excluded_by is not None:
                fate = f"verifier: {reward.excluded_by}"
            elif reward.correct:
                fate = "correct"
            elif rollout.completion.finish == "length":
                fate = "cut off"
            else:
                fate = f"format: {reward.format_error}" if reward.format_error is not None else "wrong"
            self._fates[fate] += 1
            if fate not in self._examples:
                text = excerpt(rollout.completion.text)
                self._examples[fate] = f"problem {rollout.problem}, {rollout.tokens:,} tokens: {text}"
        self._warn_if_due()

    def report(self) -> str:
        """Return counts by fate, and advice on the commonest."""
        if not self._fates:
            return "no attempt was made; all drawn problems may be retired or excluded."
        kinds, fates = Counter[str](), self._fates.most_common()
        for fate, number in fates:
            kinds[_kind(fate)] += number
        ((kind, count),) = kinds.most_common(1)
        commonest = next(fate for fate, _ in fates if _kind(fate) == kind)
        attempts = ", ".join(f"{fate} {number:,}" for fate, number in fates[:_SHOWN_FATES])
        groups = ", ".join(f"{reason} {number:,}" for reason, number in self._groups.most_common()) or "none finished"
        total = self._fates.total()
        return (
            f"{total:,} attempts without a group to train on. Attempts: {attempts}; groups: {groups}. Commonest "
            f"({100 * count / total:.0f} %): {commonest}: {_ADVICE[kind]}. One of them, {self._examples[commonest]}"
        )

    def _warn_if_due(self) -> None:
        if not self._has_warned and self._fates.total() >= self._warn_after:
            self._has_warned = True
            self._say(f"warning: nothing to learn from so far: {self.report()}")

    def _clear(self) -> None:
        self._fates, self._groups = Counter[str](), Counter[str]()
        self._examples: dict[str, str] = {}
        self._has_warned = False


def _kind(fate: str) -> str:
    return fate.partition(":")[0]
