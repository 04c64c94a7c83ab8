"""Recipes: a TOML file, overrides from the command line, and one clear sentence for whatever cannot be meant."""

from __future__ import annotations

import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from curation.config import Recipe, plain
from curation.records import ConfigError

PATHS = ("path", "model", "recipe", "train")
"""Settings that may hold a path, in whatever table."""

ABSOLUTE = re.compile(r"""(?<![^\s"'=\[,])/[^\s"',\]}]+""")
"""An absolute path within a changed setting, as in ``data.folders=["/a/b"]``."""


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe.

    Args:
        overrides: ``key=value`` with a dotted key (``stage1.band.attempts=8``, ``sources.0.limit=100``); the value is
            read as TOML, or as text where it is not TOML.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"recipe {path}: there is no such file.") from error
    except (IsADirectoryError, PermissionError) as error:
        raise ConfigError(f"recipe {path}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path}: not TOML ({error}).") from error
    for override in overrides:
        set_value(table, override)
    return parse_recipe(table, str(path))


def parse_recipe(table: Mapping[str, Any], where: str) -> Recipe:
    """Check a recipe given as a table; ``where`` is named in the error."""
    try:
        return Recipe.model_validate(plain(table))
    except ValidationError as error:
        problems = [_sentence(detail) for detail in _causes(error.errors())]
        raise ConfigError(f"recipe {where}: " + "\n  ".join(dict.fromkeys(problems))) from error


def override_recipe(recipe: Recipe, overrides: Sequence[str]) -> Recipe:
    """A recipe with some settings changed."""
    table = recipe.model_dump(mode="json")
    for override in overrides:
        set_value(table, override)
    return parse_recipe(table, recipe.name)


def as_toml(recipe: Recipe) -> str:
    """The recipe as TOML, with every default that it ran with."""
    import tomli_w

    return tomli_w.dumps(recipe.model_dump(mode="json", exclude_none=True))


def as_printed(recipe: Recipe, recipe_folder: Path, run_folder: Path) -> str:
    """The recipe as TOML for others to read: no path of this machine stands in it.

    An absolute path in the recipe's folder is written relative to it, as the recipe's own are; one in the run folder
    begins with `RUN/`; of any other the name is left, as `…/name`.
    """
    homes = {run_folder.absolute(): "RUN/", recipe_folder.absolute(): ""}

    def portable(text: str) -> str:
        path = Path(text)
        inside = next((home for home in homes if path.is_relative_to(home)), None)
        if inside is None:
            return f"…/{path.name}"
        return f"{homes[inside]}{path.relative_to(inside)}"

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: walk(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        if isinstance(value, str) and key in PATHS:
            return portable(value) if value.startswith("/") else value
        if isinstance(value, str) and key == "set":
            return ABSOLUTE.sub(lambda found: portable(found[0]), value)
        return value

    import tomli_w

    return tomli_w.dumps(walk(recipe.model_dump(mode="json", exclude_none=True), ""))


def set_value(table: dict[str, Any], override: str) -> None:
    """Change one setting of a recipe's table: ``key=value`` with a dotted key; tables that are not there are made.

    Raises:
        ConfigError: it is not written so, or the key leads into a value that is no table.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write key=value, as in stage1.band.attempts=8.")
    *path, last = key.strip().split(".")
    target: Any = table
    for step in path:
        if isinstance(target, list):
            target = target[_position(target, step, override)]
        elif isinstance(target, dict):
            if target.get(step) is None:  # absent, or written down as left out
                target[step] = {}
            target = target[step]
        else:
            raise ConfigError(f"--set {override}: `{step}` lies inside a value that is no table.")
    if isinstance(target, list):
        target[_position(target, last, override)] = _value(text)
    elif isinstance(target, dict):
        target[last] = _value(text)
    else:
        raise ConfigError(f"--set {override}: `{last}` lies inside a value that is no table.")


def _position(target: list[Any], step: str, override: str) -> int:
    if not (step.isascii() and step.isdigit()) or int(step) >= len(target):
        raise ConfigError(f"--set {override}: `{step}` is not a position; the list has {len(target)}, from 0.")
    return int(step)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _causes(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Errors without those that only follow from another one.

    A list is called too short when its items are invalid; a table that fails as a table is also "not text" where
    text would have done.
    """

    def follows(detail: ErrorDetails) -> bool:
        if detail["type"] == "too_short":
            return any(other["loc"][: len(detail["loc"])] == detail["loc"] and other is not detail for other in details)
        return detail["type"] == "string_type" and isinstance(detail["input"], Mapping) and len(details) > 1

    return [detail for detail in details if not follows(detail)]


def _sentence(detail: ErrorDetails) -> str:
    """One pydantic error as a sentence that names the key, the value and what is allowed."""
    steps, table = _keys(detail["loc"])
    key = ".".join(steps) or "the recipe"
    message = detail["msg"].removeprefix("Value error, ")
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key `{key}`; allowed here: {', '.join(sorted(table.model_fields if table else ()))}."
        case "missing":
            return f"`{key}` is missing."
        case "value_error":
            return f"{key}: {message}."
        case "union_tag_not_found" if isinstance(detail["input"], Mapping):
            return f"`{key}.kind` is missing."
        case "union_tag_not_found":
            return f"`{key}` = {detail['input']!r:.80}: input should be a table."
        case "union_tag_invalid":
            context = detail["ctx"]
            return f"`{key}.kind` = {context['tag']!r:.80}: input should be one of {context['expected_tags']}."
    return f"`{key}` = {detail['input']!r:.80}: {message[:1].lower()}{message[1:]}."


def _is_branch(step: int | str) -> bool:
    """Names that pydantic adds for the branches of a plain union, which are no keys of the recipe."""
    return step in ("str", "Pick") or (isinstance(step, str) and "[" in step)


def _keys(location: Sequence[int | str]) -> tuple[list[str], type[BaseModel] | None]:
    """An error's place as keys of the recipe, and the table in which the last of them stands, where that is known.

    pydantic also names the branch of a union that it took; those names are left out.
    """
    table: type[BaseModel] | None = Recipe
    inside: type[BaseModel] | None = Recipe
    choice: Mapping[str, type[BaseModel]] = {}
    keys: list[str] = []
    for step in location:
        if step in choice:
            inside, choice = choice[str(step)], {}
            continue
        if _is_branch(step):
            continue
        keys.append(str(step))
        if isinstance(step, int):
            continue
        table = inside
        field = inside.model_fields.get(step) if inside is not None else None
        choice = variants(field) if field is not None else {}
        inside = model_in(field.annotation) if field is not None and not choice else None
    return keys, table


def variants(field: FieldInfo) -> dict[str, type[BaseModel]]:
    """The tables that a field may be, by the value of their `kind`; empty where there is no such choice."""
    told, annotation = field.discriminator, field.annotation
    for argument in typing.get_args(annotation) if told is None else ():  # PolicySettings | None
        if typing.get_origin(argument) is typing.Annotated:
            annotation, *rest = typing.get_args(argument)
            told = next((one.discriminator for one in rest if isinstance(one, FieldInfo)), None)
    if not isinstance(told, str):
        return {}
    return {
        tag: model
        for model in typing.get_args(annotation)
        for tag in typing.get_args(model.model_fields[told].annotation)
    }


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The first table that a type names, at any depth; None where it names none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, tuple, typing.Annotated):
        for argument in typing.get_args(annotation):
            found = model_in(argument)
            if found is not None:
                return found
    return None
