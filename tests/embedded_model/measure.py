"""How often a model is right on the embedded problems: sampled with torch, judged by the math verifier.

A verdict TIMEOUT or BROKEN does not count in a pass rate, as everywhere.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curation.config import TorchModel
from curation.config.policies import Decoding
from curation.records import COUNTED_OUTCOMES, Completion, Domain, Outcome, PromptRequest
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.generation.torch_policy import TorchPolicy

BINS = 8
"""Bars of the histogram between pass rates 0 and 1; exactly 0 and exactly 1 have bars of their own."""


def measure_pass_rates(folder: Path, problems: int = 200, attempts: int = 16, seed: int = 2026) -> pl.DataFrame:
    """Ask the model of ``folder`` so many held-out problems, so many times each, at temperature 1."""
    exercises = list(itertools.islice(generate_exercises(seed, Split.HELD_OUT), problems))
    return measure_exercises(folder, exercises, attempts)


def measure_exercises(folder: Path, exercises: Sequence[Exercise], attempts: int) -> pl.DataFrame:
    """Ask the model of ``folder`` these problems, so many times each, at temperature 1.

    Return a row a problem: kind, level, pass_rate, tokens.
    """
    decoding = Decoding(temperature=1.0, max_tokens=112)
    settings = TorchModel(model=str(folder.resolve()), prompt="plain", decoding=decoding)
    responses = asyncio.run(_ask(TorchPolicy(settings, folder, in_flight=256), exercises, attempts))
    tasks = []
    for item, completions in zip(exercises, responses, strict=True):
        texts = tuple(Response(completion.text, None) for completion in completions)
        tasks.append(JudgeTask(item.id, str(item.answer), item.lang, texts))
    with MathJudge(workers=1) as judge:
        verdicts = [[verdict.outcome for verdict in result.verdicts] for result in judge.judge(tasks)]
    rows = [_row(*columns) for columns in zip(exercises, responses, verdicts, strict=True)]
    return pl.DataFrame(rows)


async def _ask(policy: TorchPolicy, exercises: Sequence[Exercise], attempts: int) -> list[list[Completion]]:
    async with policy:
        requests = [PromptRequest(item.id, item.statement, Domain.MATH, item.lang) for item in exercises]
        asked = (policy.answer(request, index) for request in requests for index in range(attempts))
        completions = await asyncio.gather(*asked)
    return [list(completions[start : start + attempts]) for start in range(0, len(completions), attempts)]


def _row(item: Exercise, completions: Sequence[Completion], outcomes: Sequence[Outcome]) -> dict[str, object]:
    judged = [outcome for outcome in outcomes if outcome in COUNTED_OUTCOMES]
    return {
        "kind": item.kind,
        "level": item.level,
        "pass_rate": judged.count(Outcome.CORRECT) / len(judged) if judged else None,
        "tokens": sum(completion.tokens or 0 for completion in completions) / len(completions),
    }


def format_report(measured: pl.DataFrame) -> str:
    """Return the figures as Markdown."""
    rates = measured["pass_rate"].drop_nulls()
    bars = [("0", int((rates == 0).sum()))]
    for at in range(BINS):
        low, high = at / BINS, (at + 1) / BINS
        in_bin = (rates > low) & (rates <= high if at < BINS - 1 else rates < high)
        bars.append((f"{low:.3f} - {high:.3f}", int(in_bin.sum())))
    kinds = measured.group_by("kind", "level").agg(pl.len(), pl.col("pass_rate").mean()).sort("kind", "level")
    lines = [
        f"{measured.height} held-out problems: mean pass rate {rates.mean():.3f}, "
        f"{measured['tokens'].mean():.1f} tokens a response.",
        "",
        "| pass rate | problems |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in [*bars, ("1", int((rates == 1).sum()))]),
        "",
        "| kind | level | problems | mean pass rate |",
        "|---|---|---|---|",
        *(f"| {kind} | {level} | {n} | {rate:.2f} |" for kind, level, n, rate in kinds.iter_rows()),
    ]
    return "\n".join(lines)
