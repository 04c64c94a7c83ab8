"""What everything around an engine costs: scheduling, the journal, the store and the judge, against the bare engine.

    python -m tests.benchmarks.bench_overhead [--engine vllm|stand-in] [--requests 3200] [--rounds 3]

Both sides answer the same requests, n = 16 attempts a problem without early stopping, with the same seeds and the same
number in flight; they take turns, and each round's first one changes. ``vllm`` (the default) is the real engine with
the embedded model in this process: the bare side hands prompts that are tokens already to the engine and keeps the
texts. Its answers are about 50 tokens of a model of 0.4 M parameters, which is hard on everything around them: the
answers of a real model take thousands of times longer. CPU seconds, which other work on the machine disturbs less,
are those of this process and of all that it started, the engine's and the judge's. ``stand-in`` answers after a fixed
time that costs nothing, so that only what is spent between two requests counts.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from curation.config import Band, VllmModel
from curation.config.policies import Decoding
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.sampling import Sampler, SamplingRequest
from curation.policies.vllm import Vllm
from curation.records import AttemptKey, Completion, Domain, Policy, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises

ATTEMPTS = 16
Ask = Callable[[PromptRequest, int], Awaitable[object]]


class StandIn:
    """An engine that answers after ``seconds``, whatever is asked."""

    key = AttemptKey("engine@1", "p", "s")
    about: Mapping[str, Any] = {}
    in_flight = 64

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        await asyncio.sleep(self.seconds)
        answer = random.Random(f"{problem.id} {index}").choice(["7", "7", "8", "\\frac{1}{2}"])
        return Completion("thinking " * 200 + f"\\boxed{{{answer}}}", "stop", 210)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a side took, in seconds."""

    wall: float
    cpu: float


class Clock:
    """Reads wall and CPU time since it was made."""

    def __init__(self) -> None:
        self._begun, self._cpu = time.perf_counter(), self._processes()

    def read(self) -> Spent:
        return Spent(time.perf_counter() - self._begun, self._processes() - self._cpu)

    @staticmethod
    def _processes() -> float:
        own = psutil.Process()
        times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
        return sum(usage.user + usage.system for usage in times)


async def bare(ask: Ask, problems: Sequence[SamplingRequest], in_flight: int) -> Spent:
    """Measure how long so many workers, which do nothing else, take until everything is answered."""
    requests = ((problem_request.request, index) for problem_request in problems for index in range(ATTEMPTS))

    async def work() -> None:
        for problem, index in requests:
            await ask(problem, index)

    clock = Clock()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return clock.read()


async def whole(policy: Policy, problems: Sequence[SamplingRequest]) -> Spent:
    """Measure how long the sampler takes until everything is answered, judged and stored."""
    with tempfile.TemporaryDirectory() as folder, MathJudge(1) as judge:
        store = AttemptStore(Path(folder), policy.key)
        clock = Clock()
        sampler = Sampler(policy, store, judge, StoppingRule(Band(attempts=ATTEMPTS), early_stopping=False))
        results = [sampled async for sampled in sampler.run(problems)]
        store.compact([problem.request.id for problem in problems])
        store.close()
        spent = clock.read()
    assert len(results) == len(problems)
    return spent


async def compare(
    policy: Policy, ask: Ask, problems: Sequence[SamplingRequest], rounds: int, between: Callable[[], Awaitable[object]]
) -> list[tuple[Spent, Spent]]:
    """Return what both sides took, round by round: (whole, bare)."""
    rounds_spent = []
    for number in range(rounds):
        spent: dict[str, Spent] = {}
        for side in ("bare", "whole") if number % 2 else ("whole", "bare"):
            await between()
            if side == "bare":
                spent[side] = await bare(ask, problems, policy.in_flight)
            else:
                spent[side] = await whole(policy, problems)
        rounds_spent.append((spent["whole"], spent["bare"]))
        texts = (
            f"{side} {side_spent.wall:.2f} s, {side_spent.cpu:.2f} s CPU" for side, side_spent in sorted(spent.items())
        )
        print(f"round {number + 1}: {'; '.join(texts)}", flush=True)
    return rounds_spent


async def with_vllm(problems: Sequence[SamplingRequest], rounds: int, in_flight: int) -> list[tuple[Spent, Spent]]:
    """Run the rounds with the embedded model in vLLM's engine."""
    settings = VllmModel(
        kind="vllm",
        model=str(WEIGHTS),
        prompt="plain",
        dtype="float32",
        kv_cache_mb=256,
        in_flight=in_flight,
        decoding=Decoding(temperature=1.0, max_tokens=112, seed=5),
    )
    async with Vllm(settings, Path.cwd()) as policy:
        engine: Any = policy.engine.vllm
        tokens = {
            sampling_request.request.id: policy._tokens(sampling_request.request) for sampling_request in problems
        }
        sampling = {
            (sampling_request.request.id, i): policy._sampling(sampling_request.request.id, i)
            for sampling_request in problems
            for i in range(ATTEMPTS)
        }
        names = itertools.count()
        texts: list[str] = []

        async def generate(problem: PromptRequest, index: int) -> None:
            prompt = {"type": "token", "prompt_token_ids": tokens[problem.id]}
            async for output in engine.generate(prompt, sampling[problem.id, index], f"bare-{next(names)}"):
                final = output
            texts.append(final.outputs[0].text)

        await bare(generate, problems[:8], in_flight)  # what is compiled or allocated on first use
        return await compare(policy, generate, problems, rounds, engine.reset_prefix_cache)


def main() -> None:
    """Print each round, and the median overhead."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("vllm", "stand-in"), default="vllm")
    parser.add_argument("--requests", type=int, default=3200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=0.4, help="time of an answer of the stand-in")
    arguments = parser.parse_args()
    exercises = itertools.islice(generate_exercises(3, Split.TRAIN), arguments.requests // ATTEMPTS)
    problems = [
        SamplingRequest(
            PromptRequest(exercise.id, exercise.statement, Domain.MATH, exercise.lang), str(exercise.answer)
        )
        for exercise in exercises
    ]
    if arguments.engine == "vllm":
        rounds = asyncio.run(with_vllm(problems, arguments.rounds, arguments.in_flight))
    else:
        engine = StandIn(arguments.seconds)

        async def nothing() -> None:
            return None

        rounds = asyncio.run(compare(engine, engine.answer, problems, arguments.rounds, nothing))
    wall = statistics.median(spent.wall / alone.wall - 1 for spent, alone in rounds)
    cpu = statistics.median(spent.cpu / alone.cpu - 1 for spent, alone in rounds)
    print(f"overhead over {arguments.engine}, median of {len(rounds)}: {wall:+.1%} of the wall time, {cpu:+.1%} CPU")


if __name__ == "__main__":
    main()
