"""A run's mirror: logs and the published set, completed by whoever goes on; the run folder stays where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Tiny, refusal

OVERRIDE = "storage.mirror={}"


def mirrored_set(there: Path) -> dict[str, bytes]:
    """The set that the mirror's pointer names, whose mark must be there."""
    name = json.loads((there / "curated.json").read_text())["newest"]
    mark = json.loads((there / "curated" / f"{name}.json").read_text())
    return {file: (there / "curated" / name / file).read_bytes() for file in mark["files"]}


def published_set(run: Tiny) -> dict[str, bytes]:
    place = run.folder / "curated"
    return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def test_a_run_is_copied_and_what_is_missing_there_is_completed(tiny_copy: Tiny, tmp_path: Path) -> None:
    run, there = tiny_copy, tmp_path / "there"
    before = published_set(run)
    assert run.run(OVERRIDE.format(there)).status == 0
    assert published_set(run) == before  # where copies go changes nothing of the set, nor stands on its card
    assert mirrored_set(there) == before
    assert (there / "history.jsonl").read_bytes() == (run.folder / "history.jsonl").read_bytes()
    assert str(there) not in (run.folder / "curated" / "README.md").read_text()
    (name,) = (path.stem for path in (there / "curated").glob("*.json"))
    (there / "curated" / f"{name}.json").unlink()  # killed before the mark
    (there / "curated" / name / "README.md").write_text("half")
    assert run.run(OVERRIDE.format(there)).status == 0
    assert mirrored_set(there) == before


def test_a_mirror_that_cannot_be_written_is_refused_before_anything_runs(tiny_copy: Tiny, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "out"
    place = tmp_path / "file" / "under"
    why = refusal("run", tiny_copy.recipe, "--out", out, "--set", OVERRIDE.format(place))
    assert f"storage.mirror = '{place}'" in why
    assert not (out / "stages").exists()


def test_a_mirror_that_goes_away_ends_the_run_at_its_end_only(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curation.storage.mirror import Mirror

    def fails(mirror: Mirror, *_: object) -> None:
        with mirror._errors():
            raise PermissionError("denied")

    run, there = tiny_copy, tmp_path / "there"
    monkeypatch.setattr(Mirror, "copy_folders", fails)
    said = run.run(OVERRIDE.format(there), "shard_rows=3")
    assert said.status == 1
    assert "may not be used with this machine's credentials (denied)" in said.err
    assert (run.folder / "curated" / "README.md").exists()
    monkeypatch.undo()
    assert run.run(OVERRIDE.format(there), "shard_rows=3").status == 0
    assert mirrored_set(there) == published_set(run)
