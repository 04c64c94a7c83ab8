"""The history of a run folder: what a command did when, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import StoreError
from curation.storage.locks import lock_folder
from flows.run.history import FILE, last_command, recorded
from tests.flows.conftest import Tiny


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
    assert lines(tmp_path)[-1]["error"] == "StoreError: the disk is full"
    told = last_command(tmp_path)
    assert told is not None
    assert told.startswith("last `refresh`: begun ")
    assert told.endswith("; StoreError: the disk is full")


def test_a_command_without_an_end_says_so_and_a_cut_line_is_no_obstacle(tmp_path: Path) -> None:
    assert last_command(tmp_path) is None
    (tmp_path / FILE).write_text('{"at": 0, "command": "run", "state": "begun"}\n{"at": 1, "sta')
    told = last_command(tmp_path)
    assert told is not None
    assert told.endswith(", killed before it ended")
    with lock_folder(tmp_path):
        assert str(last_command(tmp_path)).endswith(", still running")
