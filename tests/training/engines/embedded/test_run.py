"""A small real run: every attempt exactly once, all metrics, all records, and what it refuses."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import PolicyError, SourceError, StoreError
from curation.storage.locks import lock_folder
from tests.training.optimisation.test_trainer import recipe
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.optimisation.checkpoint import PendingCheckpoint
from training.optimisation.model import load_model
from training.recipe import CuratedData, TrainRecipe
from training.rollouts.attempt_log import read_attempts

STEPS = 4
STEP_METRICS = (
    *(f"reward/{name}" for name in ("format", "correctness", "length", "language", "own", "total")),
    *(f"sampled/{name}" for name in ("pass_rate", "reward", "none", "some", "all", "dropped", "attempts", "groups")),
    *(f"batch/{name}" for name in ("attempts", "pass_rate")),
    *(f"length/{name}" for name in ("sampled_mean", "sampled_max", "trained_mean", "trained_max", "cut_share")),
    *(f"age/{name}" for name in ("token_mean", "token_max")),
    *(
        f"policy/{name}"
        for name in ("loss", "gradient_norm", "learning_rate", "entropy", "ratio_mean", "ratio_max", "ess")
    ),
    *(f"policy/{name}" for name in ("kl_generator", "log_ratio_max", "mismatch_share", "impossible_tokens")),
    *(f"speed/{name}" for name in ("step_s", "train_s", "update_s", "trained_tokens_s", "sampled_tokens_s")),
    *(f"speed/{name}" for name in ("generator_idle_share", "trainer_idle_share")),
    *(f"queue/{name}" for name in ("running", "judging", "waiting", "ready", "admitted", "trained", "dropped")),
)
"""What every step's row has; an objective's own statistics are next to them, below ``policy/``, and the distance of
trainer and generator at equal weights (``policy/mismatch_…``) and at older ones (``policy/stale_…``), where a batch has
such tokens (`training.objectives.step_statistics`)."""

OF_SAMPLED = {name for name in STEP_METRICS if name.startswith(("sampled/", "length/sampled", "length/cut"))}


def small(**changes: Any) -> TrainRecipe:
    table: dict[str, Any] = {
        "steps": STEPS,
        "rewards": {"max_length": 60},
        "optim": {"learning_rate": 3e-4},
        "data": {"problems": 60},
        "evaluation": {"data": {"kind": "embedded", "problems": 6, "seed": 9}, "attempts": 2, "every": 2},
        "checkpoints": {"every": 2},
    }
    for key, value in changes.items():
        table[key] = {**table.get(key, {}), **value} if isinstance(value, dict) else value
    return recipe(**table)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def interrupt(made: TrainRecipe, out: Path) -> None:
    """Train until the checkpoint of step 2 is written, and end there."""
    real = PendingCheckpoint.finish

    def killed(pending: PendingCheckpoint) -> Path:
        folder = real(pending)
        raise InterruptedError if pending.step == 2 else AssertionError(folder)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PendingCheckpoint, "finish", killed)
        with pytest.raises(InterruptedError):
            train(made, Path(), out)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An asynchronous run with a curriculum, whose best model is kept."""
    out = tmp_path_factory.mktemp("runs") / "small"
    made = small(curriculum={}, evaluation={"keep_best": True}, checkpoints={"keep": 9})
    assert train(made, Path(), out) == out / "model"
    return out


def test_every_attempt_is_trained_on_or_dropped_exactly_once(done: Path) -> None:
    summary = json.loads((done / "summary.json").read_text())
    ledger = summary["ledger"]
    trained = [tuple(one) for row in lines(done / "batches.jsonl") for one in row["attempts"]]
    assert len(trained) == len(set(trained)) == ledger["trained"]
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    held = ("running", "judging", "waiting", "ready", "training")
    assert all(ledger[name] == 0 for name in held)
    judged = Counter((row["group"], row["index"]) for row in lines(done / "attempts.jsonl"))
    assert set(judged.values()) == {1}
    assert set(trained) <= set(judged)


def test_all_metrics_are_there_and_are_numbers(done: Path) -> None:
    rows = read_metrics(done)
    assert [row["step"] for row in rows] == list(range(STEPS + 1))
    for row in rows[1:]:
        absent = {*STEP_METRICS, "policy/clip_low", "policy/clip_high"} - set(row)
        assert absent in (set(), OF_SAMPLED)  # on a busy machine no group may have finished since the step before
        assert all(math.isfinite(value) for value in row.values())
        assert absent or row["sampled/none"] + row["sampled/some"] + row["sampled/all"] == pytest.approx(1)
        assert 0 < row["speed/generator_idle_share"] <= 1  # an update holds the engine: it decodes nothing then
        assert 0 <= row["speed/trainer_idle_share"] <= 1
    assert any(set(row) >= OF_SAMPLED for row in rows[1:])
    assert [row["step"] for row in rows if "evaluation/pass_rate" in row] == [0, 2, 4]
    assert max(row["age/token_max"] for row in rows[1:]) <= 1  # the staleness of the recipe
    assert rows[1]["policy/mismatch_max"] < 1e-3  # trainer and generator agree before any update


def test_tensorboard_holds_the_same(done: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(done / "tensorboard"))
    board.Reload()
    tags = board.Tags()
    assert set(STEP_METRICS) <= set(tags["scalars"])
    seen = {event.step: event.value for event in board.Scalars("sampled/pass_rate")}
    rows = [row for row in read_metrics(done)[1:] if "sampled/pass_rate" in row]
    wanted = {row["step"]: row["sampled/pass_rate"] for row in rows}
    assert seen == pytest.approx(wanted)


def test_an_evaluation_among_rollouts_has_one_version_and_the_best_model_is_kept(done: Path) -> None:
    versions = read_attempts(done, ["step", "version", "newest_version"], purpose="evaluation").unique().rows()
    assert set(versions) == {(step, step, step) for step in (0, 2, 4)}
    rates = {row["step"]: row["evaluation/pass_rate"] for row in read_metrics(done) if "evaluation/pass_rate" in row}
    best = json.loads((done / "best" / "best.json").read_text())
    assert best["pass_rate"] == rates[best["step"]] == max(rates.values())
    at = {0: WEIGHTS, 2: done / "checkpoints" / "step-00000002" / "hf", 4: done / "model"}
    before, after, kept = (load_model(folder).state_dict() for folder in (WEIGHTS, done / "model", done / "best"))
    assert all(torch.equal(value, kept[name]) for name, value in load_model(at[best["step"]]).state_dict().items())
    assert not torch.equal(before["model.norm.weight"], after["model.norm.weight"])


@pytest.mark.slow
def test_a_finished_run_can_be_taken_further_but_not_started_again(done: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="resume"):
        train(small(), Path(), done)
    with pytest.raises(StoreError, match="test"):
        train(small(name="other"), Path(), done, resume=True)
    with pytest.raises(StoreError, match=r"no run\.json"):
        train(small(), Path(), tmp_path / "new", resume=True)
    train(small(steps=STEPS + 1, collector={"n_minibatch": 8}, evaluation={"data": None}), Path(), done, resume=True)
    assert [row["step"] for row in read_metrics(done)] == list(range(STEPS + 2))
    trained = [tuple(one) for row in lines(done / "batches.jsonl") for one in row["attempts"]]
    assert len(trained) == len(set(trained)) == 16 * (STEPS + 1)
    state = json.loads((done / f"checkpoints/step-{STEPS + 1:08}/state.json").read_text())
    assert state["optimiser_steps"] == STEPS + 2  # two minibatches in the last step


def test_a_second_trainer_in_one_folder_is_refused_and_a_resume_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with ExitStack() as first:
        first.enter_context(lock_folder(tmp_path))
        with pytest.raises(StoreError, match="is in use by another run"):
            train(small(), tmp_path, tmp_path)
        assert not (tmp_path / "run.json").exists()

        def say(line: str) -> None:
            said.append(line)
            first.close()  # as the ranks of a killed start do, when they have ended

        monkeypatch.setattr("training.engines.embedded.run._say", say)
        with pytest.raises(StoreError, match="no run to resume"):
            train(small(), tmp_path, tmp_path, resume=True)
    assert said == [f"{tmp_path} is in use by another process; waiting for it, 25 s at most."]


def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no model here"):
        train(small(**student("nowhere")), tmp_path, tmp_path / "run")
    data = CuratedData(kind="curated", folders=("none",))
    with pytest.raises(SourceError, match="curated set"):
        train(small().model_copy(update={"data": data}), tmp_path, tmp_path / "other")
