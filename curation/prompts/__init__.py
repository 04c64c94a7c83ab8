"""The prompts of sampling, training and questions; their texts are in `prompts.toml`.

Attempts are filed under a `Prompt`'s version, so a changed wording is a new version.
"""

from curation.prompts.base import Message, Prompt, plain_text
from curation.prompts.solving import PLAIN, SOLVE, SOLVING, prompt_of

__all__ = ["PLAIN", "SOLVE", "SOLVING", "Message", "Prompt", "plain_text", "prompt_of"]
