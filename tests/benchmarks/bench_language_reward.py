"""Whether the language bonus makes a model think in the user's language: one model, trained with it and without.

    python -m tests.benchmarks.bench_language_reward [--seeds 1 2] [--steps 40] [--bonus 0.1] [--normalise minibatch]

A tiny model (`two_languages`) is made from nothing: asked in English or French, it thinks in that language six times
of ten. For each seed the trainer then runs on it twice, as any user's run does, with the real rewards and the real
identification; the two runs differ in ``rewards.language`` alone. The model before and after is asked held-out
problems at temperature 1; shown are the share of attempts whose problem, thoughts and answer are in one language
(`curation.languages.consistent`), the pass rate, and the thoughts' share that is English, with 95 % intervals from
resampling problems. Minutes on one core; the model takes most of them, and is kept in ``--out`` where that is given.

Advantages are divided by their group's deviation; ``--normalise minibatch`` divides by the minibatch's as in the paper.
There the wrong ones of a few attempts set the scale, and the share rises more slowly.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from curation.config import TorchModel
from curation.config.policies import Decoding
from curation.languages.identification import identify
from curation.languages.mixing import consistent
from curation.records import COUNTED_OUTCOMES, Completion, Domain, Outcome, PromptRequest, problem_id
from curation.thinking import OPEN, split_response
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from tests.benchmarks.two_languages import Exercise, exercises, make_model, write_set
from tests.training.students import student
from training.engines.embedded.run import train
from training.generation.torch_policy import TorchPolicy
from training.recipe import TrainRecipe

TOKENS, HELD_OUT, ATTEMPTS, RESAMPLES = 80, 150, 8, 2000


@dataclass(frozen=True, slots=True)
class Asked:
    """Per problem: the shares of its attempts that are consistent, correct, and thought in English."""

    consistent: list[float]
    correct: list[float]
    english: list[float]


def recipe(seed: int, steps: int, bonus: float, normalise: str) -> dict[str, Any]:
    """Return the recipe of one run; a comparison's two runs differ in ``bonus`` only."""
    return {
        "name": "language-reward",
        "seed": seed,
        "steps": steps,
        **student("model"),
        "data": {"kind": "curated", "folders": ("problems",)},
        "collector": {"group_size": 8, "n_async": 128, "n_batch": 128, "max_staleness": 1},
        "objective": {"advantage_normalisation": normalise},
        "rewards": {"max_length": TOKENS, "length_penalty": 0.0, "language": bonus},
        "optim": {"learning_rate": 3e-4, "warmup_steps": 5},
        "packing": {"micro_batch_tokens": 4096},
        "checkpoints": {"every": steps},
    }


def ask(model: Path, seed: int) -> Asked:
    """Sample the model's attempts at held-out problems, and judge them one by one."""
    problems = list(islice(exercises(seed, held_out=True), HELD_OUT))
    responses = asyncio.run(_sample(model, problems, seed))
    tasks = [
        JudgeTask(str(place), str(exercise.answer), exercise.lang, tuple(Response(text, None) for text in texts))
        for place, (exercise, texts) in enumerate(zip(problems, responses, strict=True))
    ]
    with MathJudge(workers=1) as judge:
        verdicts = [[verdict.outcome for verdict in judged.verdicts] for judged in judge.judge(tasks)]
    return Asked(
        [
            mean([_consistent(exercise, text) for text in texts])
            for exercise, texts in zip(problems, responses, strict=True)
        ],
        [
            mean([outcome is Outcome.CORRECT for outcome in outcomes if outcome in COUNTED_OUTCOMES])
            for outcomes in verdicts
        ],
        [
            mean([identify(split_response(text).thoughts, ("en", "fr")).lang == "en" for text in texts])
            for texts in responses
        ],
    )


def _consistent(exercise: Exercise, text: str) -> bool:
    parts = split_response(text)
    answer = parts.answer or ""
    return text.startswith(OPEN) and consistent(exercise.statement, parts.thoughts, answer).consistent


async def _sample(model: Path, problems: Sequence[Exercise], seed: int) -> list[list[str]]:
    settings = TorchModel(
        model=str(model.resolve()),
        prompt="plain",
        decoding=Decoding(temperature=1.0, max_tokens=TOKENS, seed=seed),
    )
    requests = [PromptRequest(problem_id(item.statement), item.statement, Domain.MATH, item.lang) for item in problems]
    async with TorchPolicy(settings, model.parent) as policy:
        completions: list[Completion] = await asyncio.gather(
            *(
                policy.answer(item, place * ATTEMPTS + index)
                for place, item in enumerate(requests)
                for index in range(ATTEMPTS)
            )
        )
    texts = [item.text or "" for item in completions]
    return [texts[start : start + ATTEMPTS] for start in range(0, len(texts), ATTEMPTS)]


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return statistics.fmean(values) if values else 0.0


def interval(shares: Sequence[float]) -> str:
    """Return mean and 95 % interval over resampled problems."""
    chance = Random(0)
    means = sorted(mean(chance.choices(shares, k=len(shares))) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return f"{mean(shares):6.1%} [{low:.1%}, {high:.1%}]"


def show(name: str, shares: Asked) -> None:
    """Print one line of the table."""
    print(
        f"{name:<28} {interval(shares.consistent):<24} {interval(shares.correct):<24} {interval(shares.english)}",
        flush=True,
    )


def run(home: Path, seed: int, steps: int, bonus: float, normalise: str) -> Path:
    """Train; return the trained model's folder. The trainer's own lines go to a log beside it."""
    out = home / f"run-{normalise}-{seed}-{'on' if bonus else 'off'}"
    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        model = train(TrainRecipe.model_validate(recipe(seed, steps, bonus, normalise)), home, out)
    (out / "said.log").write_text(log.getvalue())
    return model


def compare(home: Path, seeds: Sequence[int], steps: int, bonus: float, normalise: str) -> None:
    """Print all runs, a line each."""
    print(f"{'':<28} {'in one language':<24} {'correct':<24} thoughts in English")
    for seed in seeds:
        show(f"seed {seed}, before", ask(home / "model", seed))
        for amount in (bonus, 0.0):
            begun = time.process_time()
            model = run(home, seed, steps, amount, normalise)
            spent = time.process_time() - begun
            show(f"seed {seed}, bonus {'on' if amount else 'off'}, {spent:.0f} CPU s", ask(model, seed))


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model where it is not there, then train and ask."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    options.add_argument("--steps", type=int, default=40, help="of the trainer")
    options.add_argument("--bonus", type=float, default=0.1)
    options.add_argument("--normalise", choices=("group", "minibatch"), default="group", help="the paper's: minibatch")
    options.add_argument("--making", type=int, default=400, help="steps in which the model is made")
    options.add_argument("--out", type=Path, help="keep model and runs here; an earlier model is used again")
    parsed = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as aside:
        home = parsed.out or Path(aside)
        if not (home / "model" / "config.json").exists():
            begun = time.process_time()
            make_model(home / "model", seed=7, steps=parsed.making)
            print(f"made the model in {time.process_time() - begun:.0f} CPU s", file=sys.stderr)
        if not (home / "problems").exists():
            write_set(home / "problems", seed=11, problems=2000, held_out=False)
        compare(home, parsed.seeds, parsed.steps, parsed.bonus, parsed.normalise)


if __name__ == "__main__":
    main()
