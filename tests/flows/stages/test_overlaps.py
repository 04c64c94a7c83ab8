"""Problems near a benchmark's row or one another: measured once, decided by thresholds, and by a model's votes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.filters.decontamination import overlap
from curation.questions import overlaps
from curation.questions.overlaps import near_pairs, overlap_request
from curation.records import ConfigError
from curation.storage.stages import read_table
from flows.pipelines.by_recipe import CURATE_CODE, check_inputs
from flows.run.pipeline import run_stage
from flows.run.run_folder import Run, new_run
from flows.run.stage import Results, StageResult
from flows.stages.questions import OVERLAPS
from tests.flows.conftest import Tiny, goldilocks, recipe_with, stamps, tries, write_jsonl
from tests.flows.run.folders import card, run
from tests.flows.stages.conftest import asks_judge

RECIPE = Path(__file__).with_name("overlaps.toml").read_text(encoding="utf-8")
EXAM = "Read the masses of crates on a barge, and print by how much the heaviest exceeds the lightest."
SAME = "Several crates stand on a barge. You read all of their masses. Print heaviest minus lightest."
ALIKE = "Several crates stand on a barge. You read all of their masses. Print heaviest plus lightest."
OTHERS = Path(__file__).with_name("other_tasks.txt").read_text(encoding="utf-8").splitlines()


def row(text: str) -> dict[str, object]:
    tests = [{"input": f"{number} 9 4\n", "output": "1\n"} for number in range(6)]
    return {"text": text, "tests": tests, "solutions": ["print(1)"]}


def votes(text: str, *words: str) -> list[dict[str, str]]:
    asked = overlap_request(text, EXAM, "en", "code").statement
    return [{"question": asked, "text": f"I compared them.\nVERDICT: {word}"} for word in words]


@pytest.mark.slow
def test_what_enough_votes_call_the_same_leaves_and_a_threshold_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlaps, "ASK_FROM", 0.35)  # lower, so that these rows are asked about
    write_jsonl(tmp_path / "rows.jsonl", [row(text) for text in (SAME, ALIKE, *OTHERS)])
    write_jsonl(tmp_path / "exam.jsonl", [{"task": EXAM}])
    recorded = [*votes(SAME, "SAME", "DIFFERENT", "SAME"), *votes(ALIKE, "DIFFERENT", "DIFFERENT", "SAME")]
    write_jsonl(tmp_path / "votes.jsonl", recorded)
    (tmp_path / "recipe.toml").write_text(RECIPE + asks_judge("overlaps"))

    def run_of(*settings: str) -> Run:
        return new_run(tmp_path / "recipe.toml", settings, tmp_path / "run")

    def voted(*settings: str) -> StageResult:
        """Run the code pipeline up to the votes on overlaps."""
        run, results = run_of(*settings), Results()
        for stage in CURATE_CODE.stages_of(run):
            results = results.plus(run_stage(stage, run, results))
            if stage is OVERLAPS:
                break
        return results[OVERLAPS]

    def dropped(stage: StageResult) -> dict[int, str]:
        table = read_table(stage.folder, "dropped")
        return dict(table.select("row", "evidence").iter_rows()) if table.width else {}

    first = voted()
    found = dropped(first)
    assert list(found) == [0]
    assert found[0].startswith("2 of 3 votes: same, row 0 of exam, score 0.")
    assert read_table(first.folder, "votes").select("at", "same", "different").rows() == [(0, 2, 1), (1, 1, 2)]
    assert first.manifest.kept + len(found) == 2 + len(OTHERS)
    before = stamps(tmp_path / "run" / "attempts")
    assert dropped(voted("questions.overlaps.threshold=0.7")) == {}
    assert list(dropped(voted("questions.overlaps.threshold=0.3"))) == [0, 1]
    assert stamps(tmp_path / "run" / "attempts") == before
    write_jsonl(tmp_path / "rows.jsonl", [row(text) for text in (f"Task 3. {EXAM}", ALIKE, *OTHERS)])
    again = voted()
    assert 0 not in read_table(again.folder, "kept")["row"], "by its scores"
    assert read_table(again.folder, "votes")["at"].unique().to_list() == [0], "the other is asked about"
    with pytest.raises(ConfigError, match=r"questions.premises: no stage of `curate-code` asks it"):
        check_inputs(run_of('questions.premises.model="judge"'))


def test_a_template_is_another_problem_and_is_not_asked_about() -> None:
    line = {"method": "words", "benchmark": "b"}
    fields = ("row", "benchmark_row", "score", "agreement", "formal", "wording")
    cases = [
        (0, 9, 0.58, 0.3, False, 0.5),  # clearly other figures
        (0, 8, 0.58, 0.7, True, 0.5),  # other formulas
        (0, 4, 0.59, 0.9, False, 0.7),
        (0, 5, 0.55, 0.9, False, 0.7),
        (1, 6, 0.58, 0.1, False, 0.95),  # a template
        (2, 7, 0.45, 0.9, False, 0.7),  # too far
        (3, 8, 0.9, 0.9, False, 0.7),  # dropped by its score
    ]
    rows = [line | dict(zip(fields, case, strict=True)) for case in cases]
    scores = pl.DataFrame(rows, schema_overrides=overlap.SCORE).match_to_schema(overlap.SCORE)
    pairs = near_pairs(scores, overlap.OverlapSettings(), 0.5, 5)
    assert pairs.rows() == [(0, "b", 4, 0.59), (0, "b", 5, 0.55)]
    assert near_pairs(scores, overlap.OverlapSettings(), 0.5, 1).rows() == [(0, "b", 4, 0.59)]


# --- overlaps measured once, decided by thresholds -------------------------------------------------------------------

STORY = (
    "Maria walks {} minutes to the market, buys {} apples for {} dollars each and {} pears, and walks home again. "
    "How many minutes does she walk in all?"
)
FENCE = "A farmer puts a fence of {} metres around a square field. How long is one side of the field in metres?"
EXAMS = '{ name = "exam", kind = "jsonl", path = "exam.jsonl", columns = { statement = "task" } }'


def dropped_by(tiny: Tiny) -> list[tuple[str, int]]:
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
    assert dropped_by(tiny_copy) == [("near_dedup", 1)]
    assert "Decontamination: 1 problem has a benchmark's wording with other numbers" in out
    assert "Decontamination: 1 problem has" in goldilocks("status", tiny_copy.folder).out
    assert "| exam | unknown | 0 | 0 | 0 | 1 |" in card(tiny_copy.folder)
    pairs, scores = (
        tiny_copy.folder / "stages" / name for name in ("06-near-dedup-pairs", "07-decontamination-scores")
    )
    before = stamps(pairs), stamps(scores)
    run(tiny_copy.recipe, tiny_copy.folder, "decontamination.templates=drop")
    assert dropped_by(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]
    assert (stamps(pairs), stamps(scores)) == before
    run(tiny_copy.recipe, tiny_copy.folder, "near_dedup.threshold=0.99")
    assert dropped_by(tiny_copy) == []
    assert stamps(pairs) == before[0]
    run(tiny_copy.recipe, tiny_copy.folder, "near_dedup.threshold=0.5")
    assert stamps(pairs) != before[0], "below what was measured"
