"""A difficulty pass: attempts, optional votes on doubtful verdicts, decisions."""

from __future__ import annotations

from flows.run.stage import Stage
from flows.stages.attempts import attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.questions import doubtful_verdicts_of


def difficulty(part: str) -> tuple[Stage, ...]:
    """Return the stages of a recipe's difficulty table, such as ``stage1``."""
    return attempts_of(part), doubtful_verdicts_of(part), decisions_of(part)
