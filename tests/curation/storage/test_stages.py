"""Stage folders: whole or not there, known by what made them, every row accounted for, one run at a time."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from curation.records import StoreError
from curation.storage import sorted_parts
from curation.storage.locks import lock_folder
from curation.storage.stages import (
    Shard,
    StageFolder,
    compact,
    file_digest,
    finished_shards,
    read_shard,
    read_table,
    write_parquet,
)

INPUTS = {"sources": "aa", "references": "bb"}


def frame(*ids: str) -> pl.DataFrame:
    return pl.DataFrame({"id": ids, "reason": ["proof" if name < "m" else "debris" for name in ids]})


def stage(folder: Path, *, version: str = "v1", settings: str = "s", inputs: Mapping[str, str] = INPUTS) -> StageFolder:
    return StageFolder(folder, "statements", version, settings, inputs)


def shard(kept: str, dropped: str = "") -> Shard:
    return Shard(len(kept + dropped), {"kept": frame(*kept), "dropped": frame(*dropped)}, notes={"seen": 2})


def made(folder: Path, **identity: str) -> StageFolder:
    """A finished stage of two shards: five rows in, three kept, two dropped."""
    one = stage(folder, **identity)
    one.prepare()
    one.write(0, shard("ab", "z"))
    one.write(1, shard("c", "d"))
    one.close(2, rows_in=5)
    return one


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_finished_stage_in_numbers(tmp_path: Path) -> None:
    manifest = made(tmp_path / "s").manifest()
    assert manifest is not None
    assert (manifest.stage, manifest.shards) == ("statements", 2)
    assert (manifest.rows_in, manifest.kept, manifest.dropped) == (5, 3, 2)
    assert manifest.reasons == {"debris": 1, "proof": 1}
    assert manifest.notes == {"seen": 4}
    assert read_table(tmp_path / "s", "kept")["id"].to_list() == ["a", "b", "c"]
    assert read_table(tmp_path / "s", "kept", where=pl.col("id") > "a")["id"].to_list() == ["b", "c"]
    assert read_table(tmp_path / "s", "dropped", ["id"]).to_dicts() == [{"id": "z"}, {"id": "d"}]
    assert read_shard(tmp_path / "s", "kept", 1)["id"].to_list() == ["c"]
    assert [mark["in"] for mark in finished_shards(tmp_path / "s")] == [3, 2]
    assert read_table(tmp_path / "s", "verdicts").shape == (0, 0)


def test_leftovers_of_a_kill_go(tmp_path: Path) -> None:
    one = made(tmp_path)
    for leftover in ("kept/.aside-00002.parquet", ".aside-DONE.json", "shards/.aside-00002.json"):
        (tmp_path / leftover).write_bytes(b"half")
    assert read_table(tmp_path, "kept").height == 3
    assert len(list(finished_shards(tmp_path))) == 2
    one.prepare()
    assert not [name for name in files(tmp_path) if ".aside" in name]
    assert one.manifest() is not None


@pytest.mark.parametrize("name", ["kept/00001.parquet", "dropped/00000.parquet", "shards/00000.json"])
def test_a_missing_file_means_not_finished(tmp_path: Path, name: str) -> None:
    one = made(tmp_path)
    (tmp_path / name).unlink()
    assert not one.is_finished(int(Path(name).stem))
    assert one.is_finished(1 - int(Path(name).stem))
    assert one.manifest() is None


@pytest.mark.parametrize(
    "other", [{"version": "v2"}, {"settings": "t"}, {"inputs": {**INPUTS, "sources": "ab"}}, {"inputs": {}}]
)
def test_another_fingerprint_discards_what_is_there(tmp_path: Path, other: dict[str, str]) -> None:
    made(tmp_path)
    another = stage(tmp_path, **other)
    assert another.manifest() is None
    assert not another.is_finished(0)
    another.prepare()
    assert files(tmp_path) == ["stage.json"]


def test_a_shorter_stage_shows_no_shards_of_the_longer_one_before_it(tmp_path: Path) -> None:
    made(tmp_path)  # a kill while the old content is being removed can leave shards without stage.json
    (tmp_path / "stage.json").unlink()
    shorter = stage(tmp_path, version="v2")
    shorter.prepare()
    shorter.write(0, shard("q"))
    shorter.close(1)
    assert read_table(tmp_path, "kept")["id"].to_list() == ["q"]
    assert len(list(finished_shards(tmp_path))) == 1


def test_a_lost_row_is_refused(tmp_path: Path) -> None:
    one = stage(tmp_path)
    one.prepare()
    with pytest.raises(StoreError, match=r"statements, shard 0: 4 rows went in, 2 were kept and 1 dropped"):
        one.write(0, Shard(4, {"kept": frame("a", "b"), "dropped": frame("c")}))
    assert not one.is_finished(0)
    assert files(tmp_path) == ["stage.json"]


def test_the_digest_is_the_content_and_nothing_else(tmp_path: Path) -> None:
    first, later = made(tmp_path / "a"), made(tmp_path / "b", version="v2", settings="t")
    for path in (tmp_path / "b").rglob("*"):
        os.utime(path, (1, 1))
    ones, others = first.manifest(), later.manifest()
    assert ones is not None
    assert others is not None
    assert ones.fingerprint != others.fingerprint
    assert ones.digest == others.digest
    first.write(1, shard("x", "d"))
    changed = first.close(2)
    assert changed.digest != ones.digest


WRITER = """
import sys
from pathlib import Path
import polars as pl
from curation.storage.stages import write_parquet
rows = 20_000
frame = pl.DataFrame({
    "id": [f"{i * 7919 % rows:020x}" for i in range(rows)],
    "choices": [[str(i)] * (i % 3) or None for i in range(rows)],
    "weight": [i / 7 for i in range(rows)],
})
print(write_parquet(Path(sys.argv[1]), frame)["hash"])
"""


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    hashes = []
    for threads in ("1", "2"):
        path = tmp_path / threads / "frame.parquet"
        environment = {**os.environ, "POLARS_MAX_THREADS": threads, "PYTHONHASHSEED": threads}
        command = [sys.executable, "-c", WRITER, str(path)]
        hashes.append(subprocess.check_output(command, env=environment, text=True).strip())
        assert file_digest(path) == hashes[-1]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("name", ["DONE.json", "stage.json", "shards/00000.json", "kept/00001.parquet"])
def test_a_changed_byte_is_named(tmp_path: Path, name: str) -> None:
    one = made(tmp_path)
    file = tmp_path / name
    content = file.read_bytes()

    def read() -> None:
        one.prepare() if name == "stage.json" else read_table(tmp_path, "kept", ["id"])
        one.manifest()

    seal = content.find(b'"hash of this file"')  # without it a file is read as one of a version that had none
    for at in (at for at in range(0, len(content), 1 + len(content) // 40) if not 0 <= at - seal < 19 or seal < 0):
        changed = bytearray(content)
        changed[at] ^= 1
        file.write_bytes(changed)
        with pytest.raises(StoreError, match=rf"{re.escape(str(file))} is damaged"):
            read()
    file.write_bytes(content)
    assert one.manifest() is not None


HOLDER = """
import sys, time
from pathlib import Path
from curation.storage.locks import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(3600)
"""


def test_a_second_run_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StoreError, match="is in use by another run"), lock_folder(folder):
                raise AssertionError("two runs hold one folder")
        finally:
            holder.kill()
    assert holder.returncode == -signal.SIGKILL
    with lock_folder(folder):
        pass


def rows(count: int) -> pl.DataFrame:
    made = [(f"{7 * at % count:05x}", None if at % 3 else f"why {at}", at / count) for at in range(count)]
    return pl.DataFrame(made, ("problem", "reason", "rate"), orient="row")


def in_files(table: pl.DataFrame, folder: Path, size: int) -> pl.LazyFrame:
    folder.mkdir()
    for number, part in enumerate(table.iter_slices(size)):
        part.write_parquet(folder / f"{number:05}.parquet")
    return sorted_parts.scan_table(folder.parent, folder.name)


def test_a_table_is_written_as_the_same_bytes_however_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(100)
    write_parquet(tmp_path / "whole.parquet", table)
    sorted_parts.write_scanned(tmp_path / "few.parquet", in_files(table, tmp_path / "few", 13))
    assert (tmp_path / "few.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    monkeypatch.setattr(sorted_parts, "ROWS_AT_ONCE", 30)
    written = []
    for number, lies in enumerate((in_files(table, tmp_path / "many", 7), table.lazy())):
        path = tmp_path / f"{number}.parquet"
        sorted_parts.write_scanned(path, lies)
        assert pl.read_parquet(path).equals(table)
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_what_cannot_be_written_leaves_the_file_before(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    sorted_parts.write_scanned(path, rows(5).lazy())
    before = path.read_bytes()
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        sorted_parts.write_scanned(path, rows(5).lazy().select("absent"))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["kept.parquet"]


def test_a_compact_frame_has_the_chosen_rows_and_only_their_texts() -> None:
    def held(frame: pl.DataFrame) -> int:
        return sum(
            buffer.size for buffer in frame["text"].to_arrow(compat_level=pl.CompatLevel.newest()).buffers() if buffer
        )

    frame = pl.DataFrame({"text": [f"{number} {'x' * 100}" for number in range(1_000)], "at": range(1_000)})
    chosen = frame.filter(at=7)
    assert held(chosen) > 100_000
    assert held(compact(chosen)) < 1_000
    assert compact(chosen).equals(chosen)
    assert compact(frame.clear()).schema == frame.schema
