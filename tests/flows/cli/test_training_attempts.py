"""`goldilocks rejudge`, `explain` and `status` of a training run: what its kept attempts are worth today."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from curation.records import VERDICT
from tests.flows.conftest import forge, goldilocks, refusal
from tests.training.engines.embedded.test_run import small
from training.engines.embedded.run import train
from training.rollouts.attempt_log import count_attempts, read_attempts, verdict_tables


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small"
    train(small(steps=2), Path(), out)
    return out


@pytest.fixture
def by_an_older_verifier(trained: Path, tmp_path: Path) -> tuple[Path, int]:
    """The run as if trained by a verifier that called every answer of two digits wrong; and how many it wronged."""
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    wronged = 0
    for part in (run / "verdicts").rglob("part-*.parquet"):
        verdicts = pl.read_parquet(part, glob=False)
        hit = (pl.col("outcome") == "correct") & (pl.col("answer").str.len_chars() == 2)
        wronged += verdicts.filter(hit).height
        forge(part, verdicts.with_columns(outcome=pl.when(hit).then(pl.lit("wrong")).otherwise("outcome")))
    assert wronged > 0
    return run, wronged


def test_the_verifier_that_trained_changes_nothing(trained: Path) -> None:
    said = goldilocks("rejudge", trained)
    assert said.status == 0, said.err
    total = sum(count_attempts(trained).values())
    verifier = next(verdict_tables(trained))["verifier"][0]
    assert said.out.splitlines()[0] == f"verifier {verifier} → {verifier}: 0 of {total:,} attempts changed"
    kept = pl.concat(verdict_tables(trained)).sort("sampling", "problem", "index")
    again = pl.concat([pl.read_parquet(path) for path in (trained / "rejudged").rglob("*.parquet")])
    assert again.schema == VERDICT
    assert again.sort("sampling", "problem", "index").equals(kept)


def test_what_another_verifier_changes_is_said(by_an_older_verifier: tuple[Path, int]) -> None:
    run, wronged = by_an_older_verifier
    before = {path: path.read_bytes() for name in ("attempts", "verdicts") for path in (run / name).rglob("part-*")}
    said = goldilocks("rejudge", run).out
    assert f"{wronged} of " in said.splitlines()[0]
    assert f"\n  wrong → correct: {wronged}\n" in said
    assert "\n  evaluation at step 0: " in said
    rows = [json.loads(line) for line in (run / "rejudged.jsonl").read_text().splitlines()]
    assert len(rows) == wronged
    assert {(row["outcome_before"], row["outcome"]) for row in rows} == {("wrong", "correct")}
    first = rows[0]
    assert f"{first['purpose']}, step {first['step']}, problem {first['problem']}, attempt {first['index']}: " in said
    assert all(path.read_bytes() == content for path, content in before.items())


def test_only_what_judging_reads_can_be_changed(trained: Path) -> None:
    assert goldilocks("rejudge", trained, "--set", "rewards.language=0").status == 0
    assert "rejudge of a training run changes rewards.*" in refusal("rejudge", trained, "--set", "steps=2")


def test_one_problem_is_explained(trained: Path) -> None:
    attempts = read_attempts(trained, purpose="training")
    problem, text = attempts.row(0, named=True)["problem"], attempts["text"][0]
    said = goldilocks("explain", trained, problem[:12]).out.splitlines()
    assert said[0].startswith(f"{problem}: {attempts.filter(pl.col('problem') == problem).height} attempts; reference ")
    assert any(line.startswith("  training at step 0, version 0, attempt ") and text[:40] in line for line in said)
    assert "begins 0 ids of attempted problems" in refusal("explain", trained, "xyz")


def test_status_counts_the_kept_attempts_and_says_why_a_run_ended(trained: Path, tmp_path: Path) -> None:
    counts = count_attempts(trained)
    assert (
        f"  attempts kept: evaluation {counts['evaluation']}, training {counts['training']}"
        in goldilocks("status", trained).out.splitlines()
    )
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "stalled.json").write_text(json.dumps({"step": 2, "message": "step 3 found nothing"}))
    assert "  ended: step 3 found nothing" in goldilocks("status", tmp_path / "run").out.splitlines()
