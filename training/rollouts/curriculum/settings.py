"""Settings of the curriculum. The paper moves these by hand and prints few of the numbers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class PoolSettings(Settings):
    """Which pool a problem belongs to."""

    min_pass_rate: float = Field(
        0.05, ge=0, lt=1, description="Below: deferred, too hard for now. Not in the paper; 1 of 16 is 0.06."
    )
    max_pass_rate: float = Field(
        0.875, gt=0, le=1, description="Above: retired, too easy by now. Not in the paper; 14 of 16 here."
    )
    confidence: float = Field(
        0.8,
        gt=0.5,
        lt=1,
        description="Probability that the pass rate lies outside the band before a problem leaves the active pool, "
        "and inside before it comes back. Not in the paper.",
    )
    half_life: float = Field(
        50.0, gt=0, description="Training steps after which a rollout counts half. Not in the paper."
    )
    min_effective_rollouts: float = Field(
        4.0, gt=0, description="Weighted rollouts below which a problem stays where it is. Not in the paper."
    )
    probe_share: float = Field(
        0.02, ge=0, lt=1, description="Share of a batch's groups drawn from the retired. Not in the paper."
    )
    retry_share: float = Field(
        0.05, ge=0, lt=1, description="Share of a batch's groups drawn from the deferred. Not in the paper."
    )

    @model_validator(mode="after")
    def _band(self) -> Self:
        if self.min_pass_rate >= self.max_pass_rate:
            raise ValueError(
                f"impossible band: min_pass_rate = {self.min_pass_rate} is not below max_pass_rate = "
                f"{self.max_pass_rate}"
            )
        if self.probe_share + self.retry_share > 0.5:
            raise ValueError(
                f"probe_share + retry_share = {self.probe_share + self.retry_share} would leave less than half of "
                "a batch to the active problems"
            )
        return self


class PlateauSettings(Settings):
    """When a curve counts as flat."""

    window: int = Field(20, ge=4, description="Steps looked at. Not in the paper.")
    min_gain: float = Field(
        0.02, ge=0, description="Gain over the window below which the curve is flat. Not in the paper."
    )
    patience: int = Field(
        20, ge=0, description="Steps after a change in which no further one of its kind is made. Not in the paper."
    )


class DisputeSettings(Settings):
    """When training sets a problem aside because its label seems wrong."""

    enabled: bool = Field(
        False,
        description="Problems leave training where another answer rises over the versions and the reference does not; "
        "they and the evidence stand in `disputed.jsonl`. Not in the paper.",
    )
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="Probability with which that must be so. Not in the paper."
    )
    min_rollouts: int = Field(
        16, ge=2, description="Judged rollouts of each of the two halves, the older and the newer. Not in the paper."
    )
    min_share: float = Field(
        0.5, gt=0, le=1, description="Least share of the newer rollouts that the other answer has. Not in the paper."
    )


class StageSettings(Settings):
    """One stage of a run. What it does not name stays as the stage before left it."""

    until: Literal["steps", "reward", "length"] = Field(
        "steps",
        description="`reward`, `length`: it ends when that curve, since its begin, is flat; `steps`: after `steps`. "
        "The last stage ends with the run. By eye in the paper.",
    )
    steps: int | None = Field(None, ge=1, description="It ends after so many steps at the latest. Not in the paper.")
    lengths: int | None = Field(
        None, ge=1, description="Un-penalised length l_max - l_cache, in tokens. Paper: 16k, 24k, 32k."
    )
    n_batch: int | None = Field(
        None, ge=1, description="Rollouts between two updates, in one optimiser step. Paper: 8k, 4k, 2k."
    )
    n_async: int | None = Field(None, ge=1, description="Rollouts generated at once. Lowered with memory in the paper.")
    eps_high: float | None = Field(
        None, gt=0, description="Upper clip, of an objective that has one. Paper: .26 to .28, .3 after a cold start."
    )
    hard: bool = Field(
        False, description="At its begin all deferred problems come in, as the paper adds data filtered out earlier."
    )

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.n_batch is not None and self.n_async is not None and self.n_async > 2 * self.n_batch:
            raise ValueError(
                f"a stage with n_async = {self.n_async} and n_batch = {self.n_batch}: the paper saw training suffer "
                "where the first is more than twice the second; lower n_async"
            )
        return self


class GaussianDraw(Settings):
    """Active problems by a normal density of their pass rate, whose mean falls (Nemotron 3 Nano, 3.2.2)."""

    kind: Literal["gaussian"] = Field(description="`gaussian`: by a normal density of the pass rate.")
    mean: tuple[float, float] = Field(
        (0.8, 0.3), description="Mean pass rate at the run's begin and at its end. Not in the paper."
    )
    spread: float = Field(0.15, gt=0, description="Standard deviation of the pass rate. Not in the paper.")
    per_domain: bool = Field(
        True,
        description="Draw within each domain (math, code) and mix the domains by their numbers of active problems, as "
        "Nemotron does; else a domain whose pass rates lie near the mean comes first.",
    )


class ThompsonDraw(Settings):
    """A draw from each problem's posterior; the nearest to 1/2 first."""

    kind: Literal["thompson"] = Field(description="`thompson`: what may be of middling difficulty, first.")


class UniformDraw(Settings):
    """All active problems alike, in turns."""

    kind: Literal["uniform"] = Field("uniform", description="`uniform`: each once in a turn.")


class CurriculumSettings(Settings):
    """What changes while training goes on, and when."""

    stages: tuple[StageSettings, ...] = Field(
        (),
        strict=False,
        description="Stages in order, each a table; then `length_schedule` is not looked at.",
    )
    carry: str | None = Field(
        None,
        description="Folder of an earlier training run, relative to the recipe's: pools, pass rates, lengths and "
        "eps_high go on from where it ended. They start anew where absent.",
    )
    from_set: bool = Field(
        False,
        description="Pools start from the pass rates that the curated set tells, as attempts of step 0. Not in the "
        "paper.",
    )
    draw: UniformDraw | GaussianDraw | ThompsonDraw = Field(
        default_factory=UniformDraw,
        discriminator="kind",
        description="Which active problem comes next.",
    )
    kv_cache_mb: int | None = Field(
        None,
        gt=0,
        description="Room of a generator's KV cache, in MiB: where sequences of the mean length no longer fit, n_async "
        "and n_batch get smaller. Not looked at where absent. The paper lowers them as lengths grow.",
    )
    pools: PoolSettings = Field(default_factory=PoolSettings, description="Pools by pass rate.")
    disputes: DisputeSettings = Field(
        default_factory=DisputeSettings, description="Labels that training speaks against are set aside."
    )
    reward_plateau: PlateauSettings = Field(
        default_factory=PlateauSettings, description="Flat reward: harder problems come in, solved ones retire."
    )
    length_plateau: PlateauSettings = Field(
        default_factory=lambda: PlateauSettings(min_gain=0.05),
        description="Flat length (gain as a share of the mean): the un-penalised length goes up.",
    )
    length_schedule: tuple[int, ...] = Field(
        (16_384, 24_576, 32_768),
        min_length=1,
        description="Un-penalised lengths l_max - l_cache, in tokens, one after the other. Paper: 16k, 24k, 32k.",
    )
    harder_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="On a reward plateau, deferred problems brought in, as a share of the active ones. Not in the "
        "paper.",
    )
    adapt_eps_high: bool = Field(False, description="Adjust eps_high to keep entropy steady. By hand in the paper.")
    eps_high_range: tuple[float, float] = Field((0.26, 0.28), description="Range of eps_high. Paper: 0.26 to 0.28.")
    eps_high_step: float = Field(0.005, gt=0, description="One adjustment of eps_high. Not in the paper.")
    entropy_tolerance: float = Field(
        0.1, gt=0, lt=1, description="Relative departure of the entropy that is borne. Not in the paper."
    )

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if list(self.length_schedule) != sorted(set(self.length_schedule)):
            raise ValueError(f"length_schedule = {list(self.length_schedule)} must rise")
        if any(stage.until == "steps" and stage.steps is None for stage in self.stages[:-1]):
            raise ValueError('a stage before the last never ends; give it steps, or until = "reward" or "length"')
        low, high = self.eps_high_range
        if not 0 < low <= high:
            raise ValueError(f"eps_high_range = {[low, high]} must be positive and rising")
        return self
