"""How defects are worded, by language: `phrases.toml`, whose forms have a statement in the place of ``{}``, and
``{answer}``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

Forms = Mapping[str, tuple[str, ...]]

_TABLES: Mapping[str, Forms] = {
    name: {lang: tuple(forms) for lang, forms in table.items()}
    for name, table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}

FIGURES: Forms = _TABLES["figures"]
"""In the place of a number, which then stands nowhere else."""

PROOFS: Forms = _TABLES["proofs"]
ELSEWHERE: Forms = _TABLES["elsewhere"]
TOLD: Forms = _TABLES["told"]

REMARKS: Forms = _TABLES["remarks"]
"""In the place of a reference."""
