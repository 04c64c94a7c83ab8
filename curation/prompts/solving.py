"""The prompts for solving problems, math and code alike; the trainer asks with the same words.

`SOLVE`: the ingredients of its system message and their order are the paper's (figure 2), the words are our own. The
paper does not print how a model is told to write its final answer; here a sentence at the end of the user's turn says
it, in the language of the problem, for verifiers find the answer by its form.

`PLAIN`: the statement and nothing else, for models that were trained on bare statements.

What is not here: whether a response keeps to the form. That is the verifier's and the reward's business.
"""

from __future__ import annotations

from curation.prompts.base import Prompt
from curation.records import Domain, Prompted

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

BOXED = {
    "en": "Write the final answer inside \\boxed{}.",
    "fr": "Écris la réponse finale dans \\boxed{}.",
    "es": "Escribe la respuesta final dentro de \\boxed{}.",
    "it": "Scrivi la risposta finale dentro \\boxed{}.",
    "de": "Schreibe die endgültige Antwort in \\boxed{}.",
    "zh": "请将最终答案写在 \\boxed{} 中。",
    "ru": "Запиши окончательный ответ в \\boxed{}.",
}
"""How the final answer of a math problem must be written, by language (ISO 639-1)."""

FENCED = {
    "en": "Give the whole program in one Markdown code block whose opening fence names the language, as in ```{fence}.",
    "fr": "Donne le programme entier dans un seul bloc de code Markdown dont l'ouverture nomme le langage, comme "
    "```{fence}.",
    "es": "Da el programa completo en un único bloque de código Markdown cuya apertura nombre el lenguaje, como "
    "```{fence}.",
    "it": "Scrivi l'intero programma in un solo blocco di codice Markdown la cui apertura indichi il linguaggio, come "
    "```{fence}.",
    "de": "Gib das ganze Programm in einem einzigen Markdown-Codeblock an, dessen Anfang die Sprache nennt, wie "
    "```{fence}.",
    "zh": "请把完整程序写在一个 Markdown 代码块中，并在开头注明语言，例如 ```{fence}。",
    "ru": "Приведи всю программу в одном блоке кода Markdown, в начале которого указан язык, например ```{fence}.",
}
"""How a program must be written, by language (ISO 639-1); the blank is the name behind the fence."""

FENCE = "language"
"""Detail of a `Prompted` that names the programming language asked for, `python` or `cpp`; `python` where absent."""


def how_to_answer(asked: Prompted) -> str:
    """The sentence that says in which form the answer is wanted; English where the language has none of its own."""
    if asked.domain is Domain.CODE:
        return FENCED.get(asked.lang, FENCED["en"]).replace("{fence}", asked.details.get(FENCE, "python"))
    return BOXED.get(asked.lang, BOXED["en"])


SOLVE = Prompt("solve@1", SYSTEM, lambda asked: f"{asked.statement}\n\n{how_to_answer(asked)}")
PLAIN = Prompt("plain@1", "", lambda asked: asked.statement)
