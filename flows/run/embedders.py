"""Open the embedder that a recipe's settings name: those of curation, and the one that torch computes.

`curation` knows no torch, so that kind is added here.
"""

from __future__ import annotations

from pathlib import Path

from curation.config.embeddings import EmbedderSettings
from curation.embeddings.base import Embedder
from curation.embeddings.factory import EMBEDDERS as CURATION_EMBEDDERS
from curation.embeddings.factory import open_embedder as open_by

EMBEDDERS = {**CURATION_EMBEDDERS, "torch": "training.generation.torch_embedder:TorchVectors"}


def open_embedder(settings: EmbedderSettings, recipe_folder: Path) -> Embedder:
    """Return the embedder that a recipe names; weights are read when the first text is embedded.

    Raises:
        GoldilocksError: what the settings name is not there.
    """
    return open_by(settings, recipe_folder, embedders=EMBEDDERS)
