"""The wording of defects by language, from `phrases.toml`; its forms have the statement as ``{}``, and ``{answer}``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

Forms = Mapping[str, list[str]]

_TABLES: Mapping[str, Forms] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

FIGURES, PROOFS, ELSEWHERE = _TABLES["figures"], _TABLES["proofs"], _TABLES["elsewhere"]
TOLD, REMARKS = _TABLES["told"], _TABLES["remarks"]
