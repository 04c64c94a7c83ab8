"""The recipe of a training run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, model_validator

from curation.config.base import ByKind, Settings
from curation.config.policies import EngineSettings, LiveModel, ModelName, NamedModels, ServerSettings, VllmModel
from curation.config.schedule import MonitorSettings, StorageSettings, TrainingCosts
from curation.prompts import Prompt
from curation.prompts.solving import prompt_of
from curation.thinking import ThinkingTags
from training.config import (
    CollectorSettings,
    ComputeSettings,
    CurriculumSettings,
    DoubtSettings,
    LoraSettings,
    ObjectiveSettings,
    OptimSettings,
    PackingSettings,
    RewardSettings,
    StageSettings,
    StoredSettings,
    VerlSettings,
)

AttemptStoring = Literal["none", "texts", "tokens"]

TEMPERATURE = 1.0
"""Sampling temperature of a trained model whose table has none (paper: 1.0 for Small)."""

DEFAULT_OBJECTIVE = "grpo"
"""The `kind` of an `[objective]` that names none."""


class EmbeddedData(Settings):
    """Problems of the embedded family (`training.embedded_model.problems`)."""

    kind: Literal["embedded"]
    """`embedded`: short sums."""
    problems: int = Field(2000, ge=1)
    """Number of sums."""
    seed: int = Field(1, ge=0)
    """Seed of the sums."""


class CuratedData(Settings):
    """Curated sets made by `goldilocks run`, or what they dropped."""

    kind: Literal["curated", "latent"]
    """`curated`: published sets; `latent`: dropped problems that no rule can judge, with a reference text, for
    `jepo`."""
    folders: tuple[str, ...] = Field(min_length=1)
    """Folders of curated sets, relative to the recipe's."""
    hard: bool = False
    """Later add math problems that were dropped as never_solved, as in the paper."""


DataSettings = Annotated[EmbeddedData | CuratedData, Field(discriminator="kind")]


def _objectives() -> dict[str, type[ObjectiveSettings]]:
    from training.objectives.registry import OBJECTIVES  # needs torch

    return {kind: objective.settings for kind, objective in OBJECTIVES.items()}


def _own_objective(table: Mapping[str, Any], folder: Path) -> ObjectiveSettings:
    from training.objectives.registry import own_settings

    return own_settings(table, folder)


ObjectiveTable = Annotated[ObjectiveSettings, ByKind(_objectives, DEFAULT_OBJECTIVE, _own_objective), SerializeAsAny()]


class EvaluationSettings(Settings):
    """Pass@1 on problems that are not trained on."""

    data: DataSettings | None = None
    """The held-out problems; no evaluation if missing."""
    every: int = Field(20, ge=1)
    """Steps between evaluations."""
    attempts: int = Field(4, ge=1)
    """Rollouts per problem. Paper: 64 for AIME, 16 for LiveCodeBench."""
    problems: int | None = Field(None, ge=1)
    """Only the first problems; all if missing."""
    keep_best: bool = False
    """Keep the model with the best pass@1 in RUN/best."""


class CheckpointSettings(Settings):
    """Checkpoints to go on from, and published versions for others to load."""

    every: int = Field(20, ge=1)
    """Steps between checkpoints."""
    keep: int = Field(2, ge=1)
    """Number of last checkpoints to keep."""
    trajectory: int | None = Field(None, ge=1)
    """Steps between copies of the weights, for `ablate --analyse`; none if missing."""


_PROMPTING = frozenset({"kind", "model", "prompt", "thinking", "examples", "decoding"})
_READ: Mapping[str, frozenset[str]] = {
    "torch": _PROMPTING,
    "vllm": _PROMPTING | set(EngineSettings.model_fields),
    "endpoint": _PROMPTING | set(ServerSettings.model_fields) | {"revision"},
}
"""The settings of a trained model's table that training reads, by kind."""


class TrainRecipe(NamedModels):
    """A training run."""

    name: str = Field("training", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The run's name; the file's if missing."""
    description: str = ""
    """A sentence for the run."""
    seed: int = Field(0, ge=0)
    """Seed of problems and tokens."""
    steps: int = Field(ge=1)
    """Updates of the generators, one batch each."""
    model: ModelName
    """The model to train; its kind selects the generator."""
    reference: ModelName | None = None
    """Reference model, of the kind `torch`; the trained one if missing."""
    teacher: ModelName | None = None
    """Frozen teacher, of the kind `torch`, with the same tokenizer."""
    engine: Literal["embedded", "verl"] = "embedded"
    """`embedded`: one machine; `verl`: a cluster (docs/how-to/clusters.md)."""
    verl: VerlSettings = VerlSettings()
    """How verl runs the recipe."""
    data: DataSettings
    """The problems to train on."""
    collector: CollectorSettings = CollectorSettings()
    """Batches."""
    rewards: RewardSettings = RewardSettings()
    """Reward of a rollout."""
    verify: DoubtSettings = DoubtSettings()
    """Judges of your own, and doubtful verdicts."""
    objective: ObjectiveTable = Field(default_factory=lambda: _objectives()[DEFAULT_OBJECTIVE].model_validate({}))
    """The loss."""
    packing: PackingSettings = PackingSettings()
    """Micro-batches."""
    optim: OptimSettings = OptimSettings()
    """The optimiser."""
    compute: ComputeSettings = ComputeSettings()
    """Device and precision."""
    lora: LoraSettings | None = None
    """Train adapters instead of all weights."""
    stored: StoredSettings | None = None
    """Train on stored attempts first, then mix them in."""
    curriculum: CurriculumSettings | None = None
    """Pools by difficulty, and stages."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Held-out problems."""
    checkpoints: CheckpointSettings = CheckpointSettings()
    """Weights kept on disk."""
    storage: StorageSettings = StorageSettings()
    """Copies of checkpoints and logs."""
    monitor: MonitorSettings = MonitorSettings()
    """Other places for metrics."""
    attempt_store: AttemptStoring = "texts"
    """Content of RUN/attempts; `tokens`: also token ids and log-probabilities."""
    checks: bool = True
    """Check packing, generators and chat template before the first step."""
    costs: TrainingCosts | None = None
    """Assumed costs, for `plan --stated`."""

    @property
    def asked(self) -> dict[str, str]:
        """Return the models' names by their keys."""
        named = {
            "model": self.model,
            "reference": self.reference,
            "teacher": self.teacher,
            "verify.model": self.verify.model,
        }
        return {key: name for key, name in named.items() if name is not None}

    @property
    def trained(self) -> LiveModel:
        """Return the trained model's table."""
        return self._live(self.model)

    @property
    def reference_model(self) -> str:
        """Return the reference model's folder."""
        return self._live(self.reference or self.model).model

    @property
    def teacher_model(self) -> str:
        """Return the teacher's folder, or the trained model's."""
        return self._live(self.teacher or self.model).model

    def _live(self, name: str) -> LiveModel:
        model = self.models[name]
        assert isinstance(model, LiveModel)  # other kinds are refused
        return model

    @property
    def tensor_parallel(self) -> int:
        """Return the GPUs per copy of the model in generation."""
        return self.trained.tensor_parallel if isinstance(self.trained, VllmModel) else 1

    @property
    def temperature(self) -> float:
        return self.trained.decoding.temperature

    @property
    def tags(self) -> ThinkingTags:
        return ThinkingTags.of(self.trained.thinking)

    @property
    def solving_prompt(self) -> Prompt:
        return prompt_of(self.trained)

    @model_validator(mode="before")
    @classmethod
    def _at_temperature(cls, table: Any) -> Any:
        if not isinstance(table, Mapping) or not isinstance(models := table.get("models"), Mapping):
            return table
        model = models.get(name := table.get("model"))
        if not isinstance(model, Mapping) or not isinstance(decoding := model.get("decoding", {}), Mapping):
            return table
        warm = {**model, "decoding": {"temperature": TEMPERATURE, **decoding}}
        return {**table, "models": {**models, name: warm}}

    @model_validator(mode="after")
    def _models_suit(self) -> Self:
        model = self.models[self.model]
        if not isinstance(model, LiveModel):
            raise ValueError(f"models.{self.model}: recorded attempts cannot be trained; name another model")
        if model.decoding.temperature <= 0:
            raise ValueError(f"models.{self.model}.decoding.temperature must be above 0: rollouts of a group differ")
        unread = _unread(model, _READ[model.model_dump()["kind"]])
        unread += [f"decoding.{name}" for name in _unread(model.decoding, {"temperature"})]
        if unread:
            raise ValueError(
                f"models.{self.model}.{unread[0]} is not read in training: rewards.max_length, seed and collector take "
                "its place; leave it out"
            )
        judge = self.verify.model
        if judge is not None and self.models[judge].kind != "endpoint":
            raise ValueError(f"models.{judge} judges doubtful verdicts, so its kind must be `endpoint`")
        for role, name in (("reference", self.reference), ("teacher", self.teacher)):
            if name is None:
                continue
            model = self.models[name]
            if model.kind != "torch" or (unread := _unread(model, {"kind", "model"})):
                what = (
                    f".{unread[0]} is not read for a {role}" if unread else f" is a {role}, so its kind must be `torch`"
                )
                raise ValueError(f"models.{name}{what}")
        return self

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.stored is not None and any(stage.n_batch for stage in self.stages):
            raise ValueError("batches with stored groups keep their size; leave n_batch out")
        for collector in self.collectors:
            CollectorSettings.model_validate(collector.model_dump())
        if fault := next(_faults(self), None):
            raise ValueError(fault)
        return self

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about collector sizes."""
        messages = dict.fromkeys(self.collector.warnings())
        for number, (stage, collector) in enumerate(zip(self.stages, self.collectors, strict=False), 1):
            if stage.n_batch or stage.n_async:
                messages |= {f"stage {number}: {new}": None for new in collector.warnings() if new not in messages}
        return tuple(messages)

    @property
    def stages(self) -> tuple[StageSettings, ...]:
        """Return the curriculum's stages, if any."""
        return self.curriculum.stages if self.curriculum is not None else ()

    @property
    def collectors(self) -> list[CollectorSettings]:
        """Return the collector of each stage, at least one."""
        current, collectors = self.collector, []
        for stage in self.stages:
            sizes = {"n_batch": stage.n_batch or current.n_batch, "n_async": stage.n_async or current.n_async}
            cut = {"n_minibatch": None} if sizes["n_batch"] != current.n_batch else {}
            current = current.model_copy(update=sizes | cut)
            collectors.append(current)
        return collectors or [current]

    @property
    def generates(self) -> bool:
        """Return whether the run samples."""
        return self.stored is None or not self.stored.only or self.evaluation.data is not None

    @property
    def synchronous(self) -> bool:
        """Return whether generators wait for each step, so that runs repeat bit by bit."""
        return self.collector.max_staleness == 0


def _unread(table: Settings, read: Collection[str]) -> list[str]:
    fields = type(table).model_fields
    return [
        name
        for name in fields
        if name not in read and getattr(table, name) != fields[name].get_default(call_default_factory=True)
    ]


def _faults(recipe: TrainRecipe) -> Iterator[str]:
    """Yield conflicts between tables."""
    from training.objectives.registry import needs_of, objective_of

    data, held_out, stored, objective = recipe.data, recipe.evaluation.data, recipe.stored, recipe.objective
    kind, needs, latent = objective.kind, needs_of(objective), recipe.data.kind == "latent"
    if latent != (kind == "jepo"):
        yield (
            f"objective.kind = {kind} and data.kind = {data.kind} do not go together; jepo trains on latent data, and "
            "nothing else does"
        )
    if latent and stored is not None:
        yield "latent problems have no stored attempts; leave the table [stored] out"
    if latent and getattr(data, "hard", False):
        yield "data.hard is for curated sets; leave it out"
    if held_out is None and recipe.evaluation.keep_best:
        yield "evaluation.keep_best = true needs held-out problems; give evaluation.data"
    if isinstance(held_out, CuratedData) and held_out.kind == "latent":
        if not latent:
            yield ("evaluation.data.kind = latent needs data.kind = latent; evaluate on curated or embedded data")
        if recipe.evaluation.keep_best:
            yield "evaluation.keep_best chooses by pass@1, which latent problems do not have; leave it out"
        if isinstance(data, CuratedData) and set(held_out.folders) & set(data.folders):
            yield "evaluation.data.folders are also trained on; give other folders"
    if recipe.reference is not None and not needs.uses_reference:
        yield (f"reference = {recipe.reference!r}: objective.kind = {kind} uses none with these settings; leave it out")
    if needs.teacher == "model" and recipe.teacher is None:
        yield f"objective.kind = {kind} needs a teacher with these settings; name its model in `teacher`"
    if needs.teacher != "model" and recipe.teacher is not None:
        yield f"teacher = {recipe.teacher!r}: objective.kind = {kind} asks none with these settings; leave it out"
    if needs.teacher == "attempts" and not isinstance(data, CuratedData):
        yield f"a teacher that reads attempts needs the runs of curated sets; data.kind = {data.kind} has none"
    if needs.teacher is not None and recipe.engine == "verl":
        yield f"objective.kind = {kind} needs a teacher, which verl does not run; set engine = embedded"
    if stored is not None and stored.general is not None and kind != "sft":
        yield f"stored.general has no reward, so it needs objective.kind = sft, not {kind}; leave it out"
    if stored is not None and stored.max_distance is not None and objective_of(objective).second_pass is None:
        yield f"stored.max_distance needs an objective with a second pass (soft); {kind} has none"
    if unsuited := objective.unsuited(recipe.collector.group_size):
        yield unsuited
