"""What is served: deployments, what starts them, what is refused, and the events that start the next flow."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError, GoldilocksError, StoreError
from flows.pipelines.refresh import EmptySetError
from flows.publish.versions import latest
from flows.serve.serving import SERVICE, _served_once, serve_recipes, serving_api
from tests.flows.conftest import KEYS, TINY, Tiny, newer_policy
from tests.flows.serve.conftest import scheduled

pytestmark = pytest.mark.slow


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


def test_a_new_version_is_announced_once_also_after_a_kill(
    tiny_copy: Tiny, under_prefect: str, monkeypatch: Any
) -> None:
    import flows.serve.flow_runs as served
    from flows.curate_math import curate_math

    def dies(**_: object) -> None:
        raise Killed

    told: list[tuple[str, dict[str, Any]]] = []
    out = tiny_copy.folder.parent / "fresh"
    monkeypatch.setattr(served, "emit_event", dies)
    with pytest.raises(Killed):
        curate_math(tiny_copy.recipe, out)
    assert latest(out) is not None, "published, and not announced"
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: told.append((event, payload)))
    for _ in range(2):
        curate_math(tiny_copy.recipe, out)
    ((event, payload),) = told
    assert (event, payload["version"], payload["folder"]) == ("goldilocks.curated", 1, str(out))
    assert latest(tiny_copy.folder) is not None
    curate_math(tiny_copy.recipe, tiny_copy.folder)
    assert len(told) == 1, "what was there before the first scheduled run is not announced"


def test_a_set_that_a_refresh_exhausts_is_announced(tiny_copy: Tiny, under_prefect: str, monkeypatch: Any) -> None:
    import flows.serve.flow_runs as served
    from flows.refresh import refresh

    events: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: events.append((event, payload)))
    tiny_copy.run("refresh.error_rate=0.0025")
    home = tiny_copy.recipe.parent
    once = refresh.with_options(retries=0)
    for name, solved in (("strong@2", {"half", "markup"}), ("strong@3", {"half", "markup", "strong only"})):
        answers = {one: " ".join([str(TINY[one][1])] * 4) if one in solved else TINY[one][3] for one in TINY}
        policy = newer_policy(home, name, answers)
        if name == "strong@2":
            once(tiny_copy.folder, policy)
        else:
            with pytest.raises(EmptySetError):
                once(tiny_copy.folder, policy)
    folder = str(tiny_copy.folder)
    assert [payload for event, payload in events if event == "goldilocks.exhausted"] == [
        {"folder": folder, "version": 2, "rows": rows, "first_rows": 3} for rows in (1, 0)
    ]
