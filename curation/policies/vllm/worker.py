"""The worker of the trainer's engine: it receives weights from a folder of safetensors, or by broadcast.

The folder is in memory, on a shared disk, or fetched over HTTP (`curation.policies.vllm.fetching`); a broadcast comes
through a group (`curation.policies.vllm.broadcast`). Both use vLLM's public weight-update API, layer by layer.

Importing this module registers the transfer `FOLDER_TRANSFER`: vLLM imports it in each worker process, for
`TrainedWorker`, before the model is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from curation.policies.vllm.broadcast import Backend, Group, open_group
from curation.policies.vllm.fetching import weights_folder
from curation.policies.vllm.reloading import Worker, begin, finish, receive, receive_tensors
from curation.policies.vllm.startup import FOLDER_TRANSFER


class TrainedWorker(Worker):
    """Mixed into the worker; the methods are the base's."""


def _messages() -> tuple[type[Any], type[Any]]:
    """Return what vLLM makes of the trainer's two messages: of the group to join, and of an update's weights."""
    from vllm.distributed.weight_transfer.base import WeightTransferInitInfo, WeightTransferUpdateInfo

    @dataclass
    class GroupInfo(WeightTransferInitInfo):  # type: ignore[misc] # vLLM's types are not looked at
        """The group that the workers join; nothing is said where weights come as folders only."""

        backend: Backend
        address: str
        port: int
        world_size: int

    @dataclass
    class WeightsInfo(WeightTransferUpdateInfo):  # type: ignore[misc]
        """The folder with the new weights, whole; ``url``: where they are fetched if this machine does not see it.

        In place of them, the names, types and shapes of the tensors that are broadcast.
        """

        folder: str = ""
        url: str = ""
        names: list[str] = field(default_factory=list)
        dtypes: list[str] = field(default_factory=list)
        shapes: list[list[int]] = field(default_factory=list)

    return GroupInfo, WeightsInfo


def _broadcasts(group: Group | None, info: Any, model: Any, device: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of an update as the trainer broadcasts them."""
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE

    if group is None:
        raise RuntimeError("the worker is in no group")
    maker = next(model.parameters())
    for name, dtype, shape in zip(info.names, info.dtypes, info.shapes, strict=True):
        tensor = maker.new_empty(shape, dtype=STR_DTYPE_TO_TORCH_DTYPE[dtype], device=device)
        group.broadcast(tensor)
        yield name, tensor


def _folder_transfer() -> type[Any]:
    """Return vLLM's receiving end: checkpoint-format weights, loaded layer by layer into the tensors that are in
    use.
    """
    from vllm.distributed.weight_transfer.base import WeightTransferEngine

    group_info, weights_info = _messages()

    class FolderTransfer(WeightTransferEngine):  # type: ignore[misc]
        init_info_cls = group_info
        update_info_cls = weights_info
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
                        group.close()  # so that the trainer does not wait for this end
                return
            with weights_folder(update_info.folder, update_info.url) as folder:
                receive(self.model, folder)

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

    return FolderTransfer


def _register() -> None:
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    WeightTransferEngineFactory.register_engine(FOLDER_TRANSFER, _folder_transfer())


_register()
