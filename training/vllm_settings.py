"""Settings of generation with vLLM, one more kind of generator of a training recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from curation.config.base import Settings


class VllmGenerator(Settings):
    """Generation with vLLM, in processes of its own that take new weights while they generate."""

    kind: Literal["vllm"] = Field(description="`vllm`: an engine on this machine.")
    capacity: int | None = Field(
        None, ge=1, description="Requests that the engine decodes together; `n_async` where absent."
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field(
        "auto", description="Type of weights and activations; `auto` is the checkpoint's own."
    )
    max_model_len: int | None = Field(
        None, ge=2, description="Tokens of prompt and answer together; the model's own limit where absent."
    )
    gpu_memory: float = Field(0.9, gt=0, le=1, description="Share of the GPU's memory that the engine may use.")
    kv_cache_mb: int | None = Field(
        None,
        ge=16,
        description="Memory of the KV cache, MiB. Where absent: what `gpu_memory` leaves; 1024 on a CPU.",
    )
    tensor_parallel: int = Field(1, ge=1, description="GPUs that share the model's layers.")
    enforce_eager: bool | None = Field(
        None, description="Do not compile the model: a quicker start, slower tokens. Where absent: only on a CPU."
    )
    cpu_threads: int = Field(1, ge=1, description="Threads of the engine where vLLM is its CPU build.")
    transfer: Literal["folder", "nccl", "ipc"] = Field(
        "folder",
        description="How weights reach the engine: `folder`, safetensors in a file system in memory, which always "
        "works on one machine; `nccl`, from another GPU than the engine's; `ipc`, from the same GPU.",
    )
    address: str = Field("127.0.0.1", description="Of the trainer's machine, as the engine reaches it; for `nccl`.")
