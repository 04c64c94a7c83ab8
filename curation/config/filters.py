"""Filters before any attempt (format, near duplicates, contamination), how answers are judged, and code's tests."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from curation.config.base import Settings, require_distinct
from curation.config.sources import Source
from curation.response_formats import ANY, MEANING, checked_format

ResponseFormat = Annotated[str, AfterValidator(checked_format)]
"""A setting that names a response format."""


class StatementSettings(Settings):
    """The format filter: which rules run, and on what."""

    disabled: tuple[str, ...] = ()
    """Rules that do not run, of `missing_figure`, `proof`, `multi_part`, `yes_no`, `debris`, `textual_answer`,
    `answer_in_statement` and `multiple_choice` (docs/explanation/format-filter.md)."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes to keep, all if empty (`wrong_language`)."""
    rules: tuple[str, ...] = ()
    """Rules of your own (`own_rule`), as `own.py:RULE` (docs/how-to/plug-ins.md)."""


RETRY_FACTOR = 4.0
"""Factor on a failed comparison's seconds: 2, 8, 32 seconds."""


WORKER_MB = 2048
"""Memory of one worker, MiB."""


class VerifySettings(Settings):
    """How answers are judged."""

    response_format: ResponseFormat = Field(
        ANY,
        description=f"How responses give their answers: {MEANING}. Other responses have no answer. Paper: `boxed`.",
    )
    judges: tuple[str, ...] = ()
    """Judges of your own, as `chem.py:FORMULA` (docs/how-to/plug-ins.md)."""
    limit_s: float = Field(2.0, gt=0)
    """Seconds for one comparison, then the worker is killed (`verifier_failed`); two later runs allow more."""

    def limits(self, tries: int) -> tuple[float, int]:
        """Return a comparison's seconds and MiB after ``tries`` failures."""
        return self.limit_s * RETRY_FACTOR**tries, WORKER_MB * 2**tries


class CodeSettings(Settings):
    """The code pipeline: solutions are run on tests, tests that they agree on are kept, missing ones are made."""

    time_s: ClassVar[float] = 4.0
    """CPU seconds per test, if the source gives none; paper: 4."""
    memory_mb: int = Field(300, ge=16)
    """MiB per test, if the source gives none; paper: 300."""
    min_tests: int = Field(5, ge=1)
    """Min tests of a problem (`too_few_tests`)."""
    make_tests: bool = True
    """Make missing tests."""
    languages: tuple[Literal["python", "cpp"], ...] = Field(("python", "cpp"), min_length=1)
    """Languages of the solutions; paper: both."""


class NearDedupSettings(Settings):
    """Near duplicates: the same problem in slightly other words."""

    enabled: bool = True
    """Drop each `near_duplicate`. Not in the paper."""
    threshold: float = Field(0.75, gt=0, le=1)
    """Lowest Jaccard similarity of the token bigrams of a `near_duplicate` and its kept row; their numbers and signs
    are always the same."""


class DecontaminationSettings(Settings):
    """Decontamination: problems too close to a benchmark are dropped. Without benchmarks it is skipped."""

    against: tuple[Source, ...] = Field((), strict=False)
    """Benchmarks, as tables of sources; of `columns` only `statement` is read."""
    benches: tuple[str, ...] = ()
    """Further benches: ready ones (`goldilocks evaluate list`), or files relative to the recipe."""
    methods: tuple[Literal["ngram", "words", "embedding"], ...] = Field(("ngram", "words"), min_length=1)
    """What is `contaminated`: `ngram` (13 shared tokens in a row, or a whole short problem), `words` (shared rare
    words), `embedding` (similar vectors of all-MiniLM-L6-v2, extra `embeddings`; recommended, as it finds
    paraphrases)."""
    templates: Literal["report", "drop"] = "report"
    """Whether to keep and count, or drop (`contaminated`), problems with a benchmark's words but other numbers."""

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        require_distinct((benchmark.name for benchmark in self.against), "benchmarks")
        if any(benchmark.domain == "code" for benchmark in self.against):
            raise ValueError("a benchmark is compared by its statements; leave out `code` and the kind `kattis`")
        return self
