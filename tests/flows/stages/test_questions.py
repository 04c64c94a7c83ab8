"""Questions to a model through the whole pipeline: rewriting, votes on premises, the user's own, variants."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from curation.questions import QUESTIONS
from curation.questions.proposals import Proposal
from curation.questions.votes import Vote
from curation.records import problem_id
from flows.stages.question import registered
from tests.flows.conftest import ROOT, goldilocks, published, recipe_with, refusal, tries, write_jsonl
from tests.flows.run.folders import card, run
from tests.flows.stages.conftest import asks_judge

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
    recipe_with('sources.0.columns.choices="options"', 'models.student.columns.choices="options"')
    + Path(__file__).with_name("rewriting.toml").read_text(encoding="utf-8")
    + asks_judge("premises", "", 'choices = "options", ')
)
CHOICES = {HARD: OPTIONS, OTHER: NEAR, TORN: ["48", "53", "57"]}
REWRITTEN = {
    HARD: f"<problem>{LISTED}</problem>\n8 times 7 is 56: \\boxed{{56}}",
    OTHER: "<problem>NONE</problem>",
    TORN: "<problem>What is 50?</problem> \\boxed{48}",
}
FINALS = {HARD: "56 B 1 2", EASY: "42 42 1 2", GAP: "60 60 1 2", DOUBTFUL: "42 42 1 2", SOUND: "221 221 3 4"}
VOTES = {
    HARD: "SOUND SOUND SOUND PERHAPS PERHAPS",
    GAP: "MISSING MISSING SOUND PERHAPS PERHAPS",
    DOUBTFUL: "SOUND MISSING SOUND PERHAPS PERHAPS",
    SOUND: "CONTRADICTORY PERHAPS UNCLEAR PERHAPS PERHAPS",
}


def row(question: str, **fields: object) -> dict[str, object]:
    return {"question": question, "options": CHOICES.get(question), **fields}


def write_inputs(folder: Path) -> Path:
    folder.mkdir()
    references = [(HARD, "B"), (OTHER, "A"), (TORN, "A"), (TORN, "B"), (EASY, "42"), (GAP, "60"), (DOUBTFUL, "42")]
    problems = [row(question, final=answer) for question, answer in [*references, (SOUND, "221")]]
    votes = [row(one, text=f"VERDICT: {word}") for one, words in VOTES.items() for word in words.split()]
    write_jsonl(folder / "problems.jsonl", problems)
    write_jsonl(folder / "weak.jsonl", [row(**tries(question, None, finals)) for question, finals in FINALS.items()])
    write_jsonl(folder / "rewritings.jsonl", [row(question, text=text) for question, text in REWRITTEN.items()])
    write_jsonl(folder / "votes.jsonl", votes)
    (folder / "asked.toml").write_text(RECIPE)
    return folder / "asked.toml"


@pytest.fixture(scope="module")
def asked_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The recipe, the folder of one run of it, and what that run printed; neither is to be changed."""
    place = tmp_path_factory.mktemp("asked")
    recipe = write_inputs(place / "inputs")
    return recipe, place / "run", run(recipe, place / "run").out


def notes(folder: Path, stage: str) -> dict[str, int]:
    table: dict[str, int] = json.loads((folder / "stages" / stage / "DONE.json").read_text())["notes"]
    return table


def test_rewritten_choices_and_votes_on_premises(asked_run: tuple[Path, Path, str]) -> None:
    _, folder, out = asked_run
    assert "Rewriting by a model" in out
    assert "faulty_premises 1" in out
    data, dropped = published(folder, "data"), published(folder, "dropped")
    assert data.height + dropped.height == 8
    opened = data.filter(id=problem_id(HARD, OPTIONS))
    assert opened.select("statement", "answer", "raw_statement", "raw_answer", "correct").rows() == [
        (LISTED, "56", HARD, "B", 2)  # one attempt at the original names the option
    ]
    assert set(dropped.select("statement", "reason").iter_rows()) == {
        (OTHER, "multiple_choice"),
        (TORN, "multiple_choice"),
        (GAP, "faulty_premises"),
    }
    (evidence,) = dropped.filter(reason="faulty_premises")["evidence"]
    assert evidence == "2 of 3 votes name a fault, most often: missing"
    wanted = {"accepted": 1, "asked": 2, "not, its copies name different options": 2, "not, no rewriting": 1}
    assert wanted.items() <= notes(folder, "02-rewriting").items()
    assert notes(folder, "07-premises")["uncertain"] == 2
    for text in (" ".join(out.split()), card(folder)):
        assert "Rewriting by a model: 2 questions, 2 answers, 0 tokens: 1 accepted" in text
        assert "Premises by votes: 5 questions, 20 answers, 0 tokens: 1 missing, 2 sound, 2 undecided" in text
        assert "Not asked of a model: doubtful rows, doubtful verdicts" in text
    explained = goldilocks("explain", folder, problem_id(HARD, OPTIONS)).out
    assert "Rewriting by a model: kept row 0 of school, rewritten" in explained
    assert f"statement  {LISTED}" in explained
    assert "refused    no rewriting" in goldilocks("explain", folder, problem_id(OTHER, NEAR)).out
    explained = goldilocks("explain", folder, problem_id(GAP)).out
    assert "Premises by votes: dropped row 5 of school, faulty_premises: 2 of 3 votes" in explained
    assert "votes      1 sound, 2 missing, 2 unreadable (missing)" in explained


def test_a_new_threshold_decides_again_and_asks_no_model(
    asked_run: tuple[Path, Path, str], tmp_path: Path, judged: list[str]
) -> None:
    recipe, folder = asked_run[0], tmp_path / "run"
    shutil.copytree(asked_run[1], folder)
    run(recipe, folder, "questions.premises.threshold=0.3")
    assert set(published(folder, "dropped").filter(reason="faulty_premises")["statement"]) == {GAP, DOUBTFUL}
    assert set(judged) <= {EASY}  # the only problem whose votes the file lacks


@pytest.mark.slow
def test_what_was_voted_before_a_kill_is_not_asked_again(
    asked_run: tuple[Path, Path, str],
    tmp_path: Path,
    made_over_a_kill: Callable[[Path, Path, int], list[tuple[str, int]]],
) -> None:
    recipe, whole, _ = asked_run
    made = made_over_a_kill(recipe, tmp_path / "killed", 4)
    assert len(made) == len(set(made)) == 20
    for table in ("data", "dropped"):
        assert published(tmp_path / "killed", table).equals(published(whole, table))


@pytest.mark.slow
def test_a_budget_ends_the_votes_and_without_a_model_no_question_is_asked(tmp_path: Path) -> None:
    recipe = write_inputs(tmp_path / "inputs")
    out = " ".join(run(recipe, tmp_path / "few", "questions.premises.max_votes=15").out.split())
    assert "Premises by votes: 3 questions" in out
    assert "2 not asked as max_votes is spent" in out
    (recipe.parent / "votes.jsonl").unlink()  # before anything runs
    assert "votes.jsonl" in refusal("run", recipe, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    recipe.write_text(recipe.read_text().partition("[questions.rewriting]")[0])
    out = run(recipe, tmp_path / "run").out
    for text in (" ".join(out.split()), card(tmp_path / "run")):
        assert "Not asked of a model: rewriting, doubtful rows, premises, doubtful verdicts" in text
    assert not (tmp_path / "run" / "stages" / "02-rewriting").exists()


PAGE = (ROOT / "docs" / "how-to" / "questions.md").read_text(encoding="utf-8")
(OWN,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
"""A question of one's own, as the page shows it."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A recipe that asks a question of the user's own."""
    recipe = write_inputs(tmp_path / "own")
    (recipe.parent / "own.py").write_text(OWN)
    recipe.write_text(
        RECIPE.partition("[questions.rewriting]")[0] + asks_judge("suitable_ones", 'use = "own.py:ALGEBRA"')
    )
    write_jsonl(recipe.parent / "votes.jsonl", [row(GAP, text="VERDICT: NO"), row(EASY, text="VERDICT: YES")])
    return recipe


def test_a_question_of_ones_own_is_a_short_file_and_a_table(own: Path, tmp_path: Path) -> None:
    assert len(OWN.splitlines()) <= 60
    out = " ".join(run(own, tmp_path / "run").out.split())
    assert "Suitable ones: 4 questions, 2 answers, 0 tokens: 1 no, 1 yes, 2 undecided" in out
    dropped = published(tmp_path / "run", "dropped").filter(stage="suitable_ones")
    assert dropped.select("statement", "reason", "evidence").rows() == [(GAP, "unusable", "1 of 1 votes: no")]
    assert "votes      1 no (no)" in goldilocks("explain", tmp_path / "run", problem_id(GAP)).out
    plan = goldilocks("run", own, "--out", tmp_path / "run", "--dry").out
    assert "suitable_ones: judge@1 is asked, 1 answers per question" in plan
    made_by = tmp_path / "run" / "stages" / "07-own-suitable_ones" / "stage.json"
    before = json.loads(made_by.read_text())["version"]
    with (own.parent / "own.py").open("a") as file:
        file.write("# changed\n")
    run(own, tmp_path / "run")
    assert json.loads(made_by.read_text())["version"] != before, "a changed file asks its question again"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('questions.suitable_ones.use="own.py:GEOMETRY"', "does not define GEOMETRY"),
        ('questions.suitable_ones.use="own.py:DropReason"', "must be a Vote"),
        ('questions.premises={use="own.py:ALGEBRA"}', "questions.premises: Goldilocks has a question of this name"),
        ('questions.references={use="own.py:ALGEBRA"}', "questions.references: a stage has this name"),
        ("questions.premisses={threshold=0.3}", "no such question (one of your own needs `use`); did you mean `prem"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(own: Path, tmp_path: Path, setting: str, why: str) -> None:
    assert why in refusal("run", own, "--out", tmp_path / "run", "--set", setting)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_of_the_registry_is_one_of_two_shapes(name: str) -> None:
    question = registered(name)
    assert isinstance(question, Vote | Proposal)
    assert question.name == name
    assert question.prompt.system
    if isinstance(question, Vote):
        assert set(question.reasons) <= set(question.words[1:])
        for word in question.words:
            assert f"VERDICT: {word.upper()}" in question.prompt.system
            assert question.read(f"So.\nVERDICT: {word.upper()}") == word


# --- variants --------------------------------------------------------------------------------------------------------

LINES = Path(__file__).with_name("variants.jsonl").read_text(encoding="utf-8").splitlines()
ROWS = {row["name"]: row for row in map(json.loads, LINES)}
"""Problems with what a model writes as a variant, its own answer, and the answers to the variant."""
EXAMS = '{ name = "exam", kind = "jsonl", path = "exam.jsonl", columns = { statement = "task" } }'
VARIANTS = recipe_with(f"decontamination.against=[{EXAMS}]") + asks_judge("variants")


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recipe that asks for variants, and the folder of its finished run."""
    folder = tmp_path_factory.mktemp("variants") / "variants"
    folder.mkdir()
    (folder / "recipe.toml").write_text(VARIANTS)
    rows, written = ROWS.values(), [row for row in ROWS.values() if row["finals"]]
    write_jsonl(folder / "problems.jsonl", [{"question": row["question"], "final": row["final"]} for row in rows])
    write_jsonl(folder / "exam.jsonl", [{"task": ROWS["rope"]["variant"]}])
    attempts = [tries(row["question"], None, f"{row['final']} {row['final']} 1 2") for row in rows]
    attempts += [tries(row["variant"], None, row["finals"]) for row in written]
    write_jsonl(folder / "weak.jsonl", attempts)
    texts = [f"<problem>{row['variant'] or 'NONE'}</problem> So \\boxed{{{row['own']}}}" for row in rows]
    votes = [{"question": row["question"], "text": text} for row, text in zip(rows, texts, strict=True)]
    write_jsonl(folder / "votes.jsonl", votes)
    out = folder.parent / "run"
    run(folder / "recipe.toml", out)
    return folder / "recipe.toml", out


def test_a_variant_that_is_proven_and_of_the_right_difficulty_enters_and_others_state_why_not(
    variants: tuple[Path, Path],
) -> None:
    rows = published(variants[1], "data")
    assert rows.height == len(ROWS) + 1
    at = rows["statement"].to_list().index(ROWS["sum"]["variant"])
    original, variant = rows.row(at - 1, named=True), rows.row(at, named=True)
    meta = json.loads(variant["meta"])
    assert (original["statement"], meta["variant_of"]) == (ROWS["sum"]["question"], original["id"])
    assert meta["variant"]["own_answer"] == "correct"
    assert (variant["correct"], variant["judged"], variant["pass_rate"]) == (1, 4, 0.25)
    assert all(variant[name] == original[name] for name in ("answer", "license", "source"))
    dropped = pl.read_parquet(variants[1] / "stages" / "10-variants" / "dropped" / "*.parquet")
    assert set(dropped["reason"]) == {"no_variant"}
    evidence = dict(dropped.select("statement", "evidence").iter_rows())
    why = {name: evidence.get(row["question"]) for name, row in ROWS.items()}
    assert why["sum"] is None
    assert why["product"].startswith("its pass rate is out of the band: 0 of 4")
    assert why["bags"].startswith("a near duplicate")
    assert why["ages"].endswith("are the reference: 2 of 4")
    assert why["train"] == "no variant"
    assert why["rope"] == "overlaps with a benchmark: exam"


def test_a_killed_run_ends_in_the_same_rows(
    variants: tuple[Path, Path], tmp_path: Path, made_over_a_kill: Callable[[Path, Path, int], list[tuple[str, int]]]
) -> None:
    recipe, whole = variants
    made = made_over_a_kill(recipe, tmp_path / "killed", 2)
    assert len(made) == len(set(made))
    for table in ("data", "dropped"):
        assert published(tmp_path / "killed", table).equals(published(whole, table))
