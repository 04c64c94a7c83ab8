"""A difficulty stage of a recipe as stages of its pipeline: attempts, verdicts, a model's votes on doubt, trust in
labels, decisions."""

from __future__ import annotations

from flows.run.stage import Stage
from flows.stages.attempts import attempts_of
from flows.stages.decisions import decisions_of
from flows.stages.label_trust import label_trust_of
from flows.stages.questions import doubtful_verdicts_of
from flows.stages.verdicts import verdicts_of


def difficulty(part: str) -> tuple[Stage, ...]:
    """Return the stages of a part; ``part`` is the name of the recipe's table."""
    return attempts_of(part), verdicts_of(part), doubtful_verdicts_of(part), label_trust_of(part), decisions_of(part)
