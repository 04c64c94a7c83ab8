"""Versions of a set on disk: also those that were published before columns were renamed."""

from __future__ import annotations

from pathlib import Path

from curation.publish import versions as changes
from curation.records import OLD_COLUMNS
from flows.publish.versions import decisions_of, version_folder


def test_decisions_of_before_a_renaming_are_read_under_todays_names(tmp_path: Path) -> None:
    frame = changes.KEPT.to_frame()
    assert set(OLD_COLUMNS.values()) <= set(frame.columns)
    folder = version_folder(tmp_path, 1)
    folder.mkdir(parents=True)
    frame.rename({new: old for old, new in OLD_COLUMNS.items()}).write_parquet(folder / "decisions.parquet")
    assert decisions_of(tmp_path, 1).schema == frame.schema
