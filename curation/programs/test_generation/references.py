"""Words that name others: tokens of a column that all stand in an earlier column, as names of people and then pairs.

Drawn by chance such words name nobody, and every program fails on them or none does.

Invariants: pure; a reference that one given input breaks is none.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from curation.programs.test_generation.columns import Column
from curation.programs.test_generation.relations import Reading, Relations

_LEAST = 2
"""Tokens that must refer to another column, over all given inputs."""


def references_in(columns: Mapping[int, Column], readings: Sequence[Reading]) -> dict[int, int]:
    """Return the columns whose words all stand in an earlier column of freely spelt words, with that column."""
    free = [name for name, column in columns.items() if column.kind == "word" and _is_free(column)]
    found: dict[int, int] = {}
    for name in free:
        for earlier in (one for one in free if one < name and one not in found):
            times, broken = 0, False
            for reading in readings:
                own, others = _tokens(reading, name), set(_tokens(reading, earlier))
                broken = broken or not set(own) <= others
                times += len(own)
            if times >= _LEAST and not broken:
                found[name] = earlier
                break
    return found


def spelt_as_named(relations: Relations, references: Mapping[int, int]) -> Relations:
    """Return the relations with the letters and spellings of columns that refer to others widened by those of these."""
    none: frozenset[str] = frozenset()
    letters, spellings = dict(relations.letters), dict(relations.spellings)
    for name, earlier in references.items():
        letters[name] = letters.get(name, none) | letters.get(earlier, none)
        spellings[name] = spellings.get(name, none) | spellings.get(earlier, none)
    return dataclasses.replace(relations, letters=letters, spellings=spellings)


def named_words(words: Sequence[str], count: int, draw: random.Random) -> list[str]:
    """Return ``count`` of the words that an earlier column of this input has: all of them as likely, or a few."""
    few = draw.random() < 0.3
    chosen = draw.sample(words, min(len(words), draw.randint(2, 5))) if few else words
    return draw.choices(chosen, k=count)


def part_names(
    columns: Sequence[list[str]],
    first: int,
    references: Mapping[int, int],
    words: Mapping[int, Sequence[str]],
    draw: random.Random,
) -> None:
    """Change the second of two names in a row that are the same.

    Args:
        first: the first of these columns.
        words: what stands in the columns that others refer to.
    """
    for place in range(1, len(columns)):
        earlier = references.get(first + place)
        if earlier is None or references.get(first + place - 1) != earlier:
            continue
        names = sorted(set(words.get(earlier, ())))
        for at, (one, other) in enumerate(zip(columns[place - 1], columns[place], strict=True)):
            if one == other and len(names) > 1:
                columns[place][at] = draw.choice([name for name in names if name != one])


def _is_free(column: Column) -> bool:
    return bool(column.letters) and max(map(len, column.words), default=0) > 1


def _tokens(reading: Reading, name: int) -> list[str]:
    return [token for block in reading.seen if block.column == name for token in block.tokens]
