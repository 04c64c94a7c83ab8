"""Recipes: read from TOML, changed by --set, refused in one sentence that names key, value and what is allowed."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.config import Pick, Recipe
from curation.records import ConfigError
from flows.run.recipe import as_printed, load_recipe, override_recipe, parse_recipe
from flows.run.run_folder import open_run
from tests.flows.conftest import published, write_jsonl
from tests.flows.run.folders import run

RECIPE = Path(__file__).with_name("every_table.toml").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path / "tiny.toml"


def changed(**top: Any) -> dict[str, Any]:
    return {**tomllib.loads(RECIPE), **top}


@pytest.mark.parametrize(
    ("overrides", "find", "value"),
    [
        (["export.size=5", "seed=7", "export.size=6"], lambda recipe: (recipe.seed, recipe.export.size), (7, 6)),
        (["description=two words, and = signs"], lambda recipe: recipe.description, "two words, and = signs"),
        (["stage1.band.max_pass_rate=1"], lambda recipe: recipe.stage1.band.max_pass_rate, 1.0),
        (["stage2.band.attempts=4"], lambda recipe: recipe.stage2.band.max_pass_rate, 0.875),
        (['statements.languages=["en", "fr"]'], lambda recipe: recipe.statements.languages, ("en", "fr")),
        (["sources.0.limit=100"], lambda recipe: recipe.sources[0].limit, 100),
        (['sources.1.columns.answer={value="7"}'], lambda recipe: recipe.sources[1].columns.answer, Pick(value="7")),
        (["sources=[{name='three', path='x.parquet'}]"], lambda recipe: recipe.sources[0].name, "three"),
    ],
)
def test_set_changes_a_value(path: Path, overrides: list[str], find: Callable[[Recipe], Any], value: Any) -> None:
    for recipe in (load_recipe(path, overrides), override_recipe(load_recipe(path), overrides)):
        assert find(recipe) == value
        assert type(find(recipe)) is type(value)
        again = parse_recipe(recipe.model_dump(mode="json"), "again")
        assert (again, again.digest()) == (recipe, recipe.digest())


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "--set seed: write key=value, as in seed=1."),
        ("sources.2.limit=5", "`2` is not a position; the list has 2, from 0"),
        ("name.first.second=x", "is inside a value that is no table"),
        ("sources.1.name=one", "two sources are named one; names must differ"),
        ("shard_row=5", "unknown key `shard_row`; did you mean `shard_rows`? Allowed here: "),
        ("statements.languages=en", "`statements.languages` = 'en': input should be a list, as in ['en']."),
        ("models.student={model='m'}", "`models.student.kind` is missing; it should be one of 'recorded', 'vllm', "),
        ("stage1.band.attempt=8", "unknown key `stage1.band.attempt`; did you mean `attempts`? Allowed here: "),
        ("stage1.model=studnet", "there is no table [models.studnet]; did you mean `student`? defined: student, "),
        ("models={}", "stage1.model = 'student': there is no table [models.student]; no model is defined."),
        (
            'models.student={kind="endpoint", model="m", revision="1", urls=["localhost"]}',
            "models.student.urls: 'localhost' is no address; write http://host:port/v1.",
        ),
    ],
)
def test_a_set_that_cannot_be_meant_is_refused(path: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_recipe(path, [override])


def test_a_file_that_is_no_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'\n")
    for path, message in ((tmp_path, "cannot be read"), (tmp_path / "bytes.toml", "not TOML")):
        with pytest.raises(ConfigError, match=message):
            load_recipe(path)


def test_a_printed_recipe_holds_no_path_of_the_machine_and_no_address_of_a_server(path: Path, tmp_path: Path) -> None:
    recipe, run = load_recipe(path), tmp_path / "runs" / "one"
    for place, printed in {
        str(path.parent / "rows.jsonl"): "rows.jsonl",
        str(run / "a" / "b"): "RUN/a/b",
        "/data/x y/z.gz": "…/z.gz",
        "relative/z.gz": "relative/z.gz",
    }.items():
        table = tomllib.loads(as_printed(override_recipe(recipe, [f"sources.0.path='{place}'"]), path.parent, run))
        assert table["sources"][0]["path"] == printed
        assert parse_recipe(table, "again") == override_recipe(recipe, [f"sources.0.path='{printed}'"])
    model = 'kind="endpoint", model="m", revision="1", urls=["http://db7.corp:81/v1"], api_key_env="KEY"'
    text = as_printed(load_recipe(path, [f"models.student={{{model}}}"]), Path(), Path("run"))
    assert not any(secret in text for secret in ("corp", "KEY", "rows_per_level"))  # the last: its source is a file
    assert tomllib.loads(text)["models"]["student"]["urls"] == ["http://your-server/v1"]


def test_a_recipe_of_three_tables_curates(tmp_path: Path) -> None:
    """Name, source, licence, kinds and columns have defaults: the run goes to its end."""
    path = shutil.copy(Path(__file__).with_name("three_tables.toml"), tmp_path / "My sums.toml")
    sums = {"What is 12 plus 30?": ("42", "42 42 41 42"), "What is 3 times 17?": ("51", "51 51 51 51")}
    write_jsonl(tmp_path / "problems.jsonl", [{"problem": text, "answer": one} for text, (one, _) in sums.items()])
    tried = [{"problem": text, "text": rf"\boxed{{{one}}}"} for text, (_, made) in sums.items() for one in made.split()]
    write_jsonl(tmp_path / "attempts.jsonl", tried)
    run(path, tmp_path / "run")
    kept = published(tmp_path / "run", "data").select("statement", "source", "license", "policy", "correct")
    assert kept.rows() == [("What is 12 plus 30?", "problems", "unknown", "attempts@recorded", 3)]
    assert published(tmp_path / "run", "dropped")["reason"].to_list() == ["too_easy"]
    assert open_run(tmp_path / "run").recipe.name == "my-sums"


def test_stage_2_and_the_grader_inherit_what_stage_1_sets() -> None:
    first = {"model": "student", "band": {"attempts": 8, "min_correct": 2}, "sampling": {"error_rate": 0.0}}
    second = parse_recipe(changed(stage1=first, stage2={"model": "strong", "band": {"min_correct": 3}}), "here").stage2
    assert second is not None
    assert second.sampling.error_rate == 0.0
    assert (second.band.attempts, second.band.min_correct, second.band.max_pass_rate) == (8, 3, 0.875)
    tight = {**first, "band": {"attempts": 8, "max_pass_rate": 0.5}}
    assert parse_recipe(changed(stage1=tight), "here").stage2.band.max_pass_rate == 0.5  # type: ignore[union-attr]
    table = changed(stage1=first, grader={"recipe": "t.toml"}, models={"student": {"kind": "torch", "model": "m"}})
    del table["stage2"]
    assert parse_recipe(table, "here").grader.band.attempts == 8  # type: ignore[union-attr]


def test_the_flow_implies_the_domain() -> None:
    plain = {"path": "x.jsonl"}
    programs = {**plain, "code": {"tests": [{"path": "t"}]}}
    recipe = parse_recipe(changed(flow="curate-code", sources=[programs]), "here")
    assert (recipe.sources[0].domain, recipe.models["student"].domain) == ("code", "code")  # type: ignore[union-attr]
    for flow, source, message in (
        ("curate-code", plain, 'source x has no `code` table, which `flow = "curate-code"` needs'),
        ("curate-math", programs, 'source x has programs; set `flow = "curate-code"`'),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_recipe(changed(flow=flow, sources=[source]), "here")
