"""Variants by a model: what enters the set, why the others do not, and the same bytes after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import published, recipe_with, tries, write_jsonl
from tests.flows.run.folders import run
from tests.flows.stages.conftest import asks_judge

SUM, PRODUCT, BAGS, AGES, TRAIN, ROPE = (
    "What is 17 + 25?",
    "What is 13 times 17?",
    "How many apples are 3 bags with 14 apples each?",
    "Ann is 12 years old and Ben is 9 years older. How old is Ben?",
    "A train covers 240 km in 3 hours. How many km does it cover in one hour?",
    "A rope of 90 m is cut into 6 equal pieces. How many metres long is a piece?",
)
ANSWERS = {SUM: "42", PRODUCT: "221", BAGS: "42", AGES: "21", TRAIN: "80", ROPE: "15"}
COINS = "Tom owns 17 coins, one of them from Spain, and gets 25 more on Monday. How many has he in the end?"
ROWS = "A hall has 13 rows of seats, and every row has room for 17 guests. For how many guests is there a seat?"
AGED = "Nine years lie between Ben and his younger cousin Ann, who turned 12 in May. What is the age of Ben in years?"
EXAM = "The ribbon on a roll is 90 m long; a tailor divides it fairly among 6 children. How many metres does each get?"
WRITTEN = {
    SUM: (COINS, "42"),
    PRODUCT: (ROWS, "221"),
    BAGS: ("How many apples are 3 bags with 14 apples  each?", "42"),
    AGES: (AGED, "22"),
    ROPE: (EXAM, "15"),
}
EXAMS = '{ name = "exam", kind = "jsonl", path = "exam.jsonl", columns = { statement = "task" } }'
RECIPE = recipe_with(f"decontamination.against=[{EXAMS}]") + asks_judge("variants")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recipe that asks for variants, and the folder of its finished run."""
    folder = tmp_path_factory.mktemp("variants") / "inputs"
    folder.mkdir()
    (folder / "recipe.toml").write_text(RECIPE)
    write_jsonl(folder / "problems.jsonl", [{"question": text, "final": answer} for text, answer in ANSWERS.items()])
    write_jsonl(folder / "exam.jsonl", [{"task": EXAM}])
    attempts = [tries(text, None, f"{answer} {answer} 1 2") for text, answer in ANSWERS.items()]
    attempts += [tries(COINS, None, "42 1 2 3"), tries(ROWS, None, "1 2 3 4"), tries(AGED, None, "21 21 3 4")]
    write_jsonl(folder / "weak.jsonl", attempts)
    texts = {text: rf"<problem>{new}</problem> So it is \boxed{{{own}}}" for text, (new, own) in WRITTEN.items()}
    texts[TRAIN] = "<problem>NONE</problem>"
    write_jsonl(folder / "votes.jsonl", [{"question": text, "text": said} for text, said in texts.items()])
    out = folder.parent / "run"
    run(folder / "recipe.toml", out)
    return folder / "recipe.toml", out


def test_a_variant_that_is_proven_and_of_the_right_difficulty_enters_and_others_state_why_not(
    inputs: tuple[Path, Path],
) -> None:
    rows = published(inputs[1], "data")
    assert rows.height == len(ANSWERS) + 1
    at = rows["statement"].to_list().index(COINS)
    original, variant = rows.row(at - 1, named=True), rows.row(at, named=True)
    meta = json.loads(variant["meta"])
    assert (original["statement"], meta["variant_of"]) == (SUM, original["id"])
    assert meta["variant"]["own_answer"] == "correct"
    assert (variant["correct"], variant["judged"], variant["pass_rate"]) == (1, 4, 0.25)
    assert all(variant[name] == original[name] for name in ("answer", "license", "source"))
    dropped = pl.read_parquet(inputs[1] / "stages" / "10-variants" / "dropped" / "*.parquet")
    assert set(dropped["reason"]) == {"no_variant"}
    why = dict(dropped.select("statement", "evidence").iter_rows())
    assert set(why) == set(ANSWERS) - {SUM}
    assert why[PRODUCT].startswith("its pass rate is out of the band: 0 of 4")
    assert why[BAGS].startswith("a near duplicate")
    assert why[AGES].endswith("are the reference: 2 of 4")
    assert why[TRAIN] == "no variant"
    assert why[ROPE] == "overlaps with a benchmark: exam"


def test_a_killed_run_ends_in_the_same_rows(
    inputs: tuple[Path, Path], tmp_path: Path, made_over_a_kill: Callable[[Path, Path, int], list[tuple[str, int]]]
) -> None:
    recipe, whole = inputs
    made = made_over_a_kill(recipe, tmp_path / "killed", 2)
    assert len(made) == len(set(made))
    for table in ("data", "dropped"):
        assert published(tmp_path / "killed", table).equals(published(whole, table))
