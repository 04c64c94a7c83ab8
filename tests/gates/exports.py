"""Exported sets, the trainer and verl's plugin: the reward of a response is the verdict of the set that it comes from.

Responses are real attempts at GSM8K and Odyssey, judged by a run's judge, and the labelled programs of the tests. Every
second doubtful answer counts as accepted by a model, with all answers that the judge finds equal to it, so that what a
model decides is among the verdicts.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import polars as pl

from curation.prompts import SOLVE
from curation.publish.export import CURATED
from curation.publish.export_formats import FORMATS, export_set
from curation.records import Outcome, problem_id
from curation.response_formats import BOXED
from curation.scoring.record import MARK
from curation.scoring.scorer import Scorer, ScoringSettings
from curation.verify.math_judge import JudgeTask, MathJudge, Response, Verdict
from tests.consumers.environments import TRAINERS, missing, rewards_inside
from tests.curation.verify.programs.corpus import responses, write_set
from tests.gates.base import Limit, Measured, SkippedError, gate, share, shared_rows
from tests.gates.trainer_calls import CALLS, EMULATED, Rewards, row_id
from tests.places import ROOT

FILES = {"gsm8k": "gsm8k_openai_models.jsonl", "odyssey": "odyssey_models.jsonl"}
FAILED = (Outcome.TIMEOUT, Outcome.BROKEN)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A response, its problem, and the set's verdict on it: 1 or 0."""

    problem: str
    statement: str
    reference: str | None
    text: str
    verdict: float
    answer: str | None = None
    accepted: bool = False


@cache
def attempts(source: str, count: int) -> tuple[Sampled, ...]:
    """Return recorded attempts with the verdicts of a run's judge; those it failed on are left out."""
    rows = [
        (str(row["problem"]), str(row["gold"]), one["text"] or f"\\boxed{{{one['answer']}}}")
        for row in shared_rows("attempts", FILES[source])
        for one in row["samples"]
    ]
    drawn = random.Random(0).sample(rows, min(count, len(rows)))
    tasks = [
        JudgeTask(problem_id(statement), gold, "en", (Response(text, None),), statement=statement)
        for statement, gold, text in drawn
    ]
    with MathJudge() as judge:
        verdicts = [result.verdicts[0] for result in judge.judge(tasks)]
        doubtful = dict.fromkeys(
            (task.problem, one.answer) for task, one in zip(tasks, verdicts, strict=True) if one.is_doubtful
        )
        taken = set(list(doubtful)[::2])
        accepted = {task.problem: tuple(answer for name, answer in taken if name == task.problem) for task in tasks}
        again = [replace(task, admissible=accepted[task.problem]) for task in tasks]
        rights = [result.verdicts[0].outcome is Outcome.CORRECT for result in judge.judge(again)]
    return tuple(
        Sampled(
            problem_id(statement),
            statement,
            gold,
            text,
            float(right or (problem_id(statement), one.answer) in taken),
            one.answer,
            (problem_id(statement), one.answer) in taken,
        )
        for (statement, gold, text), one, right in zip(drawn, verdicts, rights, strict=True)
        if one.outcome not in FAILED
    )


def programs() -> list[Sampled]:
    """Return the labelled programs of the tests whose problems name a language."""
    return [
        Sampled(row["problem"], "", None, row["response"], float(row["outcome"] == Outcome.CORRECT))
        for row in responses()
        if row["problem"] != "yes-any-language" and row["outcome"] not in FAILED
    ]


def curated(folder: Path, math: Sequence[Sampled], *, code: bool) -> Path:
    """Write a curated set of the problems of math, with those of the labelled programs."""
    if code:
        write_set(folder)
    else:
        (folder / "data").mkdir(parents=True)
    about = {"domain": "math", "lang": "en", "source": "attempts", "pass_rate": 0.5}
    accepted: dict[str, set[str | None]] = {}
    for one in math:
        accepted.setdefault(one.problem, set()).update([one.answer] if one.accepted else [])
    table = [
        {
            "id": one.problem,
            "group": one.problem,
            "statement": one.statement,
            "answer": one.reference,
            "accepted": sorted(map(str, accepted[one.problem])),
            **about,
        }
        for one in {one.problem: one for one in math}.values()
    ]
    frame = pl.DataFrame([{name: row.get(name) for name in CURATED} for row in table], schema=CURATED)
    frame.write_parquet(folder / "data" / "math.parquet")
    return folder


def _measured(equal: Mapping[str, tuple[int, int]], note: str) -> Measured:
    """Return the share of equal verdicts over formats, each with its equal ones and their number."""
    right, count = (sum(each) for each in zip(*equal.values(), strict=True))
    unequal = [f"{name} {hits} of {all_}" for name, (hits, all_) in equal.items() if hits < all_]
    note = "; ".join([f"{count:,} verdicts of {len(equal)} formats", note, *unequal])
    return share(right, count, note)


def _equal(rewards: Rewards, asked: Sequence[Sampled]) -> tuple[int, int]:
    return sum(reward == one.verdict for reward, one in zip(rewards, asked, strict=True)), len(asked)


def _all_formats(asked: Sequence[Sampled]) -> Measured:
    import datasets  # imports are late here since every process imports all rooms, to know their gates

    from tests.curation.publish.test_export_formats import loaded

    datasets.disable_progress_bars()
    equal, left_out = {}, list[str]()
    math = [one for one in asked if one.reference is not None]
    with tempfile.TemporaryDirectory() as scratch:
        folder = curated(Path(scratch) / "curated", math, code=len(math) < len(asked))
        for name in FORMATS:
            export = export_set(folder, name, Path(scratch) / name)
            rows = {row_id(row): row for row in loaded(export)}
            carried = [one for one in asked if one.problem in rows]
            if len(carried) < len(asked):
                left_out.append(f"{name} does not carry the problems of {len(asked) - len(carried)}")
            pairs = [(rows[one.problem], one.text) for one in carried]
            equal[name] = _equal(CALLS[name](pairs, export.file.parent), carried)
        answered = [one for one in math if one.answer is not None]
        for name, rewards in _training_rewards(folder, answered):
            equal[name] = _equal(rewards, answered)
    by_model = sum(one.accepted for one in asked)
    emulated = f"{len(asked)} responses, {by_model} of them accepted by a model"
    emulated += f"; emulated without their trainer: {', '.join(EMULATED)}"
    return _measured(equal, "; ".join([emulated, *left_out]))


def _training_rewards(folder: Path, asked: Sequence[Sampled]) -> Iterator[tuple[str, Rewards]]:
    """Yield the rewards of final answers by the trainer and by the rows that verl's plugin judges."""
    from training.config import RewardSettings
    from training.embedded_model.problems import Split
    from training.engines.verl.run import write_verl_set
    from training.recipe import CuratedData
    from training.rollouts.tasks import load_tasks
    from training.rollouts.verifiers import Verifiers

    tasks = load_tasks(CuratedData(kind="curated", folders=(str(folder),)), Split.TRAIN, folder)
    texts = [f"<think>?</think>\\boxed{{{one.answer}}}" for one in asked]

    async def judged() -> list[Verdict]:
        with Verifiers(tasks.values(), 2, RewardSettings()) as verifiers:
            pairs = zip(asked, texts, strict=True)
            return list(await asyncio.gather(*(verifiers.verify(tasks[one.problem], text, 0) for one, text in pairs)))

    yield "trainer", [_reward(verdict.outcome) for verdict in asyncio.run(judged())]
    file = folder / "verl.parquet"
    write_verl_set(tasks.values(), SOLVE, file)
    records = {row["extra_info"]["id"]: row["extra_info"][MARK] for row in pl.read_parquet(file).to_dicts()}
    with Scorer(ScoringSettings(response_format=BOXED, workers=2)) as scorer:
        scores = scorer.score([(records[one.problem], text) for one, text in zip(asked, texts, strict=True)])
    yield "verl plugin", [score.reward for score in scores]


def _reward(outcome: Outcome) -> float | None:
    return None if outcome in FAILED else float(outcome is Outcome.CORRECT)


@gate("verdicts", Limit(">=", 100, "%"))
def verdicts() -> Measured:
    """Compare on attempts at GSM8K and Odyssey and on the labelled programs."""
    return _all_formats([*attempts("gsm8k", 100), *attempts("odyssey", 100), *programs()])


@gate("verdicts-many", Limit(">=", 100, "%"), tier="room")
def verdicts_many() -> Measured:
    """Compare on 2,000 attempts."""
    return _all_formats([one for source in FILES for one in attempts(source, 1000)])


@gate("planted-rows-found", Limit("==", 100, "%"), tier="room")
def planted_rows_found() -> Measured:
    """Plant bad rows in both demo sets, and prove the exported rows of every format; sound rows must stay."""
    import datasets

    from curation.scoring.checking import failing_rows
    from flows import run_recipe
    from tests.curation.publish.test_export_formats import loaded

    datasets.disable_progress_bars()
    count = missed = lost = sound = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("demo_math", "demo_code"):
            folder = run_recipe(ROOT / "flows" / "recipes" / f"{name}.toml", Path(scratch) / name)
            planted = _plant(folder)
            failing = failing_rows(folder)
            for form in FORMATS:
                export = export_set(folder, form, Path(scratch) / name / form, failing)
                count += len(planted)
                missed += sum(row_id(row) in planted for row in loaded(export))
                lost += len(set(export.failed) - planted)
                sound += export.rows
    note = f"{count} planted, in two demo sets and {len(FORMATS)} formats; sound rows lost: {lost} of {sound + lost:,}"
    return Measured(0 if lost else 100 * (1 - missed / count), note=note)


def _plant(folder: Path, count: int = 5) -> set[str]:
    """Spoil rows of a set: references that cannot be read, accepted near misses, tests that a silent program passes."""
    (file,) = (folder / "data").glob("*.parquet")
    rows = pl.read_parquet(file).to_dicts()
    if rows[0]["domain"] == "math":
        plain = [row for row in rows if str(row["answer"]).isdigit()][: 2 * count]
        for at, row in enumerate(plain):
            row |= {"answer": "\\frac{1}{"} if at % 2 else {"accepted": [str(int(row["answer"]) + 1)]}
    else:
        plain = rows[:count]
        (beside,) = (folder / "tests").glob("*.parquet")
        is_planted = pl.col("problem").is_in([row["id"] for row in plain])
        tests = pl.read_parquet(beside)
        tests.with_columns(output=pl.when(is_planted).then(pl.lit("")).otherwise("output")).write_parquet(beside)
    pl.DataFrame(rows, schema=CURATED).select(*pl.read_parquet_schema(file)).write_parquet(file)
    return {row["id"] for row in plain}


@gate("trainers", Limit(">=", 100, "%"), tier="room")
def trainers() -> Measured:
    """Compare by the loaders and calls of the trainers that `tests.consumers.environments` has installed here."""
    names = [name for name in FORMATS if name in TRAINERS and not missing(name)]
    absent = [name for name in FORMATS if name not in names]
    if not names:
        raise SkippedError("no trainer is installed here; python -m tests.consumers.environments installs them")
    asked = [*attempts("gsm8k", 150), *attempts("odyssey", 50)]
    equal = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = curated(Path(scratch) / "curated", asked, code=False)
        for name in names:
            export = export_set(folder, name, Path(scratch) / name).file.parent
            try:
                rewards = rewards_inside(name, export, [(one.problem, one.text) for one in asked], Path(scratch))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                raise RuntimeError(f"{name}: {str(error).strip()[-300:]}") from error
            equal[name] = _equal(rewards, asked)
    return _measured(equal, f"by {', '.join(names)}; not installed here: {', '.join(absent) or 'none'}")
