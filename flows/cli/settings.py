"""`goldilocks settings`: every field of a recipe, or of a trainer's, as its pydantic model describes it."""

from __future__ import annotations

import difflib
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

from curation.config import Pick, Recipe
from curation.config.base import ByKind
from curation.config.mistakes import kinds_of, tables_in
from curation.records import ConfigError, DropReason
from flows.cli.as_json import print_json
from flows.run.terminal import SafeConsole

COLUMN = "path or table"
"""How a column of a source is written."""

WIDEST, INDENT = 100, "    "
"""Columns that a meaning takes at most, and how far it is indented."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field: its dotted key, its type as a recipe writes it, its default, and its meaning.

    If a table may be one of several kinds, the key names the kind: `models.NAME(vllm).model` is written
    `models.student.model` in the model `student`, whose kind is `vllm`.
    """

    key: str
    kind: str
    default: str
    meaning: str


def settings_of(model: type[BaseModel] = Recipe, prefix: str = "", defaults: Any = None) -> Iterator[Setting]:
    """Yield all settings of a pydantic model, parents before children."""
    for name, field in model.model_fields.items():
        if SkipJsonSchema in map(type, field.metadata):  # set by the loader
            continue
        tables, origin = tables_in(field.annotation, field.metadata), typing.get_origin(field.annotation)
        key = f"{prefix}{name}"
        if tables and isinstance(origin, type):
            key += ".NAME" if issubclass(origin, Mapping) else ".N" if issubclass(origin, tuple) else ""
        is_column = Pick in tables
        if not tables or is_column:
            kind, default = _kind(field.annotation, is_column), _default(field, name, defaults)
            yield Setting(key, kind, default, field.description or "")
            continue
        meaning = field.description or tables[0].__doc__ or ""
        yield Setting(key, "table", "required" if field.is_required() else "", meaning)
        if len(tables) > 1 or any(isinstance(mark, ByKind) for mark in field.metadata):
            for table in tables:
                yield from settings_of(table, f"{key}({kinds_of(table)[0]}).")
            continue
        inner = field.get_default(call_default_factory=True) if not field.is_required() else None
        yield from settings_of(tables[0], f"{key}.", inner if isinstance(inner, BaseModel) else None)


def display_key(key: str) -> str:
    """Return a setting's key as a recipe writes it: without the kinds of the tables that it is in."""
    return re.sub(r"\(\w+\)", "", key)


def deciding_settings(reason: DropReason) -> list[Setting]:
    """Return the settings of a recipe whose meaning names a drop reason."""
    named = (row for row in settings_of() if f"`{reason}`" in row.meaning)
    return [row for row in named if not row.key.startswith("decontamination.against")]  # benchmarks lose no rows


def find_settings(recipe: type[BaseModel], key: str) -> list[Setting]:
    """Return the settings whose key begins with ``key``, else those that have it in their key or meaning.

    Raises:
        ConfigError: there are none.
    """
    rows = list(settings_of(recipe))
    found = [row for row in rows if row.key.startswith(key) or display_key(row.key).startswith(key)]
    if not found:
        sought = key.lower()
        found = [row for row in rows if sought in display_key(row.key) or sought in row.meaning.lower()]
    if not found:
        nearest = difflib.get_close_matches(key, [display_key(row.key) for row in rows], n=1)
        hint = f"did you mean `{nearest[0]}`? " if nearest else ""
        tops = ", ".join(recipe.model_fields)
        raise ConfigError(f"no setting has {key!r} in its name or meaning; {hint}the top-level keys are: {tops}.")
    return found


def show_settings(key: str, *, train: bool, schema: bool) -> None:
    """Print the settings of a recipe, or of a trainer's, that `find_settings` finds, or the JSON Schema of all."""
    from training.recipe import TrainRecipe

    recipe = TrainRecipe if train else Recipe
    if schema:
        print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **recipe.model_json_schema()})
        return
    rows = find_settings(recipe, key)
    console = SafeConsole()
    wrapper = textwrap.TextWrapper(min(console.width, WIDEST), INDENT, INDENT, break_on_hyphens=False)
    for row in rows:
        default = {"": "", "required": ", required"}.get(row.default, f", {row.default} by default")
        console.print(f"{row.key}  {row.kind}{default}")
        console.print(wrapper.fill(row.meaning))
    if any("(" in row.key for row in rows):
        console.print("\ntable(kind).key is written table.key, where table.kind is that kind")
    if any(row.kind == COLUMN for row in rows):
        console.print(f"\n{COLUMN}:")
        for name, field in Pick.model_fields.items():
            console.print(f"  {name:<6} {field.description}")


def _default(field: FieldInfo, name: str, defaults: BaseModel | None) -> str:
    if field.is_required():
        return "required"
    value = getattr(defaults, name) if defaults is not None else field.get_default(call_default_factory=True)
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value) if isinstance(value, tuple) else value)


def _kind(annotation: Any, is_column: bool) -> str:
    if is_column:
        return COLUMN
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(arguments[0], False)
    if origin is typing.Literal:
        return " | ".join(arguments)
    if origin is tuple:
        return f"list of {_kind(arguments[0], False)}"
    if arguments:
        return " | ".join(_kind(part, False) for part in arguments if part is not type(None))
    return {"str": "text", "int": "integer", "float": "number", "bool": "true/false", "Any": "value"}[
        annotation.__name__
    ]
