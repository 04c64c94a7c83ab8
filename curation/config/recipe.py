"""The recipe itself, and the curated set it ends in."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config.adjudicating import AdjudicationSettings
from curation.config.base import Settings
from curation.config.coding import CodeSettings
from curation.config.difficulty import DifficultyStage, LabelSettings, SecondStage
from curation.config.filters import DecontaminationSettings, NearDedupSettings, StatementSettings, VerifySettings
from curation.config.grading import GraderSettings
from curation.config.monitoring import MonitorSettings
from curation.config.old_keys import RECIPE
from curation.config.questions import QuestionSettings
from curation.config.refreshing import RefreshSettings
from curation.config.schedule import ScheduleSettings, StatedCosts
from curation.config.sources import License, Source
from curation.config.storage import StorageSettings
from curation.licenses import OTHER
from curation.questions import QUESTIONS


class ExportSettings(Settings):
    """The curated set."""

    size: int | None = Field(
        None, ge=1, description="At most so many problems, shared among the sources by weight; all where absent."
    )
    license: License = Field(
        OTHER, description="Licence in the card's header: an SPDX expression, or `other`, which promises nothing."
    )
    mixed_licenses: bool = Field(
        False,
        description="Publish rows whose own licence forbids the card's, such as non-commercial ones under "
        "`apache-2.0`; `ATTRIBUTION.md` names them. Otherwise they are an error. Not in the paper.",
        exclude_if=lambda mixed: not mixed,
    )
    withhold: tuple[License, ...] = Field(
        (),
        strict=False,
        description="Licences whose texts are not handed on: `goldilocks publish` sends such rows with id, source, row "
        "and measurements only, and `goldilocks restore` puts their texts back from the source; of code the given "
        "tests and checkers, too. Not in the paper.",
        exclude_if=lambda named: not named,
    )
    pretty_name: str | None = Field(None, description="Title of the card; the recipe's name where absent.")


class Recipe(Settings):
    """A whole run."""

    renamed: ClassVar[Mapping[str, str]] = RECIPE

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Name of the run and of the curated set.")
    flow: Literal["curate-math", "curate-code"] = Field("curate-math", description="Which pipeline the recipe runs.")
    description: str = Field("", description="A sentence for the card.")
    seed: int = Field(0, ge=0, description="Seed of everything that draws.")
    shard_rows: int = Field(2000, ge=1, description="Rows of one shard: what a killed run loses at most, per stage.")
    workers: int | None = Field(None, ge=1, description="Verifier processes; one a core where absent.")
    sources: tuple[Source, ...] = Field(min_length=1, strict=False, description="Where rows come from, in order.")
    left_out: tuple[str, ...] = Field(
        (),
        description="Sources that are not read, by their names, as where one is gone or access to it was not granted; "
        "the card names them. Not in the paper.",
        exclude_if=lambda left_out: not left_out,
    )
    statements: StatementSettings = Field(default_factory=StatementSettings, description="The format filter.")
    near_dedup: NearDedupSettings = Field(
        default_factory=NearDedupSettings, description="The same problem in slightly other words."
    )
    decontamination: DecontaminationSettings = Field(
        default_factory=DecontaminationSettings, description="Decontamination: problems too close to a benchmark leave."
    )
    questions: dict[str, QuestionSettings] = Field(
        {},
        description="What a model is asked besides attempts, by the question's name.",
        exclude_if=lambda asked: not asked,
    )
    verify: VerifySettings = Field(default_factory=VerifySettings, description="How answers are judged.")
    code: CodeSettings = Field(default_factory=CodeSettings, description="The code pipeline: tests and languages.")
    stage1: DifficultyStage = Field(description="Difficulty, first policy.")
    grader: GraderSettings | None = Field(
        None, description="A grader trained on the survivors of stage 1, which then is the policy of stage 2."
    )
    stage2: SecondStage | None = Field(
        None, description="Difficulty, a grader trained elsewhere, on the entire original set."
    )
    labels: LabelSettings = Field(
        default_factory=LabelSettings, description="When a reference is not believed: by votes, or by probability."
    )
    adjudication: AdjudicationSettings = Field(
        default_factory=AdjudicationSettings,
        description="Debates on disputed labels, by `goldilocks adjudicate`: evidence for whoever reviews them.",
        exclude_if=lambda settings: settings == AdjudicationSettings(),
    )
    export: ExportSettings = Field(default_factory=ExportSettings, description="The curated set.")
    runner: Literal["local", "ray"] = Field(
        "local", description="`ray`: shards that are filtered or judged run on a Ray cluster (an extra)."
    )
    refresh: RefreshSettings = Field(default_factory=RefreshSettings, description="What a new checkpoint judges again.")
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings, description="When it runs by itself.")
    monitor: MonitorSettings = Field(
        default_factory=MonitorSettings,
        description="Where numbers are shown besides.",
        exclude_if=lambda settings: settings == MonitorSettings(),
    )
    storage: StorageSettings = Field(
        default_factory=StorageSettings,
        description="Where copies of what the run publishes and logs go.",
        exclude_if=lambda settings: settings == StorageSettings(),
    )
    costs: StatedCosts | None = Field(None, description="What a run is taken to cost where no pilot can be run.")

    @property
    def read_sources(self) -> tuple[Source, ...]:
        """Return the sources that are read, in order: all but those that are left out."""
        return tuple(source for source in self.sources if source.name not in self.left_out)

    @model_validator(mode="after")
    def _one_grader(self) -> Self:
        if self.grader is not None and self.stage2 is not None:
            raise ValueError("`grader` trains the policy of stage 2; give either `grader` or `stage2`")
        if self.grader is not None and self.stage1.policy.kind == "recorded":
            raise ValueError("`grader` needs a policy that can load its weights in stage 1, not a recorded one")
        return self

    @model_validator(mode="after")
    def _distinct_sources(self) -> Self:
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources are named {', '.join(twice)}; names must differ")
        unknown = [name for name in self.left_out if name not in names]
        if unknown:
            raise ValueError(f"`left_out` names {unknown[0]!r}, which is no source; there are: {', '.join(names)}")
        if not set(names) - set(self.left_out):
            raise ValueError("`left_out` names every source; nothing would be read")
        return self

    @property
    def weighs_labels(self) -> bool:
        """Return whether the probability that a reference is wrong is learnt from everyone's answers."""
        return self.labels.rule != "votes" and self.flow == "curate-math"

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        domain = self.flow.removeprefix("curate-")
        other = next((source.name for source in self.sources if source.domain != domain), None)
        if other is not None:
            raise ValueError(f'source {other} is not of domain `{domain}`, which `flow = "{self.flow}"` goes with')
        return self

    def asks(self, name: str) -> bool:
        """Return whether a model is asked a question."""
        return name in self.questions and self.questions[name].policy is not None

    @model_validator(mode="after")
    def _known_questions(self) -> Self:
        for name, settings in self.questions.items():
            if (settings.use is None) == (name in QUESTIONS):
                continue
            if name in QUESTIONS:
                raise ValueError(f"questions.{name}: Goldilocks has a question of this name; give yours another one")
            near = get_close_matches(name, QUESTIONS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(QUESTIONS)}"
            raise ValueError(f"questions.{name}: there is no such question ({hint}); one of your own needs `use`")
        return self

    @model_validator(mode="after")
    def _math_pipeline_only(self) -> Self:
        if self.labels.rule == "posterior" and self.flow != "curate-math":
            raise ValueError('labels.rule = "posterior": programs have tests, no reference; only `curate-math` has it')
        if self.adjudication.judge is not None and self.flow != "curate-math":
            raise ValueError("adjudication: programs have tests, no reference; remove the table [adjudication]")
        return self
