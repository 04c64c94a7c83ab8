"""vLLM's engine as the trainer needs it: prompts as tokens, and new weights while requests run.

Invariants:
  - an update pauses the engine between two tokens and aborts nothing: requests in flight keep their tokens and their KV
    cache and go on with the new weights;
  - each token carries the version of the weights that made it, as vLLM itself counted (its spans of weight versions),
    and its log-probability under the distribution it was drawn from;
  - a prompt's cached keys and values are shared by requests of one version only;
  - weights of another shape are refused before the engine is touched; after an update that failed half-way nobody gets
    a token more: requests in flight end with an error, and so does every later call.

What it does not do: problems, prompts' texts, verdicts; gathering weights from a sharded trainer.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import VllmPolicy
from curation.policies.checkpoints import end_tokens, fitting, require_same_shape
from curation.policies.vllm.engine import (
    FINISH,
    first_line,
    follow_this_process,
    start_engine,
    stop_engine,
    token_logprobs,
    vllm_version,
)
from curation.policies.vllm.weight_senders import DeviceSender, FolderSender, Sender, Transfer, Weights
from curation.records import PolicyError

_BACKEND = {"folder": "goldilocks_folder", "nccl": "nccl", "ipc": "ipc"}


@dataclass(frozen=True, slots=True)
class Made:
    """One response. ``logprobs`` and ``versions`` have one entry per token; ``finish`` is ``stop`` or ``length``."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    text: str
    finish: str


class TrainingEngine:
    """An engine whose weights change while it generates. Lives inside its ``async with`` block, in one event loop.

    Args:
        settings: ``model`` is a folder; of ``decoding``, temperature and top_p are used.
        folder: what a relative ``settings.model`` is relative to.
        transfer: how weights come; see `curation.policies.vllm.weight_senders`.
        address: of this machine as the engine reaches it, for ``nccl``.

    Raises:
        PolicyError: there is no such folder; on entering: vLLM is not installed, or cannot load the model.
    """

    def __init__(
        self, settings: VllmPolicy, folder: Path, transfer: Transfer = "folder", address: str = "127.0.0.1"
    ) -> None:
        self.settings = settings
        self.folder = (folder / Path(settings.model).expanduser()).resolve()
        if not self.folder.is_dir():
            raise PolicyError(f"model {settings.model}: there is no folder {self.folder}; training needs a local one.")
        self.paused_s = 0.0
        self._transfer: Transfer = transfer
        self._sender: Sender = (
            FolderSender() if transfer == "folder" else DeviceSender(transfer, settings.tensor_parallel, address)
        )
        self._version = 0
        self._engine: Any = None
        self._numbers = itertools.count()
        self._asked: set[str] = set()
        self._one_at_a_time = asyncio.Lock()
        self._exchanges: set[asyncio.Task[None]] = set()
        self._broken = ""

    async def __aenter__(self) -> Self:
        self._engine = start_engine(
            self.settings,
            str(self.folder),
            vllm_version(),
            _BACKEND[self._transfer],
            worker_extension_cls="curation.policies.vllm.worker.TrainedWorker",
        )
        entered = False
        try:
            await follow_this_process(self._engine)
            await self._engine.update_weight_version("0")
            self._limit: int = self._engine.model_config.max_model_len
            self._stops = list(end_tokens(self.folder))
            entered = True
        finally:
            if not entered:
                await self._stop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        await self._stop()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> Made:
        """One response. Cancelling the call aborts the request in the engine.

        Raises:
            PolicyError: the prompt fills the context; the engine has died, was left, or an update failed.
        """
        from vllm.exceptions import VLLMError

        self._require_running()
        if len(prompt_ids) >= self._limit:
            raise PolicyError(
                f"{self.folder.name}: a prompt takes {len(prompt_ids)} tokens, the context is {self._limit}; drop the "
                "problem or raise max_model_len."
            )
        wanted = {"type": "token", "prompt_token_ids": list(prompt_ids), "cache_salt": str(self._version)}
        request = f"rollout-{next(self._numbers)}"
        sampling = self._sampling(seed, min(max_tokens, self._limit - len(prompt_ids)))
        final: Any = None
        self._asked.add(request)
        try:
            async for output in self._engine.generate(wanted, sampling, request):
                final = output
        except VLLMError as error:
            raise PolicyError(f"vLLM, model {self.folder.name}: {self._broken or first_line(error)}") from error
        finally:
            self._asked.discard(request)
        made = final.outputs[0]
        if made.finish_reason not in FINISH:
            raise PolicyError(
                f"vLLM, model {self.folder.name}: {self._broken or f'a request ended as {made.finish_reason!r}'}."
            )
        return Made(tuple(made.token_ids), token_logprobs(made), _versions(made), made.text, FINISH[made.finish_reason])

    async def update(self, weights: Weights, version: int) -> float:
        """Exchange the weights between two tokens; the seconds it took. Tokens made from then on carry ``version``.

        Once begun, an update goes on to its end even where the call is cancelled.

        Raises:
            PolicyError: the weights are of another shape (nothing has changed); or the update failed half-way.
        """
        self._require_running()
        begun = time.perf_counter()
        exchange = asyncio.create_task(self._exchange(self._fitting(weights), version))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        await asyncio.shield(exchange)
        return time.perf_counter() - begun

    async def _exchange(self, weights: Weights, version: int) -> None:
        async with self._one_at_a_time:
            self._require_running()
            sending = asyncio.create_task(asyncio.to_thread(self._sender.send, weights, _Control(self, version)))
            await asyncio.wait([sending])
            if (failure := sending.exception()) is not None:  # the engine's process answers with bare exceptions
                self._broken = f"weights {version} were not exchanged to the end ({first_line(failure)}); start again"
                await self._engine.abort(sorted(self._asked))
                raise PolicyError(f"vLLM, model {self.folder.name}: {self._broken}.") from failure

    def _fitting(self, weights: Weights) -> Weights:
        """The weights under the names of the checkpoint: a tensor under a second name (tied weights) goes once."""
        if isinstance(weights, Path):
            require_same_shape(self.folder, weights)
            return weights
        return fitting(self.folder, weights)

    def _require_running(self) -> None:
        if self._engine is None:
            raise PolicyError(f"{self.folder.name}: vLLM is not running; use `async with`.")
        if self._broken:
            raise PolicyError(f"vLLM, model {self.folder.name}: {self._broken}.")

    async def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            self._sender.close()
            await stop_engine(engine)

    def _sampling(self, seed: int, max_tokens: int) -> Any:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        return SamplingParams(
            temperature=self.settings.decoding.temperature,
            top_p=self.settings.decoding.top_p,
            max_tokens=max_tokens,
            stop_token_ids=self._stops,
            seed=seed % 2**63,
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )


class _Control:
    """One update, as `sending` drives it from its thread: the engine pauses while weights are exchanged."""

    def __init__(self, owner: TrainingEngine, version: int) -> None:
        self._owner, self._version = owner, version
        self._engine = owner._engine
        self._loop = asyncio.get_running_loop()
        self._paused = 0.0

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        from vllm.distributed.weight_transfer.base import WeightTransferInitRequest

        self._do(self._engine.init_weight_transfer_engine(WeightTransferInitRequest(init_info)))

    def start_weight_update(self) -> None:
        self._paused = time.perf_counter()
        self._do(self._engine.pause_generation(mode="keep", clear_cache=False))
        self._do(self._engine.start_weight_update())

    def update_weights(self, update_info: dict[str, Any]) -> None:
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        self._do(self._engine.update_weights(WeightTransferUpdateRequest(update_info)))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._do(self._engine.finish_weight_update(weight_version or str(self._version)))
        self._owner._version = self._version
        self._do(self._engine.resume_generation())
        self._owner.paused_s += time.perf_counter() - self._paused

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _versions(made: Any) -> tuple[int, ...]:
    """The version of each token, from vLLM's spans."""
    spans: Sequence[Any] = made.weight_versions
    return tuple(int(span.version) for span in spans for _ in range(span.start, span.end))
