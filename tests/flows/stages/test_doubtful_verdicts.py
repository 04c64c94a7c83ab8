"""A model's votes on doubtful verdicts, through the whole line, from recorded votes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from curation.questions.doubtful_verdicts import comparison_request
from curation.records import problem_id
from curation.storage.stages import read_table
from tests.flows.conftest import TINY_RECIPE, goldilocks, published, tries, write_jsonl
from tests.flows.stages.conftest import asks_judge, run

SAME = "What is 1 divided by 3?"
DIFFERENT = "What is the seventh part of a cake?"
OPEN = "How much is two thirds of a metre, in metres?"
CLEAR = "What is 17 + 25?"
MUTE = "What is 5 divided by 6?"
REFERENCES = {SAME: "1/3", DIFFERENT: "1/7", OPEN: "2/3", CLEAR: "42", MUTE: "5/6"}
FINALS = {SAME: "0.33 0.33 0.3333 9", DIFFERENT: "0.14 1/7 3 4", OPEN: "0.67 2/3 5 6", CLEAR: "42 42 1 2"}
FINALS[MUTE] = "0.83 5/6 1 2"
VOTES = {
    (SAME, "0.33"): ("SAME", "SAME", "SAME"),
    (DIFFERENT, "0.14"): ("DIFFERENT", "DIFFERENT", "DIFFERENT"),
    (OPEN, "0.67"): ("SAME", "DIFFERENT", "UNSURE"),
    (MUTE, "0.83"): ("PERHAPS", "WHO KNOWS", "SAME"),
}

RECIPE = TINY_RECIPE.partition("[stage2]")[0] + asks_judge("doubtful_verdicts")


def vote(question: str, answer: str, word: str) -> dict[str, str]:
    text = comparison_request(question, "en", REFERENCES[question], answer).statement
    return {"question": text, "text": f"They are.\nVERDICT: {word}"}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    write_jsonl(folder / "problems.jsonl", [{"question": one, "final": two} for one, two in REFERENCES.items()])
    write_jsonl(folder / "weak.jsonl", [tries(one, REFERENCES[one], finals) for one, finals in FINALS.items()])
    write_jsonl(folder / "votes.jsonl", [vote(*pair, word) for pair, words in VOTES.items() for word in words])
    (folder / "recipe.toml").write_text(RECIPE)
    return folder / "recipe.toml"


def stage_folder(run_folder: Path) -> Path:
    (folder,) = (run_folder / "doubtful_verdicts" / "stage1").iterdir()
    return folder


def counts(run_folder: Path) -> dict[str, int]:
    told = json.loads((stage_folder(run_folder) / "DONE.json").read_text())["notes"]
    return {name.removeprefix("decided "): count for name, count in told.items() if count and name != "asked"}


def outcomes(run_folder: Path, question: str, table: Path | None = None) -> list[tuple[str, str]]:
    verdicts = read_table(table or stage_folder(run_folder), "verdicts").filter(problem=problem_id(question))
    return verdicts.sort("index").select("outcome", "method").rows()


def test_votes_decide_what_was_doubtful_and_nothing_else(recipe: Path, tmp_path: Path) -> None:
    out = run(recipe, tmp_path / "run").out
    assert counts(tmp_path / "run") == {"same": 1, "different": 1, "uncertain": 2, "votes": 12}
    assert "4 questions, 12 answers, 0 tokens: 1 different, 1 same, 2 undecided" in " ".join(out.split())
    same = outcomes(tmp_path / "run", SAME)
    assert same[0] == same[1] == ("correct", "number (by 3 of 3 votes: same)")
    assert [outcome for outcome, _ in same] == ["correct"] * 3 + ["wrong"]
    assert outcomes(tmp_path / "run", DIFFERENT)[0] == ("wrong", "number (by 3 of 3 votes: different)")
    assert outcomes(tmp_path / "run", OPEN)[0] == outcomes(tmp_path / "run", MUTE)[0] == ("wrong", "number (doubtful)")
    (before,) = (tmp_path / "run" / "verdicts" / "stage1").iterdir()
    changed = read_table(before, "verdicts").join(
        read_table(stage_folder(tmp_path / "run"), "verdicts"),
        on=["problem", "index", "outcome", "method", "answer_class"],
        how="anti",
        nulls_equal=True,
    )
    assert set(changed["answer"]) == {"0.33", "0.14"}
    assert changed["method"].str.ends_with("(doubtful)").all()
    data = published(tmp_path / "run", "data")
    assert data.filter(pl.col("id") == problem_id(SAME))["correct"].to_list() == [3]
    waiting = pl.read_ndjson(tmp_path / "run" / "curated" / "disputed" / "disputed.jsonl")
    doubted = waiting.filter(kind="doubtful_verdict")
    assert set(doubted["statement"]) == {OPEN, MUTE}, "what the votes decided needs no look of a person"
    told = goldilocks("explain", tmp_path / "run", problem_id(SAME)).out
    assert "votes      '0.33' for '1/3': 3 same (same)" in told


def test_another_threshold_asks_nothing(recipe: Path, tmp_path: Path, judged: list[str]) -> None:
    run(recipe, tmp_path / "run")
    judged.clear()
    write_jsonl(recipe.parent / "weak.jsonl", [tries(one, REFERENCES[one], finals) for one, finals in FINALS.items()])
    run(recipe, tmp_path / "run", "questions.doubtful_verdicts.threshold=0.9")
    assert judged == []


def test_what_was_voted_before_a_kill_is_not_asked_again(
    recipe: Path, tmp_path: Path, made_over_a_kill: Callable[[Path, Path, int], list[tuple[str, int]]]
) -> None:
    run(recipe, tmp_path / "whole")
    made = made_over_a_kill(recipe, tmp_path / "killed", 5)
    assert len(made) == len(set(made)) == 12
    for table in ("verdicts", "votes"):
        whole, killed = (read_table(stage_folder(tmp_path / name), table) for name in ("whole", "killed"))
        assert whole.equals(killed)


def test_the_budget_leaves_out_the_rest(recipe: Path, tmp_path: Path) -> None:
    out = run(recipe, tmp_path / "run", "questions.doubtful_verdicts.max_votes=7").out
    assert counts(tmp_path / "run") == {"same": 1, "different": 1, "not asked": 2, "votes": 6}
    assert "2 not asked as max_votes is spent" in " ".join(out.split())
    assert outcomes(tmp_path / "run", OPEN)[0] == ("wrong", "number (doubtful)")


def test_agreement_with_people_is_counted(recipe: Path, tmp_path: Path) -> None:
    """One keeps the reference of a problem, the other takes a doubtful answer for it."""
    folder = tmp_path / "run"
    run(recipe, folder)
    for question, answer in ((DIFFERENT, "1/7"), (SAME, "0.33")):
        said = goldilocks("review", folder, "--accept", problem_id(question), "--answer", answer)
        assert said.status == 0, said.err
    out = run(recipe, folder).out
    assert "of 2 that people decided too, 2 alike" in " ".join(out.split())
    said = goldilocks("review", folder, "--accept", problem_id(SAME), "--answer", "1/3")
    assert "of 2 that people decided too, 1 alike" in " ".join(run(recipe, folder).out.split())


def test_a_run_is_judged_again_with_a_model_and_without(recipe: Path, tmp_path: Path) -> None:
    text = recipe.read_text()
    recipe.write_text(text.partition("[questions.doubtful_verdicts]")[0])
    out = run(recipe, tmp_path / "run").out
    assert not (tmp_path / "run" / "doubtful_verdicts").exists()
    assert "Stage 1: 5 of 20 verdicts are doubtful" in " ".join(out.split())
    plain = published(tmp_path / "run", "data")
    recipe.write_text(text)
    run(recipe, tmp_path / "run")
    with_model = published(tmp_path / "run", "data")
    assert with_model.filter(pl.col("id") == problem_id(SAME))["correct"].to_list() == [3]
    said = goldilocks("run", recipe, "--out", tmp_path / "run", "--set", "questions.doubtful_verdicts.threshold=0.6")
    assert said.status == 0, said.err
    recipe.write_text(text.partition("[questions.doubtful_verdicts]")[0])
    run(recipe, tmp_path / "run")
    assert published(tmp_path / "run", "data").equals(plain)
