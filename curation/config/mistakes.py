"""Turn pydantic's errors into sentences: the recipe's key, the value, and what is allowed."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError

from curation.config.base import ByKind, to_plain
from curation.public_urls import public_text

SHOWN = 80
"""Max characters of a wrong value in messages."""

TABLE, LIST = "input should be a table", "input should be a list"

_IN_TOML = dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), TABLE) | dict.fromkeys(
    ("tuple_type", "list_type", "set_type", "frozen_set_type"), LIST
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One of pydantic's errors, at a recipe's key; ``allowed`` are names of keys, kinds or values."""

    kind: str
    keys: tuple[int | str, ...]
    value: Any
    message: str
    allowed: Sequence[str]

    @property
    def is_of_type(self) -> bool:
        """Return whether the value has a wrong type or is no allowed word."""
        return self.kind.endswith("_type") or self.kind == "literal_error"


def sentences(model: type[BaseModel], table: Any, error: ValidationError) -> list[str]:
    """Return a sentence per mistake in a refused table, without consequences of others."""
    faults = [_fault(model, table, detail) for detail in error.errors(include_url=False)]
    inner = {fault.keys[:depth] for fault in faults for depth in range(len(fault.keys))}
    unknown = [fault for fault in faults if fault.kind == "extra_forbidden"]
    meant = {(*fault.keys[:-1], name) for fault in unknown for name in nearest(str(fault.keys[-1]), fault.allowed)[:1]}
    same: dict[tuple[int | str, ...], list[Fault]] = {}
    for fault in faults:
        is_consequence = fault.keys in meant if fault.kind == "missing" else fault.keys in inner
        if not is_consequence or not (fault.is_of_type or fault.kind in ("too_short", "missing")):
            same.setdefault(fault.keys, []).append(fault)
    return list(dict.fromkeys(map(_sentence, same.values())))


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the most similar names, at most two."""
    return difflib.get_close_matches(name, list(names), 2, cutoff=0.62)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the question after an unknown name, if one is similar."""
    near = " or ".join(f"`{known}`" for known in nearest(name, names))
    return f"; did you mean {near}?" if near else ""


def tables_in(annotation: Any, metadata: Sequence[Any] = ()) -> list[type[BaseModel]]:
    """Return the models that a type allows, also inside lists and mappings."""
    registry = next((entry for entry in metadata if isinstance(entry, ByKind)), None)
    if registry is not None:
        return list(registry.models().values())
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return tables_in(arguments[0], arguments[1:])
    return [table for argument in arguments if origin is not typing.Literal for table in tables_in(argument)]


def kinds_of(table: type[BaseModel]) -> tuple[str, ...]:
    """Return the values of `kind` that choose a model, if any."""
    field = table.model_fields.get("kind")
    return typing.get_args(field.annotation) if field is not None else ()


def _fault(model: type[BaseModel], table: Any, detail: Mapping[str, Any]) -> Fault:
    """Return an error at its key, without pydantic's kinds and union branches."""
    kind, path, value = detail["type"], detail["loc"], table
    keys: list[int | str] = []
    owners: Sequence[type[BaseModel]] = ()
    models: Sequence[type[BaseModel]] = [model]
    for number, step in enumerate(path):
        exists = step in value if isinstance(value, Mapping) else isinstance(value, tuple) and step in range(len(value))
        of_kind = [candidate for candidate in models if step in kinds_of(candidate)] if len(models) > 1 else []
        if of_kind and not (exists and value.get("kind") != step):
            models = of_kind
        elif exists or (kind == "missing" and number == len(path) - 1):
            keys.append(step)
            fields = [known.model_fields[step] for known in models if step in known.model_fields]
            owners, value = models, value[step] if exists else None
            models = [inner for field in fields for inner in tables_in(field.annotation, field.metadata)] or models
    value, message, context = detail["input"], detail["msg"], detail.get("ctx", {})
    allowed = re.findall("'([^']*)'", context.get("expected_tags") or context.get("expected") or "")
    if kind == "extra_forbidden":
        allowed = sorted({name for owner in owners for name in owner.model_fields})
    elif kind == "union_tag_not_found":
        if isinstance(value, Mapping) and (typo := next((key for key in value if nearest(str(key), ["kind"])), None)):
            return Fault("extra_forbidden", (*keys, typo), value[typo], "", ["kind"])
        allowed = [choice for known in models for choice in kinds_of(known)]
        kind, message = ("missing", "") if isinstance(value, Mapping) else (kind, TABLE)
        keys += ["kind"] if kind == "missing" else []
    elif kind == "union_tag_invalid":
        keys, value, message = [*keys, "kind"], context["tag"], f"input should be one of {context['expected_tags']}"
    elif kind in ("too_short", "too_long"):
        message = re.sub(r"^\w+", "list", message).replace(" after validation", "")
    message = _IN_TOML.get(kind, message)
    if kind != "value_error":  # those messages are the models' own, and begin with a key
        message = message[:1].lower() + message[1:]
    return Fault(kind, tuple(keys), value, message.removeprefix("Value error, "), allowed)


def _sentence(faults: Sequence[Fault]) -> str:
    """Return the sentence on a key's faults, one per union branch."""
    fault = next((fault for fault in faults if not fault.is_of_type), faults[0])
    key, message = ".".join(map(str, fault.keys)), fault.message
    if fault.kind == "extra_forbidden":
        near = did_you_mean(str(fault.keys[-1]), fault.allowed)
        return f"unknown key `{key}`{near}{' A' if near else '; a'}llowed here: {', '.join(fault.allowed)}."
    if fault.kind == "missing":
        kinds = ", ".join(map(repr, fault.allowed))
        return f"`{key}` is missing{f'; it should be one of {kinds}' if kinds else ''}."
    if fault.kind == "value_error":
        return f"{key}: {message}." if key else f"{message}."
    if fault.is_of_type:
        expected = dict.fromkeys(fault.message.removeprefix("input should be ") for fault in faults)
        message = f"input should be {' or '.join(expected)}"
    if message == LIST and isinstance(fault.value, str | int):
        message += f", as in [{_as_text(fault.value)}]"
    is_word = isinstance(fault.value, str) and len(faults) == 1
    ending = did_you_mean(fault.value, fault.allowed) if is_word else ""
    return f"{f'`{key}` = ' if key else ''}{_as_text(fault.value)}: {message}{ending or '.'}"


def _as_text(value: Any) -> str:
    """Return a value about as in TOML, without URLs' secrets, cut to `SHOWN`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    return public_text(repr(to_plain(value, list)))[:SHOWN]
