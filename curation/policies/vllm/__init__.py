"""A policy on vLLM's engine on this machine.

Invariant: a prompt without room for `max_tokens` is refused.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from curation.config import VllmModel
from curation.policies.chat_templates import apply_chat_template, stop_tokens
from curation.policies.checkpoints import folder_revision
from curation.policies.completions import ResponseReader
from curation.policies.seeds import LivePolicy, seed_of
from curation.policies.vllm.engine import Launch, VllmEngine, sampling_params, vllm_version
from curation.policies.vllm.placement import visible_gpus
from curation.prompts import Prompt, plain_text
from curation.records import Completion, PolicyError, PromptRequest, RequestRefused

_PROMPTS = 4096
"""Prompts with cached tokens, since a problem's attempts share one."""


class Vllm(LivePolicy):
    """vLLM's engine as a `Policy`.

    Args:
        folder: base of a relative `settings.model`, else the hub's.

    Raises:
        PolicyError: no revision or weights; on entering: vLLM is missing or cannot use the model.
    """

    def __init__(self, settings: VllmModel, folder: Path, prompt: Prompt | None = None) -> None:
        self.settings = settings
        local = folder / Path(settings.model).expanduser()
        self._local: Path | None = local.resolve() if local.is_dir() else None
        if self._local is None and settings.revision is None:
            raise PolicyError(
                f"model {settings.model}: there is no folder {local}; for a model of the hub, give its `revision`."
            )
        copies = settings.copies(len(visible_gpus()) if settings.data_parallel == "auto" else 0)
        self.in_flight = settings.in_flight * copies
        super().__init__(settings, self._name(), prompt)
        self._added_stops: tuple[int, ...] = ()
        launch = Launch(
            str(self._local or settings.model),
            settings.model,
            settings.in_flight,
            revision=None if self._local else settings.revision,
            data_parallel=copies,
        )
        self.engine = VllmEngine(launch, settings)

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes."""
        return {
            **super().about,
            "dtype": self.settings.dtype,
            "max_model_len": self.settings.max_model_len,
            "engine": f"vllm {vllm_version() or 'not installed'}",
        }

    def _ask_with(self, prompt: Prompt | None) -> None:
        super()._ask_with(prompt)
        self._prompts: dict[tuple[str, ...], list[int]] = {}

    async def __aenter__(self) -> Self:
        self._require_gpus()
        await self.engine.__aenter__()
        decoding, context = self.settings.decoding, self.engine.context
        if decoding.max_tokens >= context:
            await self.engine.stop()
            raise PolicyError(
                f"model {self.settings.model}: decoding.max_tokens = {decoding.max_tokens} leaves no room for a prompt "
                f"in a context of {context} tokens; lower it, or raise max_model_len."
            )
        self._reader = ResponseReader(self.engine.tokenizer, self._tags)
        self._added_stops = self._template_stops()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.stop()

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt.

        Raises:
            RequestRefused: the prompt is too long.
            PolicyError: the engine has died.
        """
        tokens = self._tokens(problem)
        if len(tokens) + self.settings.decoding.max_tokens > self.engine.context:
            raise RequestRefused(
                "too_long",
                f"problem {problem.id}: a prompt of {len(tokens)} tokens leaves no room for decoding.max_tokens = "
                f"{self.settings.decoding.max_tokens} in a context of {self.engine.context} tokens.",
            )
        completion = await self.engine.generate(tokens, self._sampling(problem.id, index), f"{problem.id}-{index}")
        text = self._reader.text(tokens, completion.token_ids, completion.text)
        return Completion(self._tags.house_form(text), completion.finish, len(completion.token_ids))

    def _require_gpus(self) -> None:
        gpus, copies = len(visible_gpus()), self.engine.launch.data_parallel
        needed = copies * self.settings.tensor_parallel
        if 0 < gpus < needed:
            raise PolicyError(
                f"model {self.settings.model}: {copies} copies of {self.settings.tensor_parallel} GPUs each need "
                f'{needed} GPUs, and this machine has {gpus}; lower data_parallel, or write data_parallel = "auto".'
            )

    def _name(self) -> str:
        if self._local is None:
            return f"{self.settings.model}@{self.settings.revision}"
        return f"{self._local.name}@{folder_revision(self._local)}"

    def _tokens(self, problem: PromptRequest) -> list[int]:
        name = (problem.id, problem.statement, *itertools.chain(*problem.details.items()))
        if name not in self._prompts:
            if len(self._prompts) >= _PROMPTS:
                self._prompts.clear()
            self._prompts[name] = self._tokenised(problem)
        return self._prompts[name]

    def _tokenised(self, problem: PromptRequest) -> list[int]:
        tokenizer = self.engine.tokenizer
        messages = self._prompt.messages(problem)
        if getattr(tokenizer, "chat_template", None) is None:
            return list(tokenizer.encode(plain_text(messages)))
        text = apply_chat_template(
            tokenizer, messages, tokenize=False, add_generation_prompt=True, **self._tags.template_arguments
        )
        return list(tokenizer.encode(text, add_special_tokens=False))

    def _template_stops(self) -> tuple[int, ...]:
        """Return the template's end-of-turn token if vLLM ignores it."""
        stops = stop_tokens(self.engine.tokenizer, self.engine.end_tokens)
        if not stops.added or stops.turn_end is None:
            return ()
        print(f"model {self.settings.model}: {stops.phrase(self.engine.tokenizer)}", file=sys.stderr)
        return (stops.turn_end,)

    def _sampling(self, problem: str, index: int) -> Any:
        decoding = self.settings.decoding
        return sampling_params(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            max_tokens=decoding.max_tokens,
            seed=seed_of(problem, index),
            logprobs=False,
            stop_token_ids=self._added_stops,
        )
