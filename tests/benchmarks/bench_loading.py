"""What loading a model for training takes of a machine's memory: one rank reads and the others receive, or each reads.

    python -m tests.benchmarks.bench_loading [--width 1024] [--layers 12] [--ranks 4]

A Llama of random weights lies in a folder; so many ranks on a CPU load and shard it, both ways. Printed are the ranks'
memory together, at its most and at the end, without pages of files and above what they had before they loaded.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from transformers import LlamaConfig, LlamaForCausalLM

from tests.places import ROOT

WAYS = ("one", "each")


def work(folder: Path, way: str, out: Path) -> None:
    """Do what each rank does; it says when it begins to load and when it has loaded, and waits to be ended."""
    from tests.training.optimisation.test_trainer import recipe
    from training.optimisation.distributed import DistributedContext
    from training.optimisation.model import load_model
    from training.optimisation.trainer import Trainer

    made = recipe()
    ranks = DistributedContext(made.compute)
    ranks.barrier()
    (out / f"{ranks.rank}-{os.getpid()}.begun").touch()
    while len(list(out.glob("*.begun"))) < ranks.world_size:
        time.sleep(0.01)
    ranks.barrier()
    began = time.perf_counter()
    model = load_model(folder, training=True) if way == "each" else None
    trainer = Trainer(folder, made, ranks, model)
    del model
    ranks.barrier()
    (out / f"{ranks.rank}.done").write_text(f"{time.perf_counter() - began}")
    trainer.follow()


def held(processes: list[psutil.Process]) -> int:
    """Return the bytes that these processes hold together, but for pages of files."""
    total = 0
    for process in processes:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
    return total


def measure(folder: Path, way: str, ranks: int) -> tuple[float, float, float]:
    """Return the most bytes that the ranks held, those at the end, and the seconds."""
    with ExitStack() as stack:
        out = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        run = ["-m", "torch.distributed.run", "--nnodes=1", "--master-addr=127.0.0.1", f"--nproc-per-node={ranks}"]
        own = ["-m", __spec__.name, "--work", str(folder), "--way", way, "--out", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        log = stack.enter_context((out / "log").open("w+"))
        started = subprocess.Popen([sys.executable, *run, f"--master-port={port}", *own], env=environment, stderr=log)
        try:
            while len(found := list(out.glob("*.begun"))) < ranks:
                if started.poll() is not None:
                    raise SystemExit(f"the ranks ended before they loaded: {(out / 'log').read_text()[-2000:]}")
                time.sleep(0.002)
            processes = [psutil.Process(int(path.stem.partition("-")[2])) for path in found]
            before, most = held(processes), 0
            while len(done := list(out.glob("*.done"))) < ranks:
                most = max(most, held(processes))
                time.sleep(0.002)
            return most - before, held(processes) - before, max(float(path.read_text() or 0) for path in done)
        finally:
            started.terminate()
            started.wait()


def main() -> None:
    """Read the command line, measure, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=1024)
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parsed = options.parse_args()
    if parsed.work is not None:
        work(parsed.work, parsed.way, parsed.out)
        return
    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=parsed.width,
        intermediate_size=3 * parsed.width,
        num_hidden_layers=parsed.layers,
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    with tempfile.TemporaryDirectory() as place:
        model = LlamaForCausalLM(config)
        size = sum(value.nbytes for value in model.parameters())
        model.save_pretrained(place)
        del model
        print(f"{size / 2**20:.0f} MiB of fp32 weights, {parsed.ranks} ranks, memory in models")
        for way in WAYS:
            most, end, seconds = measure(Path(place), way, parsed.ranks)
            print(f"{way} reads: at most {most / size:.2f}, at the end {end / size:.2f}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
