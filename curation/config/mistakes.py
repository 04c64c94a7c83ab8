"""What is wrong with a recipe, in sentences: each names the key as a recipe writes it, the value, and what is allowed.

One mistake is one sentence: what only follows from another error is left out, and what the branches of a union say is
put together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from curation.config.places import Place, is_table, locate

SHOWN = 80
"""Characters of a wrong value that are shown."""

LIKENESS = 0.6
"""Least ratio of `difflib` from which on a name is suggested for another."""

TABLE, LIST = "input should be a table", "input should be a list"

_IN_TOML = {
    "model_type": TABLE,
    "model_attributes_type": TABLE,
    "dict_type": TABLE,
    "mapping_type": TABLE,
    "tuple_type": LIST,
    "list_type": LIST,
    "set_type": LIST,
    "frozen_set_type": LIST,
}
"""What pydantic says in the words of Python, by the type of its error."""

_EXPECTATION = re.compile(r"^input should be ")


@dataclass(frozen=True, slots=True)
class Fault:
    """One of pydantic's errors, at its place."""

    kind: str
    location: tuple[int | str, ...]
    place: Place
    value: Any
    message: str
    context: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Return the dotted key; empty for the recipe itself."""
        return ".".join(self.place.keys)


def sentences(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Return a sentence for each mistake in a recipe whose root is ``model``."""
    faults = [_fault(model, detail) for detail in error.errors(include_url=False)]
    order = {fault.location: number for number, fault in enumerate(faults)}
    faults = _without_other_branches(_without_short_lists(faults))
    faults.sort(key=lambda fault: order[fault.location])
    suggested = {
        (fault.location[:-1], name)
        for fault in faults
        if fault.kind == "extra_forbidden"
        for name in nearest(fault.place.keys[-1], _fields(fault.place))
    }
    mistakes = [fault for fault in faults if not (fault.kind == "missing" and _address(fault) in suggested)]
    return list(dict.fromkeys(_sentence(fault) for fault in mistakes))


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that resemble ``name`` most; several where they do so equally, none where none does."""
    likeness = {other: _likeness(name.casefold(), other.casefold()) for other in names}
    most = max(likeness.values(), default=0.0)
    return sorted(other for other in likeness if likeness[other] == most) if most >= LIKENESS else []


def _likeness(name: str, other: str) -> float:
    if sorted(name) == sorted(other):  # letters that changed places: difflib finds `tsets` unlike `tests`
        return 1.0
    return difflib.SequenceMatcher(None, other, name).ratio()


def _fault(model: type[BaseModel], detail: ErrorDetails) -> Fault:
    message = _IN_TOML.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    if detail["type"] in ("too_short", "too_long"):
        message = re.sub("^(Tuple|List|Set|Frozenset|Dictionary) ", "list ", message).replace(" after validation", "")
    if detail["type"] != "value_error":  # those are the models' own words, and begin with a key
        message = message[:1].lower() + message[1:]
    place = locate(model, detail["loc"])
    return Fault(detail["type"], detail["loc"], place, detail["input"], message, detail.get("ctx", {}))


def _without_short_lists(faults: Sequence[Fault]) -> list[Fault]:
    """Leave out faults of too short lists whose items are invalid, for that follows."""

    def follows(fault: Fault) -> bool:
        depth = len(fault.location)
        return any(other.location[:depth] == fault.location and len(other.location) > depth for other in faults)

    return [fault for fault in faults if fault.kind != "too_short" or not follows(fault)]


def _without_other_branches(faults: Sequence[Fault], level: int = 0) -> list[Fault]:
    """Keep, of each plain union, the branch that the value was meant for, or one fault that says what all would take.

    ``level`` counts the unions that a fault lies in, from outside.
    """
    remaining: list[Fault] = []
    by_union: dict[tuple[int | str, ...], list[Fault]] = {}
    for fault in faults:
        unions = fault.place.unions
        if level < len(unions):
            by_union.setdefault(fault.location[: unions[level]], []).append(fault)
        else:
            remaining.append(fault)
    for faults_of_union in by_union.values():
        branch = _meant_branch(faults_of_union, faults_of_union[0].place.unions[level])
        remaining += _without_other_branches(branch, level + 1)
    return remaining


def _meant_branch(faults: Sequence[Fault], position: int) -> list[Fault]:
    by_branch: dict[int | str, list[Fault]] = {}
    for fault in faults:
        by_branch.setdefault(fault.location[position], []).append(fault)
    same_type = [group for group in by_branch.values() if not _is_of_other_type(group, position)]
    if same_type:
        return min(same_type, key=len)
    expected = dict.fromkeys(_EXPECTATION.sub("", fault.message) for fault in faults)
    return [replace(faults[0], kind="union", message=f"input should be {' or '.join(expected)}")]


def _is_of_other_type(branch: Sequence[Fault], position: int) -> bool:
    """Return whether a union's branch was refused for the type of the value, and not for its content."""
    first = branch[0]
    return len(first.location) == position + 1 and (first.kind.endswith("_type") or first.kind == "literal_error")


def _sentence(fault: Fault) -> str:
    match fault.kind:
        case "extra_forbidden":
            return _unknown_key(fault)
        case "missing":
            return f"`{fault.key}` is missing."
        case "value_error":
            return f"{fault.key}: {fault.message}." if fault.key else f"{fault.message}."
        case "union_tag_not_found" if isinstance(fault.value, Mapping):
            return _untagged(fault)
        case "union_tag_not_found":
            return f"`{fault.key}` = {_as_text(fault.value)}: {TABLE}."
        case "union_tag_invalid":
            allowed = fault.context["expected_tags"]
            key = ".".join((*fault.place.keys, fault.context["discriminator"].strip("'")))
            tag = fault.context["tag"]
            return f"`{key}` = {_as_text(tag)}: input should be one of {allowed}{_suggestion(tag, allowed)}"
        case "literal_error":
            ending = _suggestion(fault.value, fault.context["expected"])
            return f"`{fault.key}` = {_as_text(fault.value)}: {fault.message}{ending}"
    subject = f"`{fault.key}` = " if fault.key else ""
    return f"{subject}{_as_text(fault.value)}: {fault.message}."


def _unknown_key(fault: Fault) -> str:
    allowed = _fields(fault.place)
    if not allowed:
        return f"unknown key `{fault.key}`."
    near = _names(nearest(fault.place.keys[-1], allowed))
    if near:
        return f"unknown key `{fault.key}`; did you mean {near}? Allowed here: {', '.join(sorted(allowed))}."
    return f"unknown key `{fault.key}`; allowed here: {', '.join(sorted(allowed))}."


def _untagged(fault: Fault) -> str:
    """Return the sentence on a table that does not name its kind, or names it under a misspelt key."""
    choice = fault.place.choice
    tagged = choice.tagged() if choice is not None else {}
    name = fault.context["discriminator"].strip("'")
    fields = {field for branch in tagged.values() if is_table(branch) for field in branch.model_fields}
    misspelt = next((key for key in fault.value if key not in fields and nearest(key, {name, *fields}) == [name]), None)
    kinds = f"one of {', '.join(map(repr, tagged))}" if tagged else "a text"
    if misspelt is not None:
        key = ".".join((*fault.place.keys, misspelt))
        return f"unknown key `{key}`; did you mean `{name}`? It should be {kinds}."
    return f"`{'.'.join((*fault.place.keys, name))}` is missing; it should be {kinds}."


def _address(fault: Fault) -> tuple[tuple[int | str, ...], str]:
    return fault.location[:-1], str(fault.location[-1])


def _fields(place: Place) -> Collection[str]:
    return place.table.model_fields if place.table is not None else ()


def _suggestion(value: Any, allowed: str) -> str:
    """Return the end of a sentence on a wrong value: the allowed text that resembles it, where one does."""
    near = nearest(value, re.findall("'([^']*)'", allowed)) if isinstance(value, str) else []
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else "."


def _names(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _as_text(value: Any) -> str:
    """Return a value about as TOML writes it, cut to `SHOWN` characters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{_as_lists(value)!r:.{SHOWN}}"


def _as_lists(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_as_lists(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _as_lists(item) for key, item in value.items()}
    return value
