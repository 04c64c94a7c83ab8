"""vLLM's engine in this process: tokens of prompts in, completions out.

Invariants:
  - cancelling a request aborts it in the engine;
  - log-probabilities are those of the distribution that was drawn from, after temperature and top-p;
  - if weights change while it runs, each token has the version that made it, as counted by vLLM;
  - after weights that were loaded only in part the engine answers nothing: requests in flight and later calls fail;
  - its processes end with this one (`curation.policies.vllm.reloading.Worker`).

vLLM is imported when an engine starts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import EngineSettings
from curation.policies.completions import FINISHED, TokenCompletion
from curation.policies.vllm.startup import Launch, first_line, follow_this_process, start_engine, stop_engine
from curation.records import PolicyError, RequestRefused


class VllmEngine:
    """One engine. Lives inside its ``async with`` block, in one event loop.

    Raises:
        PolicyError: on entering: vLLM is not installed, or cannot load the model.
    """

    def __init__(self, launch: Launch, settings: EngineSettings) -> None:
        self.launch, self.settings = launch, settings
        self.broken = ""
        """Why the engine generates no more tokens; empty while all is well."""
        self._engine: Any = None
        self._numbers = itertools.count()
        self._in_flight: set[str] = set()

    async def __aenter__(self) -> Self:
        self._engine = start_engine(self.launch, self.settings)
        entered = False
        try:
            await follow_this_process(self._engine)
            if self.launch.transfer is not None:
                await self._engine.update_weight_version("0")
            entered = True
        finally:
            if not entered:
                await self.stop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def vllm(self) -> Any:
        """Return vLLM's own engine, an ``AsyncLLM``; raises as `require_running` does."""
        self.require_running()
        return self._engine

    @property
    def tokenizer(self) -> Any:
        """Return the engine's tokenizer; raises as `require_running` does."""
        return self.vllm.get_tokenizer()

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Return the tokens at which vLLM ends a response by itself; raises as `require_running` does."""
        return end_tokens_of(self.vllm.model_config)

    @property
    def context(self) -> int:
        """Return the most tokens of prompt and answer together; raises as `require_running` does."""
        return int(self.vllm.model_config.max_model_len)

    def require_running(self) -> None:
        """Raise `PolicyError` where the engine does not run, or its weights were not loaded to the end."""
        if self._engine is None:
            raise PolicyError(f"vLLM, model {self.launch.name}: is not running; use `async with`.")
        if self.broken:
            raise PolicyError(f"vLLM, model {self.launch.name}: {self.broken}.")

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Any, label: str, cache_salt: str = ""
    ) -> TokenCompletion:
        """Return one response. Cancelling the call aborts the request in the engine.

        Args:
            sampling: from `sampling_params`.
            label: what errors call the request.
            cache_salt: requests of one salt share the keys and values of the prompts that they have in common.

        Raises:
            RequestRefused: the engine refuses the request.
            PolicyError: the engine has died, was left, or its weights are broken.
        """
        from vllm.exceptions import VLLMClientError, VLLMError

        engine = self.vllm
        prompt: dict[str, Any] = {"type": "token", "prompt_token_ids": list(prompt_ids)}
        if cache_salt:
            prompt["cache_salt"] = cache_salt
        request = f"{label}-{next(self._numbers)}"
        final: Any = None
        self._in_flight.add(request)
        try:
            async for output in engine.generate(prompt, sampling, request):
                final = output
        except VLLMClientError as error:
            raise RequestRefused("400", f"vLLM, model {self.launch.name}, {label}: {first_line(error)}") from error
        except VLLMError as error:
            raise PolicyError(f"vLLM, model {self.launch.name}, {label}: {self.broken or first_line(error)}") from error
        finally:
            self._in_flight.discard(request)
        response = final.outputs[0]
        if response.finish_reason not in FINISHED:
            why = self.broken or f"the request ended as {response.finish_reason!r}"
            raise PolicyError(f"vLLM, model {self.launch.name}, {label}: {why}.")
        return TokenCompletion(
            tuple(prompt_ids),
            tuple(response.token_ids),
            _logprobs(response),
            _versions(response) if self.launch.transfer is not None else (),
            response.text,
            response.finish_reason,
        )

    async def reload(self, folder: Path) -> None:
        """Go on with the weights of another folder. Requests in flight are first answered by the old ones.

        Raises:
            PolicyError: loading failed half-way, after which the engine answers nothing more.
        """
        engine = self.vllm
        await engine.pause_generation(mode="wait", clear_cache=True)
        self.broken = f"the weights of {folder} were not loaded to the end"
        loading = asyncio.create_task(engine.collective_rpc("load_folder", args=(str(folder),)))
        try:
            await asyncio.wait([loading])
        finally:
            await engine.resume_generation()
        if (failure := loading.exception()) is not None:  # the engine's process answers with bare exceptions
            raise PolicyError(f"vLLM: {self.broken} ({first_line(failure)}); start the run again.") from failure
        self.broken = ""

    async def abandon(self, why: str) -> None:
        """Abort all requests in flight, and refuse all others from now on."""
        self.broken = why
        await self._engine.abort(sorted(self._in_flight))

    async def stop(self) -> None:
        """End the engine; a second call does nothing."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await stop_engine(engine)


def sampling_params(
    *,
    temperature: float,
    top_p: float,
    max_tokens: int,
    seed: int,
    logprobs: bool,
    stop_token_ids: Sequence[int] = (),
) -> Any:
    """Return vLLM's parameters of one request; with ``logprobs``, that of each token drawn."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    return SamplingParams(
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        stop_token_ids=list(stop_token_ids),
        seed=seed,
        logprobs=0 if logprobs else None,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def end_tokens_of(model_config: Any) -> tuple[int, ...]:
    """Return the tokens at which vLLM ends a response of a model by itself, from vLLM's own configuration of it."""
    ends = model_config.try_get_generation_config().get("eos_token_id")
    return () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends)


def _logprobs(output: Any) -> tuple[float, ...]:
    """Return the log-probability of each token of one of vLLM's outputs; empty where none were asked for."""
    if output.logprobs is None:
        return ()
    return tuple(float(at[token].logprob) for token, at in zip(output.token_ids, output.logprobs, strict=True))


def _versions(output: Any) -> tuple[int, ...]:
    """Return the version of the weights of each token, from vLLM's spans."""
    spans: Sequence[Any] = output.weight_versions
    return tuple(int(span.version) for span in spans for _ in range(span.start, span.end))
