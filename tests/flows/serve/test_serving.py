"""A service that is killed: whole or one of its processes; and a second one on the same set."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from curation.records import StoreError
from flows.serve.serving import SERVICE, _served_once, serve_recipes
from tests.benchmarks.bench_service_kills import KINDS, bench
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Prefect's server", "the whole tree"])
def test_after_a_kill_the_next_run_completes(kind: str) -> None:
    """The benchmark tries all kinds, and holds a clock to what must be gone."""
    seen = bench(1, 0, [kind])
    assert kind in KINDS
    assert seen.made[kind] == 1
    assert (seen.other_bytes[kind], seen.other_versions[kind]) == (0, 0)
