"""A recipe and its stages, one pydantic model each. Every field is described once, here, with its unit and source.

A recipe is a TOML file. An unknown key, a wrong type or a band that no problem could pass is refused before
anything runs. Numbers that the Magistral paper does not print are marked "not in the paper".
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """What all recipe tables share: no unknown keys, no silent casts, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def digest(self) -> str:
        """A short hash of the settings; equal settings have equal digests in every process."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Pick(Settings):
    """Where one column comes from, when a plain dotted path does not say enough."""

    path: str | None = Field(None, description="Dotted path into the row: `meta.level`, `messages.0.content`.")
    value: str | None = Field(None, description="A constant instead of a path.")
    take: Literal["all", "hash", "boxed"] = Field(
        "all",
        description="`hash`: what stands behind the last `####` (GSM8K); `boxed`: inside the last \\boxed{}.",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.value is None):
            raise ValueError("give either `path` or `value`")
        return self


Column = Annotated[str | Pick, Field(union_mode="left_to_right")]


class ProblemColumns(Settings):
    """Which column of the source is what."""

    statement: Column = Field("problem", description="The problem's text.")
    answer: Column | None = Field(None, description="The reference answer.")
    choices: Column | None = Field(None, description="A list of options, where they are not in the statement.")
    solution: Column | None = Field(None, description="A worked solution.")
    lang: Column | None = Field(None, description="ISO 639-1 code; `en` where absent.")
    meta: tuple[str, ...] = Field((), description="Dotted paths kept as they are in the `meta` column.")


class Source(Settings):
    """One place that rows come from."""

    name: str = Field(pattern=r"^[A-Za-z0-9._/-]+$", description="The source's name in funnels, ids and cards.")
    kind: Literal["jsonl", "parquet", "csv", "dataset"] = Field(
        description="`jsonl` (also .gz, .zst), `parquet`, `csv`, or `dataset` (Hugging Face: hub name or folder)."
    )
    path: str = Field(description="File, glob, folder or hub name; relative to the recipe's folder.")
    subset: str | None = Field(None, description="Configuration name of a Hugging Face data set.")
    split: str = Field("train", description="Split of a Hugging Face data set.")
    revision: str | None = Field(None, description="Commit of a hub data set; pin it for a run that can be repeated.")
    domain: Literal["math", "code"] = Field("math", description="Which verifier judges its attempts.")
    license: str = Field("unknown", description="Licence of the source as its publisher states it.")
    url: str | None = Field(None, description="Where the source is published; shown on the card.")
    limit: int | None = Field(None, ge=1, description="Read at most so many rows, from the front.")
    weight: float = Field(
        1.0, gt=0, description="Mixing weight: the source's relative share where `export.size` bites."
    )
    columns: ProblemColumns = Field(default_factory=ProblemColumns, description="The column map.")


class StatementSettings(Settings):
    """The format filter: which rules run, and on what."""

    disabled: tuple[str, ...] = Field(
        (), description="Names of rules that do not run: those of `statements.RULES`, and `choices` for the rewriting."
    )
    languages: tuple[str, ...] = Field(
        (), description="ISO 639-1 codes that are kept; empty means every language. A row without one is kept."
    )
    min_letters: int = Field(
        8,
        ge=1,
        description="Fewest letters, digits and signs that make a statement; spaces do not count, Chinese characters "
        "count double.",
    )
    clean: bool = Field(
        True, description="Remove LaTeX and HTML debris from statement and answer before any rule looks at them."
    )


class VerifySettings(Settings):
    """How answers are judged."""

    engine: Literal["goldilocks", "math-verify"] = Field(
        "goldilocks", description="Whose comparison counts: our own, or Math-Verify's, for comparison."
    )
    limit_s: float = Field(2.0, gt=0, description="Seconds for one comparison; then the worker is killed.")
    memory_mb: int = Field(2048, ge=256, description="Memory of one worker, MiB.")


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


class Band(Settings):
    """Which pass rates are neither too easy nor too hard, and when a label is not believed.

    The paper prints none of these numbers: it removes problems "never solved" or solved "with a high success rate".
    """

    attempts: int = Field(16, ge=1, description="Attempts per problem. 16 in the paper.")
    min_correct: int = Field(1, ge=0, description="Fewer correct attempts: never_solved. Not in the paper.")
    max_pass_rate: float = Field(0.75, ge=0, le=1, description="Higher: too_easy. Not in the paper; 12 of 16 here.")
    min_judged: int | None = Field(
        None,
        ge=1,
        description="Fewer attempts that the verifier could judge: too_few_attempts. Half of `attempts`, rounded up, "
        "where absent. Not in the paper.",
    )
    wrong_label_share: float = Field(
        0.5,
        ge=0.5,
        le=1,
        description="suspected_wrong_label where more than this share of the judged attempts agree on one answer "
        "that is not the reference. 1 switches the rule off. The paper says `majority`.",
    )
    wrong_label_votes: int = Field(3, ge=2, description="… and at least so many attempts do. Not in the paper.")

    @property
    def least_judged(self) -> int:
        """`min_judged`, or its default."""
        return self.min_judged if self.min_judged is not None else (self.attempts + 1) // 2

    @model_validator(mode="after")
    def _possible(self) -> Self:
        most = int(self.max_pass_rate * self.attempts + 1e-9)
        if self.min_correct > most:
            raise ValueError(
                f"impossible band: min_correct = {self.min_correct}, but max_pass_rate = {self.max_pass_rate} of "
                f"attempts = {self.attempts} allows at most {most} correct; lower min_correct or raise max_pass_rate"
            )
        if self.least_judged > self.attempts:
            raise ValueError(f"impossible band: min_judged = {self.min_judged} is more than attempts = {self.attempts}")
        return self


class DifficultyStage(Settings):
    """One pass of difficulty filtering: a policy and its band."""

    policy: RecordedPolicy = Field(description="Who answers.")
    band: Band = Field(default_factory=Band, description="What is kept.")


class SecondBand(Band):
    """The band of stage 2."""

    max_pass_rate: float = Field(0.875, ge=0, le=1, description="Higher: too_easy. Not in the paper; 14 of 16 here.")


class SecondStage(DifficultyStage):
    """Stage 2: the trained grader re-grades the entire original set (paper, section 4.1)."""

    band: SecondBand = Field(default_factory=SecondBand, description="What is kept.")


class ExportSettings(Settings):
    """The curated set."""

    size: int | None = Field(
        None, ge=1, description="At most so many problems, shared among the sources by weight; all where absent."
    )
    license: str = Field("other", description="Licence in the card's header.")
    pretty_name: str | None = Field(None, description="Title of the card; the recipe's name where absent.")


class Recipe(Settings):
    """A whole run."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Name of the run and of the curated set.")
    flow: Literal["curate-math"] = Field("curate-math", description="Which line the recipe goes down.")
    description: str = Field("", description="A sentence for the card.")
    seed: int = Field(0, ge=0, description="Seed of everything that draws.")
    shard_rows: int = Field(2000, ge=1, description="Rows of one shard: what a killed run loses at most, per stage.")
    workers: int | None = Field(None, ge=1, description="Verifier processes; one a core where absent.")
    sources: tuple[Source, ...] = Field(min_length=1, strict=False, description="Where rows come from, in order.")
    statements: StatementSettings = Field(default_factory=StatementSettings, description="The format filter.")
    verify: VerifySettings = Field(default_factory=VerifySettings, description="How answers are judged.")
    stage1: DifficultyStage = Field(description="Difficulty, first policy.")
    stage2: SecondStage | None = Field(None, description="Difficulty, trained grader, on the entire original set.")
    export: ExportSettings = Field(default_factory=ExportSettings, description="The curated set.")

    @model_validator(mode="after")
    def _distinct_sources(self) -> Self:
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources are named {', '.join(twice)}; names must differ")
        return self


def plain(value: Any) -> Any:
    """TOML values as pydantic's strict mode wants them: lists become tuples."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    return value
