"""`goldilocks run --only STAGE`: one stage is computed, and others are used as they are or refused."""

from __future__ import annotations

from tests.flows.conftest import Tiny, goldilocks, refusal, stamps


def test_one_stage_is_computed_and_nothing_after_it(tiny_copy: Tiny) -> None:
    run = ("run", tiny_copy.recipe, "--out", tiny_copy.folder)
    before = stamps(tiny_copy.folder / "decisions")
    changed = goldilocks(*run, "--only", "near_dedup", "--set", "near_dedup.threshold=0.9")
    assert changed.status == 0, changed.err
    assert "curated set and card" not in changed.out
    assert stamps(tiny_copy.folder / "decisions") == before
    recipe = (tiny_copy.folder / "run.json").read_text()
    sentence = refusal(*run, "--only", "stage1.decisions", "--set", "near_dedup.threshold=0.7")
    assert "stage near_dedup is not finished" in sentence
    assert (tiny_copy.folder / "run.json").read_text() == recipe
    assert "does not go with --dry" in refusal(*run, "--only", "export", "--dry")


def test_the_set_is_published_again_and_an_unknown_stage_is_refused(tiny_copy: Tiny) -> None:
    run = ("run", tiny_copy.recipe, "--out", tiny_copy.folder)
    smaller = goldilocks(*run, "--only", "export", "--set", "export.size=1")
    assert smaller.status == 0, smaller.err
    assert tiny_copy.table("data").height == 1
    assert "it has sources, statements" in refusal(*run, "--only", "translations")
