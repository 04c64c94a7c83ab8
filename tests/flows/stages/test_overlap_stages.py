"""Near duplicates and overlap with benchmarks in a run: measured once, decided by thresholds, templates counted."""

from __future__ import annotations

import polars as pl
import pytest

from tests.flows.conftest import Tiny, goldilocks, recipe_with, stamps, tries, write_jsonl
from tests.flows.run.folders import card, run

STORY = (
    "Maria walks {} minutes to the market, buys {} apples for {} dollars each and {} pears, and walks home again. "
    "How many minutes does she walk in all?"
)
FENCE = "A farmer puts a fence of {} metres around a square field. How long is one side of the field in metres?"
EXAMS = '{ name = "exam", kind = "jsonl", path = "exam.jsonl", columns = { statement = "task" } }'


def dropped(tiny: Tiny) -> list[tuple[str, int]]:
    overlaps = pl.col("stage").is_in(["near_dedup", "decontamination"])
    return tiny.table("dropped").filter(overlaps).select("stage", "row").rows()


@pytest.mark.slow
def test_a_template_stays_and_thresholds_are_changed_without_measuring_again(tiny_copy: Tiny) -> None:
    inputs, walk = tiny_copy.recipe.parent, STORY.format(20, 5, 2, 3)
    problems = {walk: "40", walk.replace("in all", "altogether"): "40", FENCE.format(48): "12"}
    write_jsonl(inputs / "problems.jsonl", [{"question": text, "final": answer} for text, answer in problems.items()])
    attempts = [tries(text, answer, f"{answer} {answer} 1 2") for text, answer in problems.items()]
    write_jsonl(inputs / "weak.jsonl", attempts)
    exam = (FENCE.format(96), "How tall is the tallest tree of the wood?")
    write_jsonl(inputs / "exam.jsonl", [{"task": text} for text in exam])
    tiny_copy.recipe.write_text(recipe_with(f"decontamination.against=[{EXAMS}]"))

    out = run(tiny_copy.recipe, tiny_copy.folder).out
    assert dropped(tiny_copy) == [("near_dedup", 1)]
    assert "Decontamination: 1 problem has the wording of a benchmark's with other figures" in out
    assert "Decontamination: 1 problem has" in goldilocks("status", tiny_copy.folder).out
    assert "| exam | unknown | 0 | 0 | 0 | 1 |" in card(tiny_copy.folder)
    pairs, scores = (
        tiny_copy.folder / "stages" / name for name in ("06-near-dedup-pairs", "07-decontamination-scores")
    )
    before = stamps(pairs), stamps(scores)
    run(tiny_copy.recipe, tiny_copy.folder, "decontamination.templates=drop")
    assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]
    assert (stamps(pairs), stamps(scores)) == before
    run(tiny_copy.recipe, tiny_copy.folder, "near_dedup.threshold=0.99")
    assert dropped(tiny_copy) == []
    assert stamps(pairs) == before[0]
    run(tiny_copy.recipe, tiny_copy.folder, "near_dedup.threshold=0.5")
    assert stamps(pairs) != before[0], "below what was measured"
