"""Labels judged by the probability that they are wrong, and which rule judges them if a recipe names none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from curation.records import problem_id
from curation.storage.stages import read_table
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, stamps, tries, write_jsonl
from tests.flows.run.folders import card, contents, run, times

pytestmark = pytest.mark.slow

WRONG = (3, 7)
"""Products whose references are wrong."""
BY_POSTERIOR = "by the answers of all policies the reference is wrong with a probability of"


def statement(number: int) -> str:
    return f"What is {number} times {number + 12}?"


def name_of(number: int) -> str:
    return problem_id(statement(number))


def products(count: int, wrong: Iterable[int] = WRONG) -> list[tuple[str, int, str]]:
    """Statements, values and references."""
    values = [number * (number + 12) for number in range(count)]
    return [(statement(number), value, str(value + (number in wrong))) for number, value in enumerate(values)]


def finished(
    recipe: Path, home: Path, rows: list[tuple[str, int, str]], weak: list[str], strong: list[str], *settings: str
) -> Tiny:
    """A finished run of the tiny recipe on products, with each model's final answers."""
    inputs = home / "inputs"
    inputs.mkdir()
    write_jsonl(inputs / "problems.jsonl", [{"question": text, "final": reference} for text, _, reference in rows])
    for name, finals in (("weak", weak), ("strong", strong)):
        made = [tries(text, reference, one) for (text, _, reference), one in zip(rows, finals, strict=True)]
        write_jsonl(inputs / f"{name}.jsonl", made)
    text = recipe.read_text().replace("shard_rows = 3", f"shard_rows = {len(rows) // 3}")
    (inputs / "tiny.toml").write_text(text + "\n[near_dedup]\nenabled = false\n")
    run(inputs / "tiny.toml", home / "run", *settings)
    return Tiny(inputs / "tiny.toml", home / "run")


def suspected(folder: Path) -> list[str]:
    return published(folder, "dropped").filter(reason="suspected_wrong_label")["id"].to_list()


@pytest.fixture(scope="module")
def posterior_run(tiny_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    rows = products(60)
    patterns = ("{0} {0} 1 {0}", "{0} 2 {0} 3", "4 5 {0} 6", "{0} {0} {0} 7")
    weak = [patterns[at % 4].format(value) for at, (_, value, _) in enumerate(rows)]
    strong = [f"{value} {value} {value if at % 3 else 9} {value}" for at, (_, value, _) in enumerate(rows)]
    settings = ("labels.rule=posterior", "labels.drop_above=0.3")
    return finished(tiny_recipe, tmp_path_factory.mktemp("posterior"), rows, weak, strong, *settings)


@pytest.mark.parametrize(("model", "accused"), [("", ()), (', model="by"', WRONG)])
def test_each_model_of_a_file_of_attempts_is_a_voter(model: str, accused: tuple[int, ...], tmp_path: Path) -> None:
    rows, attempts = products(60), []
    for number, (text, value, _) in enumerate(rows):
        slips = number % 3 == 0 and number not in WRONG
        row = tries(text, str(value), " ".join(str(value + 100 * (slips and at == number % 8)) for at in range(8)))
        attempts.append({**row, "tries": [{**one, "by": f"model-{at}"} for at, one in enumerate(row["tries"])]})
    write_jsonl(tmp_path / "problems.jsonl", [{"question": text, "final": reference} for text, _, reference in rows])
    write_jsonl(tmp_path / "all.jsonl", attempts)
    columns = f'problem="question", attempts="tries"{model}'
    recipe = recipe_with(
        'name="eight"',
        "shard_rows=20",
        "near_dedup.enabled=false",
        "labels.rule=posterior",
        "stage1.band={attempts=8, max_pass_rate=1.0}",
        f'models.student={{kind="recorded", path="all.jsonl", columns={{{columns}}}}}',
    )
    (tmp_path / "eight.toml").write_text(recipe)
    run(tmp_path / "eight.toml", tmp_path / "run")
    assert set(suspected(tmp_path / "run")) == set(map(name_of, accused))


def test_wrong_references_are_dropped_queued_and_shown(posterior_run: Tiny) -> None:
    folder = posterior_run.folder
    assert set(suspected(folder)) == set(map(name_of, WRONG))
    queue = published(folder, "disputed").filter(kind="suspected_wrong_label")
    assert set(queue["id"].head(2)) == set(map(name_of, WRONG))
    assert queue["wrong_label"].to_list() == sorted(queue["wrong_label"], reverse=True)
    assert queue.filter(id=name_of(3))["references"][0].to_list() == ["46", "45"]
    kind = "attempts that agree on another answer than the reference, wrong with probability"
    assert f"{queue['id'][0]}  {kind}" in goldilocks("review", folder).out
    explained = goldilocks("explain", folder, name_of(3)).out
    assert explained.count("label      wrong with probability") == 2
    assert "say 45" in explained
    assert "| suspected wrong label | 2 |" in card(folder)
    assert f"{BY_POSTERIOR} 0.3 or more" in card(folder)


def test_another_threshold_makes_no_attempt_and_an_accepted_reference_is_not_dropped(
    posterior_run: Tiny, tmp_path: Path
) -> None:
    copy = posterior_run.copy(tmp_path)
    attempts = stamps(copy.folder / "attempts")
    assert goldilocks("review", copy.folder, "--accept", name_of(3), "--answer", "46").status == 0
    run(copy.recipe, copy.folder, "labels.rule=posterior", "labels.drop_above=0.25")
    assert stamps(copy.folder / "attempts") == attempts
    assert suspected(copy.folder) == [name_of(7)], "a person accepted the other"


def test_an_audit_draws_once_and_states_the_share_of_wrong_labels(posterior_run: Tiny, tmp_path: Path) -> None:
    folder = posterior_run.copy(tmp_path).folder
    begun = goldilocks("review", folder, "--audit", "12")
    assert (begun.status, begun.err) == (0, "")
    assert "0 of 12 drawn rows judged" in begun.out
    assert "no share yet" in begun.out
    drawn, data = json.loads((folder / "audit.json").read_text()), published(folder, "data")
    assert sum(stratum["size"] for stratum in drawn["strata"]) == data.height
    assert set(drawn["rows"]) <= set(data["id"])
    for name, row in drawn["rows"].items():
        goldilocks("review", folder, "--accept", name, "--answer", row["reference"])
    text = goldilocks("review", folder, "--audit", "12").out
    assert json.loads((folder / "audit.json").read_text()) == drawn
    assert f"wrong labels in the set of {data.height}: 0.00%, 95 % interval 0.00% to" in text


def test_a_run_by_votes_is_audited_whatever_verdicts_no_run_has_applied_yet(tiny_copy: Tiny) -> None:
    name = tiny_copy.table("disputed")["id"][0]
    assert goldilocks("review", tiny_copy.folder, "--accept", name, "--answer", "90").status == 0
    begun = goldilocks("review", tiny_copy.folder, "--audit", "2")
    assert (begun.status, begun.err) == (0, "")
    assert "0 of 2 drawn rows judged" in begun.out


def test_a_policy_that_agrees_with_itself_accuses_no_sound_label(tiny_recipe: Path, tmp_path: Path) -> None:
    """Each policy gives one and the same wrong answer to every fourth product; without a rule, planted ones decide."""

    def finals(slips: int, off: int) -> list[str]:
        rows = [(value, at % 4 == slips) for at, (_, value, _) in enumerate(products(240, ()))]
        return [
            " ".join([str(value + off)] * 4) if slip else f"{value} {value} {value} {value + 3}" for value, slip in rows
        ]

    made = finished(tiny_recipe, tmp_path, products(240, ()), finals(0, 1), finals(1, 2))
    assert suspected(made.folder) == []
    assert f"{BY_POSTERIOR} 0.5 or more" in card(made.folder)
    never_solved = made.table("dropped").filter(reason="never_solved")["id"][0]
    assert "label      wrong with probability" in goldilocks("explain", made.folder, never_solved).out
    assert "whichever finds more planted ones" in goldilocks("run", made.recipe, "--dry").out
    store = times(made.folder / "attempts")
    run(made.recipe, made.folder, "labels.rule=votes")
    assert len(suspected(made.folder)) == 60, "those of the second policy, which decides"
    assert times(made.folder / "attempts") == store
    assert BY_POSTERIOR not in card(made.folder)


def test_few_problems_are_judged_by_votes_to_the_byte(tiny_copy: Tiny) -> None:
    def decisions() -> dict[str, bytes]:
        files = contents(tiny_copy.folder / "decisions", "*.parquet")
        return {name: content for name, content in files.items() if "/labels/" not in name}

    labels = [read_table(path.parent, "labels") for path in (tiny_copy.folder / "decisions").rglob("DONE.json")]
    assert labels
    assert all(table["wrong_label"].null_count() < table.height for table in labels), "they rank, and decide nothing"
    before, queue = decisions(), published(tiny_copy.folder, "disputed")
    assert before
    assert suspected(tiny_copy.folder)
    run(tiny_copy.recipe, tiny_copy.folder, "labels.rule=votes")
    assert decisions() == before
    assert published(tiny_copy.folder, "disputed").equals(queue)
