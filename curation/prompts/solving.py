"""The prompts for solving problems, math and code alike; the trainer asks with the same words.

`SOLVE`: the ingredients of its system message and their order are the paper's (figure 2), the words are our own. The
paper does not print how a model is told to write its final answer; here a sentence at the end of the user's turn says
it, in the language of the problem, for verifiers find the answer by its form.

`PLAIN`: the statement and nothing else, for models that were trained on bare statements.

What is not here: whether a response keeps to the form. That is the verifier's and the reward's business.
"""

from __future__ import annotations

from curation.languages.vocabulary import languages
from curation.prompts.base import Prompt
from curation.records import Domain, PromptRequest

SYSTEM = """\
A user gives you a task. First think about it, as an inner monologue, until you have derived the final answer. Then \
write a summary that stands on its own: succinct, yet with every critical step of the way to the answer. You may use \
Markdown and LaTeX. Write both, your thoughts and your summary, in the language of the task.

Keep to this template:

<think>
Your thoughts, or a draft, as on scratch paper. Be as casual as you like, and take as much room as you need, until you \
are confident of the answer.
</think>
Your summary, which ends in a clear final answer.

Problem:"""

BOXED = {lang.code: lang.prompts.boxed for lang in languages()}
"""How the final answer of a math problem must be written, by language (ISO 639-1)."""

FENCED = {lang.code: lang.prompts.fenced for lang in languages()}
"""How a program must be written, by language (ISO 639-1); the blank is the name behind the fence."""

FENCE = "language"
"""Detail of a `PromptRequest` that names the programming language asked for, `python` or `cpp`; `python` where
absent.
"""


def answer_instructions(request: PromptRequest) -> str:
    """Return the sentence that says in which form to answer; in English where the language has none of its own."""
    if request.domain is Domain.CODE:
        return FENCED.get(request.lang, FENCED["en"]).replace("{fence}", request.details.get(FENCE, "python"))
    return BOXED.get(request.lang, BOXED["en"])


SOLVE = Prompt("solve@1", SYSTEM, lambda request: f"{request.statement}\n\n{answer_instructions(request)}")
PLAIN = Prompt("plain@1", "", lambda request: request.statement)
