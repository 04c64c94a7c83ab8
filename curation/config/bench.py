"""A benchmark: its problems' sources, number of attempts, and decoding.

It is taken whole, without filters and bands.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config.base import Settings
from curation.config.filters import CodeSettings, VerifySettings
from curation.config.policies import Decoding, ModelName, NamedModels
from curation.config.sources import Source


class BenchWindow(Settings):
    """Rows of a period by their date: problems newer than a model's training data."""

    column: str
    """Path of the date, one of `columns.meta`; it begins as 2025-01-31."""
    since: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """First day, as 2024-08-01; empty: no bound."""
    until: str = Field("", pattern=r"^(\d{4}-\d{2}-\d{2})?$")
    """First day after it; empty: no bound."""


class BenchChoices(Settings):
    """Multiple choice with options in columns, which are shuffled by the seed; the answer is a letter."""

    right: str
    """Path of the right option, one of `columns.meta`."""
    wrong: tuple[str, ...] = Field(min_length=1)
    """Paths of the wrong options, of `columns.meta` too."""


class Bench(NamedModels):
    """A benchmark."""

    name: str = Field("bench", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """Name of the benchmark; its file's if missing."""
    description: str = ""
    """What it asks, and its authors."""
    note: str = ""
    """How to get its rows if they cannot be fetched; shown in errors."""
    sources: tuple[Source, ...] = Field(min_length=1, strict=False)
    """Where its rows come from."""
    attempts: int = Field(16, ge=1)
    """Attempts a problem. 64 for AIME and 16 for LiveCodeBench in the paper."""
    k: tuple[int, ...] = ()
    """The k of pass@k and maj@k, which are shown after pass@1; all attempts if empty."""
    decoding: Decoding = Decoding()
    """How a live policy draws tokens here, in place of its own decoding."""
    verify: VerifySettings = VerifySettings()
    """How answers are judged."""
    code: CodeSettings = CodeSettings()
    """Limits of programs."""
    language: Literal["python", "cpp"] = "python"
    """Language of the programs."""
    window: BenchWindow | None = None
    """Only the rows of a period."""
    choices: BenchChoices | None = None
    """Columns of the options."""
    consistency: bool = True
    """Report the share of attempts with problem, thoughts and answer in one language."""
    model: ModelName | None = None
    """The model that is asked if the command names none."""
    seed: int = Field(0, ge=0)
    """Seed of the options' order."""
    workers: int | None = Field(None, ge=1)
    """Verifier processes; one per core if missing."""

    @property
    def asked(self) -> dict[str, str]:
        """Return the model's name by setting."""
        return {"model": self.model} if self.model is not None else {}

    @property
    def domain(self) -> str:
        """Return the domain of its problems."""
        return self.sources[0].domain

    @property
    def all_k(self) -> tuple[int, ...]:
        """Return the figures' k, ascending, without 1."""
        return tuple(sorted({k for k in self.k or (self.attempts,) if k > 1}))

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if any(not 1 <= k <= self.attempts for k in self.k):
            raise ValueError(f"k = {list(self.k)}: each must be between 1 and attempts = {self.attempts}")
        if len({source.domain for source in self.sources}) > 1:
            raise ValueError("all sources of a benchmark must be of one domain")
        paths = [self.window.column] if self.window is not None else []
        paths += [self.choices.right, *self.choices.wrong] if self.choices is not None else []
        for source in self.sources:
            missing = [path for path in paths if path not in source.columns.meta]
            if missing:
                raise ValueError(f"source {source.name}: {missing[0]!r} is not kept; add it to `columns.meta`")
            on_hub = source.kind == "dataset" and not source.path.startswith((".", "/", "~"))
            if on_hub and source.revision is None:  # it could change
                raise ValueError(
                    f"source {source.name}: a data set of the hub needs its commit: set `revision` (a folder's path "
                    "begins with `./`)"
                )
        return self
