"""When a recipe runs by itself, what follows on what, and what a run is taken to cost where nothing can be measured."""

from __future__ import annotations

from typing import Self
from zoneinfo import available_timezones

from pydantic import Field, model_validator

from curation.config.base import Settings

CRON_FIELDS = 5


class ScheduleSettings(Settings):
    """What `goldilocks serve` does with the recipe."""

    cron: str | None = Field(
        None, description="When the recipe runs, as minute, hour, day, month and weekday: `0 3 * * *` is 3 at night."
    )
    timezone: str = Field("UTC", description="Time zone of `cron`, as in `Europe/Paris`.")
    train: str | None = Field(
        None,
        description="Recipe of the trainer, relative to this recipe: a new curated set starts its next stage, whose "
        "checkpoints judge the set again. Nothing is trained if missing.",
    )
    rounds: int | None = Field(
        None, ge=1, description="Stages of training that follow on each other by themselves; without end if missing."
    )
    gpus: int = Field(
        1, ge=1, description="Runs that may hold GPUs at once. 1: no two stages ever share the machine's GPUs."
    )

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.cron is not None and len(self.cron.split()) != CRON_FIELDS:
            raise ValueError(f"cron = {self.cron!r} has not {CRON_FIELDS} fields; write `0 3 * * *` for 3 at night")
        if self.timezone not in available_timezones():
            raise ValueError(f"timezone = {self.timezone!r} is not known; write it as in `Europe/Paris`")
        return self


class StatedCosts(Settings):
    """What a run is taken to cost if no pilot can be run. Every number is an assumption of the recipe's author."""

    problems: int = Field(ge=1, description="Problems that the filters will keep.")
    gpus: int = Field(8, ge=1, description="GPUs that sample side by side.")
    tokens_per_s: tuple[float, ...] = Field(
        min_length=1, strict=False, description="Tokens per second of one GPU, stage by stage."
    )
    tokens_per_attempt: tuple[float, ...] = Field(
        min_length=1, strict=False, description="Mean tokens of an attempt, stage by stage."
    )
    prompt_tokens: tuple[float, ...] = Field(
        (0.0,),
        min_length=1,
        strict=False,
        description="Mean tokens of a prompt, stage by stage; they count where the policy states `price_in`.",
    )
    attempts_share: tuple[float, ...] = Field(
        (1.0,),
        min_length=1,
        strict=False,
        description="Share of a band's attempts that sampling makes with early stopping, stage by stage.",
    )
