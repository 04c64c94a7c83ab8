"""A policy that draws its answers from fixed seeds and takes a while for each; and a run of it to be killed.

    python -m tests.curation.drawn FOLDER SECONDS

samples 40 problems into FOLDER/attempts, and notes every request in FOLDER/asked.txt.
"""

import asyncio
import random
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.pass_rates import decide, pass_rates
from curation.difficulty.sampling import SampledProblem, Sampler, SamplingRequest, stored_answers, verdict_frame
from curation.policies.failure_budget import FailureBudget
from curation.records import AttemptKey, Completion, Domain, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge

KEY = AttemptKey("drawn@1", "p", "s")


class Drawn:
    """Right with a probability that grows from problem to problem; wrong answers are one of three."""

    key = KEY
    about: Mapping[str, Any] = {}

    def __init__(self, seconds: float = 0.0, in_flight: int = 8, log: Path | None = None) -> None:
        self.seconds, self.in_flight, self.log = seconds, in_flight, log
        self.asked: list[tuple[str, int]] = []
        self.cancelled: list[tuple[str, int]] = []
        self.most = self.now = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        self.asked.append((problem.id, index))
        if self.log is not None:
            with self.log.open("a") as out:
                out.write(f"{problem.id} {index}\n")
        draw = random.Random(f"{problem.id} {index}")
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds * (0.2 + 2 * draw.random() ** 3))
        except asyncio.CancelledError:
            self.cancelled.append((problem.id, index))
            raise
        finally:
            self.now -= 1
        text = f"\\boxed{{{drawn_answer(problem.id, index)}}}"
        return Completion(text, "stop", 10 + index)


def drawn_answer(problem: str, index: int) -> str:
    """The policy's final answers; the right answer is 7."""
    draw = random.Random(f"{problem} {index} answer")
    easiness = int(problem[1:]) / 40
    return "7" if draw.random() < easiness else draw.choice(["8", "8", "x+1", "10"])


def problems(count: int = 40) -> list[PromptRequest]:
    return [PromptRequest(f"p{number:02}", "?", Domain.MATH, "en") for number in range(count)]


def sample(
    policy: Drawn,
    folder: Path,
    rule: StoppingRule,
    asked: list[PromptRequest],
    *,
    budget: FailureBudget | None = None,
    judge: MathJudge | None = None,
) -> tuple[list[SampledProblem], Sampler]:
    """Sample the problems, fold their attempts, and give them in their order."""
    store = AttemptStore(folder, policy.key)
    names = [one.id for one in asked]
    with MathJudge(1) if judge is None else nullcontext(judge) as judge:
        held = stored_answers(store, names, rule.band.attempts, judge)
        sampler = Sampler(policy, store, judge, rule, total=len(asked), budget=budget)

        async def run() -> list[SampledProblem]:
            wanted = (SamplingRequest(one, "7", stored_answers=held.get(one.id, {})) for one in asked)
            return [one async for one in sampler.run(wanted)]

        try:
            found = {one.problem: one for one in asyncio.run(run())}
            store.compact([names])
        finally:
            store.close()
    return [found[name] for name in names], sampler


def decisions(sampled: list[SampledProblem], rule: StoppingRule) -> pl.DataFrame:
    """What the verdicts decide."""
    verdicts = verdict_frame(sampled, KEY, "v@1")
    ids = pl.Series([one.problem for one in sampled])
    stopped = [one.problem for one in sampled if one.is_decided]
    return decide(pass_rates(ids, verdicts, KEY.policy, rule, stopped), rule.band, "stage1", rule)


def run(folder: Path, seconds: float) -> pl.DataFrame:
    """Sample all problems into a folder, noting each request, and return the decisions."""
    rule = StoppingRule(Band(attempts=16))
    sampled, _ = sample(Drawn(seconds, log=folder / "asked.txt"), folder / "attempts", rule, problems())
    return decisions(sampled, rule)


if __name__ == "__main__":
    run(Path(sys.argv[1]), float(sys.argv[2]))
