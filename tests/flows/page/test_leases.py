"""Two people do not get the same item; what is held is let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.page import open_runs
from flows.page.open_runs import OpenRuns
from flows.publish.versions import newest_run
from tests.flows.conftest import Tiny

WAITING = ["a", "b", "c"]


def test_a_lease_ends(tiny_run: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run = OpenRuns(Path()), newest_run(tiny_run.folder)
    assert runs.lease(run, WAITING, "Ada") == "a"
    assert runs.lease(run, WAITING, "Ada") == "a"
    assert runs.lease(run, WAITING, "Bob") == "b"
    monkeypatch.setattr(open_runs, "LEASE_S", 0.0)
    assert runs.lease(run, WAITING, "Ada") == "a"
    assert runs.lease(run, WAITING, "Eve") == "a"


def test_a_wanted_item_is_given_where_it_is_free_and_a_skipped_one_at_the_end(tiny_run: Tiny) -> None:
    runs, run = OpenRuns(Path()), newest_run(tiny_run.folder)
    assert runs.lease(run, WAITING, "Ada", "c") == "c"
    assert runs.lease(run, WAITING, "Bob", "c") == "a"
    assert runs.lease(run, WAITING, "Bob", skipped=["a"]) == "b"
    assert runs.lease(run, WAITING, "Bob", skipped=["a", "b"]) == "a", "nothing else waits"
    assert runs.lease(run, WAITING, "Bob", skipped=["b", "a"]) == "b"
