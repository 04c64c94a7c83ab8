"""Read, compare and write tensors of checkpoints.

Invariant: a version's folder is whole or missing.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from curation.policies.checkpoints import weight_files
from curation.records import PolicyError

Weights = Mapping[str, Tensor]
"""A full state dict under Hugging Face names, unchanged until `Generator.update_weights` has returned."""


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return tensor shapes by name; empty unless safetensors."""
    if any(path.suffix != ".safetensors" for path in weight_files(folder)):
        return {}
    return {name: tuple(file.get_slice(name).get_shape()) for file in _opened(folder) for name in file.keys()}  # noqa: SIM118


def read_tensors(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield a checkpoint's names and tensors in a fixed order."""
    for file in _opened(folder):
        for name in file.keys():  # noqa: SIM118 - no mapping
            yield name, file.get_tensor(name)


def _opened(folder: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    for path in weight_files(folder):
        if path.suffix != ".safetensors":
            raise PolicyError(f"{folder}: {path.name} is no safetensors file; convert the model")
        try:
            opened = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise PolicyError(f"model {folder}: {path.name} is no whole safetensors file ({error}).") from error
        with opened as file:
            yield file


def fitting(folder: Path, weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tensors without tied duplicates and ``meta`` tensors; refuse other shapes."""
    ours = tensor_shapes(folder)
    known = {name: value for name, value in weights.items() if name in ours}
    wrong = sorted(name for name, shape in ours.items() if name not in known or known[name].shape != shape)
    real = [tensor for tensor in known.values() if not tensor.is_meta]
    extra = {name: value for name, value in weights.items() if name not in ours}
    wrong += sorted(
        name
        for name, value in extra.items()
        if not any(value.shape == tensor.shape and value.equal(tensor) for tensor in real)
    )
    if wrong:
        theirs = tuple(weights[wrong[0]].shape) if wrong[0] in weights else "missing"
        raise PolicyError(
            f"these weights are not of the shape of {folder}: {len(wrong)} tensors differ, first {wrong[0]} "
            f"({theirs}, not {ours.get(wrong[0], 'missing')})."
        )
    return {name: value for name, value in known.items() if not value.is_meta}


def write_weights(weights: Mapping[str, Any], folder: Path) -> None:
    """Write a state dict into a new folder, without duplicates and ``meta`` tensors."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    real = [(name, value) for name, value in weights.items() if not value.is_meta]
    first = {(value.data_ptr(), value.numel()): (name, value) for name, value in reversed(real)}
    save_file({name: value.detach().contiguous() for name, value in first.values()}, folder / "model.safetensors")


class WeightVersion:
    """A version of a model's weights; its folder's without ``weights``."""

    def __init__(self, model: Path, weights: Weights | None, version: int, shared: Path) -> None:
        self.version = version
        self._folder = shared / version_name(version)
        self._lock, self._written = threading.Lock(), False
        self._model, self._weights = model, None if weights is None else fitting(model, weights)

    def folder(self) -> Path:
        """Return the folder; the first call writes it, so call it on a thread."""
        with self._lock:
            if not self._written:
                aside = self._folder.parent / f".aside-{self._folder.name}"
                for path in (self._folder, aside):
                    shutil.rmtree(path, ignore_errors=True)
                write_weights(dict(self.tensors()), aside)
                aside.rename(self._folder)
                self._written = True
        return self._folder

    def sizes(self) -> dict[str, list[object]]:
        """Return names, types and shapes for a broadcast."""
        rows = [(name, str(value.dtype).removeprefix("torch."), list(value.shape)) for name, value in self.tensors()]
        return {key: [row[column] for row in rows] for column, key in enumerate(("names", "dtypes", "shapes"))}

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors in a fixed order."""
        yield from read_tensors(self._model) if self._weights is None else self._weights.items()


def version_name(version: int) -> str:
    return f"v{version:08}"
