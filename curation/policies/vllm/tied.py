"""Output layers that share their weights with the embedding, packed anew after weights were exchanged on a CPU.

Found with vLLM 0.32.0: on a CPU a layer multiplies by a packed copy of its weights. Exchanging weights packs the layers
that the checkpoint names; where the output layer is tied to the embedding the checkpoint has one name for both, the
output layer is not packed again, and the model answers with its old output layer. `Worker` mends that, and adds nothing
on a GPU, where nothing is packed. Runs inside the engine; nothing here imports vLLM.
"""

from __future__ import annotations

from typing import Any

from curation.policies.watchdog import Watchdog


class Worker(Watchdog):
    """Methods that a vLLM worker gains; called by `collective_rpc`."""

    model_runner: Any

    def pack_tied_layers(self) -> int:
        """Run `pack_tied` on the worker's model."""
        return pack_tied(self.model_runner.get_model())


def pack_tied(model: Any) -> int:
    """Pack anew every layer that keeps its weights beside their packed copy; return how many there were."""
    packed_layers = [module for module in model.modules() if hasattr(module, "cpu_linear") and module.weight.numel()]
    for layer in packed_layers:
        layer.quant_method.process_weights_after_loading(layer)
    return len(packed_layers)
