"""Makes Math-Verify an engine (`--set verify.engine=math-verify`), without its own time limits."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from curation.records import Outcome


def engine_version() -> str:
    """Return the name and version of the engine."""
    return f"math-verify@{version('math-verify')}"


def load() -> None:
    """Import Math-Verify, outside the first comparison's limit."""
    import math_verify  # noqa: F401


def compare(reference: str, answer: str) -> tuple[Outcome, str]:
    """Return whether Math-Verify accepts the answer, and what decided."""
    from math_verify import verify

    gold, target = _parse(reference), _parse(answer)
    if not gold:
        return Outcome.BROKEN, "the reference was not parsed"
    if not target:
        return Outcome.WRONG, "the answer was not parsed"
    equal = verify(gold, target, timeout_seconds=None, raise_on_error=True)
    return (Outcome.CORRECT if equal else Outcome.WRONG), "math-verify"


def check_reference(reference: str) -> str | None:
    """Return why the reference does not parse or equal itself."""
    if not _parse(reference):
        return "Math-Verify cannot parse it"
    return (
        None if compare(reference, reference)[0] is Outcome.CORRECT else "Math-Verify does not hold it equal to itself"
    )


@lru_cache(maxsize=4096)
def _parse(text: str) -> list[Any]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    for writing in (text, f"${text}$"):
        parsed = parse(writing, configs, parsing_timeout=None, raise_on_error=False)
        if parsed:
            return list(parsed)
    return []
