"""The prompts: what a policy is asked, for sampling and training alike.

A `Prompt` has a version, which attempts are filed under; a changed wording is a new version. Each kind of prompt has
its own file: `solving` (the system prompt of the recipe, and the bare statement), and beside it those for judging,
rewriting, translating and making tests.
"""

from curation.prompts.base import Message, Prompt, plain_text
from curation.prompts.solving import PLAIN, SOLVE, SOLVING, solving_prompt

__all__ = ["PLAIN", "SOLVE", "SOLVING", "Message", "Prompt", "plain_text", "solving_prompt"]
