"""Load settings from TOML; `ConfigError` has a sentence for each mistake (`curation.config.mistakes`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from curation.config.base import Settings, to_plain, toml_value
from curation.config.mistakes import sentences
from curation.records import ConfigError

SettingsT = TypeVar("SettingsT", bound=Settings)


def load_settings(model: type[SettingsT], path: Path, overrides: Sequence[str] = ()) -> SettingsT:
    """Read and check a recipe.

    Args:
        overrides: ``key=value`` with a dotted key (``sources.0.limit=100``) and a TOML value, or else text.

    Raises:
        ConfigError: the file or a setting is wrong.
    """
    subject = f"recipe {path}"
    table = read_toml(path, subject)
    if "name" in model.model_fields:
        table.setdefault("name", re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-._") or "recipe")
    return parse_settings(model, table, subject, overrides, path.parent)


def parse_settings(
    model: type[SettingsT],
    table: Mapping[str, Any],
    subject: str,
    overrides: Sequence[str] = (),
    folder: Path = Path(),
) -> SettingsT:
    """Check a recipe's table without changing it; ``subject`` begins the error, as in ``recipe a.toml``.

    Args:
        folder: base of paths of prompts and the user's code.

    Raises:
        ConfigError: a setting is wrong.
    """
    changed = to_plain(table, list)
    for override in overrides:
        set_value(changed, override)
    plain = to_plain(changed)
    try:
        return model.model_validate(plain, context={"folder": folder})
    except ValidationError as error:
        raise ConfigError(f"{subject}: " + "\n  ".join(sentences(model, plain, error))) from error


def read_toml(path: Path, subject: str) -> dict[str, Any]:
    """Return a TOML file's tables; ``subject`` begins the error.

    Raises:
        ConfigError: the file is missing, unreadable, or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"{subject}: there is no such file.") from error
    except OSError as error:
        raise ConfigError(f"{subject}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{subject}: not TOML ({error}).") from error


def set_value(table: dict[str, Any], override: str) -> None:
    """Change a setting by ``key=value`` with a dotted key, making missing tables.

    Raises:
        ConfigError: it has another form, or leads into a value that is no table.
    """
    subject = f"--set {override}"
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{subject}: write key=value, as in seed=1.")
    *path, last = key.strip().split(".")
    target: Any = table
    for step in path:
        index = _index(target, step, subject)
        if isinstance(target, dict) and target.get(step) is None:  # missing, or stored as left out
            target[step] = {}
        target = target[index]
    target[_index(target, last, subject)] = toml_value(text)


def _index(target: Any, step: str, subject: str) -> Any:
    if isinstance(target, dict):
        return step
    if not isinstance(target, list):
        raise ConfigError(f"{subject}: `{step}` is inside a value that is no table.")
    if not (step.isascii() and step.isdigit()) or int(step) >= len(target):
        raise ConfigError(f"{subject}: `{step}` is not a position; the list has {len(target)}, from 0.")
    return int(step)
