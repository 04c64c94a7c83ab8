"""What a set's schedule still owes, by its folder; and when the run that was lost is started again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curation.config.schedule import ScheduleSettings
from curation.storage.locks import lock_folder
from flows.serve.unfinished import ANNOUNCED, FIRST, REFRESHED, training_folder, unfinished
from tests.flows.serve.conftest import scheduled

SCHEDULE = ScheduleSettings(train="train.toml")


def announced(folder: Path, version: int) -> Path:
    (folder / ANNOUNCED).write_text(f"{version}\n")
    return folder


def trained(folder: Path, version: int) -> Path:
    stage = training_folder(folder, version)
    (stage / "model").mkdir(parents=True)
    (stage / "model" / "config.json").write_text("{}")
    return stage


def test_an_announced_version_is_trained_on_and_its_model_judges_the_set_once(tmp_path: Path) -> None:
    assert unfinished(tmp_path, SCHEDULE) is None
    announced(tmp_path, 1)
    assert unfinished(tmp_path, SCHEDULE) == ("train-stage", {"folder": str(tmp_path), "version": 1})
    assert unfinished(tmp_path, ScheduleSettings()) is None, "no trainer"
    with lock_folder(tmp_path / "training"):
        assert unfinished(tmp_path, SCHEDULE) is None, "it is being trained"
    stage = trained(tmp_path, 1)
    work = unfinished(tmp_path, SCHEDULE)
    assert work is not None
    assert (work[0], work[1]["policy"]) == ("refresh", str(stage / "model"))
    with lock_folder(tmp_path):
        assert unfinished(tmp_path, SCHEDULE) is None, "a run holds the set"
    (tmp_path / FIRST).write_text("1\n")
    assert unfinished(tmp_path, SCHEDULE) is None, "it was there before it was served"
    (tmp_path / FIRST).unlink()
    (stage / REFRESHED).write_text("2\n")
    assert unfinished(tmp_path, SCHEDULE) is None


def test_no_more_stages_than_are_asked_for(tmp_path: Path) -> None:
    trained(tmp_path, 1)
    announced(tmp_path, 2)
    once = ScheduleSettings(train="train.toml", rounds=1)
    assert unfinished(tmp_path, once) is None
    training_folder(tmp_path, 2).mkdir(parents=True)
    assert unfinished(tmp_path, once) is not None, "a stage that was begun goes on"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_run(kind: str, ended_s_ago: float = 0.0) -> Any:
    from prefect.client.schemas.objects import State, StateType

    state = State(type=StateType[kind], timestamp=NOW - timedelta(seconds=ended_s_ago))
    return SimpleNamespace(state=state, end_time=None)


@pytest.mark.parametrize(
    ("runs", "starts"),
    [
        ([], True),
        ([("RUNNING", 900.0)], False),
        ([("FAILED", 900.0)], False),
        ([("CRASHED", 29.0)], False),
        ([("CRASHED", 31.0)], True),
        ([("CRASHED", 31.0), ("CRASHED", 90.0)], False),
        ([("CRASHED", 3599.0)] * 9, False),
        ([("CRASHED", 3601.0)] * 9, True),
    ],
)
def test_lost_work_is_started_again_and_failed_work_is_not(runs: list[tuple[str, float]], starts: bool) -> None:
    from flows.serve.runner import may_start

    assert may_start([a_run(*run) for run in runs], NOW) == starts


@pytest.mark.slow
def test_lost_runs_are_closed_and_started_again(tmp_path: Path, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows.run.recipe import load_recipe
    from flows.serve.runner import close_lost_runs, start_unfinished
    from flows.serve.schedule import deployments

    folder = announced(tmp_path, 1)
    made: list[Any] = [
        flow.to_deployment(**settings) for flow, settings in deployments(scheduled(tmp_path / "in"), folder)
    ]
    known = [one.apply() for one in made]
    served = load_recipe(tmp_path / "in" / "tiny.toml"), folder
    with get_client(sync_client=True) as client:
        assert start_unfinished(client, *served, datetime.now(UTC)) is not None
        assert start_unfinished(client, *served, datetime.now(UTC)) is None, "it is on its way"
        deployment = client.read_deployment_by_name("train-stage/tiny")
        (run,) = [
            one
            for one in client.read_flow_runs()
            if one.deployment_id == deployment.id and one.parameters["folder"] == str(folder)
        ]
        assert run.parameters["rounds"] == 2
        client.set_flow_run_state(run.id, Running(), force=True)
        assert close_lost_runs(client, known) == 1
        assert close_lost_runs(client, known) == 0
        assert client.read_flow_run(run.id).state.is_crashed()  # type: ignore[union-attr]
        assert start_unfinished(client, *served, datetime.now(UTC)) is None, "not at once"
        assert start_unfinished(client, *served, datetime.now(UTC) + timedelta(seconds=31)) is not None
