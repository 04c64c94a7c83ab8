"""Sources and a mirror in an object store, for real but on this machine: read, killed amid an upload, completed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT, Tiny, write_tiny
from tests.flows.run.folders import contents
from tests.object_store import BUCKET, ObjectStore, object_store

MIRROR = f"s3://{BUCKET}/runs/tiny"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with object_store() as made:
        yield made


def killed_at(store: ObjectStore, number: int | None, command: list[str]) -> tuple[int | None, str]:
    """A process's status and output; it is killed when its write of that number begins."""
    environment = {**os.environ, **store.environment(), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if number is not None:
        store.at, store.victim = len(store.writes) + number, lambda: process.pid
    printed = process.communicate()[0].decode()
    store.victim = lambda: None
    return process.returncode, printed


def run(store: ObjectStore, recipe: Path, out: Path, kill_at: int | None = None) -> tuple[int | None, str]:
    return killed_at(store, kill_at, ["-m", "flows.cli", "run", str(recipe), "--out", str(out)])


def far(folder: Path, store: ObjectStore) -> Path:
    """The tiny recipe with its problems in the store, and its mirror there."""
    recipe = write_tiny(folder)
    store.file_system().pipe_file(f"{BUCKET}/rows/problems.jsonl", (folder / "problems.jsonl").read_bytes())
    (folder / "problems.jsonl").unlink()
    text = recipe.read_text().replace('path = "problems.jsonl"', f'path = "s3://{BUCKET}/rows/*.jsonl"')
    recipe.write_text(f'{text}\n[storage]\nmirror = "{MIRROR}"\n')
    return recipe


def mirrored(store: ObjectStore) -> dict[str, bytes] | None:
    """The set that the pointer names, as its mark says it; None where there is none."""
    there = store.texts("runs/tiny")
    if "curated.json" not in there:
        return None
    name = json.loads(there["curated.json"])["newest"]
    mark = json.loads(there[f"curated/{name}.json"])
    found = {file: there[f"curated/{name}/{file}"] for file in mark["files"]}
    assert {file: len(content) for file, content in found.items()} == {f: s for f, (s, _) in mark["files"].items()}
    return found


def test_a_run_reads_from_and_copies_to_an_object_store_wherever_it_is_killed(
    store: ObjectStore, tiny_run: Tiny, tmp_path: Path
) -> None:
    recipe, out = far(tmp_path / "inputs", store), tmp_path / "run"
    status, printed = run(store, recipe, out)
    assert status == 0, printed
    whole, rows = contents(out / "curated"), contents(out / "curated", "*.parquet")
    assert mirrored(store) == whole
    assert rows
    assert contents(tiny_run.folder / "curated", "*.parquet") == rows
    first_file = next(n for n, path in enumerate(store.writes) if "/curated/" in path and not path.endswith(".json"))
    mark = next(n for n, path in enumerate(store.writes) if "/curated/" in path and path.endswith(".json"))
    for moment in (first_file + 1, mark, mark + 1):
        store.file_system().rm(f"{BUCKET}/runs", recursive=True)
        again, written = tmp_path / f"killed-{moment}", len(store.writes)
        status, printed = run(store, recipe, again, kill_at=moment)
        assert (status, len(store.writes)) == (-9, written + moment), printed
        assert mirrored(store) is None
        status, printed = run(store, recipe, again)
        assert status == 0, printed
        assert mirrored(store) == contents(again / "curated")
        assert contents(again / "curated", "*.parquet") == rows


COPY = """
import sys
from pathlib import Path
from curation.storage.mirror import Mirror
Mirror(sys.argv[1], "big").copy_folders("checkpoints", {"step-1": Path(sys.argv[2])})
"""


def test_a_large_file_that_is_killed_between_its_parts_is_not_there_and_is_copied_anew(
    store: ObjectStore, tmp_path: Path
) -> None:
    """110 MB go in three parts."""
    folder, content = tmp_path / "step-1", os.urandom(1 << 20) * 110
    folder.mkdir()
    (folder / "weights").write_bytes(content)
    command = ["-c", COPY, f"s3://{BUCKET}/big", str(folder)]
    assert killed_at(store, 2, command)[0] == -9
    assert [path.rpartition("/")[2] for path in store.writes] == ["weights", "weights"]
    assert store.texts("big") == {}
    assert killed_at(store, None, command)[0] == 0
    there = store.texts("big")
    assert set(there) == {"checkpoints/step-1/weights", "checkpoints/step-1.json", "checkpoints.json"}
    assert there["checkpoints/step-1/weights"] == content


def test_what_an_object_store_lacks_is_a_sentence(store: ObjectStore, tmp_path: Path) -> None:
    recipe = far(tmp_path / "inputs", store)
    text = recipe.read_text()
    for old, new, message in (
        ("/rows/*.jsonl", "/rows/none.jsonl", "rows/none.jsonl is missing"),
        (MIRROR, "s3://no-such-bucket/runs", "storage.mirror = 's3://no-such-bucket/runs' is missing"),
    ):
        recipe.write_text(text.replace(old, new))
        status, printed = run(store, recipe, tmp_path / "run")
        assert status == 1
        assert message in printed
        assert "Traceback" not in printed
