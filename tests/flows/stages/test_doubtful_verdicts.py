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
from tests.flows.run.folders import run
from tests.flows.stages.conftest import asks_judge

pytestmark = pytest.mark.slow

SAME = "What is 1 divided by 3?"
DIFFERENT = "What is the seventh part of a cake?"
OPEN = "How much is two thirds of a metre, in metres?"
CLEAR = "What is 17 + 25?"
MUTE = "What is 5 divided by 6?"
ROPE = "How long is the rope in metres?"
UNKNOWNS = "Find $m+n$."
PROBLEMS = {
    # statement: reference, final answers, doubtful answer, votes on it
    SAME: ("1/3", "0.33 0.33 0.3333 9", "0.33", ("SAME", "SAME", "SAME")),
    DIFFERENT: ("1/7", "0.14 1/7 3 4", "0.14", ("DIFFERENT", "DIFFERENT", "DIFFERENT")),
    OPEN: ("2/3", "0.67 2/3 5 6", "0.67", ("SAME", "DIFFERENT", "UNSURE")),
    CLEAR: ("42", "42 42 1 2", "", ()),
    MUTE: ("5/6", "0.83 5/6 1 2", "0.83", ("PERHAPS", "WHO KNOWS", "SAME")),
    ROPE: ("31", r"3100\text{cm} 31 2 30", "", ()),
    UNKNOWNS: ("12", "m+n=12 12 1 2", "", ()),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The recipe, run once; do not write into its folder."""
    folder = tmp_path_factory.mktemp("doubtful") / "inputs"
    folder.mkdir()
    votes = [
        {"question": comparison_request(text, "en", reference, answer).statement, "text": f"So.\nVERDICT: {word}"}
        for text, (reference, _, answer, words) in PROBLEMS.items()
        for word in words
    ]
    write_jsonl(folder / "problems.jsonl", [{"question": text, "final": one} for text, (one, *_) in PROBLEMS.items()])
    write_jsonl(folder / "weak.jsonl", [tries(text, one, finals) for text, (one, finals, *_) in PROBLEMS.items()])
    write_jsonl(folder / "votes.jsonl", votes)
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe_with() + asks_judge("doubtful_verdicts"))
    return Tiny(recipe, folder.parent / "run", run(recipe, folder.parent / "run").out)


def verdicts(run_folder: Path, kind: str) -> pl.DataFrame:
    (folder,) = (run_folder / kind / "stage1").iterdir()
    return read_table(folder, "verdicts")


def outcomes(run_folder: Path, question: str) -> list[tuple[str, str]]:
    rows = verdicts(run_folder, "doubtful_verdicts").filter(problem=problem_id(question))
    return rows.sort("index").select("outcome", "method").rows()


def test_attempts_are_judged_by_what_the_statement_asks_for(finished: Tiny) -> None:
    for question in (ROPE, UNKNOWNS):
        assert [outcome for outcome, _ in outcomes(finished.folder, question)] == ["correct"] * 2 + ["wrong"] * 2


def test_votes_decide_what_was_doubtful_and_nothing_else(finished: Tiny) -> None:
    folder, out = finished.folder, finished.out
    (mark,) = (folder / "doubtful_verdicts" / "stage1").glob("*/DONE.json")
    notes = json.loads(mark.read_text())["notes"]
    counts = {name.removeprefix("decided "): count for name, count in notes.items() if count and name != "asked"}
    assert counts == {"same": 1, "different": 1, "uncertain": 2, "votes": 12}
    assert "4 questions, 12 answers, 0 tokens: 1 different, 1 same, 2 undecided" in " ".join(out.split())
    same = outcomes(folder, SAME)
    assert same[0] == same[1] == ("correct", "number (by 3 of 3 votes: same)")
    assert [outcome for outcome, _ in same] == ["correct"] * 3 + ["wrong"]
    assert outcomes(folder, DIFFERENT)[0] == ("wrong", "number (by 3 of 3 votes: different)")
    assert outcomes(folder, OPEN)[0] == outcomes(folder, MUTE)[0] == ("wrong", "number (doubtful)")
    keys = ["problem", "index", "outcome", "method", "answer_class"]
    before, after = verdicts(folder, "verdicts"), verdicts(folder, "doubtful_verdicts")
    changed = before.join(after, on=keys, how="anti", nulls_equal=True)
    assert set(changed["answer"]) == {"0.33", "0.14"}
    assert changed["method"].str.ends_with("(doubtful)").all()
    assert published(folder, "data").filter(id=problem_id(SAME))["correct"].to_list() == [3]
    doubted = published(folder, "disputed").filter(kind="doubtful_verdict")
    assert set(doubted["statement"]) == {OPEN, MUTE}, "what the votes decided needs no look of a person"
    assert "votes      '0.33' for '1/3': 3 same (same)" in goldilocks("explain", folder, problem_id(SAME)).out


def test_without_a_model_the_verdicts_are_as_before(finished: Tiny, tmp_path: Path, judged: list[str]) -> None:
    copied = finished.copy(tmp_path)
    with_model, text = published(copied.folder, "data"), copied.recipe.read_text()
    copied.recipe.write_text(text.partition("[questions.doubtful_verdicts]")[0])
    out = run(copied.recipe, copied.folder).out
    assert f"Stage 1: 5 of {4 * len(PROBLEMS)} verdicts are doubtful" in " ".join(out.split())
    assert published(copied.folder, "data").filter(id=problem_id(SAME))["correct"].to_list() != [3]
    copied.recipe.write_text(text)
    run(copied.recipe, copied.folder)
    assert published(copied.folder, "data").equals(with_model)
    assert judged == []
