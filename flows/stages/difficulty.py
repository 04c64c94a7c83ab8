"""A difficulty stage of a recipe as three stages of its pipeline: attempts, verdicts on them, decisions."""

from __future__ import annotations

from flows.run.stage import Stage
from flows.stages.attempts import attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.verdicts import verdicts_of


def difficulty(part: str) -> tuple[Stage, Stage, Stage]:
    """Return the three stages of a part; ``part`` is the name of the recipe's table."""
    return attempts_of(part), verdicts_of(part), decisions_of(part)
