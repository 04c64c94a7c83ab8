"""Settings that were renamed or taken out: the old key of a recipe, a run's folder or ``--set`` is answered.

A model that recipes begin with (`Recipe`, `TrainRecipe`) has a table ``renamed``, one line for each old key or value:

    "near_duplicates": "dedup.near"                                     a table or a setting
    "stage*.sampling.curtail": "stage*.sampling.early_stopping"         in both stages
    "sources.*.columns.statement": "sources.*.columns.problem"          at any position of a list
    "**.policy.per_server": "**.policy.requests_per_server"             in whatever table a policy stands
    "flow = curate-math": "flow = math"                                 a value: as TOML, or text where it is not TOML
    "dedup.similarity": "dedup.words | a cosine: another scale"         what stands behind the bar is said besides
    "dedup.guess": " | it found nothing; remove it"                     nothing before the bar: it was taken out

``*`` stands for any characters within one step of the key, ``**.`` for any steps or none; the new key repeats them in
their order. The first line that fits a key counts, so a line of a setting stands before the line of its table. Old keys
are looked for before anything else is checked, and nothing is translated silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from curation.config.base import toml_value

_WILD = re.compile(r"\*\*\.|\*")


def renamed_keys(table: object, renamed: Mapping[str, str]) -> list[str]:
    """Return a sentence for each key or value of a recipe that was renamed or taken out, in the recipe's order."""
    return [sentence for key, value in _settings(table) if (sentence := _sentence(key, value, renamed)) is not None]


def _sentence(key: str, value: object, renamed: Mapping[str, str]) -> str | None:
    for old, new in renamed.items():
        old_key, by_value, old_value = old.partition(" = ")
        match = key_pattern(old_key).fullmatch(key)
        if match is None or (by_value and not _is_equal(toml_value(old_value), value)):
            continue
        new_key, _, remark = new.partition(" | ")
        now = f"is now `{_fill_wildcards(new_key, match.groups())}`" if new_key else "was taken out"
        sentence = f"`{key}{by_value}{old_value}` {now}"
        return f"{sentence}: {remark}." if remark else f"{sentence}."
    return None


def _fill_wildcards(new: str, wild: Sequence[str]) -> str:
    """Fill the wildcards of a new key."""
    texts = iter(wild)
    return _WILD.sub(lambda _: next(texts), new)


@cache
def key_pattern(key: str) -> re.Pattern[str]:
    """Return a key with wildcards as a regular expression; its groups are what the wildcards stand for."""
    wild = {"*": r"([^.]*)", "**.": r"((?:[^.]+\.)*)"}
    literal = [re.escape(part) for part in _WILD.split(key)]
    groups = [wild[part] for part in _WILD.findall(key)]
    return re.compile("".join(text for pair in zip(literal, [*groups, ""], strict=True) for text in pair))


def _is_equal(old: object, value: object) -> bool:
    return type(old) is type(value) and old == value  # 1 is not true


def _settings(value: Any, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield every key below a table with its value, tables before what stands in them."""
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for step, item in items:
        place = f"{key}.{step}" if key else str(step)
        yield place, item
        yield from _settings(item, place)
