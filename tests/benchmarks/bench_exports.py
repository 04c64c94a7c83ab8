"""Rewards of exported rows on real attempts: ours, as it travels with a set, and the peers' own judges.

    .venv/bin/python -m tests.benchmarks.bench_exports DATA/attempts [--responses 4000]

Each file of attempts (one JSON line a problem: `problem`, `gold`, `samples` with `text` or `answer`) becomes a curated
set, is exported for verl and TRL, and its responses are scored by the functions that those trainers call. Beside them:
what the run's judge said (the verdicts that a pass rate is made of), Math-Verify on the boxed reference, which is TRL's
`accuracy_reward` and open-r1's, and equality of the last box as a string, which is lighteval's MATH as verl had it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.publish.export import CURATED
from curation.publish.export_formats import export_set
from curation.records import Outcome, problem_id
from curation.response_formats import BOXED
from curation.scoring.trainers import trl_reward, verl_score
from curation.verify.extraction import extract_answer
from curation.verify.math_judge import JudgeTask, MathJudge, Response


@dataclass(frozen=True, slots=True)
class Sampled:
    """A response to a problem, as a file of attempts has it."""

    problem: str
    statement: str
    reference: str
    text: str


def read(path: Path, most: int) -> list[Sampled]:
    """Return responses of a file, drawn at random where there are more."""
    rows: list[Sampled] = []
    for line in path.open():
        row = json.loads(line)
        if "samples" not in row:
            return []  # correctness only
        statement, reference = str(row["problem"]), str(row["gold"])
        texts = [one["text"] or f"\\boxed{{{one['answer']}}}" for one in row["samples"]]
        rows += [Sampled(problem_id(statement), statement, reference, text) for text in texts]
    return random.Random(0).sample(rows, min(most, len(rows)))


def write_set(folder: Path, rows: Sequence[Sampled]) -> Path:
    """Write the problems as a curated set."""
    known = {row.problem: row for row in rows}
    table = [
        {
            "id": name,
            "group": name,
            "domain": "math",
            "statement": row.statement,
            "answer": row.reference,
            "lang": "en",
            "source": "attempts",
            "pass_rate": 0.5,
        }
        for name, row in known.items()
    ]
    (folder / "data").mkdir(parents=True)
    frame = pl.DataFrame([{name: row.get(name) for name in CURATED} for row in table], schema=CURATED)
    frame.write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return folder


def verdicts(rows: Sequence[Sampled]) -> list[float | None]:
    """Return what the judge of a run says of each response: 1, 0, None where it failed."""
    tasks = [
        JudgeTask(row.problem, row.reference, "en", (Response(row.text, None),), statement=row.statement)
        for row in rows
    ]
    with MathJudge() as judge:
        outcomes = [result.verdicts[0].outcome for result in judge.judge(tasks)]
    failed = (Outcome.TIMEOUT, Outcome.BROKEN)
    return [None if outcome in failed else float(outcome is Outcome.CORRECT) for outcome in outcomes]


def math_verify_rewards(rows: Sequence[Sampled]) -> list[float | None]:
    """Return Math-Verify's rewards on the boxed reference; None where it reads no reference, as TRL has it."""
    from math_verify import parse, verify

    rewards: list[float | None] = []
    for row in rows:
        gold = parse(f"\\boxed{{{row.reference}}}")
        rewards.append(float(verify(gold, parse(row.text))) if gold else None)
    return rewards


def string_rewards(rows: Sequence[Sampled]) -> list[float | None]:
    """Return whether the final answer is the reference as a string, white space aside."""
    answers = [extract_answer(row.text, BOXED) for row in rows]
    return [
        float(answer is not None and answer.answer.replace(" ", "") == row.reference.replace(" ", ""))
        for answer, row in zip(answers, rows, strict=True)
    ]


def agreement(name: str, rewards: Sequence[float | None], said: Sequence[float | None], seconds: float) -> str:
    """Return a line of the table."""
    both = [(one, other) for one, other in zip(rewards, said, strict=True) if other is not None]
    same = sum(one == other for one, other in both)
    lost = sum(other == 1.0 and one != 1.0 for one, other in both)
    gained = sum(other == 0.0 and one == 1.0 for one, other in both)
    return f"  {name:<34}{100 * same / max(len(both), 1):>8.2f} %{lost:>10,}{gained:>10,}{seconds:>12.1f}"


def bench(path: Path, most: int) -> None:
    rows = read(path, most)
    if not rows:
        return print(f"{path.name}: no responses in it")
    said = verdicts(rows)
    print(f"{path.name}: {len(rows):,} responses to {len({row.problem for row in rows}):,} problems")
    print(f"  {'reward':<34}{'agrees':>10}{'lost':>10}{'given':>10}{'CPU s here':>12}")
    with tempfile.TemporaryDirectory() as scratch:
        curated = write_set(Path(scratch) / "curated", rows)
        verl = {
            row["extra_info"]["id"]: row
            for row in pl.read_parquet(export_set(curated, "verl", Path(scratch) / "verl").file).iter_rows(named=True)
        }
        trl = {
            row["id"]: row["goldilocks"]
            for row in pl.read_parquet(export_set(curated, "trl", Path(scratch) / "trl").file).iter_rows(named=True)
        }

    def ours_by_verl(row: Sampled) -> Any:
        held = verl[row.problem]
        told = verl_score(held["data_source"], row.text, held["reward_model"]["ground_truth"], held["extra_info"])
        return None if told["excluded"] else told["score"]

    for name, rewards in (
        ("ours, verl's call", lambda: [ours_by_verl(row) for row in rows]),
        ("ours, TRL's call", lambda: trl_reward([row.text for row in rows], [trl[row.problem] for row in rows])),
        ("Math-Verify (TRL, open-r1)", lambda: math_verify_rewards(rows)),
        ("last box as a string (lighteval)", lambda: string_rewards(rows)),
    ):
        begun = time.process_time()
        print(agreement(name, rewards(), said, time.process_time() - begun), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--responses", type=int, default=4000, help="of each file")
    options = parser.parse_args(arguments)
    for path in sorted(options.folder.glob("*.jsonl")):
        bench(path, options.responses)
    return 0


if __name__ == "__main__":
    sys.exit(main())
