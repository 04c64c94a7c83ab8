"""A policy on vLLM's engine in this process.

Invariants: a prompt without room for `max_tokens` is refused; the engine's processes end with this one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from curation.config import VllmModel
from curation.policies.chat_templates import apply_chat_template, stop_tokens
from curation.policies.checkpoints import folder_revision
from curation.policies.completions import FINISHED, ResponseReader
from curation.policies.seeds import LivePolicy, seed_of
from curation.policies.vllm.engine import first_line, start_engine, visible_gpus, vllm_version
from curation.prompts import Prompt, plain_text
from curation.records import Completion, PolicyError, PromptRequest, RequestRefused
from curation.storage.scratch import ScratchFolder


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
        if self._local is not None:
            name = f"{self._local.name}@{folder_revision(self._local)}"
        elif settings.revision is not None:
            name = settings.name
        else:
            raise PolicyError(
                f"model {settings.model}: there is no folder {local}; for a model of the hub, give its `revision`."
            )
        self.copies = settings.copies(len(visible_gpus()) if settings.data_parallel == "auto" else 0)
        self.in_flight = settings.in_flight * self.copies
        super().__init__(settings, name, prompt)
        self._numbers = itertools.count()
        self._engine: Any = None

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes."""
        return {**super().about, "engine": f"vllm {vllm_version() or 'not installed'}"}

    async def __aenter__(self) -> Self:
        self._require_gpus()
        model, revision = (str(self._local), None) if self._local else (self.settings.model, self.settings.revision)
        self._sockets = ScratchFolder("vllm")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            self._engine = start_engine(model, revision, self.settings, self.copies, self._sockets.path)
            await self._prepare()
            stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt; cancelling aborts it.

        Raises:
            RequestRefused: the prompt is too long, or the engine refuses it.
            PolicyError: the engine has died.
        """
        from vllm.exceptions import VLLMClientError, VLLMError

        tokens, label = self._tokens(problem), f"{problem.id}-{index}"
        self._require_room(f"problem {problem.id}", len(tokens), self._context)
        prompt = {"type": "token", "prompt_token_ids": tokens}
        sampling, request = self._sampling(problem.id, index), f"{label}-{next(self._numbers)}"
        where = f"vLLM, model {self.settings.model}, {label}"
        final: Any = None
        try:
            async for output in self._engine.generate(prompt, sampling, request):
                final = output
        except VLLMClientError as error:
            raise RequestRefused("400", f"{where}: {first_line(error)}") from error
        except VLLMError as error:
            raise PolicyError(f"{where}: {first_line(error)}") from error
        response = final.outputs[0]
        if response.finish_reason not in FINISHED:
            raise PolicyError(f"{where}: the request ended as {response.finish_reason!r}.")
        text = self._reader.text(tokens, response.token_ids, response.text)
        return Completion(self._tags.house_form(text), response.finish_reason, len(response.token_ids))

    def _require_gpus(self) -> None:
        gpus, needed = len(visible_gpus()), self.copies * self.settings.tensor_parallel
        if 0 < gpus < needed:
            raise PolicyError(
                f"model {self.settings.model}: {self.copies} copies of {self.settings.tensor_parallel} GPUs each need "
                f'{needed} GPUs, and this machine has {gpus}; lower data_parallel, or write data_parallel = "auto".'
            )

    async def _prepare(self) -> None:
        """Make the engine's processes end with this one, and read its context and end tokens."""
        engine = self._engine
        coordinator = engine.engine_core.resources.coordinator  # of several copies
        also = [coordinator.proc.pid] if coordinator is not None else []
        await engine.collective_rpc("follow_process", args=(os.getpid(), also))
        self._context = int(engine.model_config.max_model_len)
        self._require_context(f"model {self.settings.model}", self._context, "max_model_len")
        self._tokenizer = engine.get_tokenizer()
        self._reader = ResponseReader(self._tokenizer, self._tags)
        ends = engine.model_config.try_get_generation_config().get("eos_token_id")
        stops = stop_tokens(self._tokenizer, () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends))
        self._added_stops: list[int] = []  # the template's end of a turn, if vLLM would ignore it
        if stops.added and stops.turn_end is not None:
            print(f"model {self.settings.model}: {stops.phrase(self._tokenizer)}", file=sys.stderr)
            self._added_stops = [stops.turn_end]

    async def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()
            await asyncio.sleep(0)  # its tasks see that they are cancelled
            engine.engine_core.resources.ctx.destroy(linger=0)  # vLLM leaves its sockets' context open
        self._sockets.remove()

    def _tokens(self, problem: PromptRequest) -> list[int]:
        tokenizer, messages = self._tokenizer, self._prompt.messages(problem)
        if getattr(tokenizer, "chat_template", None) is None:
            return list(tokenizer.encode(plain_text(messages)))
        text = apply_chat_template(
            tokenizer, messages, tokenize=False, add_generation_prompt=True, **self._tags.template_arguments
        )
        return list(tokenizer.encode(text, add_special_tokens=False))

    def _sampling(self, problem: str, index: int) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        return SamplingParams(
            **self.settings.decoding.model_dump(),
            stop_token_ids=self._added_stops,
            seed=seed_of(problem, index),
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
