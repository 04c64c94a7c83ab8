"""The worker of the trainer's engine: it receives weights as a folder of safetensors.

The trainer's state dict lies in a file system in memory, or the published folder on a disk that both see, or it is
handed out over HTTP (`curation.policies.vllm.fetching`). The worker reads it through vLLM's public weight-update API,
layer by layer, as it would read NCCL's broadcasts. Works wherever the folder can be seen or fetched, on CPUs as on
GPUs.

Importing this module registers the transfer under `FOLDER_TRANSFER`: vLLM imports it in each worker process for the
sake of `TrainedWorker`, before the model is loaded, and nobody else imports it. Hence vLLM is needed here, by
functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from curation.policies.vllm.fetching import weights_folder
from curation.policies.vllm.reloading import Worker, begin, finish, receive
from curation.policies.vllm.startup import FOLDER_TRANSFER


class TrainedWorker(Worker):
    """Mixed into the worker; the methods are the base's."""


def _folder_transfer() -> type[Any]:
    """Return vLLM's receiving end: checkpoint-format weights, loaded layer by layer into the tensors that are in
    use.
    """
    from vllm.distributed.weight_transfer.base import (
        WeightTransferEngine,
        WeightTransferInitInfo,
        WeightTransferUpdateInfo,
    )

    @dataclass
    class NoInitInfo(WeightTransferInitInfo):  # type: ignore[misc] # vLLM's types are not looked at
        """There is nothing to agree on beforehand."""

    @dataclass
    class FolderInfo(WeightTransferUpdateInfo):  # type: ignore[misc]
        """The folder with the new weights, whole; ``url``: where they are fetched if this machine does not see it."""

        folder: str
        url: str = ""

    class FolderTransfer(WeightTransferEngine):  # type: ignore[misc]
        init_info_cls = NoInitInfo
        update_info_cls = FolderInfo
        supports_draft_weight_update = False

        def init_transfer_engine(self, init_info: NoInitInfo) -> None:
            pass

        def start_weight_update(self) -> None:
            begin(self.model)

        def receive_weights(self, update_info: FolderInfo) -> None:
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
            pass

    return FolderTransfer


def _register() -> None:
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    WeightTransferEngineFactory.register_engine(FOLDER_TRANSFER, _folder_transfer())


_register()
