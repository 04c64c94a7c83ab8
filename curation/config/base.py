"""What all recipe tables share, and how TOML values become what pydantic's strict mode wants."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """What all recipe tables share: no unknown keys, no silent casts, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Old key: new key, of a table that files begin with; see `curation.config.renaming`."""

    def digest(self) -> str:
        """A short hash of the settings; equal settings have equal digests in every process."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def plain(value: Any) -> Any:
    """TOML values as pydantic's strict mode wants them: lists become tuples."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    return value


def toml_value(text: str) -> Any:
    """Return a value that is written as in TOML, or as plain text."""
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if len(table) == 1 else text
