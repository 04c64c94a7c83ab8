"""`goldilocks settings`: every field of a recipe, found here by another way, with its default and its meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from curation.config import Recipe
from curation.config.reasons import SETTINGS_OF
from curation.records import DropReason
from flows.cli.settings import display_key, settings_of
from flows.run.recipe import parse_recipe
from tests.flows.conftest import goldilocks, refusal
from training.recipe import TrainRecipe

SCHEMA = Recipe.model_json_schema()


def branches(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A field of the JSON schema and whatever else it may be."""
    yield field
    for inner in (*field.get("anyOf", ()), *field.get("allOf", ())):
        yield from branches(inner)


def choices(field: dict[str, Any]) -> dict[str, str]:
    """Kind and definition of the tables that a field may be."""
    return {kind: place.rpartition("/")[2] for kind, place in field.get("discriminator", {}).get("mapping", {}).items()}


def items_of(field: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a field adds to its key, `.N` for a list of tables and `.NAME` for tables by name, and what is inside."""
    listed, named = field.get("items", {}), field.get("additionalProperties", {})
    if "$ref" in listed:
        return ".N", listed
    is_table = isinstance(named, dict) and bool({"discriminator", "$ref"} & set(named))
    return (".NAME", named) if is_table else ("", field)


def fields(table: dict[str, Any] = SCHEMA, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every (key, field) below a table of the JSON schema; of a list's items as `N`."""
    for name, field in table["properties"].items():
        ending, inside = items_of(field)
        key = f"{prefix}{name}{ending}"
        yield key, field
        for branch in branches(inside):
            for kind, definition in choices(branch).items():
                yield from fields(SCHEMA["$defs"][definition], f"{key}({kind}).")
            reference = branch.get("$ref", "").rpartition("/")[2]
            if reference and reference != "Pick":  # a column's `path`, `value` and `take` are told once, below
                yield from fields(SCHEMA["$defs"][reference], f"{key}.")


def test_every_field_is_listed_once_and_no_other() -> None:
    listed = [setting.key for setting in settings_of()]
    assert sorted(listed) == sorted({key for key, _ in fields()})
    assert len(listed) == len(set(listed))
    assert {"models.NAME(vllm).decoding.top_p", "models.NAME(endpoint).urls"} <= set(listed)
    assert {"sources.N.columns.statement", "models.NAME(recorded).columns.text", "stage2.band.max_pass_rate"} <= set(
        listed
    )


def test_every_field_says_what_it_means() -> None:
    described = {key: field.get("description") for key, field in fields()}
    for setting in settings_of():
        assert setting.meaning.endswith("."), setting.key
        assert setting.meaning == described[setting.key] or setting.kind == "table", setting.key


LEAST_POLICIES = (
    {"kind": "recorded", "name": "m@1", "path": "a.jsonl", "columns": {"text": "text"}},
    {"kind": "vllm", "model": "m"},
    {"kind": "endpoint", "model": "m", "revision": "1", "urls": ["http://localhost:8000/v1"]},
    {"kind": "torch", "model": "m"},
)


@pytest.mark.parametrize("policy", LEAST_POLICIES, ids=lambda policy: policy["kind"])
def test_every_default_is_the_one_that_a_run_uses(policy: dict[str, Any]) -> None:
    table = {
        "sources": [{"path": "p"}],
        "decontamination": {"against": [{"name": "b", "path": "p"}]},
        "models": {"NAME": policy},
        "stage1": {"model": "NAME"},
        "stage2": {"model": "NAME"},
    }
    least = parse_recipe(table, "least").model_dump(mode="json")
    for setting in settings_of():
        if "(" in setting.key and (f"({policy['kind']})" not in setting.key or "embedder" in setting.key):
            continue
        if setting.kind == "table" or setting.default == "required" or setting.key == "decontamination.against.N":
            continue
        value: Any = least
        for step in display_key(setting.key).split("."):
            value = (
                None
                if not value and step != display_key(setting.key)
                else value[0]
                if step == "N" and isinstance(value, list)
                else value[step]
            )
        if value is None and setting.default:
            continue  # inside a table that the least recipe leaves out, or a list that it leaves empty
        if setting.key.endswith(("(recorded).columns.text", "(recorded).name", "sources.N.name", "against.N.name")):
            continue  # by another setting
        if setting.key == "stage2.band.max_pass_rate":
            assert value == 0.875, "the recipe sets it by the stage, as its description states"
            continue
        shown = "" if value in (None, [], "") else str(value).lower() if isinstance(value, bool) else str(value)
        assert setting.default == shown, setting.key


def required(table: dict[str, Any] = SCHEMA, prefix: str = "") -> Iterator[str]:
    """The keys that the JSON schema requires, at any depth."""
    for key, _ in fields(table, prefix):
        *path, last = key.removesuffix(".N").removesuffix(".NAME").split(".")
        holders = [table] if not path else [held for name, held in HOLDERS if name == ".".join(path)]
        if any(last in holder.get("required", ()) for holder in holders):
            yield key


def holders(table: dict[str, Any] = SCHEMA, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table below a table, by its key."""
    for name, field in table["properties"].items():
        ending, inside = items_of(field)
        key = f"{prefix}{name}{ending}"
        for branch in branches(inside):
            named = {f"{key}({kind})": definition for kind, definition in choices(branch).items()}
            reference = branch.get("$ref", "").rpartition("/")[2]
            for place, definition in {**named, **({key: reference} if reference not in ("", "Pick") else {})}.items():
                yield place, SCHEMA["$defs"][definition]
                yield from holders(SCHEMA["$defs"][definition], f"{place}.")


HOLDERS = list(holders())


def test_what_is_required_is_told() -> None:
    told = {setting.key for setting in settings_of() if setting.default == "required"}
    assert {"sources.N", "sources.N.path", "stage1.model", "models.NAME(vllm).model"} <= told
    assert told == set(required())


def listed(*arguments: str) -> list[str]:
    """The keys that the command prints, in order."""
    lines = goldilocks("settings", *arguments, columns=400).out.partition("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if not line.startswith(" ")]


def test_the_command_prints_them_all_whole() -> None:
    said = goldilocks("settings", columns=400)
    assert (said.status, said.err) == (0, "")
    assert listed() == [setting.key for setting in settings_of()]
    words = " ".join(said.out.split())
    for setting in settings_of():
        default = {"": "", "required": ", required"}.get(setting.default, f", {setting.default} by default")
        assert " ".join(f"{setting.key} {setting.kind}{default} {setting.meaning}".split()) in words


def test_the_fields_of_a_column_are_told_below() -> None:
    below = goldilocks("settings", "sources", columns=400).out.partition("\n\n")[2]
    for name, field in SCHEMA["$defs"]["Pick"]["properties"].items():
        assert f"  {name} " in below
        assert field["description"] in below


def test_in_a_narrow_terminal_meanings_are_wrapped_and_keys_stay_whole() -> None:
    lines = goldilocks("settings", columns=80).out.splitlines()
    assert {setting.key for setting in settings_of()} <= {line.split()[0] for line in lines if line[:1].strip()}
    assert max(len(line) for line in lines if line.startswith("    ")) <= 80


@pytest.mark.parametrize("prefix", ["stage1.band", "models.NAME(vllm)", "export", "sources.N.columns.", "seed"])
def test_a_prefix_chooses(prefix: str) -> None:
    assert listed(prefix) == [s.key for s in settings_of() if s.key.startswith(prefix)]


def test_what_begins_no_key_is_searched_for() -> None:
    found = listed("staleness", "--train")
    assert found
    rows = {row.key: row for row in settings_of(TrainRecipe)}
    assert all("staleness" in f"{key} {rows[key].meaning}".lower() for key in found)


@pytest.mark.parametrize("prefix", ["stage9", "[bold]", "sources.0"])
def test_a_key_of_nothing_names_the_tables(prefix: str) -> None:
    said = refusal("settings", prefix)
    assert f"no setting has {prefix!r} in its name or meaning" in said
    assert "the top-level keys are: models, name, flow, description, seed, shard_rows, workers," in said


def test_a_key_that_is_misspelt_gets_the_nearest() -> None:
    assert "did you mean `stage1.band.attempts`?" in refusal("settings", "stage1.band.atempts")


def test_a_key_as_a_recipe_holds_it_chooses_too() -> None:
    kinds = [f"models.NAME({kind}).decoding.top_p" for kind in ("vllm", "endpoint", "torch")]
    assert listed("models.NAME.decoding.top_p") == kinds


def test_programs_get_json(tmp_path: Path) -> None:
    (row,) = json.loads(goldilocks("settings", "seed", "--json").out)
    assert (row["key"], row["kind"], row["default"]) == ("seed", "integer", "0")


@pytest.mark.parametrize(("model", "arguments"), [(Recipe, []), (TrainRecipe, ["--train"])])
def test_the_schema_is_printed_for_editors(model: type[BaseModel], arguments: list[str]) -> None:
    schema = json.loads(goldilocks("settings", "--schema", *arguments).out)
    assert schema.pop("$schema").startswith("https://json-schema.org/")
    assert schema == model.model_json_schema()


def test_the_trainers_settings_are_listed_too() -> None:
    rows = list(settings_of(TrainRecipe))
    assert listed("--train") == [row.key for row in rows]
    assert {"objective(grpo).kl_coef", "models.NAME(vllm).dtype", "collector.n_async"} <= {row.key for row in rows}
    assert all(row.meaning.endswith(".") for row in rows)


def test_every_drop_reason_names_the_settings_that_decide() -> None:
    keys = {setting.key for setting in settings_of()}
    assert set(SETTINGS_OF) == set(DropReason)
    assert {key for settings in SETTINGS_OF.values() for key in settings} <= keys
    shown = goldilocks("settings", "too_few_tests").out
    assert "code.min_tests" in shown
    assert "no setting decides which rows leave as duplicate" in refusal("settings", "duplicate")
