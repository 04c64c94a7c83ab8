"""A recipe and its stages, one pydantic model each, with fields' units and sources.

A recipe is a TOML file, checked before anything runs. "Paper" in a description is Magistral's report.

Invariant: nothing else of Goldilocks is imported here; import settings from this package.
"""

from curation.config.base import Settings, to_plain
from curation.config.bench import Bench
from curation.config.difficulty import Band, DifficultyStage, LabelSettings, RefreshSettings
from curation.config.filters import CodeSettings, DecontaminationSettings, StatementSettings, VerifySettings
from curation.config.policies import (
    AttemptColumns,
    Decoding,
    EndpointModel,
    EngineSettings,
    LiveModel,
    ModelFile,
    ModelSettings,
    NamedModels,
    RecordedModel,
    ServerSettings,
    TorchModel,
    VllmModel,
)
from curation.config.recipe import Recipe, TranslationSettings
from curation.config.sources import Column, Pick, ProblemColumns, Source

__all__ = [
    "AttemptColumns",
    "Band",
    "Bench",
    "CodeSettings",
    "Column",
    "Decoding",
    "DecontaminationSettings",
    "DifficultyStage",
    "EndpointModel",
    "EngineSettings",
    "LabelSettings",
    "LiveModel",
    "ModelFile",
    "ModelSettings",
    "NamedModels",
    "Pick",
    "ProblemColumns",
    "Recipe",
    "RecordedModel",
    "RefreshSettings",
    "ServerSettings",
    "Settings",
    "Source",
    "StatementSettings",
    "TorchModel",
    "TranslationSettings",
    "VerifySettings",
    "VllmModel",
    "to_plain",
]
