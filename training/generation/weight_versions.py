"""Hold one version of the weights as tensors and, once needed, as a folder.

Invariant: a folder is whole or missing.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from curation.records import PolicyError
from training.generation.checkpoint_tensors import fitting, read_tensors, tensor_shapes, write_weights
from training.generation.generators import Weights


class WeightVersion:
    """A version of the weights, which has the shape of ``model``.

    Raises:
        PolicyError: the weights have another shape.
    """

    def __init__(self, model: Path, weights: Weights, version: int, shared: Path) -> None:
        self._folder = shared / version_name(version)
        self._lock = threading.Lock()
        self._written = False
        self._weights: Weights = weights
        if not isinstance(weights, Path):
            self._weights = fitting(model, weights)
        elif weights != model and tensor_shapes(weights) != tensor_shapes(model):
            raise PolicyError(f"weights {weights}: not of the shape of the model that runs, {model}.")

    def folder(self) -> Path:
        """Return the version's folder, written at the first call; call it on a thread."""
        with self._lock:
            if not self._written:
                self._write()
                self._written = True
        return self._folder

    def sizes(self) -> dict[str, list[object]]:
        """Return the tensors' names, types and shapes for a broadcast."""
        rows = [(name, str(value.dtype).removeprefix("torch."), list(value.shape)) for name, value in self.tensors()]
        return {
            "names": [row[0] for row in rows],
            "dtypes": [row[1] for row in rows],
            "shapes": [row[2] for row in rows],
        }

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors, always in the same order."""
        yield from self._weights.items() if isinstance(self._weights, Mapping) else read_tensors(self._weights)

    def _write(self) -> None:
        aside = self._folder.parent / f".aside-{self._folder.name}"
        for place in (self._folder, aside):
            shutil.rmtree(place, ignore_errors=True)
        write_weights(dict(self.tensors()), aside)
        aside.rename(self._folder)


def version_name(version: int) -> str:
    """Return the name of a version's folder."""
    return f"v{version:08}"
