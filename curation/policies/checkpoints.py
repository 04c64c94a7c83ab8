"""Folders with weights: their revision, and whether two of them have the same shape.

A revision is a hash of the weights and of the files that make tokens from text, so that it does not depend on the
folder's path. Only bytes and headers are read; no model is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.records import PolicyError

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_TOKENS = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "chat_template.jinja",
    "vocab.json",
    "tekken.json",
)
_NOT_WEIGHTS = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.bin", "scheduler.pt")
_HEADER_LIMIT = 100_000_000
_ATTENTION = frozenset({"full_attention", "sliding_attention", "chunked_attention", "attention"})
"""Kinds of layers that carry nothing but keys and values."""
_STATE_SETTINGS = ("mamba_d_state", "ssm_state_size", "state_size", "conv_L_cache", "linear_num_key_heads", "lru_width")
"""Settings that only models with another kind have."""


def weight_files(folder: Path) -> list[Path]:
    """Return the files of a folder that hold its weights, by name.

    Raises:
        PolicyError: there are none.
    """
    files = sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)} - {folder / n for n in _NOT_WEIGHTS})
    if not files:
        raise PolicyError(f"model {folder}: the folder holds no weights ({', '.join(_WEIGHTS)}); name one that does.")
    return files


def folder_revision(folder: Path) -> str:
    """Return 12 hexadecimal digits over the content of a folder's weights, tokenizer and chat template.

    The files are read once, at about a gigabyte a second.

    Raises:
        PolicyError: the folder holds no weights, or they cannot be read.
    """
    total = hashlib.blake2b(digest_size=6)
    try:
        for path in [*weight_files(folder), *(folder / name for name in _TOKENS if (folder / name).is_file())]:
            with path.open("rb") as handle:
                total.update(f"{path.name}|{hashlib.file_digest(handle, 'blake2b').hexdigest()}\n".encode())
    except OSError as error:
        raise PolicyError(f"model {folder}: {error.filename} cannot be read ({error.strerror}).") from error
    return total.hexdigest()


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]] | None:
    """Return the name and shape of every tensor of a folder of safetensors; None for other formats.

    Raises:
        PolicyError: a file is cut short or is no safetensors file.
    """
    files = weight_files(folder)
    if any(path.suffix != ".safetensors" for path in files):
        return None
    shapes: dict[str, tuple[int, ...]] = {}
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


def carries_state(config: Mapping[str, Any]) -> bool:
    """Return whether a model's config.json names layers that carry a state from token to token, or unknown kinds."""
    text = config.get("text_config") or config
    other = set(text.get("layer_types") or ()) - _ATTENTION
    return bool(other) or any(text.get(name) is not None for name in _STATE_SETTINGS)


def folder_carries_state(folder: Path) -> bool:
    """Return whether the model in a folder has such layers; False without a config.json."""
    try:
        return carries_state(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return False


def end_tokens(folder: Path) -> tuple[int, ...]:
    """Return the end tokens that a model's generation settings name, or else its configuration."""
    for name in ("generation_config.json", "config.json"):
        try:
            settings = json.loads((folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        ends = settings.get("eos_token_id", settings.get("text_config", {}).get("eos_token_id"))
        if ends is not None:
            return (ends,) if isinstance(ends, int) else tuple(ends)
    return ()


def fitting(folder: Path, weights: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return these tensors without those under a second name (tied), or without memory (device ``meta``: unchanged).

    Raises:
        PolicyError: they are not of the shape of the model in ``folder``.
    """
    ours = tensor_shapes(folder)
    if ours is None:
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
    """Write a state dict into a new folder as one file of safetensors: tied tensors once, those without memory not."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    names: dict[tuple[int, int], str] = {}
    for name, value in weights.items():
        if value.is_meta:
            continue
        names.setdefault((value.data_ptr(), value.numel()), name)
    tensors = {name: weights[name].detach().contiguous() for name in names.values()}
    save_file(tensors, folder / "model.safetensors")


def require_same_shape(running: Path, other: Path) -> None:
    """Raise `PolicyError` if tensors are missing, too many, or of another shape than the running checkpoint's."""
    ours, theirs = tensor_shapes(running), tensor_shapes(other)
    if ours is None or theirs is None:
        return
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if differing:
        name = differing[0]
        raise PolicyError(
            f"weights {other}: not of the shape of the model that runs, {running}: {len(differing)} tensors differ, "
            f"first {name} ({theirs.get(name, 'absent')}, not {ours.get(name, 'absent')})."
        )
