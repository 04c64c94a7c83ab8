"""A run and its models' servers: asked for before anything begins, offline, and prompts that every server refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.records import problem_id
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import Tiny, free_port, goldilocks, published, recipe_with, stamps, write_jsonl
from tests.flows.run.folders import card, contents, run
from tests.flows.solver import Solver, write_recipe
from tests.patience import patient


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, retries=1)


def recipe_of(home: Path, url: str, model: str = "weak", key: str = "") -> Path:
    return write_recipe(home, 20, [f'kind = "endpoint"\nmodel = "{model}"\nrevision = "1"\nurls = ["{url}"]\n{key}'])


@pytest.mark.parametrize(
    ("model", "key", "message", "dry"),
    [
        ("gone", "", "holds no model 'gone'", False),
        ("weak", 'api_key_env = "GOLDILOCKS_NO_SUCH_KEY"', "GOLDILOCKS_NO_SUCH_KEY", True),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_first(
    tmp_path: Path, model: str, key: str, message: str, dry: bool
) -> None:
    with Solver(0.0) as solver:
        recipe = recipe_of(tmp_path, solver.url, model, key)
        done = goldilocks("run", recipe, "--out", tmp_path / "run", *(["--dry"] if dry else []))
    assert done.status == 1
    assert "models.student: " in done.err
    assert message in done.err
    assert not (tmp_path / "run/stages").exists()


@pytest.mark.slow
def test_without_its_server_a_run_begins_nothing_and_a_finished_one_only_warns(tmp_path: Path) -> None:
    dead = recipe_of(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    refused = goldilocks("run", dead, "--out", tmp_path / "run")
    assert refused.status == 1
    assert "models.student: no server answers" in refused.err
    assert not (tmp_path / "run/stages").exists()
    with Solver(0.0) as solver:
        recipe = recipe_of(tmp_path, solver.url)
        run(recipe, tmp_path / "run")
    assert "warning: models.student: no server answers" in run(recipe, tmp_path / "run").err


@pytest.mark.slow
def test_a_new_band_is_decided_from_stored_attempts(tmp_path: Path) -> None:
    out, band = tmp_path / "run", ("stage1.band.max_pass_rate=0.7", "stage1.band.min_correct=2")
    with Solver(0.0) as solver:
        recipe = write_recipe(tmp_path, 40, [solver.table("weak")], "labels.rule=votes")
        run(recipe, out)
        made = solver.requests
        changes = [word for change in band for word in ("--set", change)]
        offline = goldilocks("run", recipe, "--out", out, *changes, "--offline")
        assert (offline.status, solver.requests) == (0, made), offline.err
        left_open = re.search(r"do not decide (\d+) of 40 problems", offline.err)
        assert left_open is not None, offline.err
        decisions = pl.read_parquet(out / "decisions" / "stage1" / "*" / "decisions" / "*.parquet")
        assert decisions.filter(reason="too_few_attempts").height == int(left_open[1]) > 0
        assert decisions["keep"].any()
        assert "do not decide are sampled" in run(recipe, out, *band).err
        assert solver.requests > made


# --- prompts that every server refuses -------------------------------------------------------------------------------

RECIPE = recipe_with(
    'name="poisoned"',
    "shard_rows=2",
    "stage1.band.max_pass_rate=1.0",
    'models.student={kind="endpoint", model="m", revision="1", prompt="plain", urls=["URL"]}',
)
PROBLEMS = {f"What is {number} plus {number} times 3?": str(4 * number) for number in (11, 12, 13, 14, 15, 16)}
POISONED, OTHER = "What is 12 plus 12 times 3?", "What is 15 plus 15 times 3?"


def refusing(folder: Path, refused: dict[str, int]) -> None:
    """The server answers every problem rightly, less those that it refuses with a status."""
    answers = [[statement, f"So it is \\boxed{{{answer}}}."] for statement, answer in PROBLEMS.items()]
    (folder / "says.json").write_text(json.dumps([*([text, status] for text, status in refused.items()), *answers]))


@pytest.fixture
def poisoned(tmp_path: Path) -> Iterator[Tiny]:
    """A recipe whose server answers all problems until a test lets it refuse some."""
    home = tmp_path / "inputs"
    home.mkdir()
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": answer} for text, answer in PROBLEMS.items()])
    refusing(tmp_path, {})
    server = StandIn(tmp_path / "journal.jsonl", says=tmp_path / "says.json")
    (home / "poisoned.toml").write_text(RECIPE.replace("URL", server.url))
    yield Tiny(home / "poisoned.toml", tmp_path / "run")
    server.stop()


@pytest.mark.slow
def test_one_poisoned_prompt_is_set_aside_and_asked_again(poisoned: Tiny, tmp_path: Path) -> None:
    folder = poisoned.folder
    refusing(tmp_path, {POISONED: 400})
    first = run(poisoned.recipe, folder)
    assert "sampling_failed 1" in first.out
    assert "problems that the model's servers refused: 1; the next run tries them again (retry 1 of 2)" in first.out
    (row,) = published(folder, "dropped").filter(reason="sampling_failed").iter_rows(named=True)
    assert row["statement"] == POISONED
    assert row["evidence"].startswith("attempt 0 was refused (400): ")
    assert "400 the prompt is poisoned" in row["evidence"]
    assert "sampling_failed" in goldilocks("status", folder).out
    assert "the prompt is poisoned" in goldilocks("explain", folder, problem_id(POISONED)).out
    assert "refused by the model's servers" in card(folder)
    assert published(folder, "data").height == 5
    (noted,) = (folder / "attempts").glob("*/refused.jsonl")
    assert json.loads(noted.read_text().splitlines()[0])[:3] == [problem_id(POISONED), 0, "400"]
    assert json.loads((folder / "curated" / "asked.json").read_text())["prompt"] == "plain"

    kept = stamps(folder / "verdicts")
    refusing(tmp_path, {})
    assert "sampling_failed" not in run(poisoned.recipe, folder).out
    later = stamps(folder / "verdicts")
    assert all(later[name] == stamp for name, stamp in kept.items() if "/verdicts/00001" in name)
    run(poisoned.recipe, tmp_path / "untouched")
    ours, theirs = (published(made, "data").sort("id") for made in (folder, tmp_path / "untouched"))
    assert ours.height == 6
    assert ours.equals(theirs)


@pytest.mark.slow
def test_what_stays_refused_is_asked_by_two_more_runs_and_changes_nothing(poisoned: Tiny, tmp_path: Path) -> None:
    refusing(tmp_path, {POISONED: 400})
    run(poisoned.recipe, poisoned.folder)
    before, journal, asked = contents(poisoned.folder / "curated" / "data"), tmp_path / "journal.jsonl", []
    for _ in range(3):
        start = journal.stat().st_size
        last = run(poisoned.recipe, poisoned.folder)
        asked.append(journal.stat().st_size > start)
    assert asked == [True, True, False]
    assert "no further run tries them again; another revision or decoding of the model asks anew" in last.out
    assert contents(poisoned.folder / "curated" / "data") == before


@pytest.mark.slow
def test_too_many_refused_problems_end_the_run_with_counts_and_an_example(poisoned: Tiny, tmp_path: Path) -> None:
    refusing(tmp_path, {POISONED: 400, OTHER: 400})
    for counts in ("2", "1, 1 before"):  # again at a restart
        ended = poisoned.run()
        assert ended.status == 1
        sentence = ended.err.splitlines()[-1]
        refused = rf"2 of 6 problems were refused \(400 (2|{counts})\), more than stage1.sampling.max_failed = 0.01"
        assert re.search(refused, sentence)
        assert "400 the prompt is poisoned. Fix the cause or raise stage1.sampling.max_failed" in sentence
    allowed = run(poisoned.recipe, poisoned.folder, "stage1.sampling.max_failed=0.5")
    assert "sampling_failed 2" in allowed.out
    assert "max_failed = 0 allows (0)" in poisoned.run("stage1.sampling.max_failed=0").err


@pytest.mark.slow
def test_votes_of_a_model_are_refused_and_asked_again_too(poisoned: Tiny, tmp_path: Path) -> None:
    model = poisoned.recipe.read_text().partition("[models.student]")[2]
    with poisoned.recipe.open("a") as recipe:
        recipe.write(f'\n[questions.premises]\nmodel = "voter"\n\n[models.voter]{model}')
    refusing(tmp_path, {POISONED: 400})
    first = run(poisoned.recipe, poisoned.folder)
    assert "Premises by votes: problems that the model's servers refused: 1; the next run tries them" in first.out
    refusing(tmp_path, {})
    assert "refused" not in run(poisoned.recipe, poisoned.folder).out
    assert published(poisoned.folder, "data").height == 6
    refusing(tmp_path, {POISONED: 400, OTHER: 400})
    ended = goldilocks("run", poisoned.recipe, "--out", tmp_path / "other")
    assert ended.status == 1
    assert "(400 2), more than stage1.sampling.max_failed = 0.01 allows (1)" in ended.err
