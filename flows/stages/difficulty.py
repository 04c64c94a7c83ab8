"""A pass of a recipe's policy over the problems: attempts, a model's votes on doubtful verdicts if asked, decisions."""

from __future__ import annotations

from flows.run.stage import Stage
from flows.stages.attempts import attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.questions import doubtful_verdicts_of


def difficulty(part: str) -> tuple[Stage, ...]:
    """Return the stages of a part; ``part`` is the name of the recipe's table."""
    return attempts_of(part), doubtful_verdicts_of(part), decisions_of(part)
