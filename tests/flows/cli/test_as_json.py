"""What commands tell programs: the same as they tell people."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from curation.records import problem_id
from flows.run import progress
from tests.flows.conftest import TINY, Tiny, goldilocks


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    yield
    progress.set_verbosity(progress.Verbosity.NORMAL)


def test_the_status_is_the_funnel(tiny_run: Tiny) -> None:
    told = json.loads(goldilocks("status", tiny_run.folder, "--json").out)
    assert (told["recipe"], told["kind"], told["version"]["number"]) == ("tiny", "curation", 1)
    by_name = {stage["name"]: stage for stage in told["stages"]}
    assert by_name["sources"]["in"] == 11
    assert all(stage["finished"] and stage["in"] == stage["kept"] + stage["dropped"] for stage in told["stages"])
    assert by_name["stage2.decisions"]["reasons"]["suspected_wrong_label"] == 1
    assert [line["state"] for line in told["last_command"]][-1] == "finished"


def test_a_run_ends_with_its_status(tiny_copy: Tiny) -> None:
    said = goldilocks("--verbose", "run", tiny_copy.recipe, "--out", tiny_copy.folder, "--json")
    assert json.loads(said.out)["curated"] == str(tiny_copy.folder / "curated")
    assert "Sources                  was finished before: 11 rows in " in said.err
    assert goldilocks("--quiet", "run", tiny_copy.recipe, "--out", tiny_copy.folder).err == ""


def test_a_problem_is_its_rows(tiny_run: Tiny) -> None:
    name = problem_id(TINY["wrong label"][0])
    told = json.loads(goldilocks("explain", tiny_run.folder, name[:8], "--json").out)
    assert told["problem"] == name
    by_name = {stage["name"]: stage for stage in told["stages"]}
    assert by_name["sources"]["kept"][0]["statement"] == TINY["wrong label"][0]
    assert by_name["stage2.decisions"]["decisions"][0]["reason"] == "suspected_wrong_label"
    assert len(by_name["stage2.attempts"]["verdicts"]) == 4
    assert by_name["export"] == {"name": "export"}


def test_a_plan_is_its_stages(tiny_copy: Tiny) -> None:
    told = json.loads(goldilocks("plan", tiny_copy.recipe, "--out", tiny_copy.folder, "--json").out)
    assert [stage["stage"] for stage in told["stages"]] == ["stage1", "stage2"]
    assert told["stages"][0]["attempts"]["mean"] > 0
