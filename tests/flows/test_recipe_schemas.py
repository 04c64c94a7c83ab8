"""Shipped recipes read each of their sources in its exact schema, and a rehearsal walks them to the end."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from curation.config import Recipe, Source
from curation.records import PROBLEM, GoldilocksError
from curation.sources import code_problems, problems
from curation.sources.reading import read_parts
from curation.sources.rows import Row
from flows.cli.plan import stated_plan
from flows.cli.rehearse import rehearse
from flows.run.recipe import load_recipe
from tests.flows import miniature
from tests.flows.conftest import goldilocks, published
from tests.places import IS_WHOLE

MATH, CODE = "magistral_math", "magistral_code"
FROM_HUB = (MATH, CODE, "apps_code", "taco_code", "codeforces_code")
EVERY_SOURCE = [
    (name, source.name) for name in FROM_HUB for source in load_recipe(miniature.RECIPES / f"{name}.toml").sources
]


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Recipe, Path]]:
    """The recipes that read from the hub, with miniatures of their data sets."""
    folders = {name: tmp_path_factory.mktemp(name) for name in FROM_HUB}
    return {name: (load_recipe(miniature.local_recipe(name, folder)), folder) for name, folder in folders.items()}


def read_rows(source: Source, folder: Path) -> tuple[list[int], list[Row]]:
    (part,) = read_parts(source, folder, 100, lambda rows, positions: (list(positions), rows))
    return part.built


@pytest.mark.parametrize(("name", "source"), EVERY_SOURCE, ids=[f"{name}:{source}" for name, source in EVERY_SOURCE])
def test_a_source_is_read_in_its_own_schema(name: str, source: str, recipes: dict[str, tuple[Recipe, Path]]) -> None:
    recipe, folder = recipes[name]
    (wanted,) = (one for one in recipe.sources if one.name == source)
    positions, rows = read_rows(wanted, folder)
    frame = problems.problem_rows(wanted, rows, positions)
    assert frame.schema == PROBLEM
    assert frame["statement"].null_count() == 0
    assert set(frame["license"]) == {wanted.license}
    assert all(value is not None for text in frame["meta"].drop_nulls() for value in json.loads(text).values())
    if wanted.domain == "math":
        assert frame["answer"].null_count() == 0
        return
    assert wanted.code is not None
    tables = code_problems.code_tables(frame["id"].to_list(), rows, wanted.code)
    assert tables.tests.height >= 6
    assert tables.tests["output"].null_count() == 0
    assert tables.solutions["right"].sum() >= 2
    assert tables.judging.height == frame.height


def test_numina_s_proofs_and_faulty_rows_are_not_read(recipes: dict[str, tuple[Recipe, Path]]) -> None:
    recipe, folder = recipes[MATH]
    positions, rows = read_rows(recipe.sources[0], folder)
    assert positions == [0, 3, 4, 5]
    assert {row["question_type"] for row in rows} == {"math-word-problem", "MCQ"}


def test_codeforces_has_its_submissions_beside_it(recipes: dict[str, tuple[Recipe, Path]]) -> None:
    recipe, folder = recipes["codeforces_code"]
    code = recipe.sources[0].code
    assert code is not None
    tables = code_problems.code_tables(["a"], read_rows(recipe.sources[0], folder)[1], code)
    assert tables.solutions.select("lang", "right").rows() == [("python", True), ("python", True), ("python", False)]
    assert tables.other_languages == {"Python 2": 1}


@pytest.mark.parametrize("name", FROM_HUB)
def test_a_recipe_s_head_says_what_the_plan_says(name: str) -> None:
    path = miniature.RECIPES / f"{name}.toml"
    head = path.read_text().partition("\nname = ")[0]
    hours = sum(plan.hours.mean for plan in stated_plan(path) if plan.hours is not None)
    assert f"{hours:,.0f} GPU hours" in head
    assert "GB of disk" in head
    recipe = load_recipe(path)
    assert recipe.costs is not None
    pinned = [source.revision for source in recipe.sources if source.name not in recipe.left_out]
    assert all(re.fullmatch("[0-9a-f]{40}", revision or "") for revision in pinned)


@pytest.mark.slow
@pytest.mark.parametrize("name", [CODE, *([MATH] if IS_WHOLE else [])])
def test_a_rehearsal_walks_the_whole_recipe_and_says_what_would_fail(name: str, tmp_path: Path) -> None:
    recipe = miniature.local_recipe(name, tmp_path)
    rehearsal = rehearse(recipe, 0.01, out=tmp_path / "run")
    assert rehearsal.curated is not None, rehearsal.failures
    said = " ".join(rehearsal.failures)
    assert "decontamination" not in said
    assert "holds no rows" not in said  # a share of so few rows is none: some are taken nevertheless
    dropped = published(tmp_path / "run", "dropped")
    if name == MATH:
        assert "models/Qwen2.5-7B-Instruct; fetch the model into it" in said  # the model of grader_7b.toml
        assert dropped.filter(pl.col("reason") == "contaminated")["row"].to_list() == [5]
    else:
        assert dropped.filter(pl.col("source") == "apps")["reason"].to_list() == ["no_solution"]
    taken = published(tmp_path / "run", "data")
    assert set(taken["source"]) == {source.name for source in load_recipe(recipe).read_sources}
    assert (tmp_path / "run" / "curated" / "README.md").is_file()


def test_a_share_of_nothing_and_a_recipe_without_sources_are_refused(tmp_path: Path) -> None:
    recipe = miniature.local_recipe(MATH, tmp_path)
    with pytest.raises(GoldilocksError, match="give a share of the rows above 0 and at most 1"):
        rehearse(recipe, 0.0, out=tmp_path / "run")
    for folder in {Path(source.path).parts[0] for source in load_recipe(recipe).sources}:
        shutil.rmtree(tmp_path / folder)
        (tmp_path / folder).mkdir()
    recipe.write_text(re.sub(r'(?m)^path = "', 'path = "./', recipe.read_text()))
    said = goldilocks("run", recipe, "--rehearse", "0.5", "--out", tmp_path / "run")
    assert said.status == 1
    assert "no source can be read, so there is nothing to rehearse" in said.err
    assert "source dapo-17k" in said.err
