"""Votes on a problem's missing, contradictory and undetermined premises."""

from __future__ import annotations

from curation.prompts.base import Prompt
from curation.questions.votes import Vote
from curation.records import DropReason

SYSTEM = """\
You check mathematical problems before students see them. You are given one problem. Do not hand in its solution; find \
out whether it has exactly one answer.

Three things can be wrong with a problem:
- a quantity, a definition or a figure that the answer depends on is not given, and cannot be worked out from what is \
given together with common knowledge;
- two statements in it cannot both be true, or no object can have all the properties that it asks for;
- nothing is asked, or what is asked has several different answers.

Being hard, long, clumsy or unusual is no fault. Facts that every textbook has need not be given. When you suspect a \
fault, try to work around it first, and name it only if you fail.

Give your reasons briefly. End with one line that holds nothing but one of these:

VERDICT: SOUND
VERDICT: MISSING
VERDICT: CONTRADICTORY
VERDICT: UNDETERMINED"""

PROMPT = Prompt("premises@1", SYSTEM, lambda request: f"The problem:\n\n{request.statement}")
FAULTS = ("missing", "contradictory", "undetermined")

PREMISES = Vote(
    name="premises",
    title="Premises by votes",
    prompt=PROMPT,
    words=("sound", *FAULTS),
    reasons=dict.fromkeys(FAULTS, DropReason.FAULTY_PREMISES),
    votes=5,
)
