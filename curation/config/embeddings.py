"""Who turns texts into sentence vectors: the small model that comes with an extra, ONNX Runtime, torch, or servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curation.config.base import Settings, Url
from curation.config.engines import ServerSettings

Pooling = Annotated[
    Literal["mean", "cls", "last"],
    Field(
        description="Which of the last layer's vectors is a text's: their `mean`, the first (`cls`) or the `last` one; "
        "the model's card says it. Not in the paper."
    ),
]
Prefix = Annotated[
    str, Field(description="What stands before every text, where the model's card asks for it. Not in the paper.")
]
TextTokens = Annotated[int, Field(ge=8, description="Tokens of a text that count. Not in the paper.")]
Batch = Annotated[int, Field(ge=1, description="Texts of similar length computed together. Not in the paper.")]


class MiniLmEmbedder(Settings):
    """all-MiniLM-L6-v2 in NumPy, on the CPU, from the extra `embeddings`."""

    kind: Literal["minilm"] = Field("minilm", description="`minilm`: all-MiniLM-L6-v2 in NumPy, on the CPU.")
    batch: Batch = 16


class OnnxEmbedder(Settings):
    """A model in ONNX Runtime, on a CPU or a GPU."""

    kind: Literal["onnx"] = Field(description="`onnx`: a model's folder, in ONNX Runtime (the extra `onnx`).")
    model: str = Field(
        min_length=1,
        description="Folder with `model.onnx`, or `onnx/model.onnx`, and `tokenizer.json`; relative to the recipe's.",
    )
    pooling: Pooling = "mean"
    prefix: Prefix = ""
    max_tokens: TextTokens = 256
    batch: Batch = 32
    device: Literal["cpu", "cuda"] = Field(
        "cpu", description="Where it is computed; `cuda` wants ONNX Runtime's build for GPUs."
    )
    threads: int = Field(0, ge=0, description="Threads on a CPU; 0: as many as there are cores.")


class TorchEmbedder(Settings):
    """A model that torch runs in this process."""

    kind: Literal["torch"] = Field(description="`torch`: a model's folder or hub name, in torch and transformers.")
    model: str = Field(
        min_length=1, description="Folder of the model, relative to the recipe's, or its name on the hub."
    )
    revision: str | None = Field(
        None,
        description="Commit or tag of a model of the hub: required there. A folder is named by a hash of its weights.",
    )
    pooling: Pooling = "mean"
    prefix: Prefix = ""
    max_tokens: TextTokens = 256
    batch: Batch = 64
    device: str = Field("auto", min_length=1, description="A torch device; `auto`: a GPU where there is one.")
    dtype: Literal["float32", "bfloat16", "float16"] = Field("float32", description="Type of weights and activations.")


class EndpointEmbedder(ServerSettings):
    """A model behind OpenAI-compatible servers: `vllm serve`, or any other that answers `/embeddings`."""

    kind: Literal["endpoint"] = Field(description="`endpoint`: OpenAI-compatible servers, asked for `/embeddings`.")
    urls: tuple[Url, ...] = Field(
        min_length=1, description="The servers' base addresses, as in `http://localhost:8000/v1`; all hold one model."
    )
    model: str = Field(min_length=1, description="Name of the model, as the servers list it.")
    revision: str = Field(
        pattern=r"^[^@\s]+$", description="Which state of the model the servers hold; they cannot be asked for it."
    )
    prefix: Prefix = ""
    max_letters: int = Field(
        2000,
        ge=8,
        description="Letters of a text that are sent: servers refuse what is longer than the model's context. Not in "
        "the paper.",
    )
    batch: int = Field(64, ge=1, description="Texts in one request. Not in the paper.")
    in_flight: int = Field(8, ge=1, description="Requests in flight per server. Not in the paper.")


EmbedderSettings = Annotated[
    MiniLmEmbedder | OnnxEmbedder | TorchEmbedder | EndpointEmbedder, Field(discriminator="kind")
]
"""Who computes vectors; `kind` says who."""
