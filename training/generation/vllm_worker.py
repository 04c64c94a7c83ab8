"""Load new weights in vLLM's workers while requests run.

`begin`, `finish` and `_receive_again` each work around a silent bug of vLLM 0.32.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curation.policies.vllm.worker import Worker
from training.generation.checkpoint_tensors import read_tensors
from training.generation.weight_transfer import FOLDER_TRANSFER, Backend, Group, open_group

__all__ = ["Worker"]


def begin(model: Any) -> None:
    """Prepare for new weights; experts on a CPU are packed again."""
    from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

    for module in model.modules():
        method: Any = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None and next(module.parameters()).device.type == "cpu":
            method.moe_kernel = None
    initialize_layerwise_reload(model)


def receive(model: Any, folder: Path) -> None:
    """Load the folder's tensors, maybe not all."""
    model.load_weights(read_tensors(folder))
    if missed := _missed_layers(model):
        _receive_again(model, folder, missed)


def receive_tensors(model: Any, tensors: Iterator[tuple[str, Any]]) -> None:
    """Load tensors from an iterator."""
    model.load_weights(tensors)
    for _ in tensors:
        pass
    if missed := _missed_layers(model):
        kinds = ", ".join(sorted({type(layer).__name__ for layer, _ in missed}))
        raise RuntimeError(f"{kinds}: these layers take new weights from a folder only")


def finish(model: Any, model_config: Any) -> None:
    """Apply the received weights, also in layers with a packed copy."""
    from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

    finalize_layerwise_reload(model, model_config)
    for layer in list(model.modules()):
        if hasattr(layer, "cpu_linear") and layer.weight.numel():
            layer.quant_method.process_weights_after_loading(layer)


def _missed_layers(model: Any) -> list[tuple[Any, Any]]:
    """Return layers without new weights, except output layers, which may be tied."""
    from vllm.model_executor.layers.attention import is_deferred_attention_layer
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

    language_model = model.get_language_model() if hasattr(model, "get_language_model") else model
    missed = []
    for layer in language_model.modules():
        info = get_layerwise_info(layer)
        waits = info.can_load() and info.load_numel <= 0 and any(value.is_meta for value in _own_parameters(layer))
        if waits and not isinstance(layer, ParallelLMHead) and not is_deferred_attention_layer(layer):
            missed.append((layer, info))
    return missed


def _receive_again(model: Any, folder: Path, missed: list[tuple[Any, Any]]) -> None:
    """Load the folder again, with memory for these layers."""
    from vllm.model_executor.model_loader.reload.layerwise import _layerwise_process
    from vllm.model_executor.model_loader.reload.meta import materialize_layer

    begin(model)  # again for the other layers, which are done and would take nothing
    for layer, info in missed:
        materialize_layer(layer, info)
        for value in _own_parameters(layer):
            if value.is_floating_point():
                value.data.fill_(float("nan"))
    model.load_weights(read_tensors(folder))
    for layer, info in missed:
        empty = [bool(value.isnan().any()) for value in _own_parameters(layer) if value.is_floating_point()]
        if not any(empty):
            _layerwise_process(layer, info)
        elif not all(empty):
            raise RuntimeError(f"{type(layer).__name__} received only some of its new weights")


def _own_parameters(layer: Any) -> list[Any]:
    return [value for value in layer._parameters.values() if value is not None]


def _broadcasts(group: Group | None, info: Any, model: Any, device: Any) -> Iterator[tuple[str, Any]]:
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE

    if group is None:
        raise RuntimeError("the worker is in no group")
    maker = next(model.parameters())
    for name, dtype, shape in zip(info.names, info.dtypes, info.shapes, strict=True):
        tensor = maker.new_empty(shape, dtype=STR_DTYPE_TO_TORCH_DTYPE[dtype], device=device)
        group.broadcast(tensor)
        yield name, tensor


def _register() -> None:
    from vllm.distributed.weight_transfer.base import (
        WeightTransferEngine,
        WeightTransferInitInfo,
        WeightTransferUpdateInfo,
    )
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    @dataclass
    class GroupInfo(WeightTransferInitInfo):  # type: ignore[misc] # vLLM's types are not checked
        backend: Backend
        address: str
        port: int
        world_size: int

    @dataclass
    class WeightsInfo(WeightTransferUpdateInfo):  # type: ignore[misc]
        """A folder of weights, or broadcast tensors."""

        folder: str = ""
        names: list[str] = field(default_factory=list)
        dtypes: list[str] = field(default_factory=list)
        shapes: list[list[int]] = field(default_factory=list)

    class FolderTransfer(WeightTransferEngine):  # type: ignore[misc]
        init_info_cls = GroupInfo
        update_info_cls = WeightsInfo
        supports_draft_weight_update = False
        group: Group | None = None

        def init_transfer_engine(self, init_info: Any) -> None:
            self.shutdown()
            if init_info.backend == "nccl" and self.device.type != "cuda":
                raise ValueError(f"no NCCL here: this server computes on {self.device.type!r}")
            own = self.parallel_config
            rank = 1 + own.data_parallel_index * own.world_size + own.rank
            where, device = (init_info.address, init_info.port), self.device.index
            self.group = open_group(init_info.backend, *where, rank, init_info.world_size, device)

        def start_weight_update(self) -> None:
            begin(self.model)

        def receive_weights(self, update_info: Any) -> None:
            if update_info.names:
                group, self.group = self.group, None
                try:
                    receive_tensors(self.model, _broadcasts(group, update_info, self.model, self.device))
                    group, self.group = None, group
                finally:
                    if group is not None:
                        group.close()  # so that the trainer does not wait
                return
            receive(self.model, Path(update_info.folder))

        def finish_weight_update(self) -> None:
            finish(self.model, self.model_config)

        def update_weights(self, update_info: dict[str, Any]) -> None:
            if self.device.type == "cpu":
                self.receive_weights(self.parse_update_info(update_info))  # there is no device to wait for
            else:
                super().update_weights(update_info)

        def shutdown(self) -> None:
            group, self.group = self.group, None
            if group is not None:
                group.close()

    WeightTransferEngineFactory.register_engine(FOLDER_TRANSFER, FolderTransfer)


_register()
