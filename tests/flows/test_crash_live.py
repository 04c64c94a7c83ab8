"""kill -9 while a live policy is sampled: the same command again ends in the same bytes.

`tests.benchmarks.bench_crash` does the same in every phase of a run with a grader and of a refresh; it takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli.commands import run_recipe
from tests.benchmarks.bench_crash import RUN, commands, finished_files, kill_at, result, write_recipe


@pytest.mark.slow
def test_a_run_killed_while_it_samples_ends_in_the_same_bytes(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "inputs", problems=16, grader=False)
    quiet, killed = tmp_path / "quiet" / "run", tmp_path / "killed" / "run"
    killed.mkdir(parents=True)
    run_recipe(recipe, [], quiet)
    assert kill_at(commands(recipe, killed)[0], killed, RUN["stage 1: sampling"])
    finished = finished_files(killed)
    run_recipe(recipe, [], killed)
    assert result(killed) == result(quiet)
    assert finished_files(killed).items() >= finished.items()
