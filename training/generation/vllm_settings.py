"""Settings of generation with vLLM, two more kinds of generator of a training recipe: here, and on servers.

What they share with the policies that measure is in `curation.config.engines`.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from curation.config.base import Url
from curation.config.engines import EngineSettings, ServerSettings
from curation.records import ConfigError

Way = Literal["folder", "http", "nccl", "gloo"]
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


class VllmGeneratorSettings(EngineSettings):
    """Generation with vLLM, in processes of its own that take new weights while they generate."""

    kind: Literal["vllm"] = Field(description="`vllm`: an engine on this machine.")


class EndpointGeneratorSettings(ServerSettings):
    """Generation on vLLM's servers, on this machine or others, which take new weights while they generate."""

    kind: Literal["endpoint"] = Field(description="`endpoint`: servers that are running.")
    urls: tuple[Url, ...] = Field(
        min_length=1,
        description="The servers' addresses, as in `http://gpu-1:8000`, started with `python -m "
        "curation.policies.vllm.serving MODEL`.",
    )
    folder: str | None = Field(
        None,
        description="Folder for new weights under a path that all servers see; in this machine's memory if missing.",
    )
    transfer: Literal["auto", "folder", "http", "nccl", "gloo"] = Field(
        "auto",
        description="How new weights reach the servers: `folder`, they read them; `http`, they fetch them; "
        "`nccl`, from GPU to GPU; `gloo`, between CPUs; `auto`: the fastest that fits "
        "(docs/how-to/clusters.md).",
    )
    in_flight: int = Field(128, ge=1, description="As a model's.")

    @property
    def all_here(self) -> bool:
        """Return whether all servers are on this machine."""
        return all(urlsplit(url).hostname in _THIS_MACHINE for url in self.urls)

    def way(self, device: str, vllm: str | None) -> Way:
        """Return how new weights reach the servers.

        Args:
            device: the trainer's, as ``cpu`` or ``cuda``.
            vllm: version of vLLM where the trainer runs, which joins the groups of `nccl` and `gloo`; None without.

        Raises:
            ConfigError: the recipe asks for a way that this machine has not.
        """
        on_gpu, fit = device.startswith("cuda"), vllm is not None and "cpu" not in vllm
        if self.transfer == "nccl" and not (on_gpu and fit):
            why = f"the trainer is on {device!r}" if not on_gpu else "vLLM for GPUs is not installed where it trains"
            raise ConfigError(f'generator.transfer = "nccl" needs a GPU on both sides, and {why}; set it to "auto".')
        if self.transfer == "gloo" and vllm is None:
            raise ConfigError('generator.transfer = "gloo" needs vLLM where it trains too; set it to "auto".')
        if self.transfer != "auto":
            return self.transfer
        return "nccl" if on_gpu and fit and self.all_here and self.folder is None else self.folder_way

    @property
    def folder_way(self) -> Literal["folder", "http"]:
        """Return how new weights reach a server as a folder."""
        if self.transfer in ("folder", "http"):
            return "folder" if self.transfer == "folder" else "http"
        return "folder" if self.folder is not None or self.all_here else "http"

    @field_validator("folder")
    @classmethod
    def _absolute(cls, folder: str | None) -> str | None:
        if folder is not None and not folder.startswith(("/", "~")):
            raise ValueError(f"{folder!r} is relative; give the absolute path under which all servers see it")
        return folder
