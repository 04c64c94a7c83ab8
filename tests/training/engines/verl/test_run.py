"""A run by verl from outside: its folder, its environment, its model, processes of an earlier start, and refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError, PolicyError, StoreError
from curation.scoring.record import MARK, read_record
from curation.storage.locks import lock_folder
from tests.training.engines.verl.test_stages import recipe as with_double
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.engines.processes import EngineError
from training.engines.verl.configuration import RECIPE_VARIABLE, _environment
from training.engines.verl.environment import missing, process_environment, verl_folder
from training.engines.verl.run import (
    check_configuration,
    has_experts,
    last_step,
    prepare,
    processes_of,
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
    (model / "config.json").write_text("half")
    with pytest.raises(PolicyError, match=r"config\.json is damaged .*; download the model again"):
        has_experts(model)


def test_another_runs_mirror_is_refused_before_verl_starts(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "mirror.json").write_text('{"recipe": "other"}')
    with pytest.raises(StoreError, match="holds a run of recipe `other`"):
        train(with_double(tmp_path, storage={"mirror": str(there)}), tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


Start = Callable[[Path, str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process of the run in a folder, which says when it has begun."""
    with ExitStack() as stack:

        def started(out: Path, code: str) -> subprocess.Popen[bytes]:
            told = json.dumps({"recipe": {}, "out": str(out)})
            environment = {**os.environ, RECIPE_VARIABLE: told}
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            return process

        yield started


STAYS = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); signal.pause()"


def test_a_run_that_still_runs_is_not_resumed_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with lock_folder(out / "verl"), pytest.raises(StoreError, match="is in use by another run"):
        train(with_double(tmp_path), tmp_path, out, resume=True)


def test_processes_of_an_earlier_start_are_killed_before_the_folder_is_touched_and_others_left_alone(
    tmp_path: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = tmp_path / "run", tmp_path / "run-2"
    stays, stranger = [start(mine, STAYS) for _ in range(2)], start(other, STAYS)
    assert (processes_of(mine), processes_of(other)) == (sorted(one.pid for one in stays), [stranger.pid])
    with pytest.raises(StoreError, match="no run to resume"):
        train(with_double(tmp_path), tmp_path, mine, resume=True)
    assert [process.wait() for process in stays] == [-9, -9]
    assert f"{mine}: 2 processes of an earlier start of this run are killed." in capsys.readouterr().err
    assert stranger.poll() is None
