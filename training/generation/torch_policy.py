"""Sample with torch under the `Policy` protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Self

import torch

from curation.config.policies import TorchModel
from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.checkpoints import folder_revision
from curation.policies.completions import ResponseReader
from curation.policies.seeds import LivePolicy, seed_of
from curation.prompts import Prompt
from curation.records import Completion, PolicyError, PromptRequest
from training.generation.generators import TorchGenerator
from training.optimisation.model import load_tokenizer, require_model
from training.rollouts.rollouts import chat_ids

IN_FLIGHT = 128
"""Requests decoded together."""


class TorchPolicy(LivePolicy):
    """A local language model, sampled with torch; problem and index seed an attempt."""

    def __init__(
        self, settings: TorchModel, folder: Path, prompt: Prompt | None = None, in_flight: int = IN_FLIGHT
    ) -> None:
        self._settings = settings
        self._folder = folder / Path(settings.model).expanduser()
        require_model(self._folder)
        self.in_flight = in_flight
        self._generator: TorchGenerator | None = None
        name = f"{self._folder.resolve().name}@{folder_revision(self._folder)}"
        super().__init__(settings, name, prompt, engine="torch", dtype="float32")

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

    async def __aexit__(self, *_: object) -> None:
        if self._generator is not None:
            await self._generator.__aexit__()

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Sample an attempt; cancelling aborts it.

        Raises:
            RequestRefused: the prompt is too long.
            PolicyError: the policy is not running.
        """
        if self._generator is None:
            raise PolicyError(f"{self._folder.name}: the policy is not running; use it in an `async with` block")
        decoding = self._settings.decoding
        prompt_ids = chat_ids(self._tokenizer, self._prompt.messages(problem), self._tags)
        seed = seed_of(problem.id, index)
        completion = await self._generator.generate(prompt_ids, seed=seed, max_tokens=decoding.max_tokens)
        text = self._reader.text(completion.prompt_ids, completion.token_ids, completion.text)
        return Completion(self._tags.house_form(text), completion.finish, len(completion.token_ids))
