"""Convert tensors between their names and shapes on disk and in transformers.

Invariants: `to_checkpoint_names` and `to_model_names` undo each other. Tensors that only the checkpoint holds are on
device ``meta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from curation.records import StoreError
from training.generation.checkpoint_tensors import tensor_shapes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ATTRIBUTE = "checkpoint_source"


@dataclass(frozen=True)
class CheckpointSource:
    """The checkpoint that a model was loaded from, if any.

    Attributes:
        shapes: of all tensors on disk; empty unless they are safetensors.
        whole: the checkpoint's model, if larger than the trained one.
        prefixes: of names in the trained model, and in the whole.
    """

    folder: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    whole: PreTrainedModel | None = None
    prefixes: tuple[tuple[str, str], ...] = ()


def remember_source(
    model: PreTrainedModel,
    folder: Path,
    whole: PreTrainedModel | None = None,
    prefixes: tuple[tuple[str, str], ...] = (),
) -> None:
    """Record where the model was loaded from."""
    setattr(model, _ATTRIBUTE, CheckpointSource(folder, tensor_shapes(folder), whole, prefixes))


def checkpoint_source(model: PreTrainedModel) -> CheckpointSource:
    """Return where the model was loaded from."""
    return getattr(model, _ATTRIBUTE, CheckpointSource())


def whole_model(model: PreTrainedModel) -> PreTrainedModel:
    """Return the model with the checkpoint's class and configuration."""
    whole = checkpoint_source(model).whole
    return model if whole is None else whole


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
    found = {name: one for name, one in renamed.items() if name in source.shapes or one.data_ptr() not in there}
    return found | {
        name: torch.empty(shape, device="meta") for name, shape in source.shapes.items() if name not in found
    }


def to_model_names(model: PreTrainedModel, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a checkpoint's tensors as in the model's state dict; others are left out."""
    from transformers.core_model_loading import (
        WeightConverter,
        WeightRenaming,
        dot_natural_key,
        rename_source_key,
    )

    source, whole = checkpoint_source(model), whole_model(model)
    own = {with_prefix(name, source.prefixes) for name in model.state_dict()}
    conversions = getattr(whole, "_weight_conversions", None) or []
    renamings = [one for one in conversions if isinstance(one, WeightRenaming)]
    converters = [one for one in conversions if isinstance(one, WeightConverter)]
    found: dict[str, Any] = {}
    pending: dict[str, Any] = {}  # conversions, by the first of the names that they make
    for name in sorted(state, key=dot_natural_key):
        if state[name].is_meta:
            continue
        renamed, pattern = rename_source_key(name, renamings, converters)
        if renamed not in own and name in own:
            renamed, pattern = name, None
        if pattern is not None and renamed in own:
            if renamed not in pending:
                pending[renamed] = deepcopy(next(one for one in converters if pattern in one.source_patterns))
            pending[renamed].add_tensor(renamed, name, pattern, state[name])
        elif renamed in own or name not in source.shapes:
            found[renamed] = state[name]
    for first, conversion in pending.items():
        made = conversion.convert(first, model=whole, config=whole.config)
        found |= {name: value[0] if isinstance(value, list) else value for name, value in made.items()}
    back = tuple((outer, inner) for inner, outer in source.prefixes)
    return {with_prefix(name, back): value for name, value in found.items()}


def untouched_tensors(model: PreTrainedModel, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return from the checkpoint the tensors without memory in ``names``."""
    from safetensors import safe_open

    wanted = {name for name, value in names.items() if value.is_meta}
    source = checkpoint_source(model)
    found: dict[str, Tensor] = {}
    if not wanted or source.folder is None:
        return found
    for path in sorted(source.folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as tensors:
            found |= {name: tensors.get_tensor(name) for name in wanted.intersection(tensors.keys())}
    if lost := sorted(wanted - found.keys()):
        raise StoreError(
            f"{source.folder}: {len(lost)} tensors that are not trained, first {lost[0]}, are not there any more, and "
            "the model cannot be saved without them; put the folder back"
        )
    return found


def with_prefix(name: str, prefixes: tuple[tuple[str, str], ...]) -> str:
    for before, after in prefixes:
        if name.startswith(before):
            return after + name.removeprefix(before)
    return name
