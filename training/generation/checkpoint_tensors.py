"""Read, compare and write tensors of checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.policies.checkpoints import weight_files
from curation.records import PolicyError

_HEADER_LIMIT = 100_000_000
"""Max bytes of a file's header."""


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return a folder's tensor shapes by name; none if it is not safetensors.

    Raises:
        PolicyError: a file is invalid.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    files = weight_files(folder)
    if any(path.suffix != ".safetensors" for path in files):
        return shapes
    for path in files:
        try:
            with path.open("rb") as handle:
                length = int.from_bytes(handle.read(8), "little")
                header = json.loads(handle.read(length)) if 0 < length < _HEADER_LIMIT else None
        except (OSError, ValueError) as error:
            raise PolicyError(f"model {folder}: {path.name} is no whole safetensors file ({error}).") from error
        if not isinstance(header, dict):
            raise PolicyError(f"model {folder}: {path.name} is no whole safetensors file.")
        shapes |= {name: tuple(of["shape"]) for name, of in header.items() if name != "__metadata__"}
    return shapes


def safetensors_files(folder: Path) -> list[Path]:
    """Return a checkpoint's files of weights.

    Raises:
        PolicyError: one is in another format.
    """
    files = weight_files(folder)
    for path in files:
        if path.suffix != ".safetensors":
            raise PolicyError(f"{folder}: {path.name} is no safetensors file, which is needed here; convert the model")
    return files


def fitting(folder: Path, weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return these tensors without tied duplicates and ``meta`` tensors.

    Raises:
        PolicyError: they do not fit the model in ``folder``.
    """
    ours = tensor_shapes(folder)
    if not ours:
        return {name: value for name, value in weights.items() if not value.is_meta}
    fitting_weights = {name: value for name, value in weights.items() if name in ours}
    extra = {name: value for name, value in weights.items() if name not in ours}
    mismatches = sorted(
        name for name, shape in ours.items() if name not in fitting_weights or fitting_weights[name].shape != shape
    )
    mismatches += sorted(
        name
        for name, value in extra.items()
        if not any(_is_same_tensor(value, tensor) for tensor in fitting_weights.values() if not tensor.is_meta)
    )
    if mismatches:
        theirs = tuple(weights[mismatches[0]].shape) if mismatches[0] in weights else "absent"
        raise PolicyError(
            f"these weights are not of the shape of {folder}: {len(mismatches)} tensors differ, first {mismatches[0]} "
            f"({theirs}, not {ours.get(mismatches[0], 'absent')})."
        )
    return {name: value for name, value in fitting_weights.items() if not value.is_meta}


def _is_same_tensor(tensor: Any, other: Any) -> bool:
    return bool(tensor.shape == other.shape and tensor.equal(other))


def write_weights(weights: Mapping[str, Any], folder: Path) -> None:
    """Write a state dict into a new folder, without tied duplicates and ``meta`` tensors."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    names: dict[tuple[int, int], str] = {}
    for name, value in weights.items():
        if value.is_meta:
            continue
        names.setdefault((value.data_ptr(), value.numel()), name)
    tensors = {name: weights[name].detach().contiguous() for name in names.values()}
    save_file(tensors, folder / "model.safetensors")
