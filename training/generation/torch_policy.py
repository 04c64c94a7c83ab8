"""Sample with torch under the `Policy` protocol, with random numbers by problem and index."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from curation.config.policies import TorchModel
from curation.policies.chat_templates import apply_chat_template, folder_stop_tokens
from curation.policies.checkpoints import folder_revision
from curation.policies.completions import ResponseReader
from curation.policies.seeds import about_of, key_of, prompt_of, seed_of
from curation.prompts import Prompt
from curation.records import Completion, PolicyError, PromptRequest
from curation.thinking import ThinkingTags
from training.generation.generators import TorchGenerator
from training.optimisation.model import load_tokenizer, require_model

IN_FLIGHT = 128
"""Requests that are decoded together."""


class TorchPolicy:
    """A causal language model of a folder, sampled with torch.

    Raises:
        PolicyError: no model there can be sampled here.
    """

    def __init__(
        self, settings: TorchModel, folder: Path, prompt: Prompt | None = None, in_flight: int = IN_FLIGHT
    ) -> None:
        self._settings = settings
        self._folder = folder / Path(settings.model).expanduser()
        require_model(self._folder)
        self._tags = ThinkingTags.of(settings.thinking)
        self.in_flight = in_flight
        self._revision = folder_revision(self._folder)
        self._generator: TorchGenerator | None = None
        self._ask_with(prompt)

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the attempt store records next to the key."""
        return about_of(self._settings, self._prompt)

    def asking(self, prompt: Prompt | None) -> TorchPolicy:
        """Return a policy with another prompt for the same running model."""
        other = copy.copy(self)
        other._ask_with(prompt)
        return other

    async def __aenter__(self) -> Self:
        torch.set_num_threads(1)
        decoding, name = self._settings.decoding, self._folder.resolve().name
        self._tokenizer = load_tokenizer(self._folder)
        self._reader = ResponseReader(self._tokenizer, self._tags)
        stops = folder_stop_tokens(self._folder, self._tokenizer)
        if stops.added:
            print(f"model {name}: {stops.phrase(self._tokenizer)}", file=sys.stderr)
        generator = TorchGenerator(
            self._folder, capacity=self.in_flight, temperature=decoding.temperature, top_p=decoding.top_p
        )
        self._generator = await generator.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._generator is not None:
            await self._generator.__aexit__(kind, error, trace)

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Sample one attempt; cancelling the call aborts it.

        Raises:
            RequestRefused: the prompt is longer than the model's context.
            PolicyError: the policy is not running.
        """
        if self._generator is None:
            raise PolicyError(f"{self._folder.name}: the policy is not running; use it in an `async with` block")
        decoding = self._settings.decoding
        chat = apply_chat_template(
            self._tokenizer,
            self._prompt.messages(problem),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **self._tags.template_arguments,
        )
        made = await self._generator.generate(
            chat["input_ids"], seed=seed_of(problem.id, index), max_tokens=decoding.max_tokens
        )
        text = self._reader.text(made.prompt_ids, made.token_ids, made.text)
        return Completion(self._tags.house_form(text), made.finish, len(made.token_ids))

    def _ask_with(self, prompt: Prompt | None) -> None:
        self._prompt = prompt or prompt_of(self._settings)
        name = f"{self._folder.resolve().name}@{self._revision}"
        self.key = key_of(self._settings, name, self._prompt, engine="torch", dtype="float32")
