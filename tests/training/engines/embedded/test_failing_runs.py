"""A run whose generators or judges fail, that learns nothing or waits in vain: it goes on, or ends and says so."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused, VerifierError
from curation.verify.math_judge import Verdict
from tests.training.engines.embedded.test_run import lines, small
from tests.waiting import until
from training.engines.embedded import loop, run
from training.evaluation.metrics import MetricsLogger
from training.generation.checkpoint_tensors import Weights
from training.generation.generators import Generator, TorchGenerator
from training.optimisation.trainer import TrainingError
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import count_attempts, read_attempts
from training.rollouts.curriculum import CurriculumController
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers


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


class Silent(TorchGenerator):
    """A real generator that answers nothing before something was said."""

    said: Sequence[str] = ()
    waits_for = "no attempt was finished"

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        await until(lambda: any(self.waits_for in line for line in self.said))
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


def generate_with(monkeypatch: pytest.MonkeyPatch, kind: type[TorchGenerator], **attributes: Any) -> None:
    def build(recipe: TrainRecipe, folder: Path, *_: object) -> Generator:
        generator = kind(folder, capacity=16)
        for name, value in attributes.items():
            setattr(generator, name, value)
        return generator

    monkeypatch.setattr(run, "build_generator", build)


def quick(staleness: int, **changes: Any) -> TrainRecipe:
    """A small run whose generators are not checked first: those here are made up."""
    table = {"collector": {"max_staleness": staleness}, "evaluation": {"data": None}, "checks": False}
    return small(**{**table, **changes})


def test_a_mute_run_speaks_and_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made, out = quick(1, steps=1), tmp_path / "run"
    with monkeypatch.context() as patch:
        generate_with(patch, Reticent)
        with pytest.raises(TrainingError) as raised:
            run.train(made, Path(), out)
    said = capsys.readouterr().err
    assert said.count("warning: nothing to learn from so far: 64 attempts without a group to train on.") == 1
    assert "Commonest (100 %): format: does not start with <think>: " in said
    assert '"[31mI would rather not. [0m Ask again."' in said
    assert "\x1b" not in said
    stopped_after = re.search(r"nothing to learn from: (\d+) attempts without a group", str(raised.value))
    assert stopped_after is not None
    assert 256 <= int(stopped_after[1]) < 400  # the loop looks when it is its turn
    assert f"`goldilocks train --resume {out}` continues from step 0" in str(raised.value)
    assert read_attempts(out, ["text"])["text"].unique().to_list() == [Reticent.says]  # to be looked at


@pytest.mark.slow
def test_steps_that_were_taken_are_saved_and_gone_on_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, out = quick(0, steps=2, checkpoints={"every": 20}), tmp_path / "run"  # none of version 0 is under way later
    with monkeypatch.context() as patch:
        generate_with(patch, Reticent, since_version=1)
        with pytest.raises(TrainingError, match=r"continues from step 1"):
            run.train(made, Path(), out)
    taken = len(lines(out / "batches.jsonl"))
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"step-{taken:08}"]
    run.train(made, Path(), out, resume=True)
    assert [row["step"] for row in lines(out / "batches.jsonl")] == [1, 2]
    judged = [(row["group"], row["index"]) for row in lines(out / "attempts.jsonl")]
    kept = read_attempts(out, ["problem", "index", "rollout_group"])
    assert len(judged) == len(set(judged)) == kept.height == kept.unique().height
    assert count_attempts(out) == {"training": kept.height}


def test_no_problem_to_draw_is_an_error_and_no_endless_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(CurriculumController, "draw_problem", lambda _: None)
    with pytest.raises(TrainingError, match="no further problem can be drawn"):
        run.train(quick(1), Path(), tmp_path / "run")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the run says, line by line, while it goes on."""
    lines: list[str] = []
    log_message = MetricsLogger.log_message

    def listen(self: MetricsLogger, text: str) -> None:
        lines.append(text)
        log_message(self, text)

    monkeypatch.setattr(MetricsLogger, "log_message", listen)
    return lines


@pytest.mark.slow
def test_generators_that_do_not_answer_are_named(
    monkeypatch: pytest.MonkeyPatch, said: list[str], tmp_path: Path
) -> None:
    generate_with(monkeypatch, Silent, said=said)
    monkeypatch.setattr(loop, "PROGRESS_S", 0.05)
    run.train(quick(1, steps=1), Path(), tmp_path / "run")
    first = next(line for line in said if "no attempt was finished" in line)
    assert first.startswith("step 1: collecting a batch for ")
    assert "; 0 of 16 attempts ready to be trained on; " in first
    assert "16 being generated" in first
    assert "look at the generators" in first


class Failing(TorchGenerator):
    """A real generator that fails every seventh request, all from ``dies`` on, and refuses the first problem."""

    dies, asked = 10**9, 0
    poisoned: Sequence[int] = ()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        self.asked += 1
        if self.asked >= self.dies or self.asked % 7 == 0:
            raise PolicyError("the engine is gone")
        self.poisoned = self.poisoned or tuple(prompt_ids)
        if tuple(prompt_ids) == self.poisoned:
            raise RequestRefused("400", "http://server: 400 poisoned.")
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


class Dying(Failing):
    """One that dies."""

    dies = 20


def test_single_failures_and_a_refused_problem_are_counted_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "build_generator", lambda _, folder, *__: Failing(folder, capacity=16))
    run.train(small(steps=1, evaluation={"data": None}, checks=False), Path(), tmp_path / "run")
    ledger = json.loads((tmp_path / "run/summary.json").read_text())["ledger"]
    assert ledger["dropped"]["generation_failed"] >= 2
    assert ledger["dropped"]["refused"] > 0
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())


def test_a_generator_that_dies_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "build_generator", lambda _, folder, *__: Dying(folder, capacity=16))
    with pytest.raises(PolicyError, match="the engine is gone"):
        run.train(small(evaluation={"data": None}, checks=False), Path(), tmp_path / "run")


def test_a_verifier_that_cannot_work_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def judge(self: Verifiers, task: TrainingTask, text: str, seed: int, finish: str | None) -> Verdict:
        raise VerifierError("the verifier keeps dying")

    monkeypatch.setattr(Verifiers, "verify", judge)
    with pytest.raises(VerifierError, match="keeps dying"):
        run.train(small(evaluation={"data": None}, checks=False), Path(), tmp_path / "run")
    rows = lines(tmp_path / "run/attempts.jsonl")
    assert all(row["outcome"] is None for row in rows)  # only those whose form was broken were settled
