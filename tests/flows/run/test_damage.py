"""One changed byte in a finished run: the command that reads the file names it, and what is deleted is made again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.flows.conftest import Tiny, goldilocks, refusal, stamps

SET = "curated/data/train-00000-of-00001.parquet"


def flip(file: Path) -> Path:
    """Change one bit in the middle of a file; its size stays."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return file


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
    run = tiny_copy.folder
    whole = contents(run / "curated")
    file = flip(max(run.glob(damaged), key=lambda path: path.stat().st_size))  # one with rows
    if removed:
        shutil.rmtree(run / removed)
    ended = goldilocks("run", tiny_copy.recipe, "--out", run)
    said = ended.err.splitlines()[-1]
    assert (ended.status, said.startswith(f"goldilocks: {file} is damaged")) == (1, True)
    assert "delete it and run" in said or f"delete {file} and run" in said
    file.unlink()
    assert tiny_copy.run().status == 0
    assert contents(run / "curated") == whole


@pytest.mark.slow
def test_a_damaged_set_is_not_sent_and_is_written_again(tiny_copy: Tiny) -> None:
    run = tiny_copy.folder
    whole = contents(run / "curated")
    for name in (SET, "curated/receipt.json"):
        file = flip(run / name)
        assert f"{file} is not what was published" in refusal("publish", run, "--to", "me/tiny")
        said = tiny_copy.run()
        assert (said.status, f"{file} is not what was published; the set is written again" in said.err) == (0, True)
        assert contents(run / "curated") == whole
    mark = flip(run / "curated" / ".published.json")
    assert f"{mark} is damaged" in refusal("publish", run, "--to", "me/tiny")
    assert tiny_copy.run().status == 0
    assert contents(run / "curated") == whole


def test_what_is_not_read_does_not_stop_a_run(tiny_copy: Tiny) -> None:
    flip(tiny_copy.folder / "stages" / "01-sources" / "kept" / "00000.parquet")
    before = stamps(tiny_copy.folder / "stages")
    assert tiny_copy.run().status == 0
    assert stamps(tiny_copy.folder / "stages") == before


def test_a_column_name_that_changed_is_named_where_rows_are_looked_up(tiny_copy: Tiny) -> None:
    file = tiny_copy.folder / "stages" / "06-near-dedup" / "dropped" / "00002.parquet"
    file.write_bytes(file.read_bytes().replace(b"domain", b"d\x7fmain"))
    problem = tiny_copy.table("data")["id"][0]
    said = goldilocks("explain", tiny_copy.folder, problem)
    assert (said.status, said.err.startswith(f"goldilocks: {file} is damaged")) == (1, True)
