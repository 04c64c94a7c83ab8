"""How often a model is right on the embedded problems: sampled with torch, judged by the math verifier.

``python -m tests.embedded_model.measure [FOLDER]`` prints the mean pass rate, by kind and level, and a histogram. A
verdict TIMEOUT or BROKEN does not count in a pass rate, as everywhere in the house.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.config import TorchModel
from curation.config.policies import Decoding
from curation.records import COUNTED_OUTCOMES, Completion, Domain, Outcome, PromptRequest
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.generation.torch_policy import TorchPolicy

BINS = 8
"""Bars of the histogram between pass rates 0 and 1; exactly 0 and exactly 1 have bars of their own."""

MAX_TOKENS = 112


@dataclass(frozen=True, slots=True)
class PassRateReport:
    """What was measured: ``by_problem`` has one row a problem (kind, level, lang, pass_rate, judged, no_answer,
    tokens).
    """

    by_problem: pl.DataFrame

    @property
    def mean_pass_rate(self) -> float:
        """Return the mean pass rate over problems."""
        return self._mean("pass_rate")

    @property
    def mean_tokens(self) -> float:
        """Return the mean length of a response, in tokens."""
        return self._mean("tokens")

    def _mean(self, column: str) -> float:
        values = self.by_problem[column].drop_nulls().to_list()
        return float(sum(values) / len(values))

    def histogram(self) -> list[tuple[str, int]]:
        """Return the bars from never solved to always solved, each with its number of problems."""
        rates = self.by_problem["pass_rate"].drop_nulls()
        bars = [("0", int((rates == 0).sum()))]
        for at in range(BINS):
            low, high = at / BINS, (at + 1) / BINS
            in_bin = (rates > low) & (rates <= high if at < BINS - 1 else rates < high)
            bars.append((f"{low:.3f} - {high:.3f}", int(in_bin.sum())))
        return [*bars, ("1", int((rates == 1).sum()))]

    def by_kind(self) -> pl.DataFrame:
        """Return the mean pass rate by kind and level, with the number of problems."""
        grouped = self.by_problem.group_by("kind", "level").agg(pl.len().alias("problems"), pl.col("pass_rate").mean())
        return grouped.sort("kind", "level")


def measure_pass_rates(folder: Path, problems: int = 200, attempts: int = 16, seed: int = 2026) -> PassRateReport:
    """Ask the model of ``folder`` so many held-out problems, so many times each, at temperature 1."""
    exercises = list(itertools.islice(generate_exercises(seed, Split.HELD_OUT), problems))
    return measure_exercises(folder, exercises, attempts, seed)


def measure_exercises(folder: Path, exercises: Sequence[Exercise], attempts: int, seed: int = 2026) -> PassRateReport:
    """Ask the model of ``folder`` these problems, so many times each, at temperature 1."""
    settings = TorchModel(
        model=str(folder.resolve()),
        prompt="plain",
        decoding=Decoding(temperature=1.0, max_tokens=MAX_TOKENS),
    )
    responses = asyncio.run(_ask(TorchPolicy(settings, folder, in_flight=256), exercises, attempts))
    tasks = [
        JudgeTask(
            item.id, str(item.answer), item.lang, tuple(Response(completion.text, None) for completion in completions)
        )
        for item, completions in zip(exercises, responses, strict=True)
    ]
    with MathJudge(workers=1) as judge:
        verdicts = [[verdict.outcome for verdict in result.verdicts] for result in judge.judge(tasks)]
    rows = [_row(*columns) for columns in zip(exercises, responses, verdicts, strict=True)]
    return PassRateReport(pl.DataFrame(rows))


async def _ask(policy: TorchPolicy, exercises: Sequence[Exercise], attempts: int) -> list[list[Completion]]:
    async with policy:
        requests = [PromptRequest(item.id, item.statement, Domain.MATH, item.lang) for item in exercises]
        completions = await asyncio.gather(
            *(policy.answer(request, index) for request in requests for index in range(attempts))
        )
    return [list(completions[start : start + attempts]) for start in range(0, len(completions), attempts)]


def _row(item: Exercise, completions: Sequence[Completion], outcomes: Sequence[Outcome]) -> dict[str, object]:
    judged = [outcome for outcome in outcomes if outcome in COUNTED_OUTCOMES]
    return {
        "kind": item.kind,
        "level": item.level,
        "lang": item.lang,
        "pass_rate": judged.count(Outcome.CORRECT) / len(judged) if judged else None,
        "judged": len(judged),
        "no_answer": judged.count(Outcome.NO_ANSWER),
        "tokens": sum(completion.tokens or 0 for completion in completions) / len(completions),
    }


def format_report(measured: PassRateReport) -> str:
    """Return the figures as Markdown."""
    lines = [
        f"{measured.by_problem.height} held-out problems: mean pass rate {measured.mean_pass_rate:.3f}, "
        f"{measured.mean_tokens:.1f} tokens a response.",
        "",
        "| pass rate | problems |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in measured.histogram()),
        "",
        "| kind | level | problems | mean pass rate |",
        "|---|---|---|---|",
        *(f"| {kind} | {level} | {n} | {rate:.2f} |" for kind, level, n, rate in measured.by_kind().iter_rows()),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the model and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.embedded_model.measure", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=WEIGHTS, help="folder of the model")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--attempts", type=int, default=16)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args(arguments)
    print(format_report(measure_pass_rates(options.folder, options.problems, options.attempts, options.seed)))


if __name__ == "__main__":
    main()
