"""Layers that a CPU packs for its kernels, packed anew when weights are exchanged.

Found with vLLM 0.32.0: on a CPU a layer multiplies by a packed copy of its weights, and exchanging weights forgets it
in two places, without a word:
  - an output layer tied to the embedding: the checkpoint has one name for both, so it is not packed again, and the
    model answers with its old output layer (`pack_tied`, after the exchange);
  - the experts of a mixture: new weights are put, unpacked, where packed ones are read (`forget_experts`, before it, so
    that they are set up as they were at first).
`Worker` mends both, and does nothing on a GPU. Runs inside the engine; nothing here imports vLLM.
"""

from __future__ import annotations

from typing import Any

from curation.policies.watchdog import Watchdog


class Worker(Watchdog):
    """Methods that a vLLM worker gains; called by `collective_rpc`."""

    model_runner: Any

    def forget_packed_experts(self) -> int:
        """Run `forget_experts` on the worker's model."""
        return forget_experts(self.model_runner.get_model())

    def pack_tied_layers(self) -> int:
        """Run `pack_tied` on the worker's model."""
        return pack_tied(self.model_runner.get_model())


def forget_experts(model: Any) -> int:
    """Let the experts of every mixture on a CPU be packed when weights are next loaded; return how many layers do."""
    count = 0
    for module in model.modules():
        method = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None and next(module.parameters()).device.type == "cpu":
            method.moe_kernel = None
            count += 1
    return count


def pack_tied(model: Any) -> int:
    """Pack anew every layer that keeps its weights beside their packed copy; return how many there were."""
    packed_layers = [module for module in model.modules() if hasattr(module, "cpu_linear") and module.weight.numel()]
    for layer in packed_layers:
        layer.quant_method.process_weights_after_loading(layer)
    return len(packed_layers)
