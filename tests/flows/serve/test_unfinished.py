"""What a set's schedule still owes, by its folder; and when the run that was lost is started again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from curation.config.schedule import ScheduleSettings
from curation.storage.locks import lock_folder
from flows.run.recipe import load_recipe
from flows.serve.runner import close_lost_runs, rerun_crashed, start_unfinished, wait_before
from flows.serve.unfinished import ANNOUNCED, FIRST, REFRESHED, Work, training_folder, unfinished
from tests.flows.serve.cron_chain import scheduled

SCHEDULE = ScheduleSettings(train="train.toml")


def announced(folder: Path, version: int) -> Path:
    (folder / ANNOUNCED).write_text(f"{version}\n")
    return folder


def trained(folder: Path, version: int) -> Path:
    stage = training_folder(folder, version)
    (stage / "model").mkdir(parents=True)
    (stage / "model" / "config.json").write_text("{}")
    return stage


def test_a_version_that_was_announced_is_to_be_trained_on(tmp_path: Path) -> None:
    assert unfinished(tmp_path, SCHEDULE) is None
    announced(tmp_path, 1)
    assert unfinished(tmp_path, SCHEDULE) == Work("train-stage", {"folder": str(tmp_path), "version": 1})
    assert unfinished(tmp_path, ScheduleSettings()) is None, "no trainer"
    with lock_folder(tmp_path / "training"):
        assert unfinished(tmp_path, SCHEDULE) is None, "somebody trains"


def test_what_was_there_before_it_was_served_starts_nothing(tmp_path: Path) -> None:
    (announced(tmp_path, 3) / FIRST).write_text("3\n")
    assert unfinished(tmp_path, SCHEDULE) is None
    announced(tmp_path, 4)
    assert unfinished(tmp_path, SCHEDULE) is not None


def test_a_model_is_to_judge_the_set_again_once(tmp_path: Path) -> None:
    stage = trained(announced(tmp_path, 1), 1)
    work = unfinished(tmp_path, SCHEDULE)
    assert work is not None
    assert (work.flow, work.parameters["policy"]) == ("refresh", str(stage / "model"))
    with lock_folder(tmp_path):
        assert unfinished(tmp_path, SCHEDULE) is None, "somebody works on the set"
    (stage / REFRESHED).write_text("2\n")
    assert unfinished(tmp_path, SCHEDULE) is None


def test_no_more_stages_than_are_asked_for(tmp_path: Path) -> None:
    trained(tmp_path, 1)
    announced(tmp_path, 2)
    once = ScheduleSettings(train="train.toml", rounds=1)
    assert unfinished(tmp_path, once) is None
    training_folder(tmp_path, 2).mkdir(parents=True)
    assert unfinished(tmp_path, once) is not None, "a stage that was begun goes on"


def test_the_wait_doubles_up_to_an_hour() -> None:
    assert [wait_before(runs) for runs in (1, 2, 3, 4, 10)] == [0.0, 30.0, 60.0, 120.0, 3600.0]


def test_lost_runs_are_started_again(tmp_path: Path, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled, Failed, Running

    from flows.serve.schedule import deployments

    folder, recipe = announced(tmp_path, 1), scheduled(tmp_path / "in")
    known = [one.flow.to_deployment(**one.arguments).apply() for one in deployments(recipe, folder)]
    with get_client(sync_client=True) as client:

        def start(after_s: float = 1.0) -> Work | None:
            return start_unfinished(client, load_recipe(recipe), folder, datetime.now(UTC) + timedelta(seconds=after_s))

        def rerun(after_s: float = 1.0) -> str | None:
            return rerun_crashed(client, deployment.id, datetime.now(UTC) + timedelta(seconds=after_s))

        deployment = client.read_deployment_by_name("train-stage/tiny")
        assert start() is not None, "no event came"
        assert start() is None, "its run is on its way"
        (run,) = (one for one in client.read_flow_runs() if one.deployment_id == deployment.id)
        assert run.parameters == {**deployment.parameters, "version": 1}
        assert rerun() is None
        client.set_flow_run_state(run.id, Running(), force=True)
        assert (close_lost_runs(client, known), close_lost_runs(client, known)) == (1, 0)
        assert client.read_flow_run(run.id).state.is_crashed()  # type: ignore[union-attr]
        assert start() is None, "the run that was lost is run again"
        assert (rerun(), rerun()) == (run.name, None)
        assert client.read_flow_run(run.id).state.is_scheduled()  # type: ignore[union-attr]
        for end in (Failed(), Cancelled()):
            client.set_flow_run_state(run.id, end, force=True)
            assert (rerun(), start()) == (None, None), "its own failure, and a user's wish, are final"
