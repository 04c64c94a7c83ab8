"""Load causal language models, name their tensors as on disk, and save trained ones for transformers and vLLM.

For a multimodal model, such as Mistral3 or Gemma3, the text part is trained.

Invariants: a folder with ``DONE.json`` is complete, also after kill -9; `to_checkpoint_names` and `to_model_names` are
inverse. Tensors that only the checkpoint has are on device ``meta``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from curation.config import LiveModel
from curation.policies.checkpoints import folder_revision
from curation.prompts.asked import write_asked
from curation.records import ConfigError, PolicyError, StoreError
from curation.response_formats import BOXED
from training.generation.checkpoint_tensors import tensor_shapes

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Dtype = Literal["float32", "bfloat16", "float16"]

MARK = "DONE.json"

_PROCESSORS = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")

_ATTRIBUTE = "checkpoint_source"

_LOGITS: dict[str, tuple[tuple[str, ...], Callable[[Tensor, float], Tensor]]] = {
    # setting: (prefixes of model types, change of logits)
    "final_logit_softcapping": (("",), lambda logits, cap: torch.tanh(logits / cap) * cap),
    "logit_scale": (("cohere",), lambda logits, scale: logits * scale),
    "logits_scaling": (("granite",), lambda logits, scale: logits / scale),
    "lm_head_multiplier": (("falcon_h1",), lambda logits, scale: logits * scale),
}


@dataclass(frozen=True)
class CheckpointSource:
    """The checkpoint that a model was loaded from, if any.

    Attributes:
        shapes: of all tensors on disk; empty unless safetensors.
        whole: the checkpoint's model, if larger than the trained one.
        prefixes: of names in the trained and the whole model.
    """

    folder: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    whole: PreTrainedModel | None = None
    prefixes: tuple[tuple[str, str], ...] = ()


def checkpoint_source(model: PreTrainedModel) -> CheckpointSource:
    """Return the model's source."""
    return getattr(model, _ATTRIBUTE, CheckpointSource())


def whole_model(model: PreTrainedModel) -> PreTrainedModel:
    """Return the model of the checkpoint's class."""
    whole = checkpoint_source(model).whole
    return model if whole is None else whole


def load_model(
    folder: Path,
    *,
    dtype: Dtype = "float32",
    device: str = "cpu",
    training: bool = False,
) -> PreTrainedModel:
    """Load a folder's causal language model, or a multimodal one's text part."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    require_model(folder)
    try:
        model = _load_causal_model(folder, getattr(torch, dtype), empty=device == "meta")
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise PolicyError(f"{folder}: transformers cannot load this model: {error}") from error
    if training and getattr(model.config, "quantization_config", None) is not None:
        raise PolicyError(f"{folder}: its weights are quantised; training needs a copy in bfloat16 or float32")
    values = model.named_parameters() if training else ()
    if broken := [name for name, value in values if not value.is_meta and not value.isfinite().all()]:
        raise PolicyError(
            f"{folder}: {len(broken)} of its tensors hold NaN or infinite weights, the first is {broken[0]}; take the "
            "previous checkpoint, or download the model again"
        )
    model_on_device: PreTrainedModel = model.to(device)
    for tensor in (*model_on_device.parameters(), *model_on_device.buffers()):
        tensor.data = tensor.data.clone()  # the mapped file may be overwritten; tied ones stay tied
    return model_on_device.train(training)


def _load_causal_model(folder: Path, dtype: torch.dtype, *, empty: bool = False) -> PreTrainedModel:
    """Load a folder's causal language model, or a multimodal one's text part; ``empty``: on ``meta``."""
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    text_config = config.get_text_config(decoder=True)
    kind: Any = AutoModelForCausalLM
    if text_config is not config:
        published = (config.architectures or ("no class",))[0]
        if (kind := getattr(transformers, published, None)) is None:
            raise PolicyError(
                f"the checkpoint's config.json names {published} under `architectures`, which this version of "
                "transformers does not know; take another model, or a newer transformers"
            )
    text_kind = AutoModelForCausalLM._model_mapping.get(type(text_config), None)
    knows_sdpa = text_kind is None or getattr(text_kind, "_supports_sdpa", True)
    is_plain = knows_sdpa and not getattr(text_config, "attn_logit_softcapping", None)
    attention = "sdpa" if is_plain else "eager"  # sdpa lacks soft-capping and sinks
    options: dict[str, Any] = {"dtype": dtype, "attn_implementation": attention}
    if empty:
        build = kind.from_config if kind is AutoModelForCausalLM else kind._from_config
        with torch.device("meta"):
            model = build(config, **options)
    else:
        model, report = kind.from_pretrained(folder, **options, local_files_only=True, output_loading_info=True)
        if missing := sorted(report["missing_keys"]):
            raise PolicyError(
                f"{folder}: the weights lack {len(missing)} tensors of this model, first {missing[0]}; download it "
                "again"
            )
    if kind is not AutoModelForCausalLM:
        return _text_part(model, folder, attention)
    setattr(model, _ATTRIBUTE, CheckpointSource(folder, tensor_shapes(folder)))
    causal: PreTrainedModel = model
    return causal


def _text_part(whole: PreTrainedModel, folder: Path, attention: str) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM

    decoder, head = whole.get_decoder(), whole.get_output_embeddings()
    if type(decoder.config) not in AutoModelForCausalLM._model_mapping or head is None:
        raise PolicyError(
            f"{folder}: transformers has no causal language model for the text part ({decoder.config.model_type}) of "
            f"{type(whole).__name__}; take a text model of this family"
        )
    with torch.device("meta"):
        causal = AutoModelForCausalLM.from_config(decoder.config, attn_implementation=attention)
    frame = causal.get_decoder()
    inner = next(name for name, module in causal.named_modules() if module is frame)
    inner_head = next(name for name, module in causal.named_modules() if module is causal.get_output_embeddings())
    outer = {id(module): name for name, module in whole.named_modules()}
    prefixes = ((f"{inner}.", f"{outer[id(decoder)]}."), (f"{inner_head}.", f"{outer[id(head)]}."))
    causal.set_submodule(inner, decoder)
    causal.set_output_embeddings(head)
    causal.config, causal.generation_config = decoder.config, whole.generation_config
    _keep_only(whole, {id(decoder), id(head)})
    setattr(causal, _ATTRIBUTE, CheckpointSource(folder, tensor_shapes(folder), whole, prefixes))
    return causal


def _keep_only(module: nn.Module, kept: set[int]) -> bool:
    if id(module) in kept:
        return True
    holds = {name: _keep_only(child, kept) for name, child in module.named_children()}
    for name, is_kept in holds.items():
        if not is_kept:
            setattr(module, name, None)
    return any(holds.values())


def active_parameters(model: PreTrainedModel) -> int:
    """Return the parameters per token; only chosen experts count."""
    chosen = int(getattr(model.config, "num_experts_per_tok", None) or 0)
    total = 0
    for name, value in model.named_parameters():
        experts = value.shape[0] if chosen and ".experts." in name and value.ndim > 1 else 0
        total += value.numel() * min(chosen, experts) // experts if experts else value.numel()
    return total


def logits_of(model: PreTrainedModel, head: Callable[[Tensor], Tensor] | None = None) -> Callable[[Tensor], Tensor]:
    """Return the map from hidden states to logits, with scaling and capping."""
    layer: Callable[[Tensor], Tensor] = head or model.get_output_embeddings()
    config: Any = model.config
    changes: list[tuple[Callable[[Tensor, float], Tensor], float]] = []
    for setting, (kinds, change) in _LOGITS.items():
        value = getattr(config, setting, None)
        if value in (None, 1, 1.0):
            continue
        if not config.model_type.startswith(kinds):
            raise ConfigError(f"model {config.model_type} sets {setting}, which is not supported; take another model.")
        changes.append((change, float(value)))

    def changed(hidden: Tensor) -> Tensor:
        logits: Tensor = layer(hidden)
        for change, value in changes:
            logits = change(logits, value)
        return logits

    return changed if changes else layer


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
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

    An existing folder is replaced, and briefly missing.

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
    """Yield a new folder that replaces this one after the block."""
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


def to_checkpoint_names(model: PreTrainedModel, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the model's full state dict as on disk."""
    from transformers.core_model_loading import revert_weight_conversion

    source, whole = checkpoint_source(model), whole_model(model)
    renamed = {with_prefix(name, source.prefixes): value for name, value in state.items()}
    if getattr(whole, "_weight_conversions", None) != []:
        renamed = revert_weight_conversion(whole, renamed)
    if not source.shapes:
        return renamed
    there = {value.data_ptr() for name, value in renamed.items() if name in source.shapes}
    named = {
        name: tensor for name, tensor in renamed.items() if name in source.shapes or tensor.data_ptr() not in there
    }
    return named | {
        name: torch.empty(shape, device="meta") for name, shape in source.shapes.items() if name not in named
    }


def to_model_names(model: PreTrainedModel, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a checkpoint's tensors as in the model's state dict, without others."""
    from transformers.core_model_loading import (
        WeightConverter,
        WeightRenaming,
        dot_natural_key,
        rename_source_key,
    )

    source, whole = checkpoint_source(model), whole_model(model)
    own = {with_prefix(name, source.prefixes) for name in model.state_dict()}
    conversions = getattr(whole, "_weight_conversions", None) or []
    renamings = [conversion for conversion in conversions if isinstance(conversion, WeightRenaming)]
    converters = [conversion for conversion in conversions if isinstance(conversion, WeightConverter)]
    tensors: dict[str, Any] = {}
    pending: dict[str, Any] = {}  # conversions by their first new name
    for name in sorted(state, key=dot_natural_key):
        if state[name].is_meta:
            continue
        renamed, pattern = rename_source_key(name, renamings, converters)
        if renamed not in own and name in own:
            renamed, pattern = name, None
        if pattern is not None and renamed in own:
            if renamed not in pending:
                converter = next(converter for converter in converters if pattern in converter.source_patterns)
                pending[renamed] = deepcopy(converter)
            pending[renamed].add_tensor(renamed, name, pattern, state[name])
        elif renamed in own or name not in source.shapes:
            tensors[renamed] = state[name]
    for first, conversion in pending.items():
        made = conversion.convert(first, model=whole, config=whole.config)
        tensors |= {name: value[0] if isinstance(value, list) else value for name, value in made.items()}
    back = tuple((outer, inner) for inner, outer in source.prefixes)
    return {with_prefix(name, back): value for name, value in tensors.items()}


def untouched_tensors(model: PreTrainedModel, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Load the checkpoint's tensors that are on ``meta`` in ``names``."""
    from safetensors import safe_open

    missing = {name for name, value in names.items() if value.is_meta}
    source = checkpoint_source(model)
    loaded: dict[str, Tensor] = {}
    if not missing or source.folder is None:
        return loaded
    for path in sorted(source.folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as tensors:
            loaded |= {name: tensors.get_tensor(name) for name in missing.intersection(tensors.keys())}
    if lost := sorted(missing - loaded.keys()):
        raise StoreError(
            f"{source.folder}: {len(lost)} untrained tensors, first {lost[0]}, are gone, and the model cannot be "
            "saved without them; restore the folder"
        )
    return loaded


def with_prefix(name: str, prefixes: tuple[tuple[str, str], ...]) -> str:
    for before, after in prefixes:
        if name.startswith(before):
            return after + name.removeprefix(before)
    return name
