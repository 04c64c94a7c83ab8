"""A run that judges labels by the probability that they are wrong: decisions, queue, card, explain, audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import problem_id
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, stamps, tries, write_jsonl

pytestmark = pytest.mark.slow

WEAK = ("{0} {0} 1 {0}", "{0} 2 {0} 3", "4 5 {0} 6", "{0} {0} {0} 7")


@pytest.fixture(scope="module")
def posterior_run(tiny_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """Sixty sums with two policies' attempts; the references of s3 and s7 are wrong."""
    inputs = tmp_path_factory.mktemp("posterior") / "inputs"
    inputs.mkdir()
    problems, weak, strong = [], [], []
    for number in range(60):
        statement, right = f"What is {number} times {number + 12}?", number * (number + 12)
        reference = str(right + 1 if number in (3, 7) else right)
        problems.append({"question": statement, "final": reference})
        weak.append(tries(statement, reference, WEAK[number % 4].format(right)))
        strong.append(tries(statement, reference, f"{right} {right} {right if number % 3 else 9} {right}"))
    for name, rows in (("problems", problems), ("weak", weak), ("strong", strong)):
        write_jsonl(inputs / f"{name}.jsonl", rows)
    recipe = inputs / "tiny.toml"
    text = tiny_recipe.read_text().replace("shard_rows = 3", "shard_rows = 20")
    recipe.write_text(text + '\n[labels]\nrule = "posterior"\n\n[near_dedup]\nenabled = false\n')
    made = Tiny(recipe, inputs.parent / "run")
    said = made.run("labels.drop_above=0.3")
    assert said.status == 0, said.err
    return made


@pytest.mark.parametrize(("model", "accused"), [("", set()), (', model="by"', {3, 7})])
def test_each_model_of_a_file_of_attempts_is_a_voter(model: str, accused: set[int], tmp_path: Path) -> None:
    problems, attempts = [], []
    for number in range(60):
        statement, right = f"What is {number} times {number + 12}?", number * (number + 12)
        problems.append({"question": statement, "final": str(right + 1 if number in (3, 7) else right)})
        finals = [right + 100 * (number % 3 == 0 and number not in (3, 7) and one == number % 8) for one in range(8)]
        row = tries(statement, str(right), " ".join(map(str, finals)))
        for one, attempt in enumerate(row["tries"]):
            attempt["by"] = f"model-{one}"
        attempts.append(row)
    write_jsonl(tmp_path / "problems.jsonl", problems)
    write_jsonl(tmp_path / "all.jsonl", attempts)
    columns = f'problem="question", attempts="tries"{model}'
    settings = ("shard_rows=20", "near_dedup.enabled=false", "labels.rule=posterior")
    band, asked = "{attempts=8, max_pass_rate=1.0}", f'{{kind="recorded", path="all.jsonl", columns={{{columns}}}}}'
    text = recipe_with('name="eight"', *settings, f"stage1.band={band}", f"models.student={asked}")
    (tmp_path / "eight.toml").write_text(text)
    said = goldilocks("run", tmp_path / "eight.toml", "--out", tmp_path / "run")
    assert said.status == 0, said.err
    dropped = published(tmp_path / "run", "dropped").filter(reason="suspected_wrong_label")
    assert set(dropped["id"]) == {name_of(number) for number in accused}


def name_of(number: int) -> str:
    return problem_id(f"What is {number} times {number + 12}?")


def test_wrong_references_are_dropped_queued_and_told(posterior_run: Tiny) -> None:
    folder = posterior_run.folder
    dropped = posterior_run.table("dropped").filter(reason="suspected_wrong_label")
    assert set(dropped["id"]) == {name_of(3), name_of(7)}
    queue = published(folder, "disputed").filter(kind="suspected_wrong_label")
    assert set(queue["id"].head(2)) == {name_of(3), name_of(7)}
    assert queue["wrong_label"].to_list() == sorted(queue["wrong_label"], reverse=True)
    assert queue.filter(id=name_of(3))["references"][0].to_list() == ["46", "45"]
    text = goldilocks("review", folder).out
    assert f"{queue['id'][0]}  attempts that agree on another answer than the reference, wrong with probability" in text
    told = goldilocks("explain", folder, name_of(3)).out
    assert told.count("label      wrong with probability") == 2
    assert "say 45" in told
    card = (folder / "curated" / "README.md").read_text()
    assert "| suspected wrong label | 2 |" in card
    assert "by the answers of all policies the reference is wrong with a probability of 0.3 or more" in card


def test_another_threshold_makes_no_attempt_and_an_accepted_reference_is_not_dropped(
    posterior_run: Tiny, tmp_path: Path
) -> None:
    copy = posterior_run.copy(tmp_path)
    attempts = stamps(copy.folder / "attempts")
    assert goldilocks("review", copy.folder, "--accept", name_of(3), "--answer", "46").status == 0
    assert copy.run("labels.drop_above=0.25").status == 0
    assert stamps(copy.folder / "attempts") == attempts
    dropped = copy.table("dropped").filter(reason="suspected_wrong_label")
    assert dropped["id"].to_list() == [name_of(7)], "a person accepted the other"


def test_an_audit_draws_once_and_tells_the_share_of_wrong_labels(posterior_run: Tiny, tmp_path: Path) -> None:
    copy = posterior_run.copy(tmp_path)
    said = goldilocks("review", copy.folder, "--audit", "12")
    assert (said.status, said.err) == (0, "")
    assert "0 of 12 drawn rows judged" in said.out
    assert "no share yet" in said.out
    drawn = json.loads((copy.folder / "audit.json").read_text())
    data = copy.table("data")
    assert sum(stratum["size"] for stratum in drawn["strata"]) == data.height
    assert set(drawn["rows"]) <= set(data["id"])
    for name, row in drawn["rows"].items():
        goldilocks("review", copy.folder, "--accept", name, "--answer", row["reference"])
    text = goldilocks("review", copy.folder, "--audit", "12").out
    assert json.loads((copy.folder / "audit.json").read_text()) == drawn
    assert f"wrong labels in the set of {data.height}: 0.00%, 95 % interval 0.00% to" in text


def test_a_run_by_votes_is_audited_whatever_verdicts_no_run_has_applied_yet(tiny_copy: Tiny) -> None:
    name = tiny_copy.table("disputed")["id"][0]
    assert goldilocks("review", tiny_copy.folder, "--accept", name, "--answer", "90").status == 0
    said = goldilocks("review", tiny_copy.folder, "--audit", "2")
    assert (said.status, said.err) == (0, "")
    assert "0 of 2 drawn rows judged" in said.out
