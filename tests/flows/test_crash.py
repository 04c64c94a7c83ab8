"""kill -9 at up to three moments of one run, the same command after each: the same bytes, and nothing done twice.

The gates `flows/crash-*` kill in each of 17 + 6 phases.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from flows.cli.commands import run_recipe
from tests.benchmarks.bench_crash import finished_files
from tests.flows.conftest import DEMO, ROOT
from tests.waiting import wait_gone, wait_until

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "flows.cli", "run", str(DEMO), "--out"]

MOMENTS = {
    "filtering": "stages/02-statements/shards/00002.json",
    "storing attempts": "attempts/*/part-*.parquet",
    "deciding": "decisions/stage2/*/shards/00003.json",
}


def parquet_bytes(folder: Path) -> dict[str, bytes]:
    files = sorted(folder.rglob("*.parquet"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if ".aside-" not in str(file)}


def kill_at(folder: Path, pattern: str, command: Sequence[str] = COMMAND) -> list[psutil.Process]:
    """Start a run, kill -9 it as soon as something matches the pattern; returns its children of that moment."""
    process = subprocess.Popen(
        [*command, str(folder)],
        cwd=ROOT,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},  # an order that depends on threads shows
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any(folder.glob(pattern)), process, tick_s=0.0005)
    children = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return children


def test_a_run_killed_again_and_again_ends_in_the_same_bytes(demo_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    finished: dict[Path, tuple[int, int]] = {}
    killed = []
    for moment, pattern in MOMENTS.items():
        if any(folder.glob(pattern)):
            continue  # the last kill came later than this moment
        killed.append(moment)
        children = kill_at(folder, pattern)
        assert not (folder / "curated").exists()
        wait_gone(children)
        assert finished_files(folder).items() >= finished.items()
        finished = finished_files(folder)
    assert len(killed) > 1, killed
    assert finished

    run_recipe(DEMO, [], folder)

    assert parquet_bytes(folder) == parquet_bytes(demo_run)
    assert (folder / "curated" / "README.md").read_bytes() == (demo_run / "curated" / "README.md").read_bytes()
    assert finished_files(folder).items() >= finished.items()
