"""A run by verl from outside: its folder, its environment, its model, and its message if verl is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError, StoreError
from curation.scoring.record import MARK, read_record
from tests.training.engines.verl.test_stages import recipe as with_double
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.engines.processes import EngineError
from training.engines.verl.configuration import _environment
from training.engines.verl.environment import missing, process_environment, verl_folder
from training.engines.verl.run import (
    check_configuration,
    has_experts,
    last_step,
    prepare,
    publish_model,
    train,
    write_job,
)
from training.engines.verl.stages import present_stage
from training.recipe import TrainRecipe


def recipe(**changes: Any) -> TrainRecipe:
    table = {
        "name": "t",
        "steps": 3,
        **student(kind="vllm"),
        "engine": "verl",
        "data": {"kind": "embedded", "problems": 5},
        "verl": {"gpus_per_node": 8},
        **changes,
    }
    return TrainRecipe.model_validate(table)


def test_a_run_is_prepared_with_all_that_verl_reads(tmp_path: Path) -> None:
    out = tmp_path / "run"
    evaluation = {"data": {"kind": "embedded", "problems": 4, "seed": 2}, "problems": 3}
    made = recipe(evaluation=evaluation)
    prepare(made, tmp_path, out)
    job = write_job(made, present_stage(made, out), tmp_path, out)
    assert json.loads((out / "verl" / "job.json").read_text()) == job
    rows = pl.read_parquet(out / "verl" / "train.parquet").to_dicts()
    assert len(rows) == 5
    assert read_record(rows[0]["extra_info"][MARK])["answer"] == rows[0]["reward_model"]["ground_truth"]
    assert pl.read_parquet(out / "verl" / "held_out.parquet").height == 3
    assert "n_async" in (out / "verl" / "differences.txt").read_text()
    assert json.loads((out / "run.json").read_text())["recipe"]["engine"] == "verl"
    with pytest.raises(StoreError, match="holds a run already"):
        prepare(recipe(), tmp_path, out)


def test_a_token_is_sent_to_the_named_ray_cluster_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mode(address: str | None) -> str | None:
        made = recipe(verl={"ray_address": address})
        return dict(_environment(made, tmp_path, tmp_path, 0)).get("RAY_AUTH_MODE")

    assert mode("auto") is None
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/etc/token")
    assert (mode("auto"), mode(None)) == ("token", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert mode("auto") == "disabled"


def test_without_verls_environment_a_run_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDILOCKS_VERL", str(tmp_path / "none"))
    assert "make setup-verl" in missing()
    with pytest.raises(ConfigError, match=r"make it with `python -m training\.engines\.verl\.environment`"):
        train(recipe(), tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("GOLDILOCKS_VERL", "/env")
    assert verl_folder() == Path("/env")
    assert process_environment({"A": "1"})["A"] == "1"


def test_what_verl_says_of_a_configuration_is_the_error(tmp_path: Path) -> None:
    out = tmp_path / "run"
    prepare(recipe(), tmp_path, out)
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho loading\necho 'verl refuses the configuration: ValueError: no' >&2\nexit 2\n")
    fake.chmod(0o755)
    with pytest.raises(
        EngineError, match=r"(?s)job\.json ended with status 2: .* refuses the configuration: ValueError: no"
    ):
        check_configuration(out, fake)


def test_the_last_checkpoint_becomes_the_runs_model(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with pytest.raises(StoreError, match="verl ended at step 0 of 3"):
        publish_model(recipe(), out)
    checkpoints = out / "verl" / "checkpoints"
    shutil.copytree(WEIGHTS, checkpoints / "global_step_3" / "actor" / "huggingface")
    (checkpoints / "latest_checkpointed_iteration.txt").write_text("3")
    assert last_step(out) == 3
    model = publish_model(recipe(), out)
    assert json.loads((model / "DONE.json").read_text())["revision"] == folder_revision(model)
    assert not has_experts(model)
    config = json.loads((model / "config.json").read_text()) | {"num_local_experts": 8}
    (model / "config.json").write_text(json.dumps(config))
    assert has_experts(model)


def test_another_runs_mirror_is_refused_before_verl_starts(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "mirror.json").write_text('{"recipe": "other"}')
    with pytest.raises(StoreError, match="holds a run of recipe `other`"):
        train(with_double(tmp_path, storage={"mirror": str(there)}), tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
