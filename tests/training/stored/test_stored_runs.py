"""Runs on stored attempts: a cold start, `soft` without a new token, and a share of them beside fresh ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from pydantic import ValidationError

from curation.records import SourceError
from tests.training.engines.embedded.test_run import interrupt, lines, small
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.generation.checkpoint_tensors import read_tensors
from training.generation.generators import TorchGenerator
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import read_attempts
from training.stored.traces import TRACE

pytestmark = pytest.mark.slow


def recipe(teacher: Path, **changes: Any) -> TrainRecipe:
    stored = {"runs": (str(teacher),), **changes.pop("stored", {})}
    table = {"collector": {"max_staleness": 0}, "evaluation": {"data": None}, "checks": False, **changes}
    return small(stored=stored, **table)


COLD: dict[str, Any] = {"objective": {"kind": "sft"}, "steps": 50, "stored": {"only": True, "epochs": 2}}


def correct_texts(run: Path) -> set[tuple[str, str]]:
    kept = read_attempts(run, ["problem", "index", "text"], purpose="training")
    rows = [row for row in lines(run / "attempts.jsonl") if row["outcome"] == "correct"]
    right = {(row["problem"], row["group"] * 4 + row["index"]) for row in rows}
    return {(problem, text) for problem, index, text in kept.iter_rows() if (problem, index) in right}


@pytest.fixture(scope="module")
def cold(teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def refuse(_: TorchGenerator) -> TorchGenerator:
        raise AssertionError("a generator was started")

    out = tmp_path_factory.mktemp("runs") / "cold"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TorchGenerator, "__aenter__", refuse)
        train(recipe(teacher, **COLD), Path(), out)
    return out


def test_a_cold_start_is_made_of_the_correct_attempts_alone_and_samples_nothing(teacher: Path, cold: Path) -> None:
    traces = pl.read_parquet(cold / "traces" / "data" / "*.parquet")
    assert traces.schema == TRACE
    assert set(traces.select("id", "response").iter_rows()) == correct_texts(teacher)
    assert traces.height == len(correct_texts(teacher))
    card = (cold / "traces" / "README.md").read_text(encoding="utf-8")
    (named,) = traces["teacher"].unique()
    assert all(told in card for told in (named, "not_correct", "license: apache-2.0"))
    assert (cold / "attempts.jsonl").read_text() == ""
    assert not (cold / "attempts").exists()
    assert json.loads((cold / "summary.json").read_text())["ledger"]["admitted"] == 0


def test_its_steps_are_its_epochs_and_every_trace_comes_once_in_each(cold: Path) -> None:
    rows = lines(cold / "batches.jsonl")
    assert all(row["attempts"] == [] for row in rows)
    used = Counter(tuple(one) for row in rows for one in row["stored"])
    traces = pl.read_parquet(cold / "traces" / "data" / "*.parquet").height
    assert len(used) == traces
    assert set(used.values()) <= {2, 3}  # the last batch begins a third epoch to be whole
    assert len(rows) == json.loads((cold / "summary.json").read_text())["steps"]
    metrics = read_metrics(cold)
    assert all(row["policy/nll"] > 0 for row in metrics)
    assert "policy/ratio_mean" not in metrics[0]


def test_the_same_seed_gives_the_same_model_and_a_resumed_run_too(teacher: Path, cold: Path, tmp_path: Path) -> None:
    made = recipe(teacher, **COLD)
    interrupt(made, tmp_path / "again")
    train(made, Path(), tmp_path / "again", resume=True)
    first, second = dict(read_tensors(cold / "model")), dict(read_tensors(tmp_path / "again" / "model"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_later_batches_hold_the_share_of_stored_groups_and_it_shrinks(teacher: Path, tmp_path: Path) -> None:
    stored = {"epochs": 0.05, "share": 0.5, "half_life": 1, "max_distance": 1e-6}
    train(recipe(teacher, objective={"kind": "soft"}, steps=3, stored=stored), Path(), tmp_path / "run")
    rows = lines(tmp_path / "run" / "batches.jsonl")
    groups = [[len({group for group, _ in row.get(kind, [])}) for kind in ("attempts", "stored")] for row in rows]
    assert groups == [[0, 4], [2, 2], [3, 1]]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["ledger"]
    assert summary["trained"] == sum(len(row["attempts"]) for row in rows)
    assert summary["admitted"] == summary["trained"] + sum(summary["dropped"].values())
    far = [row.get("policy/stored_far") for row in read_metrics(tmp_path / "run")]
    assert far == [0.0, 1.0, 1.0]  # the policy is the reference, and leaves it


def test_an_objective_that_needs_the_probabilities_refuses_attempts_without(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no_logprobs.*there is nothing to train on"):
        train(recipe(teacher, steps=2), Path(), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stored": {"general": "a.jsonl"}}, "needs objective.kind = sft"),
        ({"stored": {"max_distance": 1.0}}, "needs an objective with a second pass"),
        ({"stored": {"only": True, "epochs": 0}}, "would train on nothing"),
        ({"evaluation": {"data": None, "keep_best": True}}, "keep_best = true needs held-out problems"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        recipe(Path("nowhere"), **changes)


def test_runs_that_keep_no_attempts_are_refused(tmp_path: Path) -> None:
    made = recipe(tmp_path, objective={"kind": "sft"}, stored={"runs": (str(tmp_path),)})
    with pytest.raises(SourceError, match="keeps no attempts"):
        train(made, Path(), tmp_path / "run")
    with pytest.raises(SourceError, match=r"stored\.runs is empty"):
        train(recipe(tmp_path, objective={"kind": "sft"}, stored={"runs": ()}), Path(), tmp_path / "other")
