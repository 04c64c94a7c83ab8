"""Settings of training on attempts that are stored."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class StoredSettings(Settings):
    """Training on attempts that are stored: at first on these alone, then beside those that the run samples."""

    runs: tuple[str, ...] = Field(
        (),
        description="Folders of curation runs and training runs, relative to the recipe's; if missing, the runs that "
        "the sets of `data` were made by. Attempts at problems that are not in `data` are left out.",
    )
    epochs: float = Field(
        1.0,
        ge=0,
        description="How often the run first trains on each of them, without sampling. Paper: 4 in its cold start.",
    )
    only: bool = Field(
        False, description="The run ends after that, or after its `steps`: it never samples to train on."
    )
    share: float = Field(0.25, ge=0, lt=1, description="Share of the groups of each later batch that are stored ones.")
    half_life: float | None = Field(
        None, gt=0, description="Steps after which that share is half as large; never if missing."
    )
    max_distance: float | None = Field(
        None,
        gt=0,
        description="A stored attempt weighs nothing while the policy's log-probability of it is further than this "
        "from the reference's, in nats a token. Needs an objective with a second pass (`soft`).",
    )
    after_step: int = Field(
        0,
        ge=0,
        description="Attempts that a training run made before this step are left out, as the paper does with early "
        "ones: early thoughts are short.",
    )
    per_problem: int | None = Field(
        None, ge=1, description="Most attempts a problem, chosen by the seed; all if missing. The paper has a cap."
    )
    hardness: float = Field(
        0.0,
        ge=0,
        description="A problem is drawn in proportion to (1 - pass rate) ** hardness; 0 draws all alike. The paper "
        "draws problems with a low pass rate more often.",
    )
    general: str | None = Field(
        None,
        description="For the objective `sft`: a .jsonl or .parquet file of instruction data, relative to the recipe's, "
        "for 10 % of each batch (paper: 10 %). A row has `messages` (role, content; the last is the answer), or "
        "`prompt` and `response`.",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.only and self.epochs == 0:
            raise ValueError("only = true with epochs = 0 would train on nothing; raise epochs")
        return self
