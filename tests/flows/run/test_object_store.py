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
from tests.object_store import BUCKET, ObjectStore, object_store

MIRROR = f"s3://{BUCKET}/runs/tiny"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with object_store() as made:
        yield made


def run(store: ObjectStore, recipe: Path, out: Path, kill_at: int | None = None) -> tuple[int, str]:
    """`goldilocks run` as a process of its own, killed when its write of that number begins; its status and words."""
    command = [sys.executable, "-m", "flows.cli", "run", str(recipe), "--out", str(out)]
    environment = {**os.environ, **store.environment(), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if kill_at is not None:
        store.at, store.victim = len(store.writes) + kill_at, lambda: process.pid
    said = process.communicate()[0].decode()
    store.victim = lambda: None
    return process.returncode, said


def far(folder: Path, store: ObjectStore) -> Path:
    """The tiny recipe with its problems in the store, and its mirror there."""
    recipe = write_tiny(folder)
    store.file_system().pipe_file(f"{BUCKET}/rows/problems.jsonl", (folder / "problems.jsonl").read_bytes())
    (folder / "problems.jsonl").unlink()
    text = recipe.read_text().replace('path = "problems.jsonl"', f'path = "s3://{BUCKET}/rows/*.jsonl"')
    recipe.write_text(f'{text}\n[storage]\nmirror = "{MIRROR}"\n')
    return recipe


def own(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
    status, said = run(store, recipe, out)
    assert status == 0, said
    whole = own(out / "curated")
    assert mirrored(store) == whole
    problems = [path for path in whole if path.endswith(".parquet")]
    assert problems
    assert {path: whole[path] for path in problems} == {
        path: (tiny_run.folder / "curated" / path).read_bytes() for path in problems
    }
    first_file = next(n for n, path in enumerate(store.writes) if "/curated/" in path and not path.endswith(".json"))
    mark = next(n for n, path in enumerate(store.writes) if path.count("/curated/") and path.endswith(".json"))
    for number, moment in enumerate((first_file + 1, mark, mark + 1)):
        store.file_system().rm(f"{BUCKET}/runs", recursive=True)
        again = tmp_path / f"killed-{number}"
        written = len(store.writes)
        status, said = run(store, recipe, again, kill_at=moment)
        assert status == -9, said
        assert len(store.writes) == written + moment
        assert mirrored(store) is None
        status, said = run(store, recipe, again)
        assert status == 0, said
        assert mirrored(store) == own(again / "curated")
        assert {path: own(again / "curated")[path] for path in problems} == {path: whole[path] for path in problems}


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
    folder, url = tmp_path / "step-1", f"s3://{BUCKET}/big"
    folder.mkdir()
    content = os.urandom(1 << 20) * 110
    (folder / "weights").write_bytes(content)
    environment = {**os.environ, **store.environment(), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", COPY, url, str(folder)]
    process = subprocess.Popen(command, env=environment)
    store.at, store.victim = 2, lambda: process.pid
    assert process.wait() == -9
    store.victim = lambda: None
    assert [path.rpartition("/")[2] for path in store.writes] == ["weights", "weights"]
    assert store.texts("big") == {}
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    there = store.texts("big")
    assert set(there) == {"checkpoints/step-1/weights", "checkpoints/step-1.json", "checkpoints.json"}
    assert there["checkpoints/step-1/weights"] == content


def test_what_cannot_be_had_of_an_object_store_is_a_sentence(store: ObjectStore, tmp_path: Path) -> None:
    recipe = far(tmp_path / "inputs", store)
    text = recipe.read_text()
    recipe.write_text(text.replace("/rows/*.jsonl", "/rows/none.jsonl"))
    status, said = run(store, recipe, tmp_path / "a")
    assert status == 1
    assert "rows/none.jsonl is missing" in said
    recipe.write_text(text.replace(MIRROR, "s3://no-such-bucket/runs"))
    status, said = run(store, recipe, tmp_path / "b")
    assert status == 1
    assert "storage.mirror = 's3://no-such-bucket/runs' is missing" in said
    assert "Traceback" not in said
