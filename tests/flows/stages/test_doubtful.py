"""A model's votes on doubtful verdicts, through the whole line, and on doubtful rows: recorded, and asked for once."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from curation.questions.doubtful_rows import usability_request
from curation.questions.doubtful_verdicts import comparison_request
from curation.records import problem_id
from curation.storage.stages import read_table
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import new_run
from flows.run.stage import Results
from flows.stages.sources import SOURCES
from flows.stages.statements import DOUBTFUL_ROWS, STATEMENTS
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, tries, write_jsonl
from tests.flows.run.folders import run
from tests.flows.run.test_runner import RECIPE
from tests.flows.stages.conftest import asks_judge

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


@pytest.mark.slow
def test_attempts_are_judged_by_what_the_statement_asks_for(finished: Tiny) -> None:
    for question in (ROPE, UNKNOWNS):
        assert [outcome for outcome, _ in outcomes(finished.folder, question)] == ["correct"] * 2 + ["wrong"] * 2


@pytest.mark.slow
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


@pytest.mark.slow
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


# --- rows that the format filter is uncertain of ---------------------------------------------------------------------

SHADED = "As shown in the figure, what is the area of the shaded region?"
ROWS = {
    (SHADED, "12"): ("INCOMPLETE", "INCOMPLETE", "USABLE"),
    ("In the diagram, two circles of radius 3 touch. How far apart are their centres?", "6"): ("USABLE",) * 3,
    ("As shown in the picture, how long is the side of the square?", "5"): ("PERHAPS", "PERHAPS", "USABLE"),
    ("A box holds 17 bags of 13 marbles. How many marbles is that?", "221"): (),
}


def test_votes_decide_on_rows_with_a_sign_of_trouble(tmp_path: Path, judged: list[str]) -> None:
    (tmp_path / "r.toml").write_text(RECIPE + asks_judge("doubtful_rows"))
    write_jsonl(tmp_path / "sums.jsonl", [{"q": text, "a": answer} for text, answer in ROWS])
    votes = [
        {"question": usability_request(*row, "en").statement, "text": f"Let me see.\nVERDICT: {word}"}
        for row, words in ROWS.items()
        for word in words
    ]
    write_jsonl(tmp_path / "votes.jsonl", votes)

    def stages(*settings: str) -> Results:
        run = new_run(tmp_path / "r.toml", settings, tmp_path / "run")
        return run_pipeline(run, (SOURCES, STATEMENTS, DOUBTFUL_ROWS))

    first = stages()[DOUBTFUL_ROWS]
    asked = read_table(first.folder, "votes").sort("at").select("at", "usable", "incomplete", "unreadable").rows()
    assert asked == [(0, 1, 2, 0), (1, 3, 0, 0), (2, 1, 0, 2)], "not the marbles"
    assert first.manifest.reasons == {"unusable": 1}
    assert first.manifest.notes["uncertain"] == 1
    evidence = "2 of 3 votes name a fault, most often: incomplete, points at something"
    assert read_table(first.folder, "dropped").select("statement", "evidence").rows() == [(SHADED, evidence)]

    again = stages("questions.doubtful_rows.threshold=0.9")
    assert again[STATEMENTS].reused
    assert again[DOUBTFUL_ROWS].manifest.reasons == {}
    assert len(judged) == 9, "those of the first run"
    (tmp_path / "r.toml").write_text(RECIPE)
    without = stages()
    assert without.get(DOUBTFUL_ROWS) is None
    assert read_table(without[STATEMENTS].folder, "kept").height == 4
