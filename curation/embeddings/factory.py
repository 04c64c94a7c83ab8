"""Open the embedder that the settings of a recipe name. A new kind is one file, with its class, and one line here.

Packages above curation add kinds of their own by handing over a longer table.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from curation.embeddings.base import Embedder
from curation.records import ConfigError

if TYPE_CHECKING:
    from curation.config.embeddings import EmbedderSettings

EMBEDDERS: Mapping[str, str] = {
    "minilm": "curation.embeddings.minilm:MiniLm",
    "onnx": "curation.embeddings.onnx_runtime:OnnxRuntime",
    "endpoint": "curation.embeddings.endpoint:EmbeddingEndpoint",
}
"""Module and class by kind of settings; imported when one is opened, for some are heavy."""


def open_embedder(
    settings: EmbedderSettings, recipe_folder: Path, *, embedders: Mapping[str, str] = EMBEDDERS
) -> Embedder:
    """Return the embedder that a recipe names; weights are read when the first text is embedded.

    Args:
        recipe_folder: what paths in the settings are relative to.
        embedders: module and class by kind, as in `EMBEDDERS`.

    Raises:
        GoldilocksError: what the settings name is not there, or nothing here opens their kind.
    """
    if settings.kind not in embedders:
        raise ConfigError(f"embedder kind {settings.kind!r} cannot be opened here; kinds are {', '.join(embedders)}.")
    module, _, name = embedders[settings.kind].partition(":")
    embedder: Embedder = getattr(import_module(module), name)(settings, recipe_folder)
    return embedder
