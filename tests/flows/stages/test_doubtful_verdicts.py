"""A model's votes on doubtful verdicts, through the whole line, from recorded votes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from curation.questions.doubtful_verdicts import comparison_request
from curation.records import problem_id
from curation.storage.stages import read_table
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, tries, write_jsonl
from tests.flows.stages.conftest import asks_judge, run

pytestmark = pytest.mark.slow

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

RECIPE = recipe_with() + asks_judge("doubtful_verdicts")


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


def stage_folder(run_folder: Path) -> Path:
    (folder,) = (run_folder / "doubtful_verdicts" / "stage1").iterdir()
    return folder


def counts(run_folder: Path) -> dict[str, int]:
    told = json.loads((stage_folder(run_folder) / "DONE.json").read_text())["notes"]
    return {name.removeprefix("decided "): count for name, count in told.items() if count and name != "asked"}


def outcomes(run_folder: Path, question: str) -> list[tuple[str, str]]:
    verdicts = read_table(stage_folder(run_folder), "verdicts").filter(problem=problem_id(question))
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


def test_without_a_model_the_verdicts_are_as_before(finished: Tiny, tmp_path: Path, judged: list[str]) -> None:
    copied = finished.copy(tmp_path)
    with_model, text = published(copied.folder, "data"), copied.recipe.read_text()
    copied.recipe.write_text(text.partition("[questions.doubtful_verdicts]")[0])
    out = run(copied.recipe, copied.folder).out
    assert "Stage 1: 5 of 20 verdicts are doubtful" in " ".join(out.split())
    assert published(copied.folder, "data").filter(pl.col("id") == problem_id(SAME))["correct"].to_list() != [3]
    copied.recipe.write_text(text)
    run(copied.recipe, copied.folder)
    assert published(copied.folder, "data").equals(with_model)
    assert judged == []
