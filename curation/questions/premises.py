"""Votes on a problem's missing, contradictory and undetermined premises."""

from __future__ import annotations

from curation.prompts.base import stored_prompt
from curation.questions.votes import Vote
from curation.records import DropReason

PROMPT = stored_prompt("premises", lambda request: f"The problem:\n\n{request.statement}")
FAULTS = ("missing", "contradictory", "undetermined")

PREMISES = Vote(
    name="premises",
    title="Premises by votes",
    prompt=PROMPT,
    words=("sound", *FAULTS),
    reasons=dict.fromkeys(FAULTS, DropReason.FAULTY_PREMISES),
    votes=5,
)
