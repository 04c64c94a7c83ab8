"""Who answers the problems."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings


class AttemptColumns(Settings):
    """Which column of a file of recorded attempts is what."""

    problem: str = Field("problem", description="Dotted path of the problem's text; its id is computed from it.")
    choices: str | None = Field(None, description="Path of the list of options, where the source has them apart too.")
    attempts: str | None = Field(
        None, description="Dotted path of the list of attempts; absent where each row is one attempt."
    )
    text: str | None = Field(None, description="Path of the response, inside the attempt.")
    answer: str | None = Field(None, description="Path of an already extracted final answer, inside the attempt.")
    label: str | None = Field(None, description="Path of a true/false label: compared with our verdicts, never used.")
    model: str | None = Field(None, description="Path of the name of the model that made the attempt.")


class RecordedPolicy(Settings):
    """Attempts made elsewhere, read from a file."""

    kind: Literal["recorded"] = Field(description="`recorded`: attempts of a file.")
    name: str = Field(pattern=r"^[^@\s]+@[^@\s]+$", description="`model@revision` that the attempts are filed under.")
    path: str = Field(description="File (.jsonl, .jsonl.gz, .jsonl.zst, .parquet), relative to the recipe's folder.")
    columns: AttemptColumns = Field(default_factory=AttemptColumns, description="The column map.")
    models: tuple[str, ...] | None = Field(None, description="Use only attempts of these models (`columns.model`).")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.columns.text is None and self.columns.answer is None:
            raise ValueError("columns: give `text`, `answer` or both")
        if self.models is not None and self.columns.model is None:
            raise ValueError("`models` needs `columns.model`")
        return self
