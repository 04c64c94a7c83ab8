"""Recognises training recipes."""

from __future__ import annotations

import tomllib
from pathlib import Path


def is_training_recipe(path: Path) -> bool:
    """Return whether a file's tables are of a training recipe."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "data" in table and "model" in table
