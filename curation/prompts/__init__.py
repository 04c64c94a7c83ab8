"""The prompts: what a policy is asked, for sampling and training alike.

A `Prompt` has a version, which attempts are filed under; a changed wording is a new version. Each kind of prompt has
its own file: `solving` (the system prompt of the recipe, and the bare statement), and beside it those for judging,
rewriting, translating and making tests.
"""

from curation.prompts.base import Message, Prompt, plain_text
from curation.prompts.solving import PLAIN, SOLVE

SOLVING = {"solve": SOLVE, "plain": PLAIN}
"""The prompts for solving problems, by the name that a recipe's `prompt` gives."""

__all__ = ["PLAIN", "SOLVE", "SOLVING", "Message", "Prompt", "plain_text"]
