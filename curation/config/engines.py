"""What measuring and training share of a model in vLLM's engine, or on servers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from curation.config.base import Settings, Url
from curation.public_urls import public_url


class EngineSettings(Settings):
    """vLLM's engine on this machine."""

    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field(
        "auto", description="Type of weights and activations; `auto`: the checkpoint's."
    )
    max_model_len: int | None = Field(
        None, ge=2, description="Max tokens of prompt and answer together; the model's limit if missing."
    )
    gpu_memory: float = Field(0.9, gt=0, le=1, description="Share of the GPU's memory for the engine.")
    kv_cache_mb: int | None = Field(
        None,
        ge=16,
        description="MiB of the KV cache; the rest of `gpu_memory` if missing, 1024 on a CPU.",
    )
    tensor_parallel: int = Field(1, ge=1, description="GPUs that share the model's layers.")


class ServerSettings(Settings):
    """Servers that hold one model."""

    urls: tuple[Url, ...] = Field(min_length=1, description="The servers' base addresses.")
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Environment variable with the key.",
    )
    in_flight: int = Field(64, ge=1, description="Max requests in flight per server; fewer after many 429 or 503.")

    @field_validator("urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [url for url in urls if not url.startswith(("http://", "https://"))]
        if wrong:
            raise ValueError(f"{public_url(wrong[0])!r} is no address; write http://host:port/v1")
        if len({url.rstrip("/").removesuffix("/v1") for url in urls}) < len(urls):
            raise ValueError("it names one server twice")
        return urls
