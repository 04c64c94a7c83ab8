"""Every key of a recipe, by its JSON schema: another way than the code under test goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class Key:
    """A setting: the tables and lists on its way, with the kind of a table that may be of several, and its name.

    Example: ``Key((("models", ""), ("some", "vllm")), "model")``; a list's item is the step ``("0", "")``.
    """

    path: tuple[tuple[str, str], ...]
    name: str

    def dotted(self, name: str = "") -> str:
        """Return the key as a recipe writes it, under another name where one is given."""
        return ".".join([*(step for step, _ in self.path), name or self.name])

    def table(self, name: str, value: object) -> Any:
        """Return a recipe that holds only this setting, under another name, and the kinds of its tables."""
        inner: Any = {name: value}
        for step, kind in reversed(self.path):
            if kind and not (inner.keys() == {name} and self.name == "kind"):
                inner = {"kind": kind, **inner}
            inner = [inner] if step == "0" else {step: inner}
        return inner


def recipe_keys(model: type[BaseModel]) -> list[Key]:
    """Return every key below a model, those of a table's kinds apart."""
    schema = model.model_json_schema()
    return list(_of_table(schema, schema.get("$defs", {}), ()))


def _of_table(table: Any, known: Any, path: tuple[tuple[str, str], ...]) -> Iterator[Key]:
    for name, field in table["properties"].items():
        yield Key(path, name)
        yield from _inside(field, known, path, name)


def _inside(field: Any, known: Any, path: tuple[tuple[str, str], ...], name: str) -> Iterator[Key]:
    def definition(reference: str) -> Any:
        return known[reference.rpartition("/")[2]]

    if "$ref" in field:
        yield from _of_table(definition(field["$ref"]), known, (*path, (name, "")))
    for part in field.get("anyOf", ()):
        yield from _inside(part, known, path, name)
    for kind, reference in field.get("discriminator", {}).get("mapping", {}).items():
        yield from _of_table(definition(reference), known, (*path, (name, kind)))
    if "items" in field:
        yield from _inside(field["items"], known, (*path, (name, "")), "0")
    if isinstance(field.get("additionalProperties"), dict):
        yield from _inside(field["additionalProperties"], known, (*path, (name, "")), "some")
