"""The model that computes sentence vectors: the small one of an extra, one in ONNX Runtime, or one behind servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curation.config.base import Settings, Url

Prefix = Annotated[
    str, Field(description="Text before every statement, if the model's card asks for it. Not in the paper.")
]


class MiniLmEmbedder(Settings):
    """all-MiniLM-L6-v2 in NumPy, on the CPU, from the extra `embeddings`."""

    kind: Literal["minilm"] = Field("minilm", description="`minilm`: all-MiniLM-L6-v2 in NumPy, on the CPU.")


class OnnxEmbedder(Settings):
    """A model in ONNX Runtime, on a GPU if this build of it has one, else on the CPU."""

    kind: Literal["onnx"] = Field(description="`onnx`: a model's folder, in ONNX Runtime (the extra `onnx`).")
    model: str = Field(
        min_length=1,
        description="Folder with `model.onnx`, or `onnx/model.onnx`, and `tokenizer.json`; relative to the recipe's.",
    )
    pooling: Literal["mean", "cls", "last"] = Field(
        "mean",
        description="Which of the last layer's vectors is a text's: their `mean`, the first (`cls`) or the `last` one, "
        "as on the model's card. Not in the paper.",
    )
    prefix: Prefix = ""


class EndpointEmbedder(Settings):
    """A model behind OpenAI-compatible servers: `vllm serve`, or any other that answers `/embeddings`."""

    kind: Literal["endpoint"] = Field(description="`endpoint`: OpenAI-compatible servers, asked for `/embeddings`.")
    model: str = Field(min_length=1, description="Name of the model, as the servers list it.")
    revision: str = Field(
        pattern=r"^[^@\s]+$", description="State of the model that the servers hold; they cannot be asked for it."
    )
    urls: tuple[Url, ...] = Field(
        min_length=1, description="The servers' base addresses, as in `http://localhost:8000/v1`; all hold one model."
    )
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the environment variable that holds the key. The key itself is never in a recipe.",
    )
    prefix: Prefix = ""


EmbedderSettings = Annotated[MiniLmEmbedder | OnnxEmbedder | EndpointEmbedder, Field(discriminator="kind")]
"""The model that computes vectors, by its `kind`."""
