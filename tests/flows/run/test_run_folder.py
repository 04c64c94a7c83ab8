"""A run's folder: whose it is, its history, what happens if a byte of it changes, and its mirror."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.mirror import Mirror
from flows.run.history import FILE, last_command, recorded
from flows.run.run_folder import new_run, open_run
from tests.flows.conftest import ROOT, Tiny, goldilocks, refusal, stamps, write_tiny
from tests.flows.run.folders import contents, run
from tests.object_store import BUCKET, ObjectStore, object_store


def test_a_folder_of_before_a_renaming_is_still_that_of_its_recipe(tiny_recipe: Path, tmp_path: Path) -> None:
    run = new_run(tiny_recipe, [], tmp_path / "run")
    run.folder.mkdir()
    run.save()
    file = run.folder / "run.json"
    stored = json.loads(file.read_text())
    del stored["recipe_hash"]  # as a run of before it was noted
    stored["recipe"]["near_duplicates"] = stored["recipe"].pop("near_dedup")
    file.write_text(json.dumps(stored))
    with pytest.raises(ConfigError, match="unknown key `near_duplicates`; did you mean `near_dedup`"):
        open_run(run.folder)
    run.check_owner()  # so the recipe can be run there again, and keeps its attempts
    stored["recipe"]["name"] = "another"
    file.write_text(json.dumps(stored))
    with pytest.raises(StoreError, match="holds a run of recipe `another`, not `tiny`"):
        run.check_owner()
    run.save()
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1', 1))
    with pytest.raises(StoreError, match=r"run\.json is damaged \(its recipe is not what was written"):
        open_run(run.folder)
    file.write_text("{}")
    with pytest.raises(StoreError, match="is damaged"):
        run.check_owner()


# --- history ---------------------------------------------------------------------------------------------------------


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(text) for text in (folder / FILE).read_text().splitlines()]


def test_every_stage_that_worked_has_a_line(tiny_run: Tiny) -> None:
    first, *stages, last = lines(tiny_run.folder)
    assert (first["command"], first["state"]) == ("run", "begun")
    assert [line["stage"] for line in stages][:3] == ["sources", "statements", "references"]
    assert stages[0]["in"] == stages[0]["kept"] == 11
    assert (last["command"], last["state"], last["reused"]) == ("run", "finished", 0)


def test_a_failure_is_written_with_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError), recorded(tmp_path, "refresh"):
        raise StoreError("the disk is full")
    assert lines(tmp_path)[-1]["error"] == "the disk is full"
    last = str(last_command(tmp_path))
    assert last.startswith("last `refresh`: begun ")
    assert last.endswith("; the disk is full")


def test_a_command_without_an_end_is_named_and_a_cut_line_is_no_obstacle(tmp_path: Path) -> None:
    assert last_command(tmp_path) is None
    (tmp_path / FILE).write_text('{"at": 0, "command": "run", "state": "begun"}\n{"at": 1, "sta')
    assert str(last_command(tmp_path)).endswith(", killed before it ended")
    with lock_folder(tmp_path):
        assert str(last_command(tmp_path)).endswith(", still running")


# --- damage ----------------------------------------------------------------------------------------------------------


def flip(file: Path) -> Path:
    """Change one bit in the middle of a file; its size stays."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damaged", "removed"),
    [
        ("stages/01-sources/kept/00001.parquet", "stages/02-statements"),
        ("stages/01-sources/DONE.json", ""),
        ("attempts/*/part-*.parquet", "verdicts"),
        ("decisions/stage2/*/decisions/00000.parquet", "curated"),
        ("run.json", ""),
    ],
)
def test_what_a_run_builds_on_is_named_and_made_again(tiny_copy: Tiny, damaged: str, removed: str) -> None:
    folder = tiny_copy.folder
    whole = contents(folder / "curated")
    file = flip(max(folder.glob(damaged), key=lambda path: path.stat().st_size))  # one with rows
    if removed:
        shutil.rmtree(folder / removed)
    ended = tiny_copy.run()
    sentence = ended.err.splitlines()[-1]
    assert (ended.status, sentence.startswith(f"goldilocks: {file} is damaged")) == (1, True)
    assert "delete it and run" in sentence or f"delete {file} and run" in sentence
    file.unlink()
    run(tiny_copy.recipe, folder)
    assert contents(folder / "curated") == whole


@pytest.mark.slow
def test_a_damaged_set_is_not_sent_and_is_written_again(tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    whole = contents(curated)
    for name in ("data/train-00000-of-00001.parquet", "receipt.json", ".published.json"):
        file = flip(curated / name)
        is_mark = name == ".published.json"
        why = f"{file} is damaged" if is_mark else f"{file} is not what was published"
        assert why in refusal("publish", tiny_copy.folder, "--to", "me/tiny")
        assert goldilocks("status", tiny_copy.folder).status == 0
        again = run(tiny_copy.recipe, tiny_copy.folder)
        assert is_mark or f"{why}; the set is written again" in again.err
        assert contents(curated) == whole


def test_what_is_not_read_does_not_stop_a_run_and_a_changed_column_name_is_named_where_rows_are_looked_up(
    tiny_copy: Tiny,
) -> None:
    stages = tiny_copy.folder / "stages"
    unread = flip(stages / "01-sources" / "kept" / "00000.parquet")
    before = stamps(stages)
    run(tiny_copy.recipe, tiny_copy.folder)
    assert stamps(stages) == before
    flip(unread)
    file = stages / "06-near-dedup" / "dropped" / "00002.parquet"
    file.write_bytes(file.read_bytes().replace(b"domain", b"d\x7fmain"))
    ended = goldilocks("explain", tiny_copy.folder, tiny_copy.table("data")["id"][0])
    assert (ended.status, ended.err.startswith(f"goldilocks: {file} is damaged")) == (1, True)


# --- mirror ----------------------------------------------------------------------------------------------------------


def mirrored_set(there: Path) -> dict[str, bytes]:
    """The set that the mirror's pointer names, whose mark must be there."""
    name = json.loads((there / "curated.json").read_text())["newest"]
    mark = json.loads((there / "curated" / f"{name}.json").read_text())
    return {file: (there / "curated" / name / file).read_bytes() for file in mark["files"]}


def test_a_mirror_that_cannot_be_written_is_refused_before_anything_runs(tiny_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "under"
    why = refusal("run", tiny_recipe, "--out", tmp_path / "out", "--set", f"storage.mirror={place}")
    assert f"storage.mirror = '{place}'" in why
    assert not (tmp_path / "out" / "stages").exists()


def test_a_mirror_that_goes_away_ends_the_run_at_its_end_only_and_the_next_run_completes_it(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(mirror: Mirror, *_: object) -> None:
        with mirror._errors():
            raise PermissionError("denied")

    folder, there, mirror = tiny_copy.folder, tmp_path / "there", f"storage.mirror={tmp_path / 'there'}"
    whole = contents(folder / "curated")
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "copy_folders", fails)
        ended = tiny_copy.run(mirror)
    assert ended.status == 1
    assert "may not be used with this machine's credentials (denied)" in ended.err
    assert contents(folder / "curated") == whole
    run(tiny_copy.recipe, folder, mirror)
    assert contents(folder / "curated") == mirrored_set(there) == whole
    assert (there / "history.jsonl").read_bytes() == (folder / "history.jsonl").read_bytes()
    (name,) = (path.stem for path in (there / "curated").glob("*.json"))
    (there / "curated" / f"{name}.json").unlink()  # killed before the mark
    (there / "curated" / name / "README.md").write_text("half")
    run(tiny_copy.recipe, folder, mirror)
    assert mirrored_set(there) == whole


# --- an object store, for real but on this machine: read, killed amid an upload, completed ---------------------------

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


def ran(store: ObjectStore, recipe: Path, out: Path, kill_at: int | None = None) -> tuple[int | None, str]:
    return killed_at(store, kill_at, ["-m", "flows.cli", "run", str(recipe), "--out", str(out)])


def far(folder: Path, store: ObjectStore) -> Path:
    """The tiny recipe with its problems in the store, and its mirror there."""
    recipe = write_tiny(folder)
    store.file_system().pipe_file(f"{BUCKET}/rows/problems.jsonl", (folder / "problems.jsonl").read_bytes())
    (folder / "problems.jsonl").unlink()
    text = recipe.read_text().replace('path = "problems.jsonl"', f'path = "s3://{BUCKET}/rows/*.jsonl"')
    recipe.write_text(f'{text}\n[storage]\nmirror = "{MIRROR}"\n')
    return recipe


def stored_set(store: ObjectStore) -> dict[str, bytes] | None:
    """The set that the pointer names, None if it names none."""
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
    status, printed = ran(store, recipe, out)
    assert status == 0, printed
    whole, rows = contents(out / "curated"), contents(out / "curated", "*.parquet")
    assert stored_set(store) == whole
    assert rows
    assert contents(tiny_run.folder / "curated", "*.parquet") == rows
    first_file = next(n for n, path in enumerate(store.writes) if "/curated/" in path and not path.endswith(".json"))
    mark = next(n for n, path in enumerate(store.writes) if "/curated/" in path and path.endswith(".json"))
    for moment in (first_file + 1, mark, mark + 1):
        store.file_system().rm(f"{BUCKET}/runs", recursive=True)
        again, written = tmp_path / f"killed-{moment}", len(store.writes)
        status, printed = ran(store, recipe, again, kill_at=moment)
        assert (status, len(store.writes)) == (-9, written + moment), printed
        assert stored_set(store) is None
        status, printed = ran(store, recipe, again)
        assert status == 0, printed
        assert stored_set(store) == contents(again / "curated")
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
        status, printed = ran(store, recipe, tmp_path / "run")
        assert status == 1
        assert message in printed
        assert "Traceback" not in printed
