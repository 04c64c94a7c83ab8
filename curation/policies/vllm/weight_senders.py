"""The trainer's end of vLLM's weight-update API: weights leave as a folder or by NCCL.

Both use the same four calls (init, start, update, finish), which `Control` forwards to the engine. `folder` names a
folder of safetensors: a published one, or one that the sender writes into memory. `nccl` is vLLM's transfer from
another GPU than the engine's; it has not run here, as there were no GPUs. If trainer and engine share a GPU, weights go
as a folder, because CUDA IPC handles would be sent as pickles. All calls block, on a thread of their own.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from curation.policies.checkpoints import write_weights
from curation.storage.scratch import memory_folder

Transfer = Literal["folder", "nccl"]
Weights = Path | Mapping[str, Any]
"""A folder of safetensors, or tensors by their names in the checkpoint."""


class Control(Protocol):
    """The engine's side of the wire, as vLLM's trainer engines want it. Every call blocks until it is done."""

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None: ...

    def start_weight_update(self) -> None: ...

    def update_weights(self, update_info: dict[str, Any]) -> None: ...

    def finish_weight_update(self, weight_version: str | None = None) -> None: ...


class Sender(Protocol):
    """One way of transfer; lives as long as the engine."""

    def send(self, weights: Weights, control: Control) -> None:
        """Send the weights: start, update, finish."""
        ...

    def close(self) -> None:
        """Give back what the transfer holds."""
        ...


class FolderSender:
    """Tells the engine where the folder lies; tensors are first written to one in memory, before anything pauses."""

    def send(self, weights: Weights, control: Control) -> None:
        """Send the weights as a folder; see `Sender.send`."""
        with _as_folder(weights) as folder:
            control.start_weight_update()
            control.update_weights({"folder": str(folder)})
            control.finish_weight_update()

    def close(self) -> None:
        """Do nothing: nothing is held."""


class DeviceSender:
    """vLLM's own transfer by NCCL, opened at the first update.

    Args:
        workers: the engine's processes.
        address: of this machine, as the engine reaches it.
    """

    def __init__(self, workers: int, address: str) -> None:
        self._workers, self._address = workers, address
        self._control = _ForwardingControl()
        self._weights: Weights = {}
        self._engine: Any = None

    def send(self, weights: Weights, control: Control) -> None:
        """Send the weights from GPU to GPU. Tensors must be on the trainer's GPU; a folder is read there."""
        self._control.to, self._weights = control, weights
        if self._engine is None:
            self._engine = self._open()
        self._engine.send_weights()
        self._weights = {}

    def close(self) -> None:
        """Leave the communication group."""
        if self._engine is not None:
            self._engine.shutdown()

    def _open(self) -> Any:
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        init_info = NCCLTrainerInitInfo(self._address, _free_port(), 1 + self._workers, rank=0)
        return WeightTransferTrainerFactory.trainer_init(init_info, client=self._control, source=self._source())

    def _source(self) -> Any:
        from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource

        class CurrentWeights(WeightSource):  # type: ignore[misc] # vLLM's types are not looked at
            """What is being sent, anew for each round."""

            def metadata(this) -> list[Any]:  # noqa: N805 - `self` is the sender
                return [ParamMeta(name, value.dtype, tuple(value.shape)) for name, value in this]

            def __iter__(this) -> Iterator[tuple[str, Any]]:  # noqa: N805
                return _on_device(self._weights)

        return CurrentWeights()


class _ForwardingControl:
    """The control that vLLM's trainer engine keeps, while ours is new with each update."""

    def __init__(self) -> None:
        self.to: Control

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self.to.init_weight_transfer_engine(init_info)

    def start_weight_update(self) -> None:
        self.to.start_weight_update()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self.to.update_weights(update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.to.finish_weight_update(weight_version)


@contextmanager
def _as_folder(weights: Weights) -> Iterator[Path]:
    if isinstance(weights, Path):
        yield weights
        return
    with tempfile.TemporaryDirectory(prefix="goldilocks-weights-", dir=memory_folder()) as parent:
        folder = Path(parent) / "weights"
        write_weights(weights, folder)
        yield folder


def _on_device(weights: Weights) -> Iterator[tuple[str, Any]]:
    from safetensors import safe_open

    if not isinstance(weights, Path):
        yield from ((name, value.detach()) for name, value in weights.items())
        return
    for path in sorted(weights.glob("*.safetensors")):
        with safe_open(path, framework="pt", device="cuda") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - no mapping, whatever it looks like
                yield name, tensors.get_tensor(name)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("", 0))
        return int(bound.getsockname()[1])
