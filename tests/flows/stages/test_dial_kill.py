"""kill -9 while prefixes are sampled: nothing finished is asked again, and the same command ends in the same bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from curation.records import AttemptKey
from curation.storage.attempts import AttemptStore
from flows.cli.commands import run_recipe
from tests.benchmarks.bench_crash import finished_files, kill_at, result
from tests.flows.stages.test_dial import TURNED, recipe

__all__ = ["recipe"]

CHANGES = [TURNED[1]]


def dial_store(run: Path) -> Path | None:
    keys = [path for path in run.glob("attempts/*/key.json") if json.loads(path.read_text())["prompt"][:5] == "dial "]
    return keys[0].parent if keys else None


def attempts(run: Path) -> pl.DataFrame:
    folder = dial_store(run)
    assert folder is not None
    key = json.loads((folder / "key.json").read_text())
    store = AttemptStore(folder.parent, AttemptKey(key["policy"], key["prompt"], key["sampling"]), create=False)
    return pl.concat(store.tables(("problem", "index", "text"))).sort("problem", "index")


def has_sampled(run: Path) -> bool:
    """Return whether some prefixes of a shard were sampled, which is not finished."""
    folder = dial_store(run)
    journal = folder / "journal.jsonl" if folder is not None else None
    return journal is not None and journal.exists() and journal.read_bytes().count(b"\n") >= 5


@pytest.mark.slow
def test_a_run_killed_while_prefixes_are_sampled_ends_in_the_same_bytes(recipe: Path, tmp_path: Path) -> None:
    quiet, killed = tmp_path / "quiet" / "run", tmp_path / "killed" / "run"
    killed.mkdir(parents=True)
    run_recipe(recipe, CHANGES, quiet)
    command = [sys.executable, "-m", "flows.cli", "run", str(recipe), "--out", str(killed), *TURNED]
    assert kill_at(command, killed, has_sampled)
    assert not (killed / "curated").exists()
    held, finished = attempts(killed), finished_files(killed)
    assert held.height >= 5
    run_recipe(recipe, CHANGES, killed)
    assert result(killed) == result(quiet)
    assert finished_files(killed).items() >= finished.items()
    both = held.join(attempts(killed), on=["problem", "index"], how="left", suffix="_after")
    assert both["text"].eq_missing(both["text_after"]).all()
    assert attempts(killed).equals(attempts(quiet))
