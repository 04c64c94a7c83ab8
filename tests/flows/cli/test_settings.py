"""`goldilocks settings`: every field of a recipe with its type, its default and its meaning."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from curation.config import Recipe
from curation.records import DropReason
from flows.cli.settings import deciding_settings, settings_of
from tests.flows.conftest import goldilocks, refusal
from training.recipe import TrainRecipe


def listed(*arguments: str) -> list[str]:
    lines = goldilocks("settings", *arguments, columns=400).out.partition("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if not line.startswith(" ")]


@pytest.mark.parametrize("model", [Recipe, TrainRecipe])
def test_every_field_of_the_schema_is_listed_once_with_its_meaning(model: type[BaseModel]) -> None:
    schema, settings = model.model_json_schema(), list(settings_of(model))
    keys = [setting.key for setting in settings]
    assert len(keys) == len(set(keys))
    assert all(setting.meaning.endswith(".") for setting in settings)
    names, meanings = {key.split(".")[-1].partition("(")[0] for key in keys}, {setting.meaning for setting in settings}
    for table in (schema, *(table for name, table in schema["$defs"].items() if name != "Pick")):
        for name, field in table.get("properties", {}).items():
            assert name in names or any(f"{name}.N" in key for key in keys), name
            assert "$ref" in json.dumps(field) or name == "kind" or field["description"] in meanings, name


def test_the_command_prints_them_all_as_wide_as_the_terminal() -> None:
    assert listed() == [setting.key for setting in settings_of()]
    assert listed("--train") == [setting.key for setting in settings_of(TrainRecipe)]
    shown = goldilocks("settings").out
    for line in (
        "seed  integer, 0 by default",
        "stage1.model  text, required",
        "stage1.band.max_pass_rate  number, 0.75",
    ):
        assert f"\n{line}" in shown
    lines = goldilocks("settings", columns=80).out.splitlines()
    assert {setting.key for setting in settings_of()} <= {line.split()[0] for line in lines if line[:1].strip()}
    assert max(len(line) for line in lines if line.startswith("    ")) <= 80
    below = goldilocks("settings", "sources", columns=400).out.partition("\n\n")[2]
    assert "path or table:\n" in below


def test_a_prefix_a_word_or_a_key_of_a_recipe_chooses() -> None:
    for prefix in ("stage1.band", "models.NAME(vllm)", "sources.N.columns."):
        assert listed(prefix) == [setting.key for setting in settings_of() if setting.key.startswith(prefix)]
    kinds = [f"models.NAME({kind}).decoding.top_p" for kind in ("vllm", "endpoint", "torch")]
    assert listed("models.NAME.decoding.top_p") == kinds
    rows = {row.key: row for row in settings_of(TrainRecipe)}
    found = listed("staleness", "--train")
    assert found
    assert all("staleness" in f"{key} {rows[key].meaning}".lower() for key in found)


def test_a_key_of_nothing_names_the_nearest_or_the_tables() -> None:
    for prefix in ("stage9", "[bold]"):
        said = refusal("settings", prefix)
        assert f"no setting has {prefix!r} in its name or meaning" in said
        assert "the top-level keys are: models, name, flow, description, seed, shard_rows, workers," in said
    assert "did you mean `stage1.band.attempts`?" in refusal("settings", "stage1.band.atempts")


def test_editors_get_the_schema() -> None:
    for model, arguments in ((Recipe, ()), (TrainRecipe, ("--train",))):
        schema = json.loads(goldilocks("settings", "--schema", *arguments).out)
        assert schema.pop("$schema").startswith("https://json-schema.org/")
        assert schema == model.model_json_schema()


def test_every_drop_reason_names_the_settings_that_decide() -> None:
    undecided = {reason.value for reason in DropReason if not deciding_settings(reason)}
    assert undecided == {
        "unverifiable_answer", "unproven_rewriting", "duplicate", "conflicting_answers", "rejected", "interactive",
        "asks_function", "needs_files",
    }  # fmt: skip
    assert "code.min_tests" in goldilocks("settings", "too_few_tests").out
