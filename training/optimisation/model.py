"""Load causal language models, and publish trained ones for transformers and vLLM.

Invariant: a folder with ``DONE.json`` is complete, also after kill -9.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from curation.config import LiveModel
from curation.policies.checkpoints import folder_revision
from curation.prompts.asked import write_asked
from curation.records import PolicyError
from curation.response_formats import BOXED
from training.optimisation.checkpoint_names import (
    checkpoint_source,
    to_checkpoint_names,
    untouched_tensors,
    whole_model,
)
from training.optimisation.text_part import load_causal_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Dtype = Literal["float32", "bfloat16", "float16"]

MARK = "DONE.json"

_PROCESSORS = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")


def load_model(
    folder: Path,
    *,
    dtype: Dtype = "float32",
    device: str = "cpu",
    training: bool = False,
) -> PreTrainedModel:
    """Return a local folder's causal language model, or a multimodal one's text part.

    Raises:
        PolicyError: transformers cannot load it; or, for training, its weights are quantised or not finite.
    """
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    require_model(folder)
    try:
        model = load_causal_model(folder, getattr(torch, dtype), empty=device == "meta")
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise PolicyError(f"{folder}: transformers cannot load this model: {error}") from error
    if training and getattr(model.config, "quantization_config", None) is not None:
        raise PolicyError(f"{folder}: its weights are quantised; training needs a copy in bfloat16 or float32")
    values = model.named_parameters() if training else ()
    if broken := [name for name, value in values if not value.is_meta and not value.isfinite().all()]:
        raise PolicyError(
            f"{folder}: {len(broken)} of its tensors hold NaN or infinite weights, the first is {broken[0]}; take the "
            "checkpoint before it, or download the model again"
        )
    model_on_device: PreTrainedModel = model.to(device)
    for tensor in (*model_on_device.parameters(), *model_on_device.buffers()):
        tensor.data = tensor.data.clone()  # out of the mapped file, which may be overwritten; tied ones stay tied
    return model_on_device.train(training)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model's folder."""
    from transformers import AutoTokenizer

    require_model(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise PolicyError(f"{folder}: transformers cannot load this tokenizer: {error}") from error
    if tokenizer.chat_template is None:
        raise PolicyError(
            f"{folder}: the tokenizer has no chat template; take an instruction-tuned model's, or add one"
        )
    return tokenizer


def require_model(folder: Path) -> None:
    """Raise PolicyError unless the folder has a config.json."""
    if not (folder / "config.json").is_file():
        raise PolicyError(f"{folder}: no model here (config.json is missing); give the folder of a downloaded model")


def save_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    asked: LiveModel | None = None,
    extra_files: Mapping[str, str] | None = None,
    state: Mapping[str, torch.Tensor] | None = None,
) -> str:
    """Write the model under its checkpoint's class and names, with untrained tensors; return its revision.

    An existing folder is replaced and briefly missing.

    Args:
        asked: the model's table in the recipe; its prompt goes into the folder.
        state: tensors, named as on disk, in place of the model's own.
    """
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tensors = to_checkpoint_names(model, model.state_dict()) if state is None else dict(state)
    with replaced(folder) as aside:
        whole_model(model).save_pretrained(
            aside, state_dict=tensors | untouched_tensors(model, tensors), save_original_format=False
        )
        source = checkpoint_source(model)
        if source.whole is not None and source.folder is not None:
            for name in _PROCESSORS:
                if (source.folder / name).is_file():
                    shutil.copyfile(source.folder / name, aside / name)
        tokenizer.save_pretrained(aside)
        if asked is not None:
            write_asked(aside, asked, BOXED)
        for name, text in (extra_files or {}).items():
            (aside / name).write_text(text, encoding="utf-8")
        digest = folder_revision(aside)
        (aside / MARK).write_text(json.dumps({"revision": digest}) + "\n", encoding="utf-8")
    return digest


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces this one after the block."""
    aside = folder.parent / f".aside-{folder.name}-{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    yield aside
    for path in [*aside.iterdir(), aside]:
        flush(path)
    old = folder.parent / f".old-{folder.name}-{os.getpid()}"
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    aside.rename(folder)
    flush(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
