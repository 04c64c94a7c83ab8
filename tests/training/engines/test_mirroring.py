"""A training run's mirror: its kept checkpoints, its model and its logs, completed where a kill left it incomplete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import StoreError
from tests.curation.storage.test_mirror import newest
from tests.training.engines.embedded.test_run import small
from training.engines.embedded.run import train
from training.engines.mirroring import RunMirror, claim_folder


def marked(there: Path, kind: str) -> dict[str, dict[str, bytes]]:
    found = {}
    for mark in (there / kind).glob("*.json"):
        names = json.loads(mark.read_text())["files"]
        found[mark.stem] = {name: (there / kind / mark.stem / name).read_bytes() for name in names}
    return found


def own(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_checkpoints_model_and_logs_are_copied_and_completed(tmp_path: Path) -> None:
    out, there = tmp_path / "run", tmp_path / "there"
    changes = {"evaluation": {"data": None}, "checkpoints": {"every": 1, "keep": 1}, "storage": {"mirror": str(there)}}
    table = small(steps=2, checks=False, **changes)
    train(table, Path(), out)
    kept = {folder.name: own(folder) for folder in (out / "checkpoints").glob("step-*")}
    assert marked(there, "checkpoints") == kept
    assert len(kept) == 1
    assert newest(str(there), "checkpoints") == "step-00000002"
    assert marked(there, "model") == {"last": own(out / "model")}
    assert (there / "metrics.jsonl").read_bytes() == (out / "metrics.jsonl").read_bytes()
    (there / "checkpoints" / "step-00000002.json").unlink()
    (there / "checkpoints" / "step-00000002" / "state.json").write_text("half")
    said: list[str] = []
    with RunMirror(str(there), table.name, out, said.append):
        pass
    assert marked(there, "checkpoints") == kept
    assert said == []


def test_a_mirror_that_fails_is_a_line_while_training_and_an_error_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curation.storage.mirror import Mirror

    def fails(*_: object) -> None:
        raise StoreError("the place is full")

    monkeypatch.setattr(Mirror, "copy_logs", fails)
    said: list[str] = []
    mirror = (str(tmp_path / "there"), "r", tmp_path, said.append)
    with pytest.raises(StoreError, match="the place is full"), RunMirror(*mirror):
        pass
    assert set(said) == {"not copied: the place is full"}
    with pytest.raises(KeyError), RunMirror(*mirror):
        raise KeyError  # the run's own error is the one that is raised


def test_a_folder_with_a_damaged_run_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"recipe": ')
    with pytest.raises(StoreError, match=r"run\.json is damaged .*; start the run in another folder"):
        claim_folder(small(), tmp_path, tmp_path, resume=False)
