"""Are two servers nearly twice one? SmolLM2-135M answers sums, asked of one server and of two, by turns.

    .venv/bin/python -m tests.benchmarks.bench_replicas [--counts 1 2] [--problems 24] [--attempts 4] [--in-flight 16]
        [--tokens 64] [--rounds 2] [--share .6]

Each engine of `replicas` is a server process of its own with one thread; each has so many requests in flight as a
policy keeps, so two have twice as many. The time of starting is not counted: all servers answer one round unmeasured.
Two servers and whoever asks them want more than two cores. With ``--share`` the rounds are made twice: as they are, and
with each server, all its processes, in a control group with that much of a core, ahead of what else runs on
the machine, and the asking process with what is left (`tests.benchmarks.cpu_shares`; needs root). Printed per count:
tokens a second by the clock, the CPU seconds of servers and of the asking process, what each server had of a core and
how long it was held back, and whether every attempt's text is that of the first count. Needs vLLM and the extra
`real-model`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from curation.config import Decoding, VllmPolicy
from curation.policies.vllm import Vllm
from curation.policies.vllm.replicas import ReplicatedEngine
from curation.records import Completion, Domain, PromptRequest
from tests.benchmarks import cpu_shares
from tests.benchmarks.cpu_shares import CpuShare
from tests.real_model.smollm import missing, smollm_folder
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Seen:
    """One measured round: ``texts`` by problem and attempt; tokens; seconds by the clock, of the asking process's CPU,
    of each server's, and for which each was held back.
    """

    texts: dict[tuple[int, int], str | None]
    tokens: int
    wall: float
    asker: float
    servers: list[float]
    throttled: list[float]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--counts", type=int, nargs="+", default=[1, 2])
    options.add_argument("--problems", type=int, default=24)
    options.add_argument("--attempts", type=int, default=4)
    options.add_argument("--in-flight", type=int, default=16)
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--share", type=float)
    chosen = options.parse_args()
    if reason := missing() or (cpu_shares.missing() if chosen.share is not None else ""):
        raise SystemExit(reason)
    shares = [None] if chosen.share is None else [chosen.share, None]
    rounds: dict[tuple[float | None, int], list[Seen]] = {
        (share, count): [] for share in shares for count in chosen.counts
    }
    for number in range(chosen.rounds):
        for share, count in rounds:
            seen = asyncio.run(measure(count, share, chosen))
            rounds[share, count].append(seen)
            print(
                f"round {number + 1}, {count} servers, {share_told(share)}: {seen.tokens / seen.wall:.1f}", flush=True
            )
    print_table(rounds)


def print_table(rounds: dict[tuple[float | None, int], list[Seen]]) -> None:
    """Print a line for each share and count."""
    print(
        "a server has   servers  tokens/s by round      best  times one  CPU s / 1,000 tokens: servers, asker  "
        "cores had by each   held back s    same texts"
    )
    first = next(iter(rounds.values()))[0].texts
    base: dict[float | None, float] = {}
    for (share, count), seen in rounds.items():
        speeds = [one.tokens / one.wall for one in seen]
        base.setdefault(share, max(speeds))
        tokens = sum(one.tokens for one in seen) / 1000
        servers, asker = sum(sum(one.servers) for one in seen) / tokens, sum(one.asker for one in seen) / tokens
        had = " ".join(f"{cpu / one.wall:.2f}" for one in seen for cpu in one.servers)
        held = " ".join(f"{seconds:.0f}" for one in seen for seconds in one.throttled) or "-"
        same = all(one.texts == first for one in seen)
        listed = " ".join(f"{speed:.1f}" for speed in speeds)
        print(
            f"{share_told(share):13} {count:8}  {listed:20} {max(speeds):7.1f} {max(speeds) / base[share]:10.2f} "
            f"{servers:22.2f} {asker:14.2f}  {had:19} {held:14} {same}"
        )


def share_told(share: float | None) -> str:
    """Return a share in words."""
    return "what there is" if share is None else f"{share:g} of a core"


async def measure(count: int, share: float | None, chosen: argparse.Namespace) -> Seen:
    """Return what ``count`` servers do with all problems, after one round that does not count."""
    settings = VllmPolicy(
        kind="vllm",
        model=str(smollm_folder()),
        prompt="plain",
        thinking="none",
        replicas=count,
        in_flight=chosen.in_flight,
        dtype="float32",
        max_model_len=512,
        kv_cache_mb=256,
        decoding=Decoding(temperature=0.7, max_tokens=chosen.tokens, seed=7),
    )
    policy = Vllm(settings, smollm_folder().parent)
    engine = policy.engine = ReplicatedEngine(policy.engine.launch, settings, count)  # one is a server here too
    async with policy:
        assert engine.servers is not None
        replicas = engine.servers.replicas
        await until(lambda: all(server.healthy for server in replicas), tick_s=0.2)
        trees = [family(one.process.pid) for one in replicas if one.process is not None]
        with held_to(share, trees) as groups:
            await ask(policy, 2 * count, 1, 1000)
            own = [psutil.Process()]
            began, asker = time.monotonic(), cpu_seconds(own)
            cpu, held = [cpu_seconds(tree) for tree in trees], [group.throttled_s() for group in groups]
            texts, tokens = await ask(policy, chosen.problems, chosen.attempts, 0)
            wall, asker = time.monotonic() - began, cpu_seconds(own) - asker
            spent = [cpu_seconds(tree) - before for tree, before in zip(trees, cpu, strict=True)]
            throttled = [group.throttled_s() - before for group, before in zip(groups, held, strict=True)]
    return Seen(texts, tokens, wall, asker, spent, throttled)


@contextmanager
def held_to(share: float | None, trees: Sequence[Sequence[psutil.Process]]) -> Iterator[list[CpuShare]]:
    """Put each family of processes into a group with a share, and this process before all others; yield the former."""
    with ExitStack() as stack:
        groups: list[CpuShare] = []
        for number, tree in enumerate(trees if share is not None else ()):
            groups.append(stack.enter_context(CpuShare(f"server-{number}", share)))
            groups[-1].add(tree)
        if groups:
            stack.enter_context(CpuShare("asker", None)).add([psutil.Process()])
        yield groups


async def ask(policy: Vllm, problems: int, attempts: int, first: int) -> tuple[dict[tuple[int, int], str | None], int]:
    """Return the texts and the number of tokens of so many attempts at so many sums."""
    names = [(number, index) for number in range(first, first + problems) for index in range(attempts)]
    seats = asyncio.Semaphore(policy.in_flight)

    async def one_of(number: int, index: int) -> Completion:
        async with seats:
            return await policy.answer(problem(number), index)

    done = await asyncio.gather(*(one_of(number, index) for number, index in names))
    return {name: one.text for name, one in zip(names, done, strict=True)}, sum(one.tokens or 0 for one in done)


def problem(number: int) -> PromptRequest:
    """Return a sum to ask."""
    statement = f"What is {number + 11} + {3 * number + 7}? Think step by step."
    return PromptRequest(f"{number:020x}", statement, Domain.MATH, "en")


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """Return the CPU seconds so far of processes that live."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


if __name__ == "__main__":
    main()
