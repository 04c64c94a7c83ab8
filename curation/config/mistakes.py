"""Turns pydantic's errors into one sentence each: the key as a recipe writes it, the value, and what is allowed."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError

from curation.config.base import ByKind
from curation.public_urls import public_text

SHOWN = 80
"""Characters of a wrong value that a message shows."""

LIKENESS = 0.6
"""Min ratio of `difflib` at which a name is suggested for another one."""

TABLE, LIST = "input should be a table", "input should be a list"

_IN_TOML = dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), TABLE) | dict.fromkeys(
    ("tuple_type", "list_type", "set_type", "frozen_set_type"), LIST
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One of pydantic's errors: its type, the keys as a recipe has them, the value, the message and its context.

    Attributes:
        tables: the models that the table with the last key may be.
        choices: what the value itself may be.
    """

    kind: str
    keys: tuple[str, ...]
    value: Any
    message: str
    context: Mapping[str, Any]
    tables: Sequence[type[BaseModel]]
    choices: Sequence[Any]

    @property
    def key(self) -> str:
        """Return the dotted key; empty for the recipe itself."""
        return ".".join(self.keys)

    @property
    def is_of_type(self) -> bool:
        """Return whether the value has the wrong type, or is none of a few words."""
        return self.kind.endswith("_type") or self.kind == "literal_error"

    @property
    def names(self) -> list[str]:
        """Return the keys that the table may have."""
        return sorted({name for table in self.tables for name in table.model_fields})


def sentences(model: type[BaseModel], table: Any, error: ValidationError) -> list[str]:
    """Return a sentence for each mistake in a table that ``model`` refused; what follows from another is left out."""
    faults = [_fault(model, table, detail) for detail in error.errors(include_url=False)]
    inner = {fault.keys[:depth] for fault in faults for depth in range(len(fault.keys))}
    faults = [one for one in faults if one.keys not in inner or not (one.is_of_type or one.kind == "too_short")]
    unknown = [fault for fault in faults if fault.kind == "extra_forbidden"]
    meant = {(*fault.keys[:-1], name) for fault in unknown for name in nearest(fault.keys[-1], fault.names)}
    same: dict[tuple[str, ...], list[Fault]] = {}
    for fault in faults:
        if fault.kind != "missing" or fault.keys not in meant:
            same.setdefault(fault.keys, []).append(fault)
    return list(dict.fromkeys(_sentence(_together(group)) for group in same.values()))


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are most like ``name``, several if they are equally so; none if no name is like it."""
    likeness = {other: _likeness(name.casefold(), other.casefold()) for other in names}
    best = max(likeness.values(), default=0.0)
    return sorted(other for other in likeness if likeness[other] == best) if best >= LIKENESS else []


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the question after an unknown name; empty if no name is like it."""
    near = " or ".join(f"`{one}`" for one in nearest(name, names))
    return f"; did you mean {near}?" if near else ""


def tables_in(annotation: Any, metadata: Sequence[Any] = ()) -> list[type[BaseModel]]:
    """Return the models that a type allows, those inside lists and mappings included."""
    return [one for one in _choices(annotation, metadata, into_lists=True) if _is_table(one)]


def kinds_of(table: type[BaseModel]) -> tuple[str, ...]:
    """Return the values of `kind` that choose a model; empty if it has no such key."""
    field = table.model_fields.get("kind")
    return typing.get_args(field.annotation) if field is not None else ()


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _likeness(name: str, other: str) -> float:
    if sorted(name) == sorted(other):  # swapped letters: difflib rates `tsets` and `tests` low
        return 1.0
    return difflib.SequenceMatcher(None, other, name).ratio()


def _choices(annotation: Any, metadata: Sequence[Any] = (), *, into_lists: bool = False) -> Iterator[Any]:
    """Yield the models, lists and mappings that a type allows; ``into_lists``: also what those hold."""
    for registry in (one for one in metadata if isinstance(one, ByKind)):
        yield from registry.models().values()
        return
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if _is_table(annotation):
        yield annotation
    elif origin is typing.Annotated:
        yield from _choices(arguments[0], arguments[1:], into_lists=into_lists)
    elif isinstance(origin, type) and issubclass(origin, tuple | Mapping) and not into_lists:
        yield annotation
    elif origin is not typing.Literal:
        for argument in arguments:
            yield from _choices(argument, into_lists=into_lists)


def _fault(model: type[BaseModel], table: Any, detail: Mapping[str, Any]) -> Fault:
    kind, value, choices = detail["type"], table, [model]
    keys: list[str] = []
    tables: list[type[BaseModel]] = []
    may_branch = True
    for step in detail["loc"]:
        branch = [one for one in choices if _is_table(one) and (step in kinds_of(one) or one.__name__ in str(step))]
        if branch and may_branch:  # pydantic also names the kind of a table, and the branch of a union
            choices, may_branch = branch, len(branch) > 1
        elif _is_key(value, step, choices):
            tables = [one for one in choices if _is_table(one)]
            keys.append(str(step))
            choices = [one for holder in choices for one in _inside(holder, step)]
            value = value[step] if _holds(value, step) else None
            may_branch = True
    message = _IN_TOML.get(kind, detail["msg"].removeprefix("Value error, "))
    if kind in ("too_short", "too_long"):
        message = re.sub("^(Tuple|List|Set|Frozenset|Dictionary) ", "list ", message).replace(" after validation", "")
    if kind != "value_error":  # those messages are the models' own, and begin with a key
        message = message[:1].lower() + message[1:]
    return Fault(kind, tuple(keys), detail["input"], message, detail.get("ctx", {}), tables, choices)


def _holds(value: Any, step: int | str) -> bool:
    return step in value if isinstance(value, Mapping) else isinstance(value, tuple) and step in range(len(value))


def _is_key(value: Any, step: int | str, choices: Sequence[Any]) -> bool:
    """Return whether a step is a key or a position: one that is in the table, or one that could be."""
    return (
        _holds(value, step)
        or isinstance(step, int)
        or any(step in one.model_fields for one in choices if _is_table(one))
    )


def _inside(holder: Any, step: int | str) -> Iterator[Any]:
    """Yield what may be one step inside a table, a mapping or a list."""
    if _is_table(holder):
        field = holder.model_fields.get(str(step))
        if field is not None:
            yield from _choices(field.annotation, field.metadata)
        return
    arguments = typing.get_args(holder)
    place = 0 if isinstance(step, int) else -1  # the values of a mapping are its last argument
    yield from _choices(arguments[place] if arguments else None)


def _together(faults: Sequence[Fault]) -> Fault:
    """Return one fault for those at one key: each branch of a union gives one."""
    best = next((fault for fault in faults if not fault.is_of_type), faults[0])
    if len(faults) == 1 or not best.is_of_type:
        return best
    expected = dict.fromkeys(fault.message.removeprefix("input should be ") for fault in faults)
    return replace(best, kind="union", message=f"input should be {' or '.join(expected)}")


def _sentence(fault: Fault) -> str:
    match fault.kind:
        case "extra_forbidden":
            near = did_you_mean(fault.keys[-1], fault.names)
            allowed = f"{' A' if near else '; a'}llowed here: {', '.join(fault.names)}." if fault.names else "."
            return f"unknown key `{fault.key}`{near}{allowed}"
        case "missing":
            return f"`{fault.key}` is missing."
        case "value_error":
            return f"{fault.key}: {fault.message}." if fault.key else f"{fault.message}."
        case "union_tag_not_found" if isinstance(fault.value, Mapping):
            kinds = [kind for one in fault.choices if _is_table(one) for kind in kinds_of(one)]
            names = {name for one in fault.choices if _is_table(one) for name in one.model_fields}
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
    return f"{subject}{_as_text(fault.value)}: {fault.message}."


def _word_like(value: Any, allowed: str) -> str:
    """Return the end of a sentence about a wrong word: the allowed word that is like it, if there is one."""
    near = nearest(value, re.findall("'([^']*)'", allowed)) if isinstance(value, str) else []
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else "."


def _as_text(value: Any) -> str:
    """Return a value about as TOML writes it, without secrets of URLs, cut to `SHOWN` characters."""
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
