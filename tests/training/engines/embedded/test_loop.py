"""The loop when something fails: a generator that dies ends the run with its own error, single failures are counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused, VerifierError
from curation.verify.math_judge import Verdict
from tests.training.engines.embedded.test_run import lines, small
from training.engines.embedded import run
from training.generation.generators import Generator, TorchGenerator
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers


class Failing(TorchGenerator):
    """A real generator that refuses a share of the requests: every ``every``-th of them, all from ``dies`` on."""

    every, dies = 0, 10**9
    asked = 0

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        self.asked += 1
        if self.asked >= self.dies or (self.every and self.asked % self.every == 0):
            raise PolicyError("the engine is gone")
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


def with_generator(monkeypatch: pytest.MonkeyPatch, every: int, dies: int) -> None:
    def build(recipe: object, folder: Path, *_: object) -> Generator:
        generator = Failing(folder, capacity=16)
        generator.every, generator.dies = every, dies
        return generator

    monkeypatch.setattr(run, "build_generator", build)


@pytest.mark.slow
def test_single_failures_are_counted_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_generator(monkeypatch, every=7, dies=10**9)
    run.train(small(steps=2, evaluation={"data": None}, checks=False), Path(), tmp_path / "run")
    ledger = json.loads((tmp_path / "run/summary.json").read_text())["ledger"]
    assert ledger["dropped"]["generation_failed"] >= 3
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())


def test_a_generator_that_dies_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_generator(monkeypatch, every=0, dies=20)
    made = small(evaluation={"data": None}, checks=False)
    with pytest.raises(PolicyError, match="the engine is gone"):
        run.train(made, Path(), tmp_path / "run")


def test_a_verifier_that_cannot_work_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def judge(self: Verifiers, task: TrainingTask, text: str, seed: int, finish: str | None) -> Verdict:
        raise VerifierError("the verifier keeps dying")

    monkeypatch.setattr(Verifiers, "verify", judge)
    with pytest.raises(VerifierError, match="keeps dying"):
        run.train(small(evaluation={"data": None}, checks=False), Path(), tmp_path / "run")
    rows = lines(tmp_path / "run/attempts.jsonl")
    assert all(row["outcome"] is None for row in rows)  # only those whose form was broken were settled


class Poisoned(TorchGenerator):
    """A real generator that refuses every prompt of the first problem that it was asked."""

    poisoned: Sequence[int] = ()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        self.poisoned = self.poisoned or tuple(prompt_ids)
        if tuple(prompt_ids) == self.poisoned:
            raise RequestRefused("400", "http://server: 400 poisoned.")
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


def test_a_refused_problem_is_left_out_with_its_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "build_generator", lambda _, folder, *__: Poisoned(folder, capacity=16))
    made = small(steps=1, collector={"max_staleness": 1}, evaluation={"data": None}, checks=False)
    run.train(made, Path(), tmp_path / "run")
    ledger = json.loads((tmp_path / "run/summary.json").read_text())["ledger"]
    assert 0 < ledger["dropped"]["refused"] <= 2 * made.collector.group_size  # once drawn, perhaps twice at a time
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
