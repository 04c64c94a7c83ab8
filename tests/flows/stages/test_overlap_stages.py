"""Near duplicates and overlap with benchmarks in a run: measured once, decided by thresholds, templates counted."""

from __future__ import annotations

import polars as pl
import pytest

from tests.flows.conftest import Tiny, goldilocks, recipe_with, stamps, tries, write_jsonl

STORY = (
    "Maria walks {} minutes to the market, buys {} apples for {} dollars each and {} pears, and walks home again. "
    "How many minutes does she walk in all?"
)
FENCE = "A farmer puts a fence of {} metres around a square field. How long is one side of the field in metres?"
EXAMS = '{ name = "exam", kind = "jsonl", path = "exam.jsonl", columns = { statement = "task" } }'
BENCHMARKED = recipe_with(f"decontamination.against=[{EXAMS}]")


def prepare(tiny: Tiny) -> None:
    """Three problems: one is near another, one has the benchmark's template; the benchmark's own is among them."""
    problems = [
        (STORY.format(20, 5, 2, 3), "40"),
        (STORY.format(20, 5, 2, 3).replace("in all", "altogether"), "40"),
        (FENCE.format(48), "12"),
    ]
    folder = tiny.recipe.parent
    write_jsonl(folder / "problems.jsonl", [{"question": text, "final": answer} for text, answer in problems])
    rows = [tries(text, answer, f"{answer} {answer} 1 2") for text, answer in problems]
    write_jsonl(folder / "weak.jsonl", rows)
    exam = (FENCE.format(96), "How tall is the tallest tree of the wood?")
    write_jsonl(folder / "exam.jsonl", [{"task": text} for text in exam])
    tiny.recipe.write_text(BENCHMARKED)


def dropped(tiny: Tiny) -> list[tuple[str, int]]:
    overlaps = pl.col("stage").is_in(["near_dedup", "decontamination"])
    return tiny.table("dropped").filter(overlaps).select("stage", "row").rows()


@pytest.mark.slow
def test_a_template_stays_and_thresholds_are_changed_without_measuring_again(tiny_copy: Tiny) -> None:
    prepare(tiny_copy)
    said = tiny_copy.run()
    assert dropped(tiny_copy) == [("near_dedup", 1)]
    assert "Decontamination: 1 problem has a benchmark's wording with other numbers" in said.out
    assert "Decontamination: 1 problem has" in goldilocks("status", tiny_copy.folder).out
    assert "| exam | unknown | 0 | 0 | 0 | 1 |" in (tiny_copy.folder / "curated" / "README.md").read_text()
    stages = tiny_copy.folder / "stages"
    measured = [stages / "06-near-dedup-pairs", stages / "07-decontamination-scores"]
    before = [stamps(folder) for folder in measured]
    assert tiny_copy.run("decontamination.templates=drop").status == 0
    assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]
    assert [stamps(folder) for folder in measured] == before
    assert tiny_copy.run("near_dedup.threshold=0.99").status == 0
    assert dropped(tiny_copy) == []
    assert stamps(measured[0]) == before[0]
    assert tiny_copy.run("near_dedup.threshold=0.5").status == 0
    assert stamps(measured[0]) != before[0]  # below what was measured
