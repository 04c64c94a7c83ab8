"""Settings of training on attempts that are stored."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class GeneralData(Settings):
    """Instruction data beside the traces of a cold start."""

    path: str = Field(
        description="A .jsonl or .parquet file, relative to the recipe's: a row has `messages` (role, content; the "
        "last is the answer), or `prompt` and `response`."
    )
    share: float = Field(0.1, gt=0, lt=1, description="Share of the sequences of each batch. 0.1 in the paper.")


class StoredSettings(Settings):
    """Training on attempts that are stored: at first on these alone, then beside those that the run samples."""

    runs: tuple[str, ...] = Field(
        (),
        description="Folders of curation runs and training runs, relative to the recipe's; where absent, the runs that "
        "the sets of `data` were made by. Attempts at problems that are not in `data` are left out.",
    )
    epochs: float = Field(
        1.0,
        ge=0,
        description="At first the run trains so often on each of them and samples nothing. 4 in the paper's cold "
        "start.",
    )
    only: bool = Field(
        False, description="The run ends after that, or after its `steps`, and never samples an attempt to train on."
    )
    share: float = Field(
        0.25, ge=0, lt=1, description="Share of the groups of each later batch that are stored ones. Not in the paper."
    )
    half_life: float | None = Field(
        None, gt=0, description="Steps after which that share is half as large; never where absent. Not in the paper."
    )
    max_distance: float | None = Field(
        None,
        gt=0,
        description="A stored attempt weighs nothing while the policy's log-probability of it is further than this "
        "from the reference's, in nats a token: it is no longer of the policy's kind. Needs an objective with a second "
        "pass (`soft`). Not in the paper.",
    )
    after_step: int = Field(
        0,
        ge=0,
        description="Attempts that a training run made before this step are left out: early thoughts are short. The "
        "paper leaves out early ones, and does not say which.",
    )
    per_problem: int | None = Field(
        None,
        ge=1,
        description="At most so many attempts a problem, chosen by the seed. The paper has a cap, no number.",
    )
    hardness: float = Field(
        0.0,
        ge=0,
        description="A problem is drawn in proportion to (1 - pass rate) ** hardness; 0 draws all alike. The paper "
        "draws problems with a low pass rate more often, and does not say how much.",
    )
    general: GeneralData | None = Field(
        None, description="Instruction data beside them, for the objective `sft`. 10 % in the paper."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.only and self.epochs == 0:
            raise ValueError("only = true with epochs = 0 would train on nothing; raise epochs")
        return self
