"""Turn pydantic's errors into sentences: the recipe's key, the value, and what is allowed."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError

from curation.config.base import ByKind
from curation.public_urls import public_text

SHOWN = 80
"""Max characters of a wrong value in messages."""

LIKENESS = 0.6
"""Min ratio of `difflib` at which a name is suggested."""

TABLE, LIST = "input should be a table", "input should be a list"

_IN_TOML = dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), TABLE) | dict.fromkeys(
    ("tuple_type", "list_type", "set_type", "frozen_set_type"), LIST
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One of pydantic's errors, at a recipe's key.

    Attributes:
        holders: possible models of the table with the last key.
        models: possible models of the value.
    """

    kind: str
    keys: tuple[int | str, ...]
    value: Any
    message: str
    context: Mapping[str, Any]
    holders: Sequence[type[BaseModel]]
    models: Sequence[type[BaseModel]]

    @property
    def key(self) -> str:
        """Return the dotted key; empty for the recipe."""
        return ".".join(map(str, self.keys))

    @property
    def is_of_type(self) -> bool:
        """Return whether the value has a wrong type or is no allowed word."""
        return self.kind.endswith("_type") or self.kind == "literal_error"


def sentences(model: type[BaseModel], table: Any, error: ValidationError) -> list[str]:
    """Return a sentence per mistake in a refused table, without consequences of others."""
    faults = [_fault(model, table, detail) for detail in error.errors(include_url=False)]
    inner = {fault.keys[:depth] for fault in faults for depth in range(len(fault.keys))}
    faults = [one for one in faults if one.keys not in inner or not (one.is_of_type or one.kind == "too_short")]
    unknown = [fault for fault in faults if fault.kind == "extra_forbidden"]
    meant = {(*one.keys[:-1], name) for one in unknown for name in nearest(str(one.keys[-1]), _names(one.holders))}
    same: dict[tuple[int | str, ...], list[Fault]] = {}
    for fault in faults:
        if fault.kind != "missing" or fault.keys not in meant:
            same.setdefault(fault.keys, []).append(fault)
    return list(dict.fromkeys(_sentence(_together(group)) for group in same.values()))


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the most similar names, several if equally similar, none below `LIKENESS`."""
    likeness = {other: _likeness(name.casefold(), other.casefold()) for other in names}
    best = max(likeness.values(), default=0.0)
    return sorted(other for other in likeness if likeness[other] == best) if best >= LIKENESS else []


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the question after an unknown name, if one is similar."""
    near = " or ".join(f"`{one}`" for one in nearest(name, names))
    return f"; did you mean {near}?" if near else ""


def tables_in(annotation: Any, metadata: Sequence[Any] = ()) -> list[type[BaseModel]]:
    """Return the models that a type allows, also inside lists and mappings."""
    registry = next((one for one in metadata if isinstance(one, ByKind)), None)
    if registry is not None:
        return list(registry.models().values())
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return tables_in(arguments[0], arguments[1:])
    return [one for argument in arguments if origin is not typing.Literal for one in tables_in(argument)]


def kinds_of(table: type[BaseModel]) -> tuple[str, ...]:
    """Return the values of `kind` that choose a model, if any."""
    field = table.model_fields.get("kind")
    return typing.get_args(field.annotation) if field is not None else ()


def _likeness(name: str, other: str) -> float:
    if sorted(name) == sorted(other):  # swapped letters: difflib rates `tsets` and `tests` low
        return 1.0
    return difflib.SequenceMatcher(None, other, name).ratio()


def _names(models: Iterable[type[BaseModel]]) -> list[str]:
    return sorted({name for one in models for name in one.model_fields})


def _fault(model: type[BaseModel], table: Any, detail: Mapping[str, Any]) -> Fault:
    """Return an error at its key, without pydantic's kinds and union branches."""
    kind, place, value = detail["type"], detail["loc"], table
    keys: list[int | str] = []
    holders: Sequence[type[BaseModel]] = ()
    models: Sequence[type[BaseModel]] = [model]
    for number, step in enumerate(place):
        is_held = (
            step in value if isinstance(value, Mapping) else isinstance(value, tuple) and step in range(len(value))
        )
        of_kind = [one for one in models if step in kinds_of(one)] if len(models) > 1 else []
        if of_kind and not (is_held and value.get("kind") != step):
            models = of_kind
        elif is_held or (kind == "missing" and number == len(place) - 1):
            keys.append(step)
            fields = [one.model_fields[step] for one in models if step in one.model_fields]
            holders, value = models, value[step] if is_held else None
            models = [one for field in fields for one in tables_in(field.annotation, field.metadata)] or models
    message = _IN_TOML.get(kind, detail["msg"].removeprefix("Value error, "))
    if kind in ("too_short", "too_long"):
        message = re.sub("^(Tuple|List|Set|Frozenset|Dictionary) ", "list ", message).replace(" after validation", "")
    if kind != "value_error":  # those messages are the models' own, and begin with a key
        message = message[:1].lower() + message[1:]
    return Fault(kind, tuple(keys), detail["input"], message, detail.get("ctx", {}), holders, models)


def _together(faults: Sequence[Fault]) -> Fault:
    """Return one fault for those at a key, one per union branch."""
    best = next((fault for fault in faults if not fault.is_of_type), faults[0])
    if len(faults) == 1 or not best.is_of_type:
        return best
    expected = dict.fromkeys(fault.message.removeprefix("input should be ") for fault in faults)
    return replace(best, kind="union", message=f"input should be {' or '.join(expected)}")


def _sentence(fault: Fault) -> str:
    match fault.kind:
        case "extra_forbidden":
            names = _names(fault.holders)
            near = did_you_mean(str(fault.keys[-1]), names)
            allowed = f"{' A' if near else '; a'}llowed here: {', '.join(names)}." if names else "."
            return f"unknown key `{fault.key}`{near}{allowed}"
        case "missing":
            return f"`{fault.key}` is missing."
        case "value_error":
            return f"{fault.key}: {fault.message}." if fault.key else f"{fault.message}."
        case "union_tag_not_found" if isinstance(fault.value, Mapping):
            kinds = [kind for one in fault.models for kind in kinds_of(one)]
            names = _names(fault.models)
            misspelt = [key for key in fault.value if key not in names and nearest(key, names) == ["kind"]]
            should = f"should be one of {', '.join(map(repr, kinds))}."
            if not misspelt:
                return f"`{fault.key}.kind` is missing; it {should}"
            return f"unknown key `{fault.key}.{misspelt[0]}`; did you mean `kind`? It {should}"
        case "union_tag_not_found":
            return f"`{fault.key}` = {_as_text(fault.value)}: {TABLE}."
        case "union_tag_invalid":
            tag, allowed = fault.context["tag"], fault.context["expected_tags"]
            ending = _word_like(tag, allowed)
            return f"`{fault.key}.kind` = {_as_text(tag)}: input should be one of {allowed}{ending}"
        case "literal_error":
            ending = _word_like(fault.value, fault.context["expected"])
            return f"`{fault.key}` = {_as_text(fault.value)}: {fault.message}{ending}"
    subject = f"`{fault.key}` = " if fault.key else ""
    is_item = fault.message == LIST and isinstance(fault.value, str | int)
    example = f", as in [{_as_text(fault.value)}]" if is_item else ""
    return f"{subject}{_as_text(fault.value)}: {fault.message}{example}."


def _word_like(value: Any, allowed: str) -> str:
    """Return a sentence's end: an allowed word like the wrong one, if any."""
    near = nearest(value, re.findall("'([^']*)'", allowed)) if isinstance(value, str) else []
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else "."


def _as_text(value: Any) -> str:
    """Return a value about as in TOML, without URLs' secrets, cut to `SHOWN`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    return public_text(repr(_as_lists(value)))[:SHOWN]


def _as_lists(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_as_lists(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _as_lists(item) for key, item in value.items()}
    return value
