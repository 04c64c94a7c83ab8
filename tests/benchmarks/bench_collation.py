"""How long a step waits for its micro-batches to be collated: all at once before it, or a few ahead beside it.

    python -m tests.benchmarks.bench_collation [--tokens 2000000] [--busy-ms 50] [--model embedded|FOLDER|none]

A batch of log-normal lengths in groups of 16, room for 32,768 tokens in a micro-batch. Prints, and scales to the 41
million tokens of the paper's batch:

  - CPU seconds to collate all of it, and by how much the process grows (largest resident size), there and below;
  - what is waited for beside steps that sleep for a known time, as one that waits for its GPU;
  - rank 0 for so many ranks: seconds to its first round, CPU seconds of all, bytes that it sends;
  - two real ranks over gloo, whose steps sleep; the same with nothing to send, which is what the machine's load takes;
  - a real step of a small model on the CPU, over the first tokens of a batch of short responses.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tests.training.students import student
from training.config import ComputeSettings, OptimSettings, PackingSettings
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.collating import pack_samples
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.look_ahead import Arrivals, Collation, Share
from training.optimisation.packing import MicroBatch, TrainingSample
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe

ROOM, GROUP, PROMPT, PAPER = 32_768, 16, 300, 41e6
VOCABULARY = 600  # of the smallest model


def batch(tokens: int, median: float, most: int, seed: int = 1) -> list[TrainingSample]:
    """Return samples of so many tokens, in groups with one prompt."""
    chance, samples, made = random.Random(seed), [], 0
    while made < tokens:
        if len(samples) % GROUP == 0:
            prompt = chance.choices(range(3, VOCABULARY), k=min(PROMPT, most // 4))
        length = min(int(median * chance.lognormvariate(0, 0.7)) + 1, most - len(prompt))
        response = chance.choices(range(3, VOCABULARY), k=length)
        logprobs = [-chance.random() for _ in range(length)]
        advantage = 1.0 if len(samples) % 2 else -1.0
        samples.append(TrainingSample(prompt, response, logprobs, advantage, 1 / tokens, on_policy=True))
        made += samples[-1].length
    return samples


def sleeps(seconds: float) -> None:
    """Do nothing for so long."""
    time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds waited for each micro-batch, and those of all steps."""

    waited: tuple[float, ...]
    spent: float

    def __str__(self) -> str:
        first, *later = (1000 * value for value in self.waited)
        middle, most = (statistics.median(later), max(later)) if later else (0.0, 0.0)
        return (
            f"waited {sum(self.waited):.4f} s in all ({first:.1f} ms for the first micro-batch, {middle:.2f} for a "
            f"later one, at most {most:.1f}); the steps took {self.spent:.2f} s"
        )


def taken(shares: Iterator[Share], step: Callable[[float], None], busy_s: float) -> Waits:
    """Take a step for each micro-batch."""
    waited, spent, before = [], 0.0, 0.0
    for _ in (parts := Arrivals(shares, torch.device("cpu"))):
        waited.append(parts.waited_s - before)
        before, begun = parts.waited_s, time.perf_counter()
        step(busy_s)
        spent += time.perf_counter() - begun
    return Waits(tuple(waited), spent)


def beside(samples: Sequence[TrainingSample], step: Callable[[float], None], busy_s: float) -> Waits:
    """Take the steps of one rank."""
    with Collation(samples, PackingSettings(micro_batch_tokens=ROOM), 1).made() as rounds:
        return taken((shares[0] for shares in rounds), step, busy_s)


def grown_mib(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and by how many MiB the process' largest resident size grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = work()
    return result, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def one_rank(samples: Sequence[TrainingSample], busy_s: float) -> None:
    """Print what one rank waits, and what collating everything takes."""
    tokens = sum(sample.length for sample in samples)
    paper = PAPER / tokens
    begun = time.process_time()
    slept, grown = grown_mib(lambda: beside(samples, sleeps, busy_s))
    looking_ahead, begun = time.process_time() - begun, time.process_time()
    packed, whole = grown_mib(lambda: pack_samples(samples, PackingSettings(micro_batch_tokens=ROOM)))
    at_once = time.process_time() - begun
    del packed
    print(
        f"{tokens:,} tokens, {len(samples)} samples, {len(slept.waited)} micro-batches: collated all at once in "
        f"{at_once:.3f} CPU s, {1e6 * at_once / tokens:.3f} us a token, {at_once * paper:.2f} s of {PAPER / 1e6:.0f} "
        f"million; looking ahead {looking_ahead:.3f} CPU s, {looking_ahead * paper:.2f} of {PAPER / 1e6:.0f} million"
    )
    print(f"memory: {whole:.0f} MiB where all are held, {grown:.0f} MiB looking ahead")
    print(f"sleeps {1000 * busy_s:.0f} ms a micro-batch: {slept}")


def rank_zero(samples: Sequence[TrainingSample], ranks: int) -> None:
    """Print what rank 0 does for so many ranks."""
    begun, cpu = time.perf_counter(), time.process_time()
    collation = Collation(samples, PackingSettings(micro_batch_tokens=ROOM), ranks)
    dealt = time.perf_counter() - begun
    sent = first = 0.0
    with collation.made() as rounds:
        for shares in rounds:
            first = first or time.perf_counter() - begun - dealt
            sent += sum(len(share) for share in shares if isinstance(share, bytes))
    tokens = sum(sample.length for sample in samples)
    print(
        f"rank 0 of {ranks}: {len(collation)} rounds dealt in {dealt:.3f} s, the first made after {first:.3f} s; "
        f"{time.process_time() - cpu:.3f} CPU s in all; it sends {sent / tokens:.1f} bytes a token"
    )


def two_ranks(samples: Sequence[TrainingSample], busy_s: float) -> None:
    """Do, on each of torchrun's processes, steps that sleep; rank 0 prints what it waited."""
    ranks = DistributedContext(ComputeSettings())

    def step(shares: Iterator[Share], value: float) -> Waits:
        return taken(shares, sleeps, value)

    if ranks.is_rank_zero:
        ranks.run_on_all_ranks("step", {"step": step}, Collation(samples[:2], PackingSettings(), 2), 0.0)  # connects
        collation = Collation(samples, PackingSettings(micro_batch_tokens=ROOM), ranks.world_size)
        waits = ranks.run_on_all_ranks("step", {"step": step}, collation, busy_s)
        print(f"two ranks over gloo, sleeping as long, rank 0, sending included: {waits}")
        small = [TrainingSample([1], [2], [-0.1], 1.0, 1.0)] * (2 * len(collation))
        empty = Collation(small, PackingSettings(micro_batch_tokens=2), 2)
        print(f"and with 2 tokens a rank: {ranks.run_on_all_ranks('step', {'step': step}, empty, busy_s)}")
    else:
        ranks.follow({"step": step})
    ranks.close()


def start_two_ranks(tokens: int, busy_ms: float) -> None:
    """Run this file in two of torchrun's processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    run = ["-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1"]
    own = ["-m", "tests.benchmarks.bench_collation", "--inside", "--tokens", str(tokens), "--busy-ms", str(busy_ms)]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *run, f"--master-port={port}", *own], check=True, env=environment)


def real_step(folder: Path, tokens: int, room: int) -> None:
    """Print what a real step of a model on the CPU waits."""
    recipe = TrainRecipe.model_validate(
        {
            "name": "bench",
            "steps": 1,
            **student(str(folder)),
            "data": {"kind": "embedded", "problems": 1, "seed": 1},
            "rewards": {"max_length": room},
            "packing": {"micro_batch_tokens": room},
            "optim": OptimSettings(warmup_steps=0).model_dump(),
        }
    )
    samples = batch(tokens, room / 16, room // 2)
    read = sum(sample.length for sample in samples)
    begun = time.process_time()
    packed: list[MicroBatch] = pack_samples(samples, recipe.packing)
    at_once = time.process_time() - begun
    trainer = Trainer(folder, recipe, DistributedContext(recipe.compute))
    taken = trainer.step(samples, GrpoSettings())
    print(
        f"a real step of {folder.name}, {read:,} tokens in {len(packed)} micro-batches: waited "
        f"{taken.collation_wait_s:.4f} s of {taken.seconds:.1f} s; collating all takes {at_once:.4f} CPU s"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tokens", type=int, default=2_000_000)
    options.add_argument("--busy-ms", type=float, default=50.0, help="what a step takes for a micro-batch")
    options.add_argument("--ranks", type=int, nargs="*", default=[8, 64])
    options.add_argument("--model", default="embedded", help="embedded, a model's folder, or none")
    options.add_argument("--model-tokens", type=int, default=65_536, help="tokens of the real step")
    options.add_argument("--model-room", type=int, default=4096)
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parsed = options.parse_args()
    torch.set_num_threads(1)
    samples, busy_s = batch(parsed.tokens, 7000.0, ROOM), parsed.busy_ms / 1000
    if parsed.inside:
        two_ranks(samples, busy_s)
        end_process(0)
    one_rank(samples, busy_s)
    for ranks in parsed.ranks:
        rank_zero(samples, ranks)
    del samples
    start_two_ranks(parsed.tokens, parsed.busy_ms)
    if parsed.model != "none":
        real_step(WEIGHTS if parsed.model == "embedded" else Path(parsed.model), parsed.model_tokens, parsed.model_room)


if __name__ == "__main__":
    main()
