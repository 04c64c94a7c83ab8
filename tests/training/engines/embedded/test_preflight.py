"""Checks before a run: what passes trains, what fails is refused before the first step, and `--check` does no more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.run.training import main
from tests.training.engines.embedded.test_resume import asked
from tests.training.engines.embedded.test_run import small
from tests.training.families import make_family
from tests.training.students import student
from training.checks import ModelCheckError
from training.embedded_model import WEIGHTS
from training.engines.embedded import run
from training.optimisation import logprobs

NAMES = ["chat template", "end token", "room", "packed = unpacked", "generator = trainer"]
ONE_STEP: dict[str, Any] = {"steps": 1, "evaluation": {"data": None}}


@pytest.fixture
def leaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with short convolutions, computed as if nothing kept its sequences apart."""
    monkeypatch.setattr(logprobs, "keep_sequences_apart", lambda _: 0)
    return make_family("lfm2", tmp_path / "leaking")


def test_what_would_be_trained_wrongly_is_refused_before_the_first_step(leaking: Path, tmp_path: Path) -> None:
    recipe = small(**student(str(leaking)), **ONE_STEP)
    with pytest.raises(ModelCheckError, match=r"packed = unpacked: .* nats off .*; set packing\.single = true"):
        run.train(recipe, Path(), tmp_path / "run")
    assert not (tmp_path / "run/checkpoints").exists()
    refused = run.check(recipe, Path())
    assert [result.check for result in refused] == NAMES[:4]  # no generator was started
    assert [result.passed for result in refused] == [True, True, True, False]


@pytest.mark.slow
def test_a_token_that_only_the_template_ends_turns_with_ends_responses_here_and_in_what_is_saved(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    shutil.copytree(WEIGHTS, model)
    template = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").write_text(template.replace("{{ eos_token }}", "{{ bos_token }}"))
    trained = run.train(small(**student(str(model)), **ONE_STEP), Path(), tmp_path / "run")
    assert json.loads((trained / "generation_config.json").read_text())["eos_token_id"] == [2, 1]
    said = capfd.readouterr().err
    assert "the model was checked: " in said
    assert "<|end|> (2), <|start|> (1) end a response; the last was added" in said


def test_check_prints_the_table_and_trains_nothing(
    tmp_path: Path, leaking: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = str(asked(small(), tmp_path))
    assert main([recipe, "--out", str(tmp_path / "run"), "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["check", "figure", "tolerance", "result"]
    assert len(lines) == 1 + len(NAMES) + 1
    assert not (tmp_path / "run").exists()
    assert main([recipe, "--check", "--set", f"models.student.model={leaking}"]) == 1
    said = capsys.readouterr().err
    assert "is refused" in said
    assert "set packing.single = true" in said


@pytest.mark.slow
def test_checks_change_nothing_not_even_in_a_run_that_is_resumed(tmp_path: Path) -> None:
    table: dict[str, Any] = {"collector": {"max_staleness": 0}, "evaluation": {"data": None}}
    out, unchecked = tmp_path / "run", tmp_path / "unchecked"
    run.train(small(steps=1, **table), Path(), out)
    run.train(small(steps=2, **table), Path(), out, resume=True)
    run.train(small(steps=2, checks=False, **table), Path(), unchecked)
    weights = [folder / "model/model.safetensors" for folder in (out, unchecked)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
