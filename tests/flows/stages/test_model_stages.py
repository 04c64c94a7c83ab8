"""A model asked beside attempts, through the whole line: rewriting of hard multiple choice, votes on premises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from curation.policies.recorded import Recorded
from curation.records import Completion, PromptRequest, problem_id
from curation.storage.attempts import AttemptStore
from tests.flows.conftest import TINY_RECIPE, Said, goldilocks, published, refusal, tries, write_jsonl

HARD = "Which of the following numbers is divisible by 7?"
OPTIONS = ["45", "56", "65", "75"]
LISTED = "Which one of the numbers 45, 56, 65 and 75 is divisible by 7?"
OTHER = "Which of these is closest to $\\sqrt{17}$?"
NEAR = ["4", "5", "6", "7"]
TORN = "Which of the following is closest to 50?"
EASY = "What is 17 + 25?"
GAP = "A train covers the way in 3 hours. How fast does it drive?"
DOUBTFUL = "How many apples are 3 bags with 14 apples each?"
SOUND = "What is 13 times 17?"

RECIPE = (
    TINY_RECIPE.replace(
        'columns = { statement = "question", answer = "final" }',
        'columns = { statement = "question", answer = "final", choices = "options" }',
    )
    .partition("[stage2]")[0]
    .replace('columns = { problem = "question",', 'columns = { choices = "options", problem = "question",')
    + """
[rewriting]
model = "rewriter"

[models.rewriter]
kind = "recorded"
name = "writer@1"
path = "rewritings.jsonl"
columns = { problem = "question", choices = "options", text = "text" }

[premises]
model = "doubter"
votes = 3
min_votes = 2

[models.doubter]
kind = "recorded"
name = "judge@1"
path = "votes.jsonl"
columns = { problem = "question", choices = "options", text = "text" }
"""
)


def row(question: str, answer: str, options: list[str] | None = None) -> dict[str, object]:
    return {"question": question, "final": answer, "options": options}


def said(question: str, text: str, options: list[str] | None = None) -> dict[str, object]:
    return {"question": question, "text": text, "options": options}


def write_inputs(folder: Path) -> Path:
    folder.mkdir()
    problems = [
        row(HARD, "B", OPTIONS),
        row(OTHER, "A", NEAR),
        row(TORN, "A", ["48", "53", "57"]),
        row(TORN, "B", ["48", "53", "57"]),
        row(EASY, "42"),
        row(GAP, "60"),
        row(DOUBTFUL, "42"),
        row(SOUND, "221"),
    ]
    write_jsonl(folder / "problems.jsonl", problems)
    attempts = [
        tries(question, None, finals) | {"options": options}
        for question, finals, options in [
            (HARD, "56 B 1 2", OPTIONS),
            (EASY, "42 42 1 2", None),
            (GAP, "60 60 1 2", None),
            (DOUBTFUL, "42 42 1 2", None),
            (SOUND, "221 221 3 4", None),
        ]
    ]
    write_jsonl(folder / "weak.jsonl", attempts)
    rewritings = [
        said(HARD, f"<problem>{LISTED}</problem>\n8 times 7 is 56: \\boxed{{56}}", OPTIONS),
        said(OTHER, "<problem>NONE</problem>", NEAR),
        said(TORN, "<problem>What is 50?</problem> \\boxed{48}", ["48", "53", "57"]),
    ]
    write_jsonl(folder / "rewritings.jsonl", rewritings)
    votes = [said(HARD, "VERDICT: SOUND", OPTIONS)] * 3
    votes += [said(GAP, f"VERDICT: {word}") for word in ("MISSING", "MISSING", "SOUND")]
    votes += [said(DOUBTFUL, f"VERDICT: {word}") for word in ("SOUND", "MISSING", "SOUND")]
    votes += [said(SOUND, f"VERDICT: {word}") for word in ("CONTRADICTORY", "PERHAPS", "WHO KNOWS")]
    write_jsonl(folder / "votes.jsonl", votes)
    (folder / "asked.toml").write_text(RECIPE)
    return folder / "asked.toml"


@pytest.fixture(scope="module")
def asked_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The recipe, the folder of one run of it, and what that run said; neither is to be changed."""
    place = tmp_path_factory.mktemp("asked")
    recipe = write_inputs(place / "inputs")
    return recipe, place / "run", run(recipe, place / "run").out


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_inputs(tmp_path / "inputs")


def run(recipe: Path, folder: Path, *overrides: str) -> Said:
    done = goldilocks("run", recipe, "--out", folder, *(part for one in overrides for part in ("--set", one)))
    assert done.status == 0, done.err
    return done


def notes(folder: Path, stage: str) -> dict[str, int]:
    told = json.loads((folder / "stages" / stage / "DONE.json").read_text())["notes"]
    assert isinstance(told, dict)
    return told


def test_rewritten_choices_and_votes_on_premises(asked_run: tuple[Path, Path, str]) -> None:
    _, folder, out = asked_run
    assert "Rewriting by a model" in out
    assert "faulty_premises 1" in out
    data, dropped = published(folder, "data"), published(folder, "dropped")
    assert data.height + dropped.height == 8
    opened = data.filter(pl.col("id") == problem_id(HARD, OPTIONS))
    assert opened.select("statement", "answer", "raw_statement", "raw_answer", "correct").rows() == [
        (LISTED, "56", HARD, "B", 2)  # one attempt at the original names the option
    ]
    reasons = {(text, reason) for text, reason in dropped.select("statement", "reason").iter_rows()}
    assert reasons == {(OTHER, "choices_needed"), (TORN, "choices_needed"), (GAP, "faulty_premises")}
    (evidence,) = dropped.filter(pl.col("reason") == "faulty_premises")["evidence"]
    assert evidence == "2 of 3 votes name a fault, most often: missing"
    assert notes(folder, "02-rewriting") == {
        "accepted": 1,
        "asked": 2,
        "hard": 4,
        "not, its copies name different options": 2,
        "not, no rewriting": 1,
    }
    assert notes(folder, "07-premises") == {"readable": 10, "too_few_votes": 2}
    card = (folder / "curated" / "README.md").read_text()
    assert "was rewritten by a model" in card
    assert "by 3 votes of a model" in card


def test_both_are_explained(asked_run: tuple[Path, Path, str]) -> None:
    _, folder, _ = asked_run
    told = goldilocks("explain", folder, problem_id(HARD, OPTIONS)).out
    assert "Rewriting by a model: kept row 0 of school, rewritten" in told
    assert f"statement  {LISTED}" in told
    told = goldilocks("explain", folder, problem_id(OTHER, NEAR)).out
    assert "refused    no rewriting" in told
    told = goldilocks("explain", folder, problem_id(GAP)).out
    assert "Premises by votes: dropped row 5 of school, faulty_premises: 2 of 3 votes" in told
    assert "votes      1 sound, 2 missing" in told


def test_a_new_threshold_decides_again_and_asks_nobody(
    asked_run: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, folder = asked_run[0], tmp_path / "run"
    shutil.copytree(asked_run[1], folder)
    asked: list[str] = []
    answer = Recorded.answer

    async def watched(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        if self.key.policy == "judge@1":
            asked.append(problem.statement)
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", watched)
    run(recipe, folder, "premises.threshold=0.3")
    faulty = published(folder, "dropped").filter(pl.col("reason") == "faulty_premises")
    assert set(faulty["statement"]) == {GAP, DOUBTFUL}
    assert set(asked) <= {EASY}  # the only problem whose votes the file lacks


def test_what_was_said_before_a_kill_is_not_asked_again(
    asked_run: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, whole, _ = asked_run
    killed = tmp_path / "killed"
    made: list[tuple[str, int]] = []
    add = AttemptStore.add
    stop = True

    def dying(self: AttemptStore, one: list[tuple[str, int, Completion]]) -> None:
        add(self, one)
        if self.key.policy == "judge@1":
            made.extend((name, index) for name, index, _ in one)
            if stop and len(made) == 4:
                raise KeyboardInterrupt

    monkeypatch.setattr(AttemptStore, "add", dying)
    assert goldilocks("run", recipe, "--out", killed).status != 0
    assert len(made) == 4
    stop = False
    run(recipe, killed)
    assert len(made) == len(set(made)) == 12
    assert published(killed, "data").equals(published(whole, "data"))
    assert published(killed, "dropped").equals(published(whole, "dropped"))


def test_without_a_policy_neither_stage_is_there(recipe: Path, tmp_path: Path) -> None:
    text = recipe.read_text().partition("[rewriting]")[0]
    recipe.write_text(text)
    out = run(recipe, tmp_path / "run").out
    assert "Rewriting" not in out
    assert "Premises" not in out
    assert not (tmp_path / "run" / "stages" / "02-rewriting").exists()


def test_a_file_that_is_not_there_is_said_before_anything_runs(recipe: Path, tmp_path: Path) -> None:
    (recipe.parent / "votes.jsonl").unlink()
    assert "votes.jsonl" in refusal("run", recipe, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_more_votes_wanted_than_asked_for_are_refused(recipe: Path, tmp_path: Path) -> None:
    said = refusal("run", recipe, "--out", tmp_path / "run", "--set", "premises.min_votes=4")
    assert "4 readable votes can never come of 3 votes" in said
