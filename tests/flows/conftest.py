"""One temporary Prefect server for all tests of the flows: its start takes seconds, a run on it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.server import prefect_api

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "flows" / "recipes" / "demo_math.toml"


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prefect API with an empty database; set in the environment for child processes too."""
    before = os.environ.get("PREFECT_HOME")
    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))
    with prefect_api() as address:
        yield address
    if before is None:
        del os.environ["PREFECT_HOME"]
    else:
        os.environ["PREFECT_HOME"] = before


@pytest.fixture(scope="session")
def demo_run(prefect_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo recipe, run once and undisturbed, in small shards; do not write into it."""
    from flows.commands import run_recipe

    folder = tmp_path_factory.mktemp("demo") / "run"
    run_recipe(DEMO, ["shard_rows=40"], folder)
    return folder
