"""Draw problems from pools, move problems between them, and change settings by stage.

Problems are active, deferred (too hard) or retired (too easy). With rollouts weighed by ``0.5 ** (age / HALF_LIFE)``, a
pass rate's posterior is Beta(1 + correct, 1 + wrong); a problem enters a pool that holds `CONFIDENCE` of it. A curve is
flat if a line through it gains little, at a slope below 2 standard errors (paper, section 5.2).

Invariant: each passive pool gets floor(k * share) of k draws, or one less.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from enum import StrEnum
from statistics import correlation, fmean, linear_regression
from typing import TYPE_CHECKING, Any

from training.config import CollectorSettings, RewardSettings

if TYPE_CHECKING:
    from training.optimisation.checkpoint import JsonlLog
    from training.recipe import TrainRecipe
    from training.rollouts.tasks import TrainingTask

BAND = (0.05, 0.875)
"""Pass rates of active problems: deferred below, retired above."""

CONFIDENCE = 0.8
"""Min probability to move a problem to another pool."""

HALF_LIFE = 50.0
"""Steps after which a rollout counts half."""

MIN_ROLLOUTS = 4.0
"""Weighted rollouts before a problem may move."""

PLATEAU_WINDOW, PATIENCE = 20, 20
"""Steps of a flat curve, and until more deferred problems are added."""

REWARD_MIN_GAIN, LENGTH_MIN_GAIN = 0.02, 0.05
"""Max gains of flat rewards, and of flat lengths as shares of the mean."""

LIMITED_SHARE = 0.05
"""Min share of penalised or cut responses at a binding limit."""

HARDER_SHARE = 0.25
"""Deferred problems added on a reward plateau, per active one."""


class Pool(StrEnum):
    """A problem's pool."""

    ACTIVE = "active"
    DEFERRED = "deferred"
    RETIRED = "retired"


PASSIVE_SHARES = {Pool.RETIRED: 0.02, Pool.DEFERRED: 0.05}
"""Share of groups from passive pools."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a setting or of a problem's pool, and why."""

    subject: str
    old: Any
    new: Any
    reason: str


@dataclass(frozen=True, slots=True)
class PassWeights:
    """Weights of a problem's correct and wrong rollouts at a step."""

    correct: float = 0.0
    wrong: float = 0.0
    step: int = 0

    def at(self, step: int) -> PassWeights:
        """Return the weights at a later step."""
        kept = 0.5 ** (max(0, step - self.step) / HALF_LIFE)
        return PassWeights(kept * self.correct, kept * self.wrong, step)

    @property
    def count(self) -> float:
        return self.correct + self.wrong

    @property
    def pass_rate(self) -> float:
        """Return the posterior's mean."""
        return (1 + self.correct) / (2 + self.correct + self.wrong)


@dataclass(frozen=True, slots=True)
class StepMeans:
    """Means of a step's samples; ``length`` is in tokens, ``limited`` as in `LIMITED_SHARE`."""

    reward: float
    length: float
    pass_rate: float = 1.0
    limited: float = 1.0


def pool_gate(problem: str, pool: Pool, now: PassWeights) -> Change | None:
    """Return the problem's change of pool, if any."""
    if now.count < MIN_ROLLOUTS:
        return None
    import mpmath

    edges = (0, *BAND, 1)
    for new, low, high in zip((Pool.DEFERRED, Pool.ACTIVE, Pool.RETIRED), edges, edges[1:], strict=False):
        mass = float(mpmath.betainc(1 + now.correct, 1 + now.wrong, low, high, regularized=True))
        if new is not pool and mass >= CONFIDENCE:
            reason = f"pass rate {now.pass_rate:.2f} on {now.count:.1f} attempts, {mass:.0%} sure that it is {new}"
            return Change(problem, pool, new, reason)
    return None


def flat_gain(values: Sequence[float], min_gain: float) -> float | None:
    """Return the gain over `PLATEAU_WINDOW` if it is flat."""
    window, steps = values[-PLATEAU_WINDOW:], range(PLATEAU_WINDOW)
    if len(window) < PLATEAU_WINDOW:
        return None
    slope, _ = linear_regression(steps, window)
    gain = slope * (PLATEAU_WINDOW - 1)
    # slope / its standard error = r sqrt((n - 2) / (1 - r^2)), which is 2 at r^2 = 4 / (n + 2)
    is_sure = slope != 0 and correlation(steps, window) ** 2 >= 4 / (PLATEAU_WINDOW + 2)
    return gain if abs(gain) < min_gain and not is_sure else None


def reward_plateau(curve: Sequence[StepMeans]) -> str | None:
    gain = flat_gain([step.reward for step in curve], REWARD_MIN_GAIN)
    if gain is None or fmean(step.pass_rate for step in curve[-PLATEAU_WINDOW:]) <= BAND[0]:
        return None
    return f"reward flat: {gain:+.3f} over {PLATEAU_WINDOW} steps"


def _length_binds(curve: Sequence[StepMeans]) -> bool:
    return fmean(step.limited for step in curve[-PLATEAU_WINDOW:]) >= LIMITED_SHARE


def length_plateau(curve: Sequence[StepMeans]) -> str | None:
    """Describe a plateau of lengths at a binding limit, if any."""
    mean = fmean(step.length for step in curve[-PLATEAU_WINDOW:])
    if not _length_binds(curve) or flat_gain([step.length for step in curve], LENGTH_MIN_GAIN * mean) is None:
        return None
    return f"length flat at {mean:.0f} over {PLATEAU_WINDOW} steps"


class CurriculumController:
    """Pools, draws and stages of a run; without a curriculum, pools never change.

    A procedural problem with fewer than `MIN_ROLLOUTS` moves with its level.
    """

    def __init__(self, recipe: TrainRecipe, tasks: Mapping[str, TrainingTask]) -> None:
        self.pools = {name: Pool.DEFERRED if task.deferred else Pool.ACTIVE for name, task in tasks.items()}
        self._recipe, self._stages = recipe, recipe.stages
        self._levels = {name: task.level for name, task in tasks.items() if task.level and not task.deferred}
        self._drawn = dict.fromkeys(Pool, 0)
        self._weights: dict[str, PassWeights] = {}
        self._judged: set[str] = set()
        self._curve: list[StepMeans] = []
        self._added_at: int | None = None
        self._members: Mapping[Pool, tuple[str, ...]] | None = None
        self._stage = self._stage_began = 0
        if self._stages:
            self.begin_stage(0, 0)

    @property
    def stage(self) -> tuple[int, int]:
        """Return the current stage, from 0, and the last step before it."""
        return self._stage, self._stage_began

    @property
    def collector(self) -> CollectorSettings:
        return self._recipe.collectors[: self._stage + 1][-1]

    @property
    def rewards(self) -> RewardSettings:
        rewards = self._recipe.rewards
        lengths = [stage.lengths for stage in self._stages[: self._stage + 1] if stage.lengths is not None]
        if not lengths:
            return rewards
        cache = rewards.effective_length_cache
        return rewards.model_copy(update={"max_length": lengths[-1] + cache, "length_cache": cache})

    def pool_sizes(self) -> dict[str, int]:
        counts = Counter(self.pools.values())
        return {pool.value: counts[pool] for pool in Pool}

    def draw_problem(self) -> str:
        """Return the next problem's id."""
        if self._members is None:
            self._members = {pool: tuple(sorted(self._in(pool))) for pool in Pool}
        number = sum(self._drawn.values()) + 1
        due = [pool for pool, share in PASSIVE_SHARES.items() if int(number * share) > self._drawn[pool]]
        for pool in (*due, Pool.ACTIVE, Pool.DEFERRED, Pool.RETIRED):
            if members := self._members[pool]:
                turn, position = divmod(self._drawn[pool], len(members))
                self._drawn[pool] += 1
                return str(shuffled(members, f"{self._recipe.seed}:{pool}:{turn}")[position])
        raise ValueError("no problem in any pool")

    def record_group(self, problem: str, step: int, correct: int, judged: int) -> None:
        """Record a group's judged and correct rollouts."""
        if self._recipe.curriculum is None or not judged:
            return
        before = self._weights_of(problem, step)
        self._weights[problem] = PassWeights(before.correct + correct, before.wrong + judged - correct, step)
        self._judged.add(problem)

    def after_step(
        self, step: int, means: StepMeans, *, may_end_stage: bool = True
    ) -> tuple[list[Change], list[Change]]:
        """Apply and return the changes of pools and settings after a step."""
        if self._recipe.curriculum is None:
            return [], []
        self._curve = [*self._curve, means][-PLATEAU_WINDOW:]
        moves = self._due_moves(step)
        self._move((move.subject, move.new) for move in moves)
        self._judged.clear()
        changes = self._next_stage(step) if may_end_stage else []
        return moves, changes + self._add_deferred(step)

    def follow(
        self, step: int, metrics: Mapping[str, float], log: JsonlLog, *, may_end_stage: bool = True
    ) -> list[Change]:
        """Call `after_step` if the step sampled; log changes, and return those of settings."""
        if "sampled/reward" not in metrics:
            return []
        names = ("sampled/reward", "length/sampled_mean", "sampled/pass_rate", "length/limited_share")
        means = StepMeans(*(metrics[name] for name in names))
        moves, changes = self.after_step(step, means, may_end_stage=may_end_stage)
        for change in (*moves, *changes):
            log.append({"step": step, **asdict(change)})
        return changes

    def begin_stage(self, number: int, began: int, reason: str = "") -> list[Change]:
        """Apply a stage's settings after step ``began``; return the changes."""
        before, self._stage, self._stage_began = self._sizes(), number, began
        sizes = [Change(name, before[name], new, reason) for name, new in self._sizes().items() if new != before[name]]
        hard = self._in(Pool.DEFERRED) if self._stages[number].hard else []
        return [Change("stage", number, number + 1, reason), *sizes, *self._activate(hard, reason)]

    def _sizes(self) -> dict[str, int]:
        rewards, collector = self.rewards, self.collector
        length = rewards.max_length - rewards.effective_length_cache
        return {"length": length, "n_batch": collector.n_batch, "n_async": collector.n_async}

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "pools": {problem: pool.value for problem, pool in self.pools.items() if pool is not Pool.ACTIVE},
            "drawn": {pool.value: count for pool, count in self._drawn.items()},
            "weights": {name: list(astuple(row)) for name, row in self._weights.items()},
            "judged": sorted(self._judged),
            "curve": [list(astuple(row)) for row in self._curve],
            "added_at": self._added_at,
            "stage": [self._stage, self._stage_began],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a `state`, without removed problems."""
        self.pools = {problem: Pool(state["pools"].get(problem, Pool.ACTIVE)) for problem in self.pools}
        self._drawn = {Pool(pool): count for pool, count in state["drawn"].items()}
        self._weights = {problem: PassWeights(*row) for problem, row in state["weights"].items()}
        self._judged = set(state["judged"]) & set(self.pools)
        self._curve = [StepMeans(*row) for row in state["curve"]]
        self._added_at, self._members = state["added_at"], None
        self._stage, self._stage_began = state["stage"]

    def _next_stage(self, step: int) -> list[Change]:
        """Begin the next stage if the current one ends; a longer limit waits until it binds."""
        if self._stage + 1 >= len(self._stages):
            return []
        current, following = self._stages[self._stage : self._stage + 2]
        taken = step - self._stage_began
        curve = self._curve[-taken:]
        grows = following.lengths is not None and following.lengths > self._sizes()["length"]
        reason = None
        if current.steps is not None and taken >= current.steps:
            reason = f"{taken} steps"
        elif current.until != "steps" and curve and (not grows or _length_binds(curve)):
            reason = reward_plateau(curve) if current.until == "reward" else length_plateau(curve)
        return [] if reason is None else self.begin_stage(self._stage + 1, step, reason)

    def _due_moves(self, step: int) -> list[Change]:
        """Return the moves of judged problems and levels."""
        own_moves = [pool_gate(name, self.pools[name], self._weights_of(name, step)) for name in sorted(self._judged)]
        moves = [move for move in own_moves if move is not None]
        for level in sorted({self._levels[name] for name in self._judged if name in self._levels}):
            own = {name: self._weights_of(name, step) for name in self.pools if self._levels.get(name) == level}
            pooled = PassWeights(
                sum(weighed.correct for weighed in own.values()), sum(weighed.wrong for weighed in own.values()), step
            )
            gates = {pool: pool_gate(level, pool, pooled) for pool in Pool}
            for name, weights in own.items():
                change = gates[self.pools[name]]
                if change is not None and weights.count < MIN_ROLLOUTS:
                    moves.append(replace(change, subject=name, reason=f"{level}: {change.reason}"))
        return moves

    def _add_deferred(self, step: int) -> list[Change]:
        has_waited = self._added_at is None or step - self._added_at >= PLATEAU_WINDOW + PATIENCE
        reason = reward_plateau(self._curve) if has_waited else None
        if reason is None:
            return []
        deferred = self._in(Pool.DEFERRED)
        deferred.sort(key=lambda problem: (-self._weights_of(problem, step).pass_rate, problem))
        count = max(1, round(len(self._in(Pool.ACTIVE)) * HARDER_SHARE))
        changes = self._activate(deferred[:count], reason)
        self._added_at = step if changes else self._added_at
        return changes

    def _activate(self, problems: Sequence[str], reason: str) -> list[Change]:
        active = len(self._in(Pool.ACTIVE))
        self._move((problem, Pool.ACTIVE) for problem in problems)
        return [Change("active", active, active + len(problems), reason)] if problems else []

    def _in(self, pool: Pool) -> list[str]:
        return [problem for problem, own in self.pools.items() if own is pool]

    def _weights_of(self, problem: str, step: int) -> PassWeights:
        return self._weights.get(problem, PassWeights()).at(step)

    def _move(self, pools: Iterable[tuple[str, Pool]]) -> None:
        self.pools.update(pools)
        self._members = None


@functools.lru_cache(maxsize=8)
def shuffled(names: Sequence[Any], seed: str) -> list[Any]:
    """Return hashable names in an order by the seed alone."""
    return sorted(names, key=lambda name: hashlib.blake2b(f"{seed}:{name}".encode()).digest())
