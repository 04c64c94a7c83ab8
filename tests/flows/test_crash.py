"""kill -9 at up to three moments of one run, the same command after each: the same bytes, and nothing done twice.

The gates `flows/crash-*` kill in each of 17 + 6 phases.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flows.cli.commands import run_recipe
from tests.benchmarks.bench_crash import finished_files, kill_at, there
from tests.flows.conftest import DEMO, stamps

MOMENTS = (
    "stages/02-statements/shards/00002.json",
    "attempts/*/part-*.parquet",
    "decisions/stage2/*/shards/00003.json",
)


def contents(folder: Path) -> dict[str, bytes]:
    files = [*folder.rglob("*.parquet"), folder / "curated" / "README.md"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if ".aside-" not in str(file)}


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_in_the_same_bytes(
    demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")  # an order that depends on threads shows
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "flows.cli", "run", str(DEMO), "--out", str(folder)]
    finished: dict[Path, tuple[int, int]] = {}
    kills = 0
    for pattern in MOMENTS:
        kills += kill_at(command, folder, there(pattern))
        assert not (folder / "curated").exists()
        assert finished_files(folder).items() >= finished.items()
        finished = finished_files(folder)
    assert kills > 1
    assert finished

    run_recipe(DEMO, [], folder)

    assert contents(folder) == contents(demo_run)
    assert finished_files(folder).items() >= finished.items()


def test_a_finished_run_is_not_run_again(demo_run: Path) -> None:
    before = finished_files(demo_run), stamps(demo_run / "curated")
    run_recipe(DEMO, [], demo_run)
    assert (finished_files(demo_run), stamps(demo_run / "curated")) == before
