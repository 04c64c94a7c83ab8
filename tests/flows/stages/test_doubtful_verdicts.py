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
from tests.flows.conftest import TINY_RECIPE, Tiny, goldilocks, published, tries, write_jsonl
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


def write_recipe(home: Path) -> Path:
    folder = home / "inputs"
    folder.mkdir()
    write_jsonl(folder / "problems.jsonl", [{"question": one, "final": two} for one, two in REFERENCES.items()])
    write_jsonl(folder / "weak.jsonl", [tries(one, REFERENCES[one], finals) for one, finals in FINALS.items()])
    write_jsonl(folder / "votes.jsonl", [vote(*pair, word) for pair, words in VOTES.items() for word in words])
    (folder / "recipe.toml").write_text(RECIPE)
    return folder / "recipe.toml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The recipe, run once; do not write into its folder."""
    home = tmp_path_factory.mktemp("doubtful")
    recipe = write_recipe(home)
    return Tiny(recipe, home / "run", run(recipe, home / "run").out)


@pytest.fixture
def copied(finished: Tiny, tmp_path: Path) -> Tiny:
    return finished.copy(tmp_path)


def stage_folder(run_folder: Path) -> Path:
    (folder,) = (run_folder / "doubtful_verdicts" / "stage1").iterdir()
    return folder


def counts(run_folder: Path) -> dict[str, int]:
    told = json.loads((stage_folder(run_folder) / "DONE.json").read_text())["notes"]
    return {name.removeprefix("decided "): count for name, count in told.items() if count and name != "asked"}


def outcomes(run_folder: Path, question: str, table: Path | None = None) -> list[tuple[str, str]]:
    verdicts = read_table(table or stage_folder(run_folder), "verdicts").filter(problem=problem_id(question))
    return verdicts.sort("index").select("outcome", "method").rows()


def test_votes_decide_what_was_doubtful_and_nothing_else(finished: Tiny) -> None:
    folder, out = finished.folder, finished.out
    assert counts(folder) == {"same": 1, "different": 1, "uncertain": 2, "votes": 12}
    assert "4 questions, 12 answers, 0 tokens: 1 different, 1 same, 2 undecided" in " ".join(out.split())
    same = outcomes(folder, SAME)
    assert same[0] == same[1] == ("correct", "number (by 3 of 3 votes: same)")
    assert [outcome for outcome, _ in same] == ["correct"] * 3 + ["wrong"]
    assert outcomes(folder, DIFFERENT)[0] == ("wrong", "number (by 3 of 3 votes: different)")
    assert outcomes(folder, OPEN)[0] == outcomes(folder, MUTE)[0] == ("wrong", "number (doubtful)")
    (before,) = (folder / "verdicts" / "stage1").iterdir()
    changed = read_table(before, "verdicts").join(
        read_table(stage_folder(folder), "verdicts"),
        on=["problem", "index", "outcome", "method", "answer_class"],
        how="anti",
        nulls_equal=True,
    )
    assert set(changed["answer"]) == {"0.33", "0.14"}
    assert changed["method"].str.ends_with("(doubtful)").all()
    data = published(folder, "data")
    assert data.filter(pl.col("id") == problem_id(SAME))["correct"].to_list() == [3]
    waiting = pl.read_ndjson(folder / "curated" / "disputed" / "disputed.jsonl")
    doubted = waiting.filter(kind="doubtful_verdict")
    assert set(doubted["statement"]) == {OPEN, MUTE}, "what the votes decided needs no look of a person"
    told = goldilocks("explain", folder, problem_id(SAME)).out
    assert "votes      '0.33' for '1/3': 3 same (same)" in told


def test_another_threshold_asks_nothing(copied: Tiny, judged: list[str]) -> None:
    run(copied.recipe, copied.folder, "questions.doubtful_verdicts.threshold=0.9")
    assert judged == []


def test_what_was_voted_before_a_kill_is_not_asked_again(
    finished: Tiny, tmp_path: Path, made_over_a_kill: Callable[[Path, Path, int], list[tuple[str, int]]]
) -> None:
    made = made_over_a_kill(finished.recipe, tmp_path / "killed", 5)
    assert len(made) == len(set(made)) == 12
    for table in ("verdicts", "votes"):
        whole, killed = (read_table(stage_folder(folder), table) for folder in (finished.folder, tmp_path / "killed"))
        assert whole.equals(killed)


def test_the_budget_leaves_out_the_rest(finished: Tiny, tmp_path: Path) -> None:
    out = run(finished.recipe, tmp_path / "run", "questions.doubtful_verdicts.max_votes=7").out
    assert counts(tmp_path / "run") == {"same": 1, "different": 1, "not asked": 2, "votes": 6}
    assert "2 not asked as max_votes is spent" in " ".join(out.split())
    assert outcomes(tmp_path / "run", OPEN)[0] == ("wrong", "number (doubtful)")


def test_agreement_with_people_is_counted(copied: Tiny) -> None:
    """One keeps the reference of a problem, the other takes a doubtful answer for it."""
    for question, answer in ((DIFFERENT, "1/7"), (SAME, "1/3")):
        said = goldilocks("review", copied.folder, "--accept", problem_id(question), "--answer", answer)
        assert said.status == 0, said.err
    assert "of 2 that people decided too, 1 alike" in " ".join(run(copied.recipe, copied.folder).out.split())


def test_a_run_is_judged_again_without_a_model_and_with(copied: Tiny) -> None:
    with_model = published(copied.folder, "data")
    text = copied.recipe.read_text()
    copied.recipe.write_text(text.partition("[questions.doubtful_verdicts]")[0])
    out = run(copied.recipe, copied.folder).out
    assert "Stage 1: 5 of 20 verdicts are doubtful" in " ".join(out.split())
    assert published(copied.folder, "data").filter(pl.col("id") == problem_id(SAME))["correct"].to_list() != [3]
    copied.recipe.write_text(text)
    run(copied.recipe, copied.folder)
    assert published(copied.folder, "data").equals(with_model)
