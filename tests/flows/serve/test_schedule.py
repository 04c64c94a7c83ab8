"""What is served: deployments, what starts them, what is refused, and the events that start the next flow."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curation.config.schedule import ScheduleSettings
from curation.records import ConfigError, GoldilocksError, StoreError
from curation.storage.locks import lock_folder
from flows.pipelines.refresh import EmptySetError
from flows.publish.versions import latest
from flows.serve.serving import SERVICE, _served_once, serve_recipes, serving_api
from flows.serve.unfinished import ANNOUNCED, FIRST, REFRESHED, training_folder, unfinished
from tests.flows.conftest import KEYS, TINY, Tiny, newer_policy
from tests.flows.serve.conftest import scheduled


@pytest.mark.slow
def test_a_recipe_is_served_as_its_line_its_training_and_its_refresh(tmp_path: Path, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client

    from flows.serve.schedule import deployments, start_phrase

    pinned = deployments(scheduled(tmp_path / "in"), tmp_path / "run")
    assert {flow.name: start_phrase(settings) for flow, settings in pinned} == {
        "curate-math": "cron */5 * * * *",
        "train-stage": "on goldilocks.curated",
        "refresh": "on goldilocks.checkpoint",
    }
    made: dict[str, Any] = {flow.name: flow.to_deployment(**settings) for flow, settings in pinned}
    own = {"folder": str(tmp_path / "run"), "recipe": str(tmp_path / "in" / "train.toml"), "rounds": 2}
    assert made["train-stage"].parameters == own
    (trigger,) = made["refresh"].triggers
    assert trigger.match.model_dump() == {"prefect.resource.id": "goldilocks.checkpoint.tiny"}
    for one in made.values():
        one.apply()
    with get_client(sync_client=True) as client:
        held = client.read_deployment_by_name("curate-math/tiny")
        assert (held.schedules[0].schedule.cron, held.schedules[0].schedule.timezone) == ("*/5 * * * *", "UTC")
        assert held.enforce_parameter_schema
        assert held.global_concurrency_limit is None, "a killed holder would keep its slot"
        held = client.read_deployment_by_name("refresh/tiny")
        assert held.parameters == {"folder": str(tmp_path / "run"), "accept": False}
    untrained = deployments(scheduled(tmp_path / "other", ""))
    assert [(flow.name, starts.get("schedule")) for flow, starts in untrained] == [
        ("curate-math", None),
        ("refresh", None),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ('cron = "every day"', "does not have 5 fields"),
        ('train = "no.toml"', "there is no file"),
        ('train = "odd.toml"', r"odd\.toml: unknown key `step`; did you mean `steps`\?"),
    ],
)
def test_refusals(schedule: str, words: str, tmp_path: Path, under_prefect: str) -> None:
    from flows.serve.schedule import deployments

    recipe = scheduled(tmp_path / "in", f"\n[schedule]\n{schedule}\n")
    (tmp_path / "in" / "odd.toml").write_text('name = "odd"\nmodel = "embedded"\nstep = 3\n')
    with pytest.raises(ConfigError, match=words):
        deployments(recipe)


@pytest.mark.slow
def test_a_name_a_port_or_a_set_is_served_once_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, run = scheduled(tmp_path / "in"), tmp_path / "run"
    with pytest.raises(ConfigError, match="one name"):
        serve_recipes([recipe, recipe])
    with (
        _served_once(run / SERVICE, "one", "key"),
        pytest.raises(StoreError, match=f"{run} is served already, by process {os.getpid()}"),
    ):
        serve_recipes([recipe], run)
    with _served_once(run / SERVICE, "two", "key"):
        assert json.loads((run / SERVICE / "service.json").read_text())["token"] == "two"
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(GoldilocksError, match="is taken"), serving_api(taken.getsockname()[1], KEYS):
            pass


class Killed(BaseException):
    """What no code of the house catches: the process is gone at this point."""


@pytest.mark.slow
def test_a_new_version_is_announced_once_also_after_a_kill(
    tiny_copy: Tiny, under_prefect: str, monkeypatch: Any
) -> None:
    import flows.serve.flow_runs as served
    from flows.curate_math import curate_math

    def dies(**_: object) -> None:
        raise Killed

    events: list[tuple[str, dict[str, Any]]] = []
    out = tiny_copy.folder.parent / "fresh"
    monkeypatch.setattr(served, "emit_event", dies)
    with pytest.raises(Killed):
        curate_math(tiny_copy.recipe, out)
    assert latest(out) is not None, "published, and not announced"
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: events.append((event, payload)))
    for _ in range(2):
        curate_math(tiny_copy.recipe, out)
    ((event, payload),) = events
    assert (event, payload["version"], payload["folder"]) == ("goldilocks.curated", 1, str(out))
    assert latest(tiny_copy.folder) is not None
    curate_math(tiny_copy.recipe, tiny_copy.folder)
    assert len(events) == 1, "what was there before the first scheduled run is not announced"


@pytest.mark.slow
def test_a_set_that_a_refresh_exhausts_is_announced(tiny_copy: Tiny, under_prefect: str, monkeypatch: Any) -> None:
    import flows.serve.flow_runs as served
    from flows.refresh import refresh

    events: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: events.append((event, payload)))
    tiny_copy.run("refresh.error_rate=0.0025")
    home = tiny_copy.recipe.parent
    once = refresh.with_options(retries=0)

    def newer(name: str, *solved: str) -> Path:
        answers = {one: " ".join([str(TINY[one][1])] * 4) if one in solved else TINY[one][3] for one in TINY}
        return newer_policy(home, name, answers)

    once(tiny_copy.folder, newer("strong@2", "half", "markup"))
    with pytest.raises(EmptySetError):
        once(tiny_copy.folder, newer("strong@3", "half", "markup", "strong only"))
    exhausted = [payload for event, payload in events if event == "goldilocks.exhausted"]
    same = {"folder": str(tiny_copy.folder), "version": 2, "first_rows": 3}
    assert exhausted == [{**same, "rows": rows} for rows in (1, 0)]


# --- what a schedule still owes, and when lost runs are started again ------------------------------------------------

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
    def owed(schedule: ScheduleSettings = SCHEDULE) -> Any:
        return unfinished(tmp_path, schedule)

    assert owed() is None
    announced(tmp_path, 1)
    assert owed() == ("train-stage", {"folder": str(tmp_path), "version": 1})
    assert owed(ScheduleSettings()) is None, "no trainer"
    with lock_folder(tmp_path / "training"):
        assert owed() is None, "it is being trained"
    stage = trained(tmp_path, 1)
    flow, parameters = owed()
    assert (flow, parameters["policy"]) == ("refresh", str(stage / "model"))
    with lock_folder(tmp_path):
        assert owed() is None, "a run holds the set"
    (tmp_path / FIRST).write_text("1\n")
    assert owed() is None, "it was there before it was served"
    (tmp_path / FIRST).unlink()
    (stage / REFRESHED).write_text("2\n")
    assert owed() is None
    announced(tmp_path, 2)
    once = ScheduleSettings(train="train.toml", rounds=1)
    assert owed(once) is None, "no more stages than are asked for"
    training_folder(tmp_path, 2).mkdir(parents=True)
    assert owed(once) is not None, "a stage that was begun goes on"


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
    pinned: Any = deployments(scheduled(tmp_path / "in"), folder)
    known = [flow.to_deployment(**settings).apply() for flow, settings in pinned]
    served = load_recipe(tmp_path / "in" / "tiny.toml"), folder
    with get_client(sync_client=True) as client:
        assert start_unfinished(client, *served, datetime.now(UTC)) is not None
        assert start_unfinished(client, *served, datetime.now(UTC)) is None, "it is on its way"
        deployment = client.read_deployment_by_name("train-stage/tiny")
        runs = (one for one in client.read_flow_runs() if one.deployment_id == deployment.id)
        (run,) = (one for one in runs if one.parameters["folder"] == str(folder))
        assert run.parameters["rounds"] == 2
        client.set_flow_run_state(run.id, Running(), force=True)
        assert close_lost_runs(client, known) == 1
        assert close_lost_runs(client, known) == 0
        assert client.read_flow_run(run.id).state.is_crashed()  # type: ignore[union-attr]
        assert start_unfinished(client, *served, datetime.now(UTC)) is None, "not at once"
        assert start_unfinished(client, *served, datetime.now(UTC) + timedelta(seconds=31)) is not None
