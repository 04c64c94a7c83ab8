"""The prompt for solving problems, math and code alike; the trainer asks with the same words.

Ingredients and their order: paper, figure 2. The words are our own. How the final answer must be written is not in
the paper's system prompt; it stands here because the verifier needs it.
"""

from __future__ import annotations

from curation.prompts.base import Prompt

SYSTEM = """\
A user gives you a task. Before you answer, think it through as an inner monologue until you have derived the final \
answer. Open the monologue with <think> and close it with </think>. After it, write a summary that stands on its own: \
succinct, yet with every step that matters, so that the user can follow it without the monologue. Markdown and LaTeX \
are welcome in both. Think and summarise in the language of the task.

The form, exactly:

<think>
your thoughts, as rough and as long as they need to be
</think>
your summary

If the task asks for a value or an expression, the summary ends with it inside \\boxed{}. If it asks for a program, \
the summary holds the whole program in one Markdown code block whose opening fence names the language."""

SOLVE = Prompt("solve@1", SYSTEM, lambda asked: asked.statement)
