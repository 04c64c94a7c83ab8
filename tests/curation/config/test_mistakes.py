"""What is wrong with a recipe, in sentences: every key of both kinds of recipe, and every shape of a model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, field_validator, model_validator

from curation.config import ModelFile, Recipe, Settings, to_plain
from curation.config.loading import parse_settings
from curation.records import ConfigError
from tests.curation.config.recipe_keys import Key, recipe_keys
from tests.curation.tables import check_table
from training.recipe import TrainRecipe


def sentences(model: type[Settings], table: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_settings(model, table, "recipe r")
    return [line.strip() for line in str(caught.value).removeprefix("recipe r: ").splitlines()]


def misspelt(name: str) -> Iterator[str]:
    """Yield a name with a letter too many, with one too few, and with two that changed places."""
    middle = len(name) // 2
    yield name + name[-1]
    if len(name) > 2:
        yield name[:middle] + name[middle + 1 :]
    if len(name) > 3:
        yield name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :]


KEYS = [pytest.param(model, id=model.__name__) for model in (Recipe, TrainRecipe, ModelFile)]


@pytest.mark.parametrize("model", KEYS)
def test_a_misspelt_key_is_named_as_it_is_written_and_the_right_one_suggested(model: type[Settings]) -> None:
    """One key is misspelt in one way, the next key in another."""
    keys = recipe_keys(model)
    names = {key.path: {other.name for other in keys if other.path == key.path} for key in keys}
    wrong, tried = [], 0
    for number, key in enumerate(keys):
        ways = list(misspelt(key.name))
        name = ways[number % len(ways)]
        if name in names[key.path] or is_kind(key):
            continue  # another setting is called so, or the name is no other
        said = sentences(model, key.table(name, date(1979, 5, 27)))
        about = [sentence for sentence in said if f"`{key.dotted(name)}`" in sentence]
        suggested = [sentence.partition("did you mean ")[2].partition("?")[0].split(" or ") for sentence in about]
        tried += 1
        if len(about) != 1 or f"`{key.name}`" not in suggested[0]:
            wrong.append((key.dotted(name), said))
    assert len(wrong) <= 0.02 * tried, wrong
    assert tried > 0.9 * len(keys)


@pytest.mark.parametrize("model", KEYS)
def test_a_value_that_no_setting_takes_is_named_with_its_key(model: type[Settings]) -> None:
    wrong = []
    for key in recipe_keys(model):
        said = sentences(model, key.table(key.name, date(1979, 5, 27)))
        about = [sentence for sentence in said if f"`{key.dotted()}` = 1979-05-27: input should be " in sentence]
        if len(about) != 1 and not is_kind(key):
            wrong.append((key.dotted(), said))
    assert wrong == []


def is_kind(key: Key) -> bool:
    """Whether the key is the one that selects a table's kind: any other kind is called a missing one."""
    return key.name == "kind" and bool(key.path) and bool(key.path[-1][1])


class Disc(Settings):
    """A shape."""

    kind: Literal["disc"]
    radius: float = Field(gt=0)


class Square(Settings):
    """A shape whose key is the other's tag."""

    kind: Literal["square"]
    disc: int = 1
    side: tuple[float, float] = (1.0, 1.0)


class Spring(Settings):
    """A table that is checked as a whole."""

    low: int = 0
    high: int = 1

    @model_validator(mode="after")
    def _order(self) -> Spring:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} is above high = {self.high}")
        return self

    @field_validator("high")
    @classmethod
    def _even(cls, high: int) -> int:
        if high > 99:
            raise ValueError(f"{high} is too many")
        return high


Shape = Annotated[Disc | Square, Field(discriminator="kind")]


class Toy(Settings):
    """Every shape that a recipe may have."""

    name: str = "toy"
    shape: Shape | None = None
    shapes: tuple[Shape, ...] = ()
    by_name: dict[str, Spring] = Field({})
    by_letter: dict[Literal["a", "b"], tuple[Spring, ...]] = Field({})
    spring: str | Spring = ""
    springs: tuple[Spring, ...] | Spring | None = None
    either: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    drawn: str | Shape = ""
    pair: tuple[float, float] = (0.0, 1.0)
    words: tuple[str, ...] = Field(("a",), min_length=1)


def test_one_mistake_is_one_sentence_whatever_the_shape() -> None:
    check_table("mistakes", lambda table: sentences(Toy, to_plain(table)))


def test_names_that_are_equally_near_are_all_suggested() -> None:
    assert sentences(Recipe, {"stage": {}})[-1].startswith("unknown key `stage`; did you mean `stage2` or `stage1`?")


def test_a_prompt_is_read_from_the_recipes_folder_or_its_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("Think.\n")

    def prompt(file: str) -> object:
        table = {"models": {"m": {"kind": "torch", "model": "embedded", "prompt": {"file": file}}}}
        return parse_settings(ModelFile, table, "models.toml", folder=tmp_path).models["m"].model_dump()["prompt"]

    assert prompt("own.txt") == {"file": "own.txt", "text": "Think."}
    with pytest.raises(ConfigError, match=r"models\.m\.prompt: .*none\.txt cannot be read .*; name a text file\."):
        prompt("none.txt")


def test_a_shown_value_has_no_secrets_even_if_it_is_cut() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_settings(Recipe, {"stage1": {"model": {"urls": ["http://me:hunter2@" + "a" * 200]}}}, "recipe")
    assert "http://" in str(refused.value)
    assert "hunter2" not in str(refused.value)
