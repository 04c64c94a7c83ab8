"""Whose comparison of two answers counts besides our own: engines by the name that a recipe gives.

Invariants: an engine is used inside a worker process only, but for its version, so what it needs is imported by `load`
or later. Not here: our own comparison (`curation.verify.answers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from curation.records import Outcome
from curation.verify import math_verify


class Engine(Protocol):
    """A comparison of answers; a module with these functions is one."""

    def engine_version(self) -> str:
        """Return the name and version of the engine."""
        ...

    def load(self) -> None:
        """Import what it needs, so that the first comparison does not spend its limit on it."""
        ...

    def compare(self, reference: str, answer: str) -> tuple[Outcome, str]:
        """Return whether the answer equals the reference, and what decided."""
        ...

    def check_reference(self, reference: str) -> str | None:
        """Return why the reference cannot be used; None where it can."""
        ...


OWN_ENGINE = "goldilocks"
"""The engine that is our own."""

ENGINES: Mapping[str, Engine] = {"math-verify": math_verify}
"""The others; `VerifySettings.engine` names them too."""
