"""Where a value stands in a tree of settings models: from pydantic's location of an error to the keys of a recipe.

pydantic names more than keys in a location: the tag of a union's table (``data.embedded.problems``), or the branch of a
plain union (``answer.str``). `locate` walks the models beside the location and so knows which step is a key.

Not here: callable discriminators, and branches that a wrapping validator hides; no settings model has them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from curation.config.base import ByKind


@dataclass(frozen=True, slots=True)
class Choice:
    """What a value may be, None aside: one type, or several that a discriminator or the value's own type tells apart.

    Example: ``RecordedPolicy | VllmPolicy | None`` with ``Field(discriminator="kind")`` is
    ``Choice((RecordedPolicy, VllmPolicy), "kind")``.
    """

    branches: tuple[Any, ...]
    discriminator: str | None = None
    is_registry: bool = False  # of `ByKind`: pydantic names the tag of a single branch too

    @property
    def is_union(self) -> bool:
        """Return whether pydantic names the branch that it took."""
        return self.is_registry or len(self.branches) > 1

    def tagged(self) -> dict[str, Any]:
        """Return the branches by the value of the discriminator; empty without one."""
        if self.discriminator is None or not self.is_union:
            return {}
        return {tag: inside for branch in self.branches for tag, inside in _branches_by_tag(branch, self.discriminator)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an error lies.

    Attributes:
        keys: as a recipe writes them, list positions as numbers.
        table: the model in which the last key stands; None where no model is there.
        choice: what the value may be; None where nothing is known of it.
        unions: for each plain union on the way, the position of its branch in pydantic's location.
    """

    keys: tuple[str, ...]
    table: type[BaseModel] | None
    choice: Choice | None
    unions: tuple[int, ...]


def choice_of(annotation: Any, discriminator: object = None) -> Choice:
    """Return what a value of a type may be; ``discriminator`` is that of the field that has the type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        own = (part.discriminator for part in arguments[1:] if isinstance(part, FieldInfo))
        return choice_of(arguments[0], next((name for name in own if name is not None), discriminator))
    if origin in (typing.Union, types.UnionType):
        branches = tuple(part for part in arguments if part is not types.NoneType)
        if len(branches) == 1:
            return choice_of(branches[0], discriminator)
        return Choice(branches, discriminator if isinstance(discriminator, str) else None)
    return Choice((annotation,))


def choice_of_field(field: FieldInfo) -> Choice:
    """Return what the value of a field may be."""
    registry = next((part for part in field.metadata if isinstance(part, ByKind)), None)
    if registry is not None:
        return Choice(tuple(registry.models().values()), "kind", is_registry=True)
    return choice_of(field.annotation, field.discriminator)


def locate(model: type[BaseModel], location: Sequence[int | str]) -> Place:
    """Return the place of an error in a recipe whose root is ``model``."""
    keys: list[str] = []
    unions: list[int] = []
    table: type[BaseModel] | None = None
    choice: Choice | None = Choice((model,))
    is_in_mapping = False
    for number, step in enumerate(location):
        if is_in_mapping and step == "[key]":  # the key itself is wrong; it has been taken already
            break
        if choice is not None and choice.is_union:
            if choice.discriminator is None:
                unions.append(number)
            branch = _branch(choice, str(step))
            choice = choice_of(branch) if branch is not None else None
            continue
        keys.append(str(step))
        owner = choice.branches[0] if choice is not None else None
        table = owner if is_table(owner) else None
        is_in_mapping = _is_mapping(owner)
        choice = _choice_inside(owner, step)
    return Place(tuple(keys), table, choice, tuple(unions))


def is_table(annotation: Any) -> typing.TypeGuard[type[BaseModel]]:
    """Return whether a type is a settings model."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _choice_inside(holder: Any, step: int | str) -> Choice | None:
    """Return what may stand one step inside a table, a mapping or a list; None where that is not known."""
    if is_table(holder):
        field = holder.model_fields.get(str(step))
        return choice_of_field(field) if field is not None else None
    arguments = typing.get_args(holder)
    if _is_mapping(holder) and len(arguments) == 2:
        return choice_of(arguments[1])
    if not isinstance(step, int) or not arguments:
        return None
    is_of_fixed_length = typing.get_origin(holder) is tuple and arguments[-1] is not ...
    item = arguments[0] if not is_of_fixed_length else arguments[step] if step < len(arguments) else None
    return choice_of(item) if item is not None else None


def _is_mapping(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _branch(choice: Choice, label: str) -> Any:
    """Return the branch of a union that pydantic names so; None where it cannot be told."""
    if choice.discriminator is not None:
        return choice.tagged().get(label)
    for branch in choice.branches:
        if is_table(branch):
            if label == branch.__name__ or label.endswith(f" {branch.__name__}]"):  # function-after[_check(), Pick]
                return branch
        elif TypeAdapter(branch).validator.title == label:
            return branch
    return None


def _branches_by_tag(branch: Any, discriminator: str) -> Iterator[tuple[str, Any]]:
    """Yield a branch by each value of the discriminator that leads to it; a union inside is one branch unless it has
    the same discriminator."""
    if is_table(branch):
        yield from ((tag, branch) for tag in typing.get_args(branch.model_fields[discriminator].annotation))
        return
    inner = choice_of(branch)
    for model in inner.branches:
        for tag, branch_of_tag in _branches_by_tag(model, discriminator):
            yield tag, branch_of_tag if inner.discriminator == discriminator else branch
