"""How long a checkpoint keeps the trainer waiting: copied and written beside the next steps, and written at once.

    python -m tests.benchmarks.bench_checkpoint [--width 512] [--layers 8] [--rounds 3]

A Llama of random weights takes one step on a CPU, then rounds of both take turns. Printed are the median seconds until
training can go on, those until the checkpoint is whole, and the bytes on disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from transformers import LlamaConfig, LlamaForCausalLM

from tests.training.optimisation.test_trainer import recipe, samples
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import PendingCheckpoint
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer
from training.optimisation.trainer import Trainer


def main() -> None:
    """Read the command line, measure, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--rounds", type=int, default=3)
    parsed = options.parse_args()
    config = LlamaConfig(
        vocab_size=640,
        hidden_size=parsed.width,
        intermediate_size=4 * parsed.width,
        num_hidden_layers=parsed.layers,
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    made = recipe()
    trainer = Trainer(None, made, DistributedContext(made.compute), LlamaForCausalLM(config).train())
    trainer.step(samples(), GrpoSettings())
    tokenizer, blocked, whole, at_once = load_tokenizer(WEIGHTS), [], [], []
    with tempfile.TemporaryDirectory() as place:
        for step in range(parsed.rounds):
            began = time.perf_counter()
            pending = PendingCheckpoint(Path(place), step, trainer, {"logs": {}}, tokenizer, keep=1)
            blocked.append(time.perf_counter() - began)
            folder = pending.finish()
            whole.append(time.perf_counter() - began)
            began = time.perf_counter()
            trainer.save(Path(place) / f"at-once-{step}")
            at_once.append(time.perf_counter() - began)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(
        f"{trainer.parameters / 1e6:.0f}M parameters, {size / 2**20:.0f} MiB: training waits "
        f"{statistics.median(blocked):.2f} s of the {statistics.median(whole):.2f} s until the checkpoint is whole; "
        f"weights and optimiser alone, waited for, {statistics.median(at_once):.2f} s"
    )


if __name__ == "__main__":
    main()
