"""Read a command's model, `FILE.toml` or `FILE.toml:NAME`, from tables `[models.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.config import ModelFile, ModelSettings
from curation.config.loading import parse_settings, read_toml
from curation.config.mistakes import did_you_mean
from curation.records import ConfigError


def load_model(spec: str | Path, option: str = "--policy") -> tuple[ModelSettings, Path]:
    """Return an option's model, and the base of its paths."""
    subject = f"{option} {spec}"
    path, name = Path(spec).expanduser(), ""
    if not path.exists() and ":" in str(spec):
        before, _, name = str(spec).rpartition(":")
        path = Path(before).expanduser()
    table = read_toml(path, subject)
    if not isinstance(table.get("models"), Mapping):
        raise ConfigError(f"{subject}: the file has no table [models.NAME]; write one as in a recipe.")
    folder = path.absolute().parent
    models = parse_settings(ModelFile, {"models": table["models"]}, subject, folder=folder).models
    if not name and len(models) > 1:
        raise ConfigError(f"{subject}: the file has several models; write {path}:NAME with one of {', '.join(models)}.")
    name = name or next(iter(models))
    if name not in models:
        near = did_you_mean(name, models) or ";"
        raise ConfigError(f"{subject}: there is no table [models.{name}]{near} defined: {', '.join(models)}.")
    return models[name], folder


def parse_model(table: Mapping[str, Any], subject: str) -> ModelSettings:
    """Return a table's model; ``subject`` begins error messages."""
    return parse_settings(ModelFile, {"models": {"model": table}}, subject, folder=Path()).models["model"]
