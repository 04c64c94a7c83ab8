"""A model asked about problems near a benchmark's row: what it calls the same leaves, and nobody is asked twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.filters.decontamination import overlap
from curation.filters.decontamination.opinions import doubtful_pairs
from curation.prompts.overlaps import overlap_request
from curation.storage.stages import read_table
from flows.pipelines.curate_code import CURATE_CODE
from flows.run.pipeline import run_stage
from flows.run.run_folder import new_run
from flows.run.stage import Results
from flows.stages.overlap_votes import OVERLAP_VOTES
from tests.flows.conftest import stamps, write_jsonl
from tests.flows.stages import test_overlap_programs as programs

VOTERS = """
[overlap_votes]
model = "overlapper"
ask_from = 0.35
[models.overlapper]
kind = "recorded"
name = "comparer@1"
path = "votes.jsonl"
columns = { problem = "pair", text = "text" }
"""
NEARER = "Several crates stand on a barge. You read all of their masses. Print the heaviest one."
OPEN = ("decontamination.words=0.95", "decontamination.behaviour=false")
"""With these no score suffices."""


def votes(text: str, *said: str) -> list[dict[str, str]]:
    request = overlap_request(text, programs.EXAM, "en")
    return [{"pair": request.statement, "text": f"I compared them.\nVERDICT: {word}"} for word in said]


def filtered(folder: Path, *settings: str) -> Results:
    """Run the code pipeline up to the votes on overlaps."""
    run, results = new_run(folder / "recipe.toml", (*OPEN, *settings), folder / "run"), Results()
    for stage in CURATE_CODE.stages_of(run):
        results = results.plus(run_stage(stage, run, results))
        if stage is OVERLAP_VOTES:
            break
    return results


def dropped(results: Results) -> dict[int, str]:
    table = read_table(results[OVERLAP_VOTES].folder, "dropped")
    return dict(table.select("row", "evidence").iter_rows()) if table.width else {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    programs.write(tmp_path, {"program": programs.SPREAD})
    (tmp_path / "recipe.toml").write_text(programs.RECIPE + VOTERS)
    said = [
        *votes(programs.SAME, "SAME", "DIFFERENT", "SAME"),
        *votes(programs.ALIKE, "DIFFERENT", "DIFFERENT", "SAME"),
    ]
    write_jsonl(tmp_path / "votes.jsonl", said)
    return tmp_path


def test_what_enough_votes_call_the_same_leaves_and_a_threshold_asks_nobody(folder: Path) -> None:
    results = filtered(folder)
    found = dropped(results)
    assert list(found) == [0]
    assert found[0].startswith("2 of 3 votes say the same as row 0 of exam, score 0.")
    asked = read_table(results[OVERLAP_VOTES].folder, "votes")
    assert asked.select("row", "same", "different").rows() == [(0, 2, 1), (1, 1, 2)]
    assert results[OVERLAP_VOTES].manifest.kept + len(found) == 2 + len(programs.OTHERS)
    before = stamps(folder / "run" / "attempts")
    assert dropped(filtered(folder, "overlap_votes.threshold=0.7")) == {}
    assert list(dropped(filtered(folder, "overlap_votes.threshold=0.3"))) == [0, 1]
    assert dropped(filtered(folder, "overlap_votes.min_votes=3", "overlap_votes.ask_from=0.99")) == {}
    assert stamps(folder / "run" / "attempts") == before


def test_what_scores_drop_is_asked_about_by_nobody(folder: Path) -> None:
    results = filtered(folder, "decontamination.behaviour=true", "decontamination.words=0.6")
    table = read_table(results[OVERLAP_VOTES].folder, "votes")
    kept = read_table(results[OVERLAP_VOTES].folder, "kept")
    assert 0 not in kept["row"]  # by its scores
    assert 1 in kept["row"]  # running both spoke against it, so that it is not near enough to be asked about
    assert table.is_empty()
    assert dropped(results) == {}


def test_votes_that_nobody_can_read_drop_nothing(folder: Path) -> None:
    write_jsonl(folder / "votes.jsonl", votes(programs.SAME, "SAME", "PERHAPS", "WHO KNOWS"))
    assert dropped(filtered(folder)) == {}


def test_a_problem_is_asked_about_with_its_nearest_rows_and_leaves_by_any_of_them(folder: Path) -> None:
    exam = [{"task": programs.EXAM, "program": None, "cases": None}, {"task": NEARER, "program": None, "cases": None}]
    write_jsonl(folder / "exam.jsonl", exam)
    request = overlap_request(programs.SAME, NEARER, "en")
    said = [{"pair": request.statement, "text": f"VERDICT: {word}"} for word in ("DIFFERENT", "DIFFERENT", "SAME")]
    write_jsonl(folder / "votes.jsonl", [*votes(programs.SAME, "SAME", "SAME", "DIFFERENT"), *said])
    results = filtered(folder, "overlap_votes.nearest=1")
    asked = read_table(results[OVERLAP_VOTES].folder, "votes").filter(pl.col("row") == 0)
    assert asked.select("benchmark_row", "same").rows() == [(1, 1)]
    assert dropped(results) == {}
    results = filtered(folder)
    asked = read_table(results[OVERLAP_VOTES].folder, "votes").filter(pl.col("row") == 0)
    assert asked.select("benchmark_row", "same").rows() == [(1, 1), (0, 2)]  # the nearest first
    assert dropped(results)[0].startswith("2 of 3 votes say the same as row 0 of exam")


def test_a_template_is_another_problem_and_is_asked_about_by_nobody() -> None:
    line = {"method": "words", "benchmark": "b", "trial": None, "agreed": None, "calls": None}
    rows = [
        {**line, "row": 0, "benchmark_row": 9, "score": 0.58, "agreement": 0.3, "formal": False, "wording": 0.5},
        {**line, "row": 0, "benchmark_row": 8, "score": 0.58, "agreement": 0.7, "formal": True, "wording": 0.5},
        {**line, "row": 0, "benchmark_row": 4, "score": 0.59, "agreement": 0.9, "formal": False, "wording": 0.7},
        {**line, "row": 0, "benchmark_row": 5, "score": 0.55, "agreement": 0.9, "formal": False, "wording": 0.7},
        {**line, "row": 1, "benchmark_row": 6, "score": 0.58, "agreement": 0.1, "formal": False, "wording": 0.95},
        {**line, "row": 2, "benchmark_row": 7, "score": 0.45, "agreement": 0.9, "formal": False, "wording": 0.7},
        {**line, "row": 3, "benchmark_row": 8, "score": 0.9, "agreement": 0.9, "formal": False, "wording": 0.7},
    ]
    scores = pl.DataFrame(rows, schema_overrides=overlap.SCORE).match_to_schema(overlap.SCORE)
    pairs = doubtful_pairs(scores, overlap.OverlapSettings(), 0.5, 5)
    assert pairs.rows() == [(0, "b", 4, 0.59), (0, "b", 5, 0.55)]  # nor one with clearly other figures or formulas
    assert doubtful_pairs(scores, overlap.OverlapSettings(), 0.5, 1).rows() == [(0, "b", 4, 0.59)]
