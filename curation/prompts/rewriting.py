"""The prompt for rewriting a multiple-choice problem that rules could not open.

``details`` of the request: ``options``, one a line, and ``answer``, the text of the right one.
"""

from __future__ import annotations

from curation.prompts.base import Prompt
from curation.records import PromptRequest

SYSTEM = """\
You are given a multiple-choice problem, its options, and the option that is right. Write the problem again as a \
question that somebody can answer who never sees the options, and whose only answer is the right option.

- Change as little as you can. Stay in the language of the problem. Every number and every formula of the problem \
stays as it is, and no new one comes in.
- If the question is about the options themselves ("which of these numbers …"), put all of them into the question, in \
their order, without letters.
- Never say, hint or mark which one is right.
- If no such question exists, write NONE between the tags.

Write the new problem between <problem> and </problem>. Behind it, solve your own problem from its text alone and put \
the answer into \\boxed{}."""


def ask(request: PromptRequest) -> str:
    """Return the user message: the problem, its options, the right one."""
    return (
        f"The problem:\n\n{request.statement}\n\nThe options:\n{request.details['options']}\n\n"
        f"The right one:\n{request.details['answer']}"
    )


REWRITE = Prompt("rewrite-choices@1", SYSTEM, ask)
