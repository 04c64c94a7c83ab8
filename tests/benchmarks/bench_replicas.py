"""Are two servers nearly twice one? SmolLM2-135M answers sums, with `replicas = 1` and `replicas = 2`, by turns.

    .venv/bin/python -m tests.benchmarks.bench_replicas [--counts 1 2] [--problems 16] [--attempts 4] [--rounds 2]

Each engine of `replicas` is a server process of its own with one thread, so two have the two cores to themselves that a
GPU each would be elsewhere. The time of starting is not counted: all servers answer one round unmeasured. Printed per
count: tokens a second by the clock, CPU seconds of all processes, and whether every attempt's text is that of the first
count. Needs vLLM and the extra `real-model`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass

import psutil

from curation.config import Decoding, VllmPolicy
from curation.policies.vllm import Vllm
from curation.records import Domain, PromptRequest
from tests.real_model.smollm import missing, smollm_folder
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Seen:
    """One measured round: ``texts`` by problem and attempt; wall and CPU seconds; tokens."""

    texts: dict[tuple[int, int], str | None]
    tokens: int
    wall: float
    cpu: float


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--counts", type=int, nargs="+", default=[1, 2])
    options.add_argument("--problems", type=int, default=16)
    options.add_argument("--attempts", type=int, default=4)
    options.add_argument("--tokens", type=int, default=96)
    options.add_argument("--rounds", type=int, default=2)
    chosen = options.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    rounds: dict[int, list[Seen]] = {count: [] for count in chosen.counts}
    for _ in range(chosen.rounds):
        for count in chosen.counts:
            rounds[count].append(asyncio.run(measure(count, chosen)))
    first = rounds[chosen.counts[0]]
    base = max(seen.tokens / seen.wall for seen in first)
    print("engines  tokens/s of each round      best  times one  CPU s / 1,000 tokens  texts as with the first")
    for count, seen in rounds.items():
        speeds = [one.tokens / one.wall for one in seen]
        same = all(one.texts == first[0].texts for one in seen)
        cpu = 1000 * sum(one.cpu for one in seen) / sum(one.tokens for one in seen)
        listed = " ".join(f"{speed:7.1f}" for speed in speeds)
        print(f"{count:7}  {listed:24} {max(speeds):7.1f} {max(speeds) / base:10.2f} {cpu:21.2f}  {same}")


async def measure(count: int, chosen: argparse.Namespace) -> Seen:
    """Return what ``count`` engines do with all problems, asked at once, after one round that does not count."""
    settings = VllmPolicy(
        kind="vllm",
        model=str(smollm_folder()),
        prompt="plain",
        thinking="none",
        replicas=count,
        in_flight=chosen.problems * chosen.attempts,
        dtype="float32",
        max_model_len=512,
        kv_cache_mb=256,
        decoding=Decoding(temperature=0.7, max_tokens=chosen.tokens, seed=7),
    )
    policy = Vllm(settings, smollm_folder().parent)
    async with policy:
        if (servers := getattr(policy.engine, "servers", None)) is not None:
            await until(lambda: all(server.healthy for server in servers.replicas), tick_s=0.2)
        await ask(policy, 2 * count, 1, 1000)
        began, cpu = time.monotonic(), cpu_seconds()
        texts, tokens = await ask(policy, chosen.problems, chosen.attempts, 0)
        return Seen(texts, tokens, time.monotonic() - began, cpu_seconds() - cpu)


async def ask(policy: Vllm, problems: int, attempts: int, first: int) -> tuple[dict[tuple[int, int], str | None], int]:
    """Return the texts and the number of tokens of so many attempts at so many sums."""
    names = [(number, index) for number in range(first, first + problems) for index in range(attempts)]
    done = await asyncio.gather(*(policy.answer(problem(number), index) for number, index in names))
    return {name: one.text for name, one in zip(names, done, strict=True)}, sum(one.tokens or 0 for one in done)


def problem(number: int) -> PromptRequest:
    """Return a sum to ask."""
    statement = f"What is {number + 11} + {3 * number + 7}? Think step by step."
    return PromptRequest(f"{number:020x}", statement, Domain.MATH, "en")


def cpu_seconds() -> float:
    """Return the CPU seconds so far of this process and of all below it that live."""
    own = psutil.Process()
    alive = (own, *own.children(recursive=True))
    return sum(sum(process.cpu_times()[:2]) for process in alive if process.is_running())


if __name__ == "__main__":
    main()
