"""The prompt for translating a problem, and its second version for a translation that broke something.

``details`` of the request: ``target``, the ISO 639-1 code; ``answer``, if it is words to be translated too;
``options``, one a line, if they are separate; for a retry ``previous``, the failed translation, and ``reasons``.
"""

from __future__ import annotations

import re

from curation.languages.names import NAMES
from curation.prompts.base import Prompt
from curation.records import PromptRequest
from curation.thinking import split_response

SYSTEM = """\
You translate problems of mathematics and programming for a course. A translation asks for exactly what the original \
asks for, in the words that a teacher who grew up with the language would choose.

What must not change:
- Every number keeps its value. Decimal and thousands signs may follow the language's custom. Never convert units or \
currencies.
- Every formula, variable, LaTeX command and code block is copied sign for sign. Only the words inside \\text{} are \
translated.
- Options keep their labels and their order.
- Names of people and places may be kept or transcribed as the language does it.

Translate every sentence, and nothing else: do not solve the problem, do not explain, leave no sentence in its old \
language, add and drop nothing.

Write the translated problem between <translation> and </translation>. If an answer is given, write its translation \
between <answer> and </answer>. If options are given, write them between <options> and </options>, one a line."""


def ask(request: PromptRequest) -> str:
    """Return the user message: the language, the problem, and for a retry what was wrong before."""
    details = request.details
    parts = [f"Translate this problem into {NAMES[details['target']]}.", f"The problem:\n\n{request.statement}"]
    if details.get("options"):
        parts.append(f"The options:\n{details['options']}")
    if details.get("answer"):
        parts.append(f"The answer, to be translated too:\n{details['answer']}")
    if details.get("reasons"):
        parts.append(f"An earlier translation was refused:\n\n{details.get('previous', '')}")
        parts.append(f"What was wrong with it: {details['reasons']}\nTranslate anew and avoid this.")
    return "\n\n".join(parts)


TRANSLATE = Prompt("translate@1", SYSTEM, ask)

_PARTS = {
    name: re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL) for name in ("translation", "answer", "options")
}


def read_reply(text: str) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return translation, answer and options of a reply without its thoughts.

    Example: ``read_reply("<translation>Combien ?</translation>") == ("Combien ?", None, ())``
    """
    reply = split_response(text).answer or ""
    matches = {name: pattern.findall(reply) for name, pattern in _PARTS.items()}
    last = {name: values[-1] if values else "" for name, values in matches.items()}
    options = tuple(line.strip() for line in last["options"].splitlines() if line.strip())
    return last["translation"] or None, last["answer"] or None, options
