"""A second service on the same set, and when the processes of a service are started again; `cron_chain` kills one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from curation.records import StoreError
from flows.serve import serving
from flows.serve.access import new_keys
from flows.serve.serving import SERVICE, _served_once, serve_recipes
from tests.flows.serve.cron_chain import scheduled


def test_a_set_is_served_once_at_a_time(tmp_path: Path) -> None:
    recipe, run = scheduled(tmp_path / "in"), tmp_path / "run"
    with (
        _served_once(run / SERVICE, "one", "key"),
        pytest.raises(StoreError, match=f"{run} is served already, by process {os.getpid()}"),
    ):
        serve_recipes([recipe], run)
    with _served_once(run / SERVICE, "two", "key"):
        assert json.loads((run / SERVICE / "service.json").read_text())["token"] == "two"


@pytest.mark.parametrize(
    ("serves", "waits"), [((True, True, True), [0, 0, 0]), ((True, False, False, True), [0, 2.0, 4.0, 0])]
)
def test_children_that_served_are_started_again_at_once(
    serves: tuple[bool, ...], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were killed; waiting longer each time kept their runs pending for a minute and more."""
    rounds, slept = iter(serves), list[float]()

    def serve(_service: object, _has_served: bool) -> tuple[bool, str]:
        return next(rounds, None) is True, "killed"

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(serves):
            raise KeyboardInterrupt

    monkeypatch.setattr(serving, "_serve_once", serve)
    monkeypatch.setattr(serving.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        serving._keep_serving(serving.Service((), None, 0, "no such token", (), new_keys()))
    assert slept == waits
