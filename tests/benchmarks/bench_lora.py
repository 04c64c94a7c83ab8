"""What adapters take against all weights: parameters trained, peak memory, CPU time; and what merging changes.

    python -m tests.benchmarks.bench_lora [FOLDER] [--rank 16] [--steps 2]

On a CPU in fp32, with SmolLM2-135M where no folder is named. Each way has a process of its own. peft must be installed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path


def measure(folder: Path, rank: int, steps: int) -> None:
    """Take steps with adapters of this rank, or with all weights where it is 0, and print the figures."""
    import torch

    from tests.training.optimisation.test_trainer import recipe, samples
    from training.objectives.grpo import GrpoSettings
    from training.optimisation.checkpoint_names import to_model_names
    from training.optimisation.distributed import DistributedContext
    from training.optimisation.trainer import Trainer

    made = recipe(optim={"warmup_steps": 0, "learning_rate": 1e-4}, lora={"rank": rank} if rank else None)
    trainer = Trainer(folder, made, DistributedContext(made.compute))
    began = time.process_time()
    for _ in range(steps):
        trainer.step(samples(), GrpoSettings(eps_high=100.0))
    seconds = (time.process_time() - began) / steps
    trained = sum(value.numel() for value in trainer.model.parameters() if value.requires_grad)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    way = f"rank {rank}" if rank else "all weights"
    print(f"{way}: {trained / 1e6:.1f}M trained, {peak:.0f} MiB, {seconds:.2f} CPU s", flush=True)
    if rank:
        own, merged = torch.cat(list(trainer.scorer.logprobs(samples()))), trainer.full_state_dict()
        plain = Trainer(folder, recipe(), DistributedContext(made.compute))
        plain.model.load_state_dict(to_model_names(plain.model, merged), strict=False)
        apart = (torch.cat(list(plain.scorer.logprobs(samples()))) - own).abs().max()
        print(f"merged weights: log-probabilities at most {float(apart):.1e} apart")


def main() -> None:
    """Read the command line, and measure both ways."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--rank", type=int, default=16)
    options.add_argument("--steps", type=int, default=2)
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parsed = options.parse_args()
    if parsed.alone:
        measure(parsed.folder, parsed.rank, parsed.steps)
        return
    if parsed.folder is None:
        from tests.real_model.smollm import smollm_folder

        parsed.folder = smollm_folder()
    for rank in (parsed.rank, 0):
        own = [str(parsed.folder), "--rank", str(rank), "--steps", str(parsed.steps), "--alone"]
        subprocess.run([sys.executable, "-m", __spec__.name, *own], check=True)


if __name__ == "__main__":
    main()
