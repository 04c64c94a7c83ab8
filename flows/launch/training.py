"""Which files are recipes of the trainer: `goldilocks plan` takes them as well as those of curation."""

from __future__ import annotations

import tomllib
from pathlib import Path


def is_training_recipe(path: Path) -> bool:
    """Return whether a file is a recipe of the trainer, by its tables; what is no recipe at all is none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "data" in table and "model" in table
