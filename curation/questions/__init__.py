"""What a model is asked beside solving: questions of two shapes, `Vote` (votes.py) and `Proposal` (proposals.py).

A question is one file here and one line in `curation.config.questions.QUESTIONS`; `[questions.NAME]` of a recipe names
the model that answers it. A user's own question is a `Vote` over rows that the recipe names by
`use = "my_file.py:NAME"` (`curation.plugins`). `flows.stages.question` makes a stage of any of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from curation.config.questions import QUESTIONS

if TYPE_CHECKING:
    from curation.questions.proposals import Proposal
    from curation.questions.votes import Vote

__all__ = ["QUESTIONS", "registered"]


def registered(name: str) -> Vote | Proposal[Any]:
    """Return a question of `QUESTIONS`."""
    module, _, attribute = QUESTIONS[name].partition(":")
    question: Vote | Proposal[Any] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return question
