"""Open the embedder that the settings of a recipe name."""

from __future__ import annotations

from pathlib import Path

from curation.config.embeddings import EmbedderSettings, EndpointEmbedder, OnnxEmbedder
from curation.embeddings.base import Embedder


def open_embedder(settings: EmbedderSettings, recipe_folder: Path) -> Embedder:
    """Return the embedder of a recipe; weights are read when the first text is embedded.

    Args:
        recipe_folder: what paths in the settings are relative to.

    Raises:
        GoldilocksError: a package, a file or a key that the embedder needs is missing.
    """
    if isinstance(settings, OnnxEmbedder):
        from curation.embeddings.onnx_runtime import OnnxRuntime

        return OnnxRuntime(settings, recipe_folder)
    if isinstance(settings, EndpointEmbedder):
        from curation.embeddings.endpoint import EmbeddingEndpoint

        return EmbeddingEndpoint(settings)
    from curation.embeddings.minilm import MiniLm

    return MiniLm()
