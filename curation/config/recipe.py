"""The recipe, its questions to models, and the curated set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from curation.config.base import Settings, require_distinct
from curation.config.difficulty import (
    SECOND_MAX_PASS_RATE,
    Band,
    DifficultyStage,
    GraderSettings,
    LabelSettings,
    RefreshSettings,
    SamplingSettings,
)
from curation.config.filters import (
    CodeSettings,
    DecontaminationSettings,
    NearDedupSettings,
    StatementSettings,
    VerifySettings,
)
from curation.config.mistakes import did_you_mean
from curation.config.policies import ModelName, NamedModels
from curation.config.schedule import CurationCosts, ScheduleSettings, StorageSettings
from curation.config.sources import License, Source
from curation.languages.names import LANGUAGES, NAMES
from curation.licenses import OTHER
from curation.questions import QUESTIONS

GRADER = "grader"
"""Name of the grader's model."""


class QuestionSettings(Settings):
    """A question to a model: who answers, what decides, and when to stop."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model"})

    model: ModelName | None = None
    """The model to ask; the question is skipped if missing, and each `multiple_choice` leaves."""
    use: str | None = None
    """A `Vote` of your own: `my_file.py:NAME` or `package.module:NAME`."""
    threshold: float | None = Field(None, gt=0, le=1)
    """Share of the readable votes that decides (`unusable`, `contaminated`, `faulty_premises`); the question's
    own if missing."""
    max_votes: int | None = Field(None, ge=1)
    """Max votes of a stage (`no_variant`); no limit if missing."""


class TranslationSettings(Settings):
    """A share of the problems, translated and checked by models; none without this table."""

    undigested: ClassVar[frozenset[str]] = frozenset({"model", "reader"})

    share: float = Field(0.1, gt=0, le=1)
    """Share of the English problems to translate, as in the paper."""
    languages: tuple[str, ...] = Field(LANGUAGES[1:], min_length=1)
    """Target languages, ISO 639-1 codes. Paper: these six."""
    model: ModelName
    """The model that translates."""
    reader: ModelName | None = None
    """The model that checks each translation (`untranslated`); `model` if missing."""
    measure: bool = False
    """Measure the pass rates of translations."""

    @property
    def reading(self) -> str:
        """Return the name of the model that reads."""
        return self.reader or self.model

    @model_validator(mode="after")
    def _known_languages(self) -> Self:
        for code in self.languages:
            if code == LANGUAGES[0]:
                raise ValueError("`languages` names en, the language that is translated from")
            if code not in NAMES:
                raise ValueError(
                    f"`languages` names {code!r}, which is no code of a language{did_you_mean(code, NAMES)}"
                )
        if len(set(self.languages)) != len(self.languages):
            raise ValueError("`languages` names a language twice")
        return self


class ExportSettings(Settings):
    """The curated set."""

    size: int | None = Field(None, ge=1)
    """Max problems, divided among the sources by weight (`over_quota`); all if missing."""
    license: License = OTHER
    """Licence in the card's header: an SPDX expression, or `other`, which rows of any licence suit."""
    withhold: tuple[License, ...] = Field((), strict=False)
    """Licences whose rows are published without texts (docs/how-to/publish.md)."""
    pretty_name: str | None = None
    """Title of the card; the recipe's name if missing."""


class Recipe(NamedModels):
    """A whole run."""

    name: str = Field("recipe", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """Name of the run and of the set; the file's if missing."""
    flow: Literal["curate-math", "curate-code"] = "curate-math"
    """Which pipeline the recipe runs."""
    description: str = ""
    """A sentence for the card."""
    seed: int = Field(0, ge=0)
    """Seed of everything random."""
    shard_rows: int = Field(2000, ge=1)
    """Rows per shard; a killed run loses at most one per stage."""
    workers: int | None = Field(None, ge=1)
    """Verifier processes; one per core if missing."""
    sources: tuple[Source, ...] = Field(min_length=1, strict=False)
    """Where rows come from, in order."""
    left_out: tuple[str, ...] = ()
    """Sources that are not read; the card lists them."""
    statements: StatementSettings = StatementSettings()
    """The format filter."""
    near_dedup: NearDedupSettings = NearDedupSettings()
    """Near duplicates."""
    decontamination: DecontaminationSettings = DecontaminationSettings()
    """Overlap with benchmarks."""
    questions: dict[str, QuestionSettings] = Field({})
    """Questions to a model, as `[questions.premises]`."""
    verify: VerifySettings = VerifySettings()
    """How answers are judged."""
    code: CodeSettings = CodeSettings()
    """The code pipeline: tests and languages."""
    stage1: DifficultyStage
    """Difficulty: pass rates of the first model."""
    grader: GraderSettings | None = None
    """A model trained on the problems that stage 1 keeps, for stage 2."""
    stage2: DifficultyStage | None = None
    """Difficulty: pass rates of a stronger model on the original set."""
    labels: LabelSettings = LabelSettings()
    """When a reference is suspected to be wrong."""
    translation: TranslationSettings | None = None
    """A share of the problems of the set, translated."""
    export: ExportSettings = ExportSettings()
    """The curated set."""
    runner: Literal["local", "ray"] = "local"
    """`ray`: filters and judges run on a Ray cluster."""
    refresh: RefreshSettings = RefreshSettings()
    """Judging again with a new checkpoint."""
    schedule: ScheduleSettings = ScheduleSettings()
    """When the recipe runs by itself."""
    storage: StorageSettings = StorageSettings()
    """Copies of results and logs."""
    costs: CurationCosts | None = None
    """Assumed costs, for `plan --stated`."""

    @property
    def read_sources(self) -> tuple[Source, ...]:
        """Return the sources that are not left out, in order."""
        return tuple(source for source in self.sources if source.name not in self.left_out)

    @property
    def asked(self) -> dict[str, str]:
        """Return the models' names by the setting that refers to them."""
        named = {
            "stage1.model": self.stage1.model,
            "stage2.model": self.stage2.model if self.stage2 is not None else None,
            **{f"questions.{name}.model": settings.model for name, settings in self.questions.items()},
            "translation.model": self.translation.model if self.translation is not None else None,
            "translation.reader": self.translation.reader if self.translation is not None else None,
        }
        return {key: name for key, name in named.items() if name is not None}

    @property
    def domain(self) -> str:
        """Return the domain of the problems."""
        return self.flow.removeprefix("curate-")

    @model_validator(mode="before")
    @classmethod
    def _inherit_from_stage_1(cls, table: Any) -> Any:
        """Give stage 2, or the grader, stage 1's band and sampling as defaults."""
        first = table.get("stage1") if isinstance(table, Mapping) else None
        if not isinstance(first, Mapping):
            return table
        inherited: dict[str, Any] = {}
        for table_name, names in (("stage2", ("band", "sampling")), ("grader", ("band",))):
            if isinstance(second := table.get(table_name), Mapping):
                inherited[table_name] = dict(second)
                for name in names:
                    own, earlier = second.get(name, {}), first.get(name, {})
                    if isinstance(own, Mapping):
                        default = {"max_pass_rate": SECOND_MAX_PASS_RATE} if name == "band" else {}
                        inherited[table_name][name] = {
                            **default,
                            **(earlier if _is_valid(name, earlier) else {}),
                            **own,
                        }
        return {**table, **inherited}

    @model_validator(mode="after")
    def _one_grader(self) -> Self:
        if self.grader is None:
            return self
        if self.stage2 is not None:
            raise ValueError("`grader` trains the model of stage 2; give either `grader` or `stage2`")
        if self.models[self.stage1.model].kind == "recorded":
            raise ValueError("`grader` needs a model in stage 1 that can load its weights, not a recorded one")
        if GRADER in self.models:
            raise ValueError(f"models.{GRADER}: the trained grader has this name; choose another one")
        return self

    @model_validator(mode="after")
    def _suitable_sources(self) -> Self:
        names = [source.name for source in self.sources]
        require_distinct(names, "sources")
        unknown = [name for name in self.left_out if name not in names]
        if unknown:
            raise ValueError(f"`left_out` names {unknown[0]!r}, which is no source; there are: {', '.join(names)}")
        if not self.read_sources:
            raise ValueError("`left_out` names every source; nothing would be read")
        other = next((source.name for source in self.sources if source.domain != self.domain), None)
        if other is not None and self.domain == "code":
            raise ValueError(f'source {other} has no `code` table, which `flow = "curate-code"` needs')
        if other is not None:
            raise ValueError(f'source {other} has programs; set `flow = "curate-code"`')
        if self.labels.rule == "posterior" and self.domain != "math":
            raise ValueError('labels.rule = "posterior": programs have tests, no reference; only `curate-math` has it')
        return self

    @property
    def weighs_labels(self) -> bool:
        """Return whether the probability of wrong references is learnt from all answers."""
        return self.labels.rule != "votes" and self.flow == "curate-math"

    def asks(self, name: str) -> bool:
        """Return whether a model is asked a question."""
        return name in self.questions and self.questions[name].model is not None

    @model_validator(mode="after")
    def _known_questions(self) -> Self:
        for name, settings in self.questions.items():
            if (settings.use is None) == (name in QUESTIONS):
                continue
            if name in QUESTIONS:
                raise ValueError(f"questions.{name}: Goldilocks has a question of this name; give yours another one")
            near = did_you_mean(name, QUESTIONS) or f"; there are: {', '.join(QUESTIONS)}"
            raise ValueError(f"questions.{name}: there is no such question (one of your own needs `use`){near}")
        return self


def _is_valid(name: str, table: Any) -> bool:
    try:
        (Band if name == "band" else SamplingSettings).model_validate(table)
    except ValidationError:
        return False
    return True
