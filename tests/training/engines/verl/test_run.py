"""A run by verl from outside, over a double of its trainer: stages, kills, resumes, its folder, and refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError, PolicyError, StoreError
from curation.scoring.record import MARK, read_record
from curation.storage.locks import lock_folder
from tests.training.engines.embedded.test_run import lines
from tests.training.engines.test_mirroring import marked, own
from tests.training.students import verl_recipe
from training.embedded_model import WEIGHTS
from training.engines.processes import EngineError
from training.engines.verl.configuration import RECIPE_VARIABLE, _environment
from training.engines.verl.environment import VARIABLE, missing, process_environment, verl_folder
from training.engines.verl.run import (
    check_configuration,
    has_experts,
    prepare,
    processes_of,
    publish_model,
    train,
    write_job,
)
from training.engines.verl.stages import LATEST, STATE, last_step, present_stage, remove_old
from training.recipe import TrainRecipe
from training.rollouts import curriculum as rules
from training.rollouts.curriculum import CurriculumController, StepMeans

STAGES = (
    {"until": "reward", "steps": 50, "lengths": 80, "n_batch": 16, "n_async": 16},
    {"lengths": 120, "n_batch": 8, "hard": True},
)


def with_double(folder: Path, **changes: Any) -> TrainRecipe:
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    os.environ[VARIABLE] = str(folder)
    double = f'exec "{sys.executable}" -m tests.training.engines.verl.double "$@"'
    python.write_text(f'#!/bin/sh\ncase "$*" in *--check) exit 0;; esac\n{double}\n')
    python.chmod(0o755)
    table: dict[str, Any] = {
        "steps": 8,
        "data": {"kind": "embedded", "problems": 9},
        "verl": {"gpus_per_node": 8},
        "collector": {"group_size": 4, "n_async": 16, "n_batch": 16},
        "rewards": {"max_length": 100, "length_cache": 20, "language": 0.0},
        "curriculum": {"stages": STAGES},
        "checkpoints": {"every": 2},
    }
    return verl_recipe(**{**table, **changes})


def seen(out: Path) -> list[dict[str, Any]]:
    return lines(out / "verl" / "seen.jsonl")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")  # `with_double` sets it, and no later test may see it
        model = train(with_double(folder), folder, folder / "run")
    assert (model / "DONE.json").is_file()
    return folder / "run"


@pytest.mark.slow
def test_each_stage_is_a_process_with_its_own_sizes_over_one_folder(whole: Path) -> None:
    told = seen(whole)
    # flat over four steps, seen at the checkpoint of step 4
    sizes = [(0, 100, 4), (4, 140, 2)]
    assert [(one["begun"], one["response_length"], one["groups"]) for one in told] == sizes
    assert not any(one["queue"] for one in told)
    changes = [row for row in lines(whole / "changes.jsonl") if row.get("subject") == "stage"]
    assert [(row["step"], row["new"]) for row in changes] == [(4, 2)]
    rows = lines(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert all("sampled/reward" in row for row in rows[1:])  # also of the steps that a stage ended with
    rows = lines(whole / "attempts.jsonl")
    assert len(rows) == 4 * (4 * 4 + 4 * 2)  # four rollouts a group; four steps of four groups, four of two
    assert [row["group"] for row in rows[::4]] == list(range(24))


@pytest.mark.slow
def test_a_run_that_is_killed_within_and_between_stages_is_the_undisturbed_one(whole: Path, tmp_path: Path) -> None:
    there, out = tmp_path / "there", tmp_path / "run"
    made = with_double(tmp_path, storage={"mirror": str(there)})
    (out / "verl").mkdir(parents=True)
    for number, kill in enumerate(("4 marked", "7 before")):
        (out / "verl" / "kill").write_text(kill)
        with pytest.raises(EngineError):
            train(made, tmp_path, out, resume=number > 0)
    train(made, tmp_path, out, resume=True)
    for name in ("attempts.jsonl", "changes.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    # within a stage what is in flight goes on
    begun = [(0, False), (2, True), (4, False), (6, True)]
    assert [(one["begun"], one["queue"]) for one in seen(out)] == begun
    assert (last_step(out), seen(out)[-1]["response_length"]) == (8, 140)
    assert marked(there, "model") == {"last": own(out / "model")}
    for name in ("run.json", "metrics.jsonl", "changes.jsonl", "summary.json"):
        assert (there / name).read_bytes() == (out / name).read_bytes()


def checkpoint(out: Path, step: int, curriculum: CurriculumController | None) -> Path:
    """A checkpoint as verl leaves it, with our state where there is one."""
    folder = out / "verl" / "checkpoints" / f"global_step_{step}"
    for part in ("actor", "transfer_queue"):
        (folder / part).mkdir(parents=True)
    if curriculum is not None:
        (folder / STATE).write_text(json.dumps({"curriculum": curriculum.state()}))
    (folder.parent / LATEST).write_text(str(step))
    return folder


def test_a_folder_tells_its_stage_and_an_unfinished_checkpoint_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "PLATEAU_WINDOW", 4)
    made, out = with_double(tmp_path, checkpoints={"every": 2, "keep": 3}), tmp_path / "run"
    curriculum = CurriculumController(made, {})
    first = checkpoint(out, 2, curriculum)
    for step in range(1, 5):
        curriculum.after_step(step, StepMeans(0.5, 25.0))
    second, third = checkpoint(out, 4, curriculum), checkpoint(out, 6, None)
    stage = present_stage(made, out)
    assert (stage.number, stage.begun_at, stage.ends_at) == (1, 4, 8)
    assert (stage.recipe.rewards.max_length, stage.recipe.collector.n_batch) == (140, 8)
    assert not third.exists()
    assert not (second / "transfer_queue").exists()  # of the stage before: other lengths
    assert last_step(out) == 4
    (second / STATE).unlink()
    stage = present_stage(made, out)
    assert (stage.number, stage.begun_at, stage.ends_at) == (0, 2, 8)
    assert (first / "transfer_queue").exists()
    (first / STATE).unlink()
    assert present_stage(made, out).begun_at == 0
    assert last_step(out) == 0


def test_as_many_checkpoints_stay_as_the_recipe_keeps_and_none_that_a_resume_may_need(tmp_path: Path) -> None:
    out = tmp_path / "run"
    curriculum = CurriculumController(with_double(tmp_path, curriculum=None), {})
    folders = {step: checkpoint(out, step, curriculum) for step in (2, 4, 6, 8, 10)}
    shutil.rmtree(folders[2] / "actor")  # what verl removes of an old one
    (folders[10] / STATE).unlink()  # killed before our state was written
    checkpoints = out / "verl" / "checkpoints"
    remove_old(checkpoints, 2)
    assert sorted(folder.name for folder in checkpoints.glob("*step_*")) == [f"global_step_{n}" for n in (10, 6, 8)]
    made = with_double(tmp_path, curriculum=None, checkpoints={"every": 2, "keep": 1})
    assert present_stage(made, out).begun_at == 8
    assert [folder.name for folder in checkpoints.glob("*step_*")] == ["global_step_8"]
    shutil.rmtree(folders[8] / "actor")  # weights are gone: it is none
    assert present_stage(made, out).begun_at == 0


def recipe(**changes: Any) -> TrainRecipe:
    table = {"steps": 3, "data": {"kind": "embedded", "problems": 5}, "verl": {"gpus_per_node": 8}, **changes}
    return verl_recipe(**table)


def test_a_run_is_prepared_with_all_that_verl_reads(tmp_path: Path) -> None:
    out = tmp_path / "run"
    made = recipe(evaluation={"data": {"kind": "embedded", "problems": 4, "seed": 2}, "problems": 3})
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
    message = r"(?s)job\.json ended with status 2: .* refuses the configuration: ValueError: no"
    with pytest.raises(EngineError, match=message):
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


def test_a_run_that_still_runs_is_not_resumed_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with lock_folder(out / "verl"), pytest.raises(StoreError, match="is in use by another run"):
        train(with_double(tmp_path), tmp_path, out, resume=True)


STAYS = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); signal.pause()"


def test_processes_of_an_earlier_start_are_killed_before_the_folder_is_touched_and_others_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:

        def start(out: Path) -> subprocess.Popen[bytes]:
            environment = {**os.environ, RECIPE_VARIABLE: json.dumps({"recipe": {}, "out": str(out)})}
            process = subprocess.Popen([sys.executable, "-c", STAYS], env=environment, stdout=subprocess.PIPE)
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout.readline() == b"begun\n"
            return process

        mine, other = tmp_path / "run", tmp_path / "run-2"
        stays, stranger = [start(mine) for _ in range(2)], start(other)
        assert (processes_of(mine), processes_of(other)) == (sorted(one.pid for one in stays), [stranger.pid])
        with pytest.raises(StoreError, match="no run to resume"):
            train(with_double(tmp_path), tmp_path, mine, resume=True)
        assert [process.wait() for process in stays] == [-9, -9]
        assert f"{mine}: 2 processes of an earlier start of this run are killed." in capsys.readouterr().err
        assert stranger.poll() is None
