"""What measuring and training have in common where a model runs in vLLM's engine, or behind servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from curation.config.base import Settings, Url
from curation.public_urls import public_url

HIGHEST_LIMIT = 1024
"""Requests in flight per server where nobody says how many it bears."""

HeadDtype = Literal["model", "float32"]
"""Type in which a model's output layer computes: that of the rest of it, or fp32; vLLM's own words."""


class EngineSettings(Settings):
    """vLLM's engine on this machine."""

    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field(
        "auto", description="Type of weights and activations; `auto` is the checkpoint's own."
    )
    max_model_len: int | None = Field(
        None, ge=2, description="Tokens of prompt and answer together; the model's own limit where absent."
    )
    gpu_memory: float = Field(
        0.9, gt=0, le=1, description="Share of the GPU's memory that the engine may use, weights and KV cache together."
    )
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


class ServerSettings(Settings):
    """Servers that hold one model, and how patiently they are asked."""

    urls: tuple[Url, ...] = Field(min_length=1, description="The servers' base addresses.")
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the environment variable that holds the key. The key itself never stands in a recipe.",
    )
    per_server: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        64,
        description="Most requests in flight per server. Fewer are, for a while, if a server refuses a quarter of them "
        "for now (429, 503) or does not answer in time. `auto`: as many as raise a server's throughput, up to 1,024. "
        "Not in the paper.",
    )
    retries: int = Field(
        8,
        ge=0,
        description="How often one request is asked again, of any server, where it was refused for now (429, 5xx), not "
        "answered in time, or lost with its server.",
    )
    connect_s: float = Field(10.0, gt=0, description="Seconds to reach a server.")
    request_s: float = Field(1800.0, gt=0, description="Seconds for one answer.")
    back_off_s: float = Field(
        0.5, gt=0, description="First pause before asking again; it doubles up to a minute, with chance added."
    )
    give_up_s: float = Field(
        300.0, ge=0, description="Seconds without any living server after which the run stops; it can be resumed."
    )

    @property
    def most_per_server(self) -> int:
        """Return the most requests in flight per server."""
        return HIGHEST_LIMIT if self.per_server == "auto" else self.per_server

    @field_validator("urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [url for url in urls if not url.startswith(("http://", "https://"))]
        if wrong:
            raise ValueError(f"{public_url(wrong[0])!r} is no address; write http://host:port/v1")
        if len({url.rstrip("/").removesuffix("/v1") for url in urls}) < len(urls):
            raise ValueError("one server stands there twice")
        return urls
