"""Folders with weights."""

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
_ATTENTION = frozenset({"full_attention", "sliding_attention", "chunked_attention", "attention"})
"""Layers that carry only keys and values."""
_STATE_SETTINGS = ("mamba_d_state", "ssm_state_size", "state_size", "conv_L_cache", "linear_num_key_heads", "lru_width")
"""Settings that only models with another kind have."""


def weight_files(folder: Path) -> list[Path]:
    """Return a folder's weight files.

    Raises:
        PolicyError: there are none.
    """
    files = sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)} - {folder / n for n in _NOT_WEIGHTS})
    if not files:
        raise PolicyError(f"model {folder}: the folder holds no weights ({', '.join(_WEIGHTS)}); name one that does.")
    return files


def folder_revision(folder: Path) -> str:
    """Return 12 hexadecimal digits of weights, tokenizer and chat template.

    Raises:
        PolicyError: no weights can be read.
    """
    total = hashlib.blake2b(digest_size=6)
    try:
        for path in [*weight_files(folder), *(folder / name for name in _TOKENS if (folder / name).is_file())]:
            with path.open("rb") as handle:
                total.update(f"{path.name}|{hashlib.file_digest(handle, 'blake2b').hexdigest()}\n".encode())
    except OSError as error:
        raise PolicyError(f"model {folder}: {error.filename} cannot be read ({error.strerror}).") from error
    return total.hexdigest()


def carries_state(config: Mapping[str, Any]) -> bool:
    """Return whether a model may have recurrent layers."""
    text = config.get("text_config") or config
    stateful = set(text.get("layer_types") or ()) - _ATTENTION
    return bool(stateful) or any(text.get(name) is not None for name in _STATE_SETTINGS)


def folder_carries_state(folder: Path) -> bool:
    """Return `carries_state` for a folder."""
    return carries_state(_settings(folder, "config.json"))


def end_tokens(folder: Path) -> tuple[int, ...]:
    """Return a model's end tokens, preferably of its generation settings."""
    for name in ("generation_config.json", "config.json"):
        settings = _settings(folder, name)
        ends = settings.get("eos_token_id", (settings.get("text_config") or {}).get("eos_token_id"))
        if ends is not None:
            return (ends,) if isinstance(ends, int) else tuple(ends)
    return ()


def _settings(folder: Path, name: str) -> dict[str, Any]:
    """Return a model file's settings, if any."""
    path = folder / name
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise PolicyError(f"model {folder}: {name} cannot be read ({error}); copy the model again.") from error
