"""Which rule judges labels where a recipe names none: votes, unless planted references show that they do worse."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.storage.stages import read_table
from tests.flows.conftest import Tiny, goldilocks, published, tries, write_jsonl

pytestmark = pytest.mark.slow

PROBLEMS = 240


@pytest.fixture(scope="module")
def stubborn_run(tiny_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Sums with right references; each policy gives one and the same wrong answer to every fourth of them."""
    inputs = tmp_path_factory.mktemp("auto") / "inputs"
    inputs.mkdir()
    problems, weak, strong = [], [], []
    for number in range(PROBLEMS):
        statement, right = f"What is {number} times {number + 12}?", number * (number + 12)
        problems.append({"question": statement, "final": str(right)})
        own, other = (right + 1 if number % 4 == 0 else right), (right + 2 if number % 4 == 1 else right)
        strays = (right + 3 if number % 4 else own, right + 3 if number % 4 != 1 else other)
        weak.append(tries(statement, str(right), f"{own} {own} {own} {strays[0]}"))
        strong.append(tries(statement, str(right), f"{other} {other} {other} {strays[1]}"))
    for name, rows in (("problems", problems), ("weak", weak), ("strong", strong)):
        write_jsonl(inputs / f"{name}.jsonl", rows)
    recipe = inputs / "tiny.toml"
    text = tiny_recipe.read_text().replace("shard_rows = 3", "shard_rows = 60")
    recipe.write_text(text + "\n[near_dedup]\nenabled = false\n")
    made = Tiny(recipe, inputs.parent / "run")
    said = made.run()
    assert said.status == 0, said.err
    return made


def suspected(made: Tiny) -> int:
    return made.table("dropped").filter(reason="suspected_wrong_label").height


def test_a_policy_that_agrees_with_itself_accuses_no_sound_label(stubborn_run: Tiny, tmp_path: Path) -> None:
    assert suspected(stubborn_run) == 0
    card = (stubborn_run.folder / "curated" / "README.md").read_text()
    assert "by the answers of all policies the reference is wrong with a probability of 0.5 or more" in card
    dropped = stubborn_run.table("dropped").filter(reason="never_solved")
    told = goldilocks("explain", stubborn_run.folder, dropped["id"][0]).out
    assert "label      wrong with probability" in told
    assert "whichever finds more planted ones" in goldilocks("run", stubborn_run.recipe, "--dry").out
    by_votes = stubborn_run.copy(tmp_path)
    store = {path: path.stat().st_mtime_ns for path in (by_votes.folder / "attempts").rglob("*") if path.is_file()}
    assert by_votes.run("labels.rule=votes").status == 0
    assert suspected(by_votes) == PROBLEMS // 4  # those of the second policy, which decides
    after = {path: path.stat().st_mtime_ns for path in (by_votes.folder / "attempts").rglob("*") if path.is_file()}
    assert after == store  # the rule is no matter of sampling
    assert "by the answers of all policies" not in (by_votes.folder / "curated" / "README.md").read_text()


def test_few_problems_are_judged_by_votes_to_the_byte(tiny_copy: Tiny) -> None:
    def decisions() -> list[bytes]:
        return [path.read_bytes() for path in sorted((tiny_copy.folder / "decisions").rglob("*.parquet"))
                if path.parent.name != "labels"]  # fmt: skip

    labels = [read_table(path.parent, "labels") for path in (tiny_copy.folder / "decisions").rglob("DONE.json")]
    assert labels
    assert all(table["wrong_label"].null_count() < table.height for table in labels), "they rank, and decide nothing"
    before, queue = decisions(), published(tiny_copy.folder, "disputed")
    assert before
    assert suspected(tiny_copy) > 0
    assert tiny_copy.run("labels.rule=votes").status == 0
    assert decisions() == before
    assert published(tiny_copy.folder, "disputed").equals(queue)
