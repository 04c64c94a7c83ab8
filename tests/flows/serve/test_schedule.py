"""What is served: deployments, what starts them, and the chain from a cron to a refresh on a real server."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError, GoldilocksError
from flows.pipelines.refresh import EmptySetError
from flows.publish.versions import latest
from flows.run.run_folder import open_run
from flows.serve.serving import serve_recipes, serving_api
from flows.serve.unfinished import ANNOUNCED
from tests.flows.conftest import KEYS, TINY, Tiny, tries, write_jsonl
from tests.flows.serve.cron_chain import scheduled
from tests.waiting import PATIENCE_S


def test_a_recipe_is_served_as_its_line_its_training_and_its_refresh(tmp_path: Path, under_prefect: str) -> None:
    from flows.serve.schedule import deployments, schedule_phrase

    pinned = deployments(scheduled(tmp_path / "in"), tmp_path / "run")
    made = {one.flow_name: one for one in (deployment.for_prefect() for deployment in pinned)}
    assert list(made) == ["curate-math", "train-stage", "refresh"]
    assert {one.name for one in made.values()} == {"tiny"}
    assert schedule_phrase(made["curate-math"]) == ["cron */5 * * * *"]
    assert schedule_phrase(made["train-stage"]) == ["on goldilocks.curated"]
    assert schedule_phrase(made["refresh"]) == ["on goldilocks.checkpoint"]
    assert made["curate-math"].parameters["out"] == str(tmp_path / "run")
    own = {"folder": str(tmp_path / "run"), "recipe": str(tmp_path / "in" / "train.toml"), "rounds": 2}
    assert made["train-stage"].parameters == own
    (trigger,) = made["refresh"].triggers
    assert trigger.match.model_dump() == {"prefect.resource.id": "goldilocks.checkpoint.tiny"}


def test_the_server_takes_the_deployments_with_their_parameters(tmp_path: Path, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client

    from flows.serve.schedule import deployments

    for one in deployments(scheduled(tmp_path / "in"), tmp_path / "run"):
        one.for_prefect().apply()
    with get_client(sync_client=True) as client:
        held = client.read_deployment_by_name("curate-math/tiny")
        assert held.schedules[0].schedule.cron == "*/5 * * * *"
        assert held.schedules[0].schedule.timezone == "UTC"
        assert held.parameter_openapi_schema["properties"]["recipe"]["format"] == "path"
        assert held.enforce_parameter_schema
        assert held.global_concurrency_limit is None, "a killed holder would keep its slot"
        assert client.read_deployment_by_name("refresh/tiny").parameters == {
            "folder": str(tmp_path / "run"),
            "accept": False,
        }


def test_a_recipe_without_a_trainer_is_not_trained(tmp_path: Path, under_prefect: str) -> None:
    from flows.serve.schedule import deployments

    made = deployments(scheduled(tmp_path / "in", ""))
    assert [one.flow.name for one in made] == ["curate-math", "refresh"]
    assert not made[0].for_prefect().schedules


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ('cron = "every day"', "does not have 5 fields"),
        ('train = "no.toml"', "there is no file"),
    ],
)
def test_refusals(schedule: str, words: str, tmp_path: Path, under_prefect: str) -> None:
    from flows.serve.schedule import deployments

    with pytest.raises(ConfigError, match=words):
        deployments(scheduled(tmp_path / "in", f"\n[schedule]\n{schedule}\n"))


def test_a_trainers_recipe_is_read_before_anything_is_served(tmp_path: Path, under_prefect: str) -> None:
    from flows.serve.schedule import deployments

    recipe = scheduled(tmp_path / "in", '\n[schedule]\ntrain = "odd.toml"\n')
    (tmp_path / "in" / "odd.toml").write_text('name = "odd"\nmodel = "embedded"\nstep = 3\n')
    with pytest.raises(ConfigError, match=r"odd\.toml: unknown key `step`; did you mean `steps`\?"):
        deployments(recipe)


def test_two_recipes_of_one_name_are_refused(tmp_path: Path) -> None:
    recipe = scheduled(tmp_path / "in")
    with pytest.raises(ConfigError, match="one name"):
        serve_recipes([recipe, recipe])


def test_a_taken_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(GoldilocksError, match="is taken"), serving_api(taken.getsockname()[1], KEYS):
            pass


def test_a_run_that_nobody_watches_announces_a_new_version_once(
    tiny_copy: Tiny, under_prefect: str, monkeypatch: Any
) -> None:
    import flows.serve.flow_runs as served
    from flows.curate_math import curate_math

    told: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: told.append((event, payload)))
    out = tiny_copy.folder.parent / "fresh"
    for _ in range(2):
        curate_math(tiny_copy.recipe, out)
    ((event, payload),) = told
    assert event == "goldilocks.curated"
    assert payload["version"] == 1
    assert payload["folder"] == str(out)
    version = latest(out)
    assert version is not None
    served.announce_version(open_run(out), version)
    assert len(told) == 1, "announced already"
    (out / ANNOUNCED).unlink()  # as if the run had been killed before it said so
    served.announce_version(open_run(out), version)
    assert len(told) == 2


class Killed(BaseException):
    """What no code of the house catches: the process is gone at this point."""


def test_what_a_killed_run_published_is_announced_by_the_next(
    tiny_copy: Tiny, under_prefect: str, monkeypatch: Any
) -> None:
    import flows.serve.flow_runs as served
    from flows.curate_math import curate_math

    def dies(**_: object) -> None:
        raise Killed

    told: list[dict[str, Any]] = []
    out = tiny_copy.folder.parent / "fresh"
    monkeypatch.setattr(served, "emit_event", dies)
    with pytest.raises(Killed):
        curate_math(tiny_copy.recipe, out)
    assert latest(out) is not None, "published, and not announced"
    monkeypatch.setattr(served, "emit_event", lambda payload, **_: told.append(payload))
    curate_math(tiny_copy.recipe, out)
    assert [one["version"] for one in told] == [1]


def test_what_was_there_before_the_first_scheduled_run_is_not_announced(
    tiny_copy: Tiny, under_prefect: str, monkeypatch: Any
) -> None:
    import flows.serve.flow_runs as served
    from flows.curate_math import curate_math

    told: list[dict[str, Any]] = []
    monkeypatch.setattr(served, "emit_event", lambda payload, **_: told.append(payload))
    assert latest(tiny_copy.folder) is not None
    curate_math(tiny_copy.recipe, tiny_copy.folder)
    assert told == []


def test_a_set_that_a_refresh_exhausts_is_announced(tiny_copy: Tiny, under_prefect: str, monkeypatch: Any) -> None:
    import flows.serve.flow_runs as served
    from flows.refresh import refresh

    events: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(served, "emit_event", lambda event, payload, **_: events.append((event, payload)))
    tiny_copy.run("refresh.change_probability=0.01")
    home = tiny_copy.recipe.parent
    policy = home / "newer.toml"
    columns = '{ problem = "question", attempts = "tries", text = "text" }'
    for name, solved in (("strong@2", {"half", "markup"}), ("strong@3", {"half", "markup", "strong only"})):
        answers = {one: " ".join([str(TINY[one][1])] * 4) if one in solved else TINY[one][3] for one in TINY}
        write_jsonl(home / "newer.jsonl", [tries(*TINY[one][:2], finals) for one, finals in answers.items()])
        policy.write_text(
            f'[models.newer]\nkind = "recorded"\nname = "{name}"\npath = "newer.jsonl"\ncolumns = {columns}\n'
        )
        if name == "strong@3":
            with pytest.raises(EmptySetError):
                refresh.with_options(retries=0)(tiny_copy.folder, policy)
        else:
            refresh.with_options(retries=0)(tiny_copy.folder, policy)
    folder = str(tiny_copy.folder)
    assert [payload for event, payload in events if event == "goldilocks.exhausted"] == [
        {"folder": folder, "version": 2, "rows": rows, "first_rows": 3} for rows in (1, 0)
    ]


def test_a_cron_run_fires_by_itself_and_its_set_is_announced(cron_chain: Future[list[str]]) -> None:
    """After a kill of the whole service the next cron run completes; then a checkpoint's event refreshes the set."""
    assert cron_chain.result(timeout=3 * PATIENCE_S) == ["run", "refresh"]
