"""A small real run: every attempt exactly once, all metrics and records, refusals, generators and judges that fail."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused, SourceError, StoreError, VerifierError
from curation.storage.locks import lock_folder
from curation.verify.math_judge import Verdict
from tests.training.optimisation.test_trainer import recipe
from tests.training.students import student
from tests.waiting import until
from training.embedded_model import WEIGHTS
from training.engines.embedded import loop, run
from training.engines.embedded.run import train
from training.evaluation.metrics import MetricsLogger, read_metrics
from training.generation.checkpoint_tensors import Weights
from training.generation.generators import TorchGenerator
from training.optimisation.checkpoint import PendingCheckpoint
from training.optimisation.model import load_model
from training.optimisation.trainer import TrainingError
from training.recipe import CuratedData, TrainRecipe
from training.rollouts.attempt_log import count_attempts, read_attempts
from training.rollouts.curriculum import CurriculumController
from training.rollouts.verifiers import Verifiers

STEPS = 4
GROUPED = {
    "reward": "format correctness length language own total",
    "sampled": "pass_rate reward none some all dropped attempts groups",
    "batch": "attempts pass_rate",
    "length": "sampled_mean sampled_max trained_mean trained_max cut_share",
    "age": "token_mean token_max",
    "policy": "loss gradient_norm learning_rate entropy ratio_mean ratio_max ess kl_generator log_ratio_max "
    "mismatch_share impossible_tokens",
    "speed": "step_s train_s update_s trained_tokens_s sampled_tokens_s generator_idle_share trainer_idle_share",
    "queue": "running judging waiting ready admitted trained dropped",
}
STEP_METRICS = [f"{group}/{name}" for group, names in GROUPED.items() for name in names.split()]
"""What every step's row has, next to an objective's own statistics."""

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
    ledger = json.loads((done / "summary.json").read_text())["ledger"]
    trained = [tuple(one) for row in lines(done / "batches.jsonl") for one in row["attempts"]]
    assert len(trained) == len(set(trained)) == ledger["trained"]
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    assert all(ledger[name] == 0 for name in ("running", "judging", "waiting", "ready", "training"))
    judged = Counter((row["group"], row["index"]) for row in lines(done / "attempts.jsonl"))
    assert set(judged.values()) == {1}
    assert set(trained) <= set(judged)


def test_all_metrics_are_there_and_are_numbers_also_in_tensorboard(done: Path) -> None:
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
    board = EventAccumulator(str(done / "tensorboard"))
    board.Reload()
    assert set(STEP_METRICS) <= set(board.Tags()["scalars"])
    seen = {event.step: event.value for event in board.Scalars("policy/loss")}
    assert seen == pytest.approx({row["step"]: row["policy/loss"] for row in rows[1:]})


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


class Faulty(TorchGenerator):
    """A real generator that fails every n-th request, or all after some, and may refuse the first problem."""

    fails_every, dies_at, refuses_first, asked = 10**9, 10**9, False, 0
    first: Sequence[int] = ()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        self.asked += 1
        if self.asked >= self.dies_at or self.asked % self.fails_every == 0:
            raise PolicyError("the engine is gone")
        self.first = self.first or tuple(prompt_ids)
        if self.refuses_first and tuple(prompt_ids) == self.first:
            raise RequestRefused("400", "http://server: 400 poisoned.")
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


class Reticent(TorchGenerator):
    """A real generator that says the same to every problem, with colours, from a version of its weights on."""

    since_version, version = 0, 0
    says = "\x1b[31mI would rather not.\x1b[0m\nAsk again."

    async def update_weights(self, weights: Weights, version: int) -> float:
        self.version = version
        return await super().update_weights(weights, version)

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        if self.version < self.since_version:
            return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)
        return TokenCompletion(tuple(prompt_ids), (5, 6), (-1.0, -1.0), (0, 0), self.says, "stop")


def generate_with(monkeypatch: pytest.MonkeyPatch, kind: type[TorchGenerator], **attributes: Any) -> None:
    made = type(kind.__name__, (kind,), attributes)
    monkeypatch.setattr(run, "build_generator", lambda _, folder, *__: made(folder, capacity=16))


def quick(staleness: int = 1, **changes: Any) -> TrainRecipe:
    """A small run whose generators are not checked first."""
    table = {"collector": {"max_staleness": staleness}, "evaluation": {"data": None}, "checks": False}
    return small(**{**table, **changes})


def test_a_mute_run_speaks_and_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    generate_with(monkeypatch, Reticent)
    with pytest.raises(TrainingError) as raised:
        train(quick(steps=1), Path(), out)
    said = capsys.readouterr().err
    assert said.count("warning: nothing to learn from so far: 64 attempts without a group to train on.") == 1
    assert "Commonest (100 %): format: does not start with <think>: " in said
    assert '"[31mI would rather not. [0m Ask again."' in said
    assert "\x1b" not in said
    stopped_after = re.search(r"nothing to learn from: (\d+) attempts without a group", str(raised.value))
    assert 256 <= int(stopped_after[1]) < 400  # the loop looks when it is its turn
    assert f"`goldilocks train --resume {out}` continues from step 0" in str(raised.value)
    assert read_attempts(out, ["text"])["text"].unique().to_list() == [Reticent.says]  # to be looked at


@pytest.mark.slow
def test_steps_that_were_taken_are_saved_and_gone_on_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, out = quick(0, steps=2, checkpoints={"every": 20}), tmp_path / "run"  # none of version 0 is under way later
    with monkeypatch.context() as patch:
        generate_with(patch, Reticent, since_version=1)
        with pytest.raises(TrainingError, match=r"continues from step 1"):
            train(made, Path(), out)
    taken = len(lines(out / "batches.jsonl"))
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"step-{taken:08}"]
    train(made, Path(), out, resume=True)
    assert [row["step"] for row in lines(out / "batches.jsonl")] == [1, 2]
    judged = [(row["group"], row["index"]) for row in lines(out / "attempts.jsonl")]
    kept = read_attempts(out, ["problem", "index", "rollout_group"])
    assert len(judged) == len(set(judged)) == kept.height == kept.unique().height
    assert count_attempts(out) == {"training": kept.height}


def test_no_problem_to_draw_is_an_error_and_no_endless_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(CurriculumController, "draw_problem", lambda _: None)
    with pytest.raises(TrainingError, match="no further problem can be drawn"):
        train(quick(), Path(), tmp_path / "run")


@pytest.mark.slow
def test_generators_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    generate, log_message = TorchGenerator.generate, MetricsLogger.log_message

    def listen(self: MetricsLogger, text: str) -> None:
        said.append(text)
        log_message(self, text)

    async def silent(self: TorchGenerator, prompt_ids: Sequence[int], **asked: Any) -> TokenCompletion:
        await until(lambda: any("no attempt was finished" in line for line in said))
        return await generate(self, prompt_ids, **asked)

    monkeypatch.setattr(TorchGenerator, "generate", silent)
    monkeypatch.setattr(MetricsLogger, "log_message", listen)
    monkeypatch.setattr(loop, "PROGRESS_S", 0.05)
    train(quick(steps=1), Path(), tmp_path / "run")
    first = next(line for line in said if "no attempt was finished" in line)
    assert first.startswith("step 1: collecting a batch for ")
    assert "; 0 of 16 attempts ready to be trained on; " in first
    assert "16 being generated" in first
    assert "look at the generators" in first


def test_single_failures_and_a_refused_problem_are_counted_and_a_generator_that_dies_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    generate_with(monkeypatch, Faulty, fails_every=7, refuses_first=True)
    train(quick(steps=1), Path(), tmp_path / "run")
    ledger = json.loads((tmp_path / "run/summary.json").read_text())["ledger"]
    assert ledger["dropped"]["generation_failed"] >= 2
    assert ledger["dropped"]["refused"] > 0
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    generate_with(monkeypatch, Faulty, dies_at=20)
    with pytest.raises(PolicyError, match="the engine is gone"):
        train(quick(), Path(), tmp_path / "other")


def test_a_verifier_that_cannot_work_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def judge(*_: object) -> Verdict:
        raise VerifierError("the verifier keeps dying")

    monkeypatch.setattr(Verifiers, "verify", judge)
    with pytest.raises(VerifierError, match="keeps dying"):
        train(quick(), Path(), tmp_path / "run")
    rows = lines(tmp_path / "run/attempts.jsonl")
    assert all(row["outcome"] is None for row in rows)  # only those whose form was broken were settled
