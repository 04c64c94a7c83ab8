"""A policy that answers with vLLM on this machine: its asynchronous engine, started for the run and ended with it.

Invariants:
  - cancelling `answer` aborts the request in the engine;
  - every (problem, index) draws with its own seed, derived from the recipe's (`seeds.seed_of`);
  - log-probabilities are those of the distribution that was drawn from, after temperature and top-p;
  - an attempt always has room for `max_tokens`; a prompt that leaves less gets no attempt (`answer` returns None, and
    `too_long` counts them), for a shorter one would stand in the store as something it is not;
  - the engine's processes end with this one, however it ends (`following`).

What it does not do: balance several engines (that is `endpoint`), or update weights while requests run (that is
`training`, for the trainer's generator). vLLM is imported below this package and nowhere else, when an engine starts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import VllmPolicy
from curation.policies.checkpoints import folder_revision, require_same_shape
from curation.policies.seeds import about_of, key_of, seed_of
from curation.policies.vllm.engine import (
    FINISH,
    first_line,
    follow_this_process,
    start_engine,
    stop_engine,
    token_logprobs,
)
from curation.policies.vllm.engine import vllm_version as _version
from curation.prompts import SOLVING, Prompt, plain_text
from curation.records import Answered, AttemptKey, PolicyError, Prompted

_PROMPTS = 4096
"""Prompts whose tokens are remembered; a problem's attempts would have it tokenised n times."""


class Vllm:
    """vLLM's asynchronous engine under the `Policy` protocol.

    Example::

        async with Vllm(VllmPolicy(kind="vllm", model="models/small"), Path.cwd()) as policy:
            answered = await policy.answer(problem, 0)

    Args:
        folder: what a relative `settings.model` is relative to. Where there is no such folder, `settings.model` is the
            name of a model on the hub, and `settings.revision` says which.
        prompt: what is asked, where it is not the prompt that the settings name.

    Raises:
        PolicyError: no such folder and no revision; a folder without weights; on entering: vLLM is not installed, the
            model cannot be loaded, or its context is too short.
    """

    def __init__(self, settings: VllmPolicy, folder: Path, prompt: Prompt | None = None) -> None:
        self.settings = settings
        local = folder / Path(settings.model).expanduser()
        self._local: Path | None = local.resolve() if local.is_dir() else None
        if self._local is None and settings.revision is None:
            raise PolicyError(
                f"model {settings.model}: there is no folder {local}; for a model of the hub, give its `revision`."
            )
        self.in_flight = settings.in_flight
        self.key: AttemptKey = key_of(settings, self._name(), prompt)
        self.too_long = 0
        self._prompt = prompt or SOLVING[settings.prompt]
        self._engine: Any = None
        self._numbers = itertools.count()
        self._prompts: dict[tuple[str, ...], list[int]] = {}
        self._broken = ""

    @property
    def about(self) -> Mapping[str, Any]:
        """What stands in the store beside the key."""
        return {
            **about_of(self.settings, self._prompt),
            "dtype": self.settings.dtype,
            "max_model_len": self.settings.max_model_len,
            "engine": f"vllm {_version() or 'not installed'}",
        }

    async def __aenter__(self) -> Self:
        local = self._local
        self._engine = start_engine(
            self.settings,
            str(local or self.settings.model),
            _version(),
            revision=None if local else self.settings.revision,
        )
        entered = False
        try:
            await follow_this_process(self._engine)
            self._limit: int = self._engine.model_config.max_model_len
            if self.settings.decoding.max_tokens >= self._limit:
                raise PolicyError(
                    f"model {self.settings.model}: decoding.max_tokens = {self.settings.decoding.max_tokens} leaves no "
                    f"room for a prompt in a context of {self._limit} tokens; lower it, or raise max_model_len."
                )
            entered = True
        finally:
            if not entered:
                await self._stop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def answer(self, problem: Prompted, index: int) -> Answered | None:
        """One attempt; None where the prompt leaves too little room for it.

        Raises:
            PolicyError: the engine has died, or refuses the request.
        """
        from vllm.exceptions import VLLMError

        self._require_running()
        tokens = self._tokens(problem)
        if len(tokens) + self.settings.decoding.max_tokens > self._limit:
            self.too_long += 1
            return None
        request = f"{problem.id}-{index}-{next(self._numbers)}"
        final: Any = None
        try:
            wanted = {"type": "token", "prompt_token_ids": tokens}
            async for output in self._engine.generate(wanted, self._sampling(problem.id, index), request):
                final = output
        except VLLMError as error:
            raise PolicyError(f"vLLM, model {self.settings.model}, problem {problem.id}: {error}") from error
        made = final.outputs[0]
        if made.finish_reason not in FINISH:
            raise PolicyError(f"vLLM, problem {problem.id}: the request ended as {made.finish_reason!r}.")
        ids = tuple(made.token_ids)
        return Answered(
            text=made.text,
            finish=FINISH[made.finish_reason],
            tokens=len(ids),
            token_ids=ids if self.settings.keep_tokens else None,
            logprobs=token_logprobs(made) if self.settings.keep_tokens else None,
        )

    async def load_weights(self, folder: Path) -> None:
        """Go on with the weights of another checkpoint of the same model, in the engine that runs.

        Requests in flight are first answered to their end by the old weights; cached prompts are forgotten. ``key``
        names the new weights from then on. Tokenizer and chat template stay.

        Raises:
            PolicyError: the folder holds no weights, or of another shape (the engine goes on with its own); or loading
                failed half-way, after which the engine answers nothing more.
        """
        self._require_running()
        folder = folder.resolve()
        revision = folder_revision(folder)
        if self._local is not None:
            require_same_shape(self._local, folder)
        await self._engine.pause_generation(mode="wait", clear_cache=True)
        self._broken = f"the weights of {folder} were not loaded to the end"
        loading = asyncio.create_task(self._reload(folder))
        try:
            await asyncio.wait([loading])
        finally:
            await self._engine.resume_generation()
        if (failure := loading.exception()) is not None:  # the engine's process answers with bare exceptions
            raise PolicyError(f"vLLM: {self._broken} ({first_line(failure)}); start the run again.") from failure
        self._broken = ""
        self._local = folder
        self.key = AttemptKey(f"{folder.name}@{revision}", self.key.prompt, self.key.sampling)

    def _name(self) -> str:
        if self._local is None:
            return f"{self.settings.model}@{self.settings.revision}"
        return f"{self._local.name}@{folder_revision(self._local)}"

    async def _reload(self, folder: Path) -> None:
        await self._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
        await self._engine.collective_rpc("pack_tied_layers")

    async def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await stop_engine(engine)

    def _require_running(self) -> None:
        if self._engine is None:
            raise PolicyError("vLLM is asked before it was entered, or after it was left: use `async with`.")
        if self._broken:
            raise PolicyError(f"vLLM: {self._broken}.")

    def _tokens(self, problem: Prompted) -> list[int]:
        """The prompt's tokens, which the attempts at a problem share."""
        name = (problem.id, problem.statement, *itertools.chain(*problem.details.items()))
        if name not in self._prompts:
            if len(self._prompts) >= _PROMPTS:
                self._prompts.clear()
            self._prompts[name] = self._tokenised(problem)
        return self._prompts[name]

    def _tokenised(self, problem: Prompted) -> list[int]:
        """The prompt: by the tokenizer's chat template, or as `plain_text` where it has none."""
        tokenizer = self._engine.get_tokenizer()
        messages = self._prompt.messages(problem)
        if getattr(tokenizer, "chat_template", None) is None:
            return list(tokenizer.encode(plain_text(messages)))
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(tokenizer.encode(text, add_special_tokens=False))

    def _sampling(self, problem: str, index: int) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        decoding = self.settings.decoding
        return SamplingParams(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            max_tokens=decoding.max_tokens,
            stop=list(decoding.stop),
            seed=seed_of(decoding.seed, problem, index),
            logprobs=0 if self.settings.keep_tokens else None,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
