"""Recipes: read from TOML, changed by --set, refused in one sentence that names key, value and what is allowed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from curation.config import Pick, Recipe
from curation.records import ConfigError
from flows.run.recipe import as_printed, load_recipe, override_recipe, parse_recipe
from flows.run.run_folder import open_run
from tests.flows.conftest import goldilocks, published, write_jsonl

RECIPE = """
name = "tiny"
description = "A recipe."

[[sources]]
name = "one"
kind = "jsonl"
path = "one.jsonl"
columns = { statement = "question", answer = { path = "worked", take = "hash" }, meta = ["uid", "meta.level"] }

[[sources]]
name = "two"
kind = "csv"
path = "two.csv"
weight = 2

[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "weak@1"
path = "attempts.jsonl"
columns = { text = "response" }

[stage1.band]
attempts = 4

[stage2]
model = "strong"

[models.strong]
kind = "recorded"
name = "strong@1"
path = "attempts.jsonl"
columns = { attempts = "attempts", text = "response" }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path / "tiny.toml"


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, overrides)
    return str(caught.value)


def changed(**top: Any) -> dict[str, Any]:
    return {**tomllib.loads(RECIPE), **top}


@pytest.mark.parametrize(
    ("override", "where", "value"),
    [
        ("seed=7", "seed", 7),
        ("description=two words, and = signs", "description", "two words, and = signs"),
        ("stage1.band.max_pass_rate=1", "stage1.band.max_pass_rate", 1.0),
        ("stage2.band.attempts=4", "stage2.band.max_pass_rate", 0.875),
        ('statements.languages=["en", "fr"]', "statements.languages", ("en", "fr")),
        ("sources.0.limit=100", "sources.0.limit", 100),
        ('sources.1.columns.answer={value="7"}', "sources.1.columns.answer", Pick(value="7")),
    ],
)
def test_set_changes_one_value(path: Path, override: str, where: str, value: Any) -> None:
    for recipe in (load_recipe(path, [override]), override_recipe(load_recipe(path), [override])):
        found: Any = recipe
        for step in where.split("."):
            found = (
                found[int(step)] if step.isdigit() else found[step] if isinstance(found, dict) else getattr(found, step)
            )
        assert found == value
        assert type(found) is type(value)


def test_a_later_set_wins_and_a_new_table_is_made(path: Path) -> None:
    assert load_recipe(path, ["export.size=5", "export.size=6", "seed=1"]).export.size == 6
    entry = "{name = 'three', kind = 'parquet', path = 'x.parquet'}"
    assert load_recipe(path, [f"sources=[{entry}]"]).sources[0].name == "three"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seed", "--set seed: write key=value, as in seed=1."),
        ("sources.2.limit=5", "`2` is not a position; the list has 2, from 0"),
        ("name.first.second=x", "is inside a value that is no table"),
        (
            "stage1.band.attempt=8",
            "unknown key `stage1.band.attempt`; did you mean `attempts`? Allowed here: attempts, max_pass_rate",
        ),
        ("sources.1.name=one", "two sources are named one; names must differ"),
    ],
)
def test_a_set_that_cannot_be_meant_is_refused(path: Path, override: str, said: str) -> None:
    assert said in refusal(path, override)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            changed(shard_row=5),
            "unknown key `shard_row`; did you mean `shard_rows`? Allowed here: "
            f"{', '.join(sorted(Recipe.model_fields))}.",
        ),
        (
            changed(models={"student": {"model": "m"}}),
            "`models.student.kind` is missing; it should be one of 'recorded', 'vllm', 'endpoint', 'torch'.",
        ),
        (
            changed(stage1={"model": "studnet"}),
            "stage1.model = 'studnet': there is no table [models.studnet]; did you mean `student`? defined: student, "
            "strong.",
        ),
        (
            changed(models={}),
            "stage1.model = 'student': there is no table [models.student]; no model is defined.",
        ),
        (
            changed(models={"student": {"kind": "endpoint", "model": "m", "revision": "1", "urls": ["localhost"]}}),
            "models.student.urls: 'localhost' is no address; write http://host:port/v1.",
        ),
        (
            changed(statements={"languages": "en"}),
            "`statements.languages` = 'en': input should be a list, as in ['en'].",
        ),
    ],
)
def test_one_mistake_is_one_sentence(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_recipe(table, "here.toml")
    lines = [line.strip() for line in str(caught.value).removeprefix("recipe here.toml: ").splitlines()]
    assert lines == [said]


def test_a_file_that_is_no_recipe(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "absent.toml")
    assert "cannot be read" in refusal(tmp_path)
    (tmp_path / "broken.toml").write_text("name = \n")
    assert "broken.toml: not TOML" in refusal(tmp_path / "broken.toml")
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'\n")
    assert "not TOML" in refusal(tmp_path / "bytes.toml")


def test_a_recipe_survives_its_own_writing(path: Path) -> None:
    recipe = load_recipe(path, ["seed=3", "export.size=9", "stage2.band.max_pass_rate=0.75"])
    again = parse_recipe(recipe.model_dump(mode="json"), "again")
    assert again == recipe
    assert again.digest() == recipe.digest()


def test_a_printed_recipe_holds_no_path_of_the_machine(path: Path, tmp_path: Path) -> None:
    recipe, run = load_recipe(path), tmp_path / "runs" / "one"
    places = {
        str(path.parent / "rows.jsonl"): "rows.jsonl",
        str(run / "a" / "b"): "RUN/a/b",
        "/data/x y/z.gz": "…/z.gz",
    }
    for place, printed in {**places, "relative/z.gz": "relative/z.gz"}.items():
        changed = override_recipe(recipe, [f"sources.0.path='{place}'"])
        table = tomllib.loads(as_printed(changed, path.parent, run))
        assert table["sources"][0]["path"] == printed
        assert parse_recipe(table, "again") == override_recipe(recipe, [f"sources.0.path='{printed}'"])


def test_a_recipe_of_three_tables_curates(tmp_path: Path) -> None:
    """Name, source, licence, kinds and columns have defaults: the run goes to its end."""
    path = tmp_path / "My sums.toml"
    path.write_text("""
[[sources]]
path = "problems.jsonl"
columns = { answer = "answer" }

[models.student]
kind = "recorded"
path = "attempts.jsonl"

[stage1]
model = "student"
band = { attempts = 4 }
""")
    sums = {"What is 12 plus 30?": ("42", "42 42 41 42"), "What is 3 times 17?": ("51", "51 51 51 51")}
    write_jsonl(tmp_path / "problems.jsonl", [{"problem": text, "answer": one} for text, (one, _) in sums.items()])
    tried = [{"problem": text, "text": rf"\boxed{{{one}}}"} for text, (_, made) in sums.items() for one in made.split()]
    write_jsonl(tmp_path / "attempts.jsonl", tried)
    said = goldilocks("run", path, "--out", tmp_path / "run")
    assert said.status == 0, said.err
    kept = published(tmp_path / "run", "data")
    assert kept.select("statement", "source", "license", "policy", "correct").rows() == [
        ("What is 12 plus 30?", "problems", "unknown", "attempts@recorded", 3)
    ]
    assert published(tmp_path / "run", "dropped")["reason"].to_list() == ["too_easy"]
    assert open_run(tmp_path / "run").recipe.name == "my-sums"


def test_stage_2_and_the_grader_inherit_what_stage_1_sets() -> None:
    first = {"model": "student", "band": {"attempts": 8, "min_correct": 2}, "sampling": {"error_rate": 0.0}}
    recipe = parse_recipe(changed(stage1=first, stage2={"model": "strong", "band": {"min_correct": 3}}), "here")
    assert recipe.stage2 is not None
    assert recipe.stage2.sampling.error_rate == 0.0
    band = recipe.stage2.band
    assert (band.attempts, band.min_correct, band.max_pass_rate) == (8, 3, 0.875)
    tight = {**first, "band": {"attempts": 8, "max_pass_rate": 0.5}}
    assert parse_recipe(changed(stage1=tight), "here").stage2.band.max_pass_rate == 0.5  # type: ignore[union-attr]
    table = changed(stage1=first, grader={"recipe": "t.toml"}, models={"student": {"kind": "torch", "model": "m"}})
    del table["stage2"]
    assert parse_recipe(table, "here").grader.band.attempts == 8  # type: ignore[union-attr]


def test_the_flow_implies_the_domain() -> None:
    code = {"tests": [{"path": "t"}]}
    recipe = parse_recipe(changed(flow="curate-code", sources=[{"path": "x.jsonl", "code": code}]), "here")
    assert (recipe.sources[0].domain, recipe.models["student"].domain) == ("code", "code")  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match='source x has no `code` table, which `flow = "curate-code"` needs'):
        parse_recipe(changed(flow="curate-code", sources=[{"path": "x.jsonl"}]), "here")
    with pytest.raises(ConfigError, match='source x has programs; set `flow = "curate-code"`'):
        parse_recipe(changed(sources=[{"path": "x.jsonl", "code": code}]), "here")


def test_a_printed_recipe_has_no_address_of_a_server() -> None:
    model = {"kind": "endpoint", "model": "m", "revision": "1", "urls": ["http://db7.corp:81/v1"], "api_key_env": "KEY"}
    text = as_printed(
        parse_recipe(changed(models={**changed()["models"], "student": model}), "here"), Path(), Path("run")
    )
    assert "corp" not in text
    assert "KEY" not in text
    assert "rows_per_level" not in text  # its source is a file
    assert tomllib.loads(text)["models"]["student"]["urls"] == ["http://your-server/v1"]
