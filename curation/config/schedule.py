"""When a recipe runs by itself, what follows on what, and what a run is taken to cost where nothing can be measured."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings

CRON_FIELDS = 5


class ScheduleSettings(Settings):
    """What `goldilocks serve` does with the recipe."""

    cron: str | None = Field(
        None,
        description="When the recipe runs, in UTC: `0 3 * * *` is 3 at night.",
    )
    train: str | None = Field(
        None,
        description="Training recipe, relative to this one: each new set trains a stage, whose checkpoints judge "
        "the set again.",
    )
    rounds: int | None = Field(
        None, ge=1, description="Stages of training that follow on each other; without end if missing."
    )
    gpus: int = Field(1, ge=1, description="Runs that may hold GPUs at once.")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.cron is not None and len(self.cron.split()) != CRON_FIELDS:
            raise ValueError(f"cron = {self.cron!r} has not {CRON_FIELDS} fields; write `0 3 * * *` for 3 at night")
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
        description="Mean tokens of a prompt, stage by stage, for `price_in`.",
    )
    attempts_share: tuple[float, ...] = Field(
        (1.0,),
        min_length=1,
        strict=False,
        description="Share of a band's attempts that is made with early stopping, stage by stage.",
    )
