"""The tab of difficulty: a histogram for each stage and version, and what moved between versions."""

from __future__ import annotations

from flows.page.difficulty_tab import moves_of, pictures_of
from flows.publish.versions import newest_run
from tests.flows.conftest import Tiny


def test_every_stage_and_version_has_its_histogram_and_the_newest_its_band(tiny_copy: Tiny) -> None:
    before = list(pictures_of(newest_run(tiny_copy.folder)))
    assert [picture.title for picture in before] == ["Stage 1", "Stage 2"]
    tiny_copy.answer_all()
    assert tiny_copy.run("stage2.band.max_pass_rate=0.8").status == 0
    run = newest_run(tiny_copy.folder)
    pictures = {picture.title: picture for picture in pictures_of(run)}
    assert list(pictures) == ["Stage 1", "Stage 2", "Version 1", "Version 2"]
    assert pictures["Version 1"].band is None  # of an earlier recipe, which nobody kept
    assert pictures["Version 2"].band == pictures["Stage 2"].band
    assert pictures["Version 2"].band is not None
    assert pictures["Version 2"].band[1] == 0.8
    for name, kept in (("Version 1", sum(c.kept for c in before[1].columns)), ("Version 2", 2)):
        assert sum(column.kept for column in pictures[name].columns) == kept
    (moved,) = moves_of(run)
    assert moved.version.number == 2
    assert {(ribbon.before, ribbon.after) for ribbon in moved.picture.ribbons} >= {("in the set", "too easy")}
