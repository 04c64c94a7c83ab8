"""Names the comparison engines that a recipe can choose besides our own.

Invariant: they are imported (by `load`) only in worker processes, except for the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from curation.records import Outcome
from curation.verify import math_verify


class Engine(Protocol):
    """A comparison of answers, as a module with these functions."""

    def engine_version(self) -> str:
        """Return the name and version of the engine."""
        ...

    def load(self) -> None:
        """Import what the engine needs, outside the first comparison's limit."""
        ...

    def compare(self, reference: str, answer: str) -> tuple[Outcome, str]:
        """Return whether the answer equals the reference, and what decided."""
        ...

    def check_reference(self, reference: str) -> str | None:
        """Return why the reference cannot be used, else None."""
        ...


OWN_ENGINE = "goldilocks"
"""The engine that is our own."""

ENGINES: Mapping[str, Engine] = {"math-verify": math_verify}
"""The others; `VerifySettings.engine` names them too."""
