"""The base of all recipe tables, and TOML values for pydantic's strict mode."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, SchemaValidator, core_schema

from curation.public_urls import public_url

Url = Annotated[str, PlainSerializer(public_url, when_used="json")]
"""A path that may be a URL; its JSON, and so its digest, has no secrets."""

Names = Annotated[str | tuple[str, ...], Field(union_mode="left_to_right")]
"""One name, or several."""


def names(value: Names | None) -> tuple[str, ...]:
    """Return a name, several or none as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def require_distinct(labels: Iterable[str], plural: str) -> None:
    """Raise `ValueError` for a repeated name."""
    if repeated := sorted(name for name, count in Counter(labels).items() if count > 1):
        raise ValueError(f"two {plural} are named {', '.join(repeated)}; names must differ: give each its own `name`")


class Settings(BaseModel):
    """A recipe's table: immutable, without unknown keys and silent casts."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    undigested: ClassVar[frozenset[str]] = frozenset()
    """Settings that the digest omits, as they change no result."""

    def digest(self) -> str:
        """Return a short hash of the settings, the same in every process."""
        table = self.model_dump(mode="json", exclude=set(self.undigested))
        text = json.dumps(table, sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class ByKind:
    """A table whose `kind` chooses its model in a registry.

    Example: ``Annotated[ObjectiveSettings, ByKind(objectives, "grpo", own_settings), SerializeAsAny()]``

    Args:
        models: by kind; called when a table is checked, so that imports need none.
        default: the kind if a table has none.
        own: makes the model of a user's own kind (`my_file.py:name`), by the recipe's folder.
    """

    models: Callable[[], Mapping[str, type[BaseModel]]]
    default: str
    own: Callable[[Mapping[str, Any], Path], BaseModel] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(
            lambda value, inner, info: self._validated(value, inner, (info.context or {}).get("folder", Path())),
            handler(source),
        )

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choices: dict[Any, CoreSchema] = {kind: model.__pydantic_core_schema__ for kind, model in self.models().items()}
        return handler(core_schema.tagged_union_schema(choices, "kind"))

    def _validated(self, value: Any, inner: Callable[[Any], Any], folder: Path) -> Any:
        models = self.models()
        if isinstance(value, BaseModel):
            return inner(value)
        if isinstance(value, Mapping):
            value = {"kind": self.default, **value}
            if self.own is not None and ":" in str(value["kind"]):
                return self.own(value, folder)
        choices: dict[Any, CoreSchema] = {
            kind: core_schema.no_info_plain_validator_function(model.model_validate) for kind, model in models.items()
        }
        return SchemaValidator(core_schema.tagged_union_schema(choices, "kind")).validate_python(value)


def to_plain(value: Any, sequence: Callable[[Iterable[Any]], Any] = tuple) -> Any:
    """Return a copy of TOML values whose lists are tuples, for pydantic's strict mode, or of another type."""
    if isinstance(value, Mapping):
        return {key: to_plain(item, sequence) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return sequence(to_plain(item, sequence) for item in value)
    return value


def toml_value(text: str) -> Any:
    """Read a TOML value; other text stays text."""
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if len(table) == 1 else text
